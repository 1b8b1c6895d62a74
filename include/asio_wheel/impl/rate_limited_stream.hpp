//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_IMPL_RATE_LIMITED_STREAM_HPP
#define ASIO_WHEEL_IMPL_RATE_LIMITED_STREAM_HPP

#include <asio_wheel/rate_limited_stream.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/prepend.hpp>

#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

template <typename NextLayer>
template <typename Arg, typename... Args, typename>
rate_limited_stream<NextLayer>::rate_limited_stream(Arg&& arg, Args&&... args)
    : state_(std::make_shared<state_type>(std::forward<Arg>(arg),
                                          std::forward<Args>(args)...)) {}

template <typename NextLayer>
rate_limited_stream<NextLayer>& rate_limited_stream<NextLayer>::operator=(
    rate_limited_stream&& other) noexcept {
  const std::shared_ptr<state_type> old =
      std::exchange(state_, std::move(other.state_));
  if (old && old != state_)
    old->disown();
  return *this;
}

template <typename NextLayer>
rate_limited_stream<NextLayer>::~rate_limited_stream() {
  if (state_)
    state_->disown();
}

template <typename NextLayer>
template <template <typename...> class Op>
class rate_limited_stream<NextLayer>::initiate {
public:
  using executor_type = typename NextLayer::executor_type;

  explicit initiate(rate_limited_stream* self) noexcept : self_(self) {}

  executor_type get_executor() const noexcept { return self_->get_executor(); }

  template <typename Handler, typename Buffers>
  void operator()(Handler&& handler, const Buffers& buffers) const {
    using handler_type = std::decay_t<Handler>;
    using op = Op<NextLayer, Buffers, handler_type>;
    handler_type h(std::forward<Handler>(handler));
    if (self_->state_->pending(op::where)) {
      ASIO_WHEEL_ASSERT(!"an operation of this kind is pending on the "
                         "rate_limited_stream already");
      asio::post(get_executor(),
                 asio::prepend(std::move(h),
                               error_code(error::operation_in_progress),
                               std::size_t{0}));
    } else {
      op(self_->state_, buffers, std::move(h)).start();
    }
  }

private:
  rate_limited_stream* self_;
};

template <typename NextLayer>
template <typename MutableBufferSequence,
          BOOST_ASIO_COMPLETION_TOKEN_FOR(void(error_code, std::size_t)) Token>
auto rate_limited_stream<NextLayer>::async_read_some(
    const MutableBufferSequence& buffers, Token&& token) {
  return asio::async_initiate<Token, void(error_code, std::size_t)>(
      initiate<detail::limited_read>(this), token, buffers);
}

template <typename NextLayer>
template <typename ConstBufferSequence,
          BOOST_ASIO_COMPLETION_TOKEN_FOR(void(error_code, std::size_t)) Token>
auto rate_limited_stream<NextLayer>::async_write_some(
    const ConstBufferSequence& buffers, Token&& token) {
  return asio::async_initiate<Token, void(error_code, std::size_t)>(
      initiate<detail::limited_write>(this), token, buffers);
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_IMPL_RATE_LIMITED_STREAM_HPP
