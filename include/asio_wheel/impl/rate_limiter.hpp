//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_IMPL_RATE_LIMITER_HPP
#define ASIO_WHEEL_IMPL_RATE_LIMITER_HPP

#include <asio_wheel/rate_limiter.hpp>

#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

template <typename Executor>
basic_rate_limiter<Executor>::basic_rate_limiter(const executor_type& ex,
                                                 const token_rate& rate,
                                                 double burst)
    : core_(new core_type(ex, rate, burst)) {}

template <typename Executor>
template <typename ExecutionContext>
basic_rate_limiter<Executor>::basic_rate_limiter(
    ExecutionContext& context, const token_rate& rate, double burst,
    std::enable_if_t<
        std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
        int>)
    : basic_rate_limiter(executor_type(context.get_executor()), rate, burst) {}

template <typename Executor>
basic_rate_limiter<Executor>::~basic_rate_limiter() {
  core_->end();
}

template <typename Executor>
class basic_rate_limiter<Executor>::initiate_async_acquire {
public:
  using executor_type = Executor;

  explicit initiate_async_acquire(core_type* core) noexcept : core_(core) {}

  const executor_type& get_executor() const noexcept {
    return core_->get_executor();
  }

  template <typename Handler>
  void operator()(Handler&& handler, std::uint64_t n) const {
    core_->acquire(std::decay_t<Handler>(std::forward<Handler>(handler)), n);
  }

private:
  core_type* core_;
};

template <typename Executor>
template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code))
              AcquireToken>
auto basic_rate_limiter<Executor>::async_acquire(std::uint64_t n,
                                                 AcquireToken&& token) {
  return asio::async_initiate<AcquireToken, void(error_code)>(
      initiate_async_acquire(core_.get()), token, n);
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_IMPL_RATE_LIMITER_HPP
