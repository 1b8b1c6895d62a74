//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_IMPL_TIMEOUT_STREAM_HPP
#define ASIO_WHEEL_IMPL_TIMEOUT_STREAM_HPP

#include <asio_wheel/detail/bounded_op.hpp>
#include <asio_wheel/detail/time_scale.hpp>
#include <asio_wheel/timeout_stream.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prepend.hpp>
#include <boost/system/system_error.hpp>

#include <memory>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace detail {

inline void throw_if(const error_code& ec, const char* what) {
  if (ec)
    throw boost::system::system_error(ec, what);
}

template <typename Buffers> bool buffers_empty(const Buffers& buffers) {
  const auto end = asio::buffer_sequence_end(buffers);
  for (auto i = asio::buffer_sequence_begin(buffers); i != end; ++i)
    if (asio::const_buffer(*i).size() != 0) // some have no operator->
      return false;
  return true;
}

// Begin an operation: start(handler) is to start it on the next layer. An
// operation that is refused completes with `args` behind the error.
template <typename NextLayer, typename Handler, typename Start,
          typename... Args>
void begin_bounded(bounded_stream<NextLayer>& s, direction d, bool connects,
                   Handler&& handler, Start&& start, Args... args) {
  using handler_type = std::decay_t<Handler>;
  handler_type h(std::forward<Handler>(handler));
  if (const error_code refused = s.begin(d, connects)) {
    asio::post(s.next_layer().get_executor(),
               asio::prepend(std::move(h), refused, std::move(args)...));
    return;
  }
  bounded_op<NextLayer, handler_type> op(s, d, std::move(h));
  if (const error_code refused = s.guard(d))
    asio::post(s.next_layer().get_executor(),
               asio::prepend(std::move(op), refused, std::move(args)...));
  else
    std::forward<Start>(start)(s.next_layer(), std::move(op));
}

// Any endpoint will do: asio::async_connect() without a condition.
struct any_endpoint {
  template <typename Endpoint>
  bool operator()(const error_code&, const Endpoint&) const noexcept {
    return true;
  }
};

// The handler of an idle wait. It keeps the state, as an operation does.
template <typename NextLayer, typename Handler> class idle_wait {
  struct release {
    void operator()(bounded_stream<NextLayer>* s) const noexcept { s->unuse(); }
  };

public:
  using executor_type =
      asio::associated_executor_t<Handler, typename NextLayer::executor_type>;

  idle_wait(bounded_stream<NextLayer>& s, Handler&& h)
      : stream_((s.use(), &s)), executor_(asio::get_associated_executor(
                                    h, s.next_layer().get_executor())),
        handler_(std::move(h)) {}

  const executor_type& get_executor() const noexcept { return executor_; }
  const Handler& handler() const noexcept { return handler_; }

  void start() && {
    bounded_stream<NextLayer>& s = *stream_;
    s.idle_timer(s.next_layer().get_executor()).async_wait(std::move(*this));
    s.watch_idle();
  }

  void operator()(const error_code& ec) {
    const auto stream = std::move(stream_); // released after the handler
    std::move(handler_)(ec);
  }

private:
  std::unique_ptr<bounded_stream<NextLayer>, release> stream_;
  executor_type executor_;
  Handler handler_;
};

} // namespace detail

// ---------------------------------------------------------------------------
// Life

template <typename NextLayer>
template <typename Arg, typename... Args, typename>
timeout_stream<NextLayer>::timeout_stream(Arg&& arg, Args&&... args)
    : state_(state_type::make(std::forward<Arg>(arg),
                              std::forward<Args>(args)...)) {}

template <typename NextLayer>
timeout_stream<NextLayer>::timeout_stream(timeout_stream&& other) noexcept
    : state_(std::exchange(other.state_, nullptr)) {}

template <typename NextLayer>
timeout_stream<NextLayer>&
timeout_stream<NextLayer>::operator=(timeout_stream&& other) noexcept {
  if (this != &other) {
    if (state_)
      state_->disown();
    state_ = std::exchange(other.state_, nullptr);
  }
  return *this;
}

template <typename NextLayer>
template <typename NextLayer1, typename>
timeout_stream<NextLayer>::timeout_stream(timeout_stream<NextLayer1>&& other)
    : state_(nullptr) {
  ASIO_WHEEL_ASSERT(other.state_->idle());
  state_ = state_type::make(std::move(other.next_layer()));
  state_->copy_settings(*other.state_);
  std::exchange(other.state_, nullptr)->disown();
}

template <typename NextLayer> timeout_stream<NextLayer>::~timeout_stream() {
  if (state_)
    state_->disown();
}

template <typename NextLayer> NextLayer timeout_stream<NextLayer>::release() {
  return std::exchange(state_, nullptr)->release();
}

template <typename NextLayer> void timeout_stream<NextLayer>::close() {
  error_code ec;
  close(ec);
  detail::throw_if(ec, "close");
}

template <typename NextLayer>
void timeout_stream<NextLayer>::close(error_code& ec) {
  ec.clear();
  state_->close(ec);
}

template <typename NextLayer> void timeout_stream<NextLayer>::cancel() {
  state_->cancel_pending();
}

// ---------------------------------------------------------------------------
// Settings and queries

template <typename NextLayer>
stream_timeouts timeout_stream<NextLayer>::timeouts() const {
  return state_->timeouts();
}

template <typename NextLayer>
void timeout_stream<NextLayer>::timeouts(const stream_timeouts& t) {
  state_->set_timeouts(t);
}

template <typename NextLayer>
void timeout_stream<NextLayer>::expires_after(const duration& d) {
  expires_at(detail::time_scale::add(state_->now(), d));
}

template <typename NextLayer>
void timeout_stream<NextLayer>::expires_at(const time_point& t) {
  state_->deadline(t);
  state_->watch();
}

template <typename NextLayer> void timeout_stream<NextLayer>::expires_never() {
  state_->deadline(time_point::max());
  state_->watch();
}

template <typename NextLayer>
typename timeout_stream<NextLayer>::time_point
timeout_stream<NextLayer>::expiry() const noexcept {
  return state_->deadline();
}

template <typename NextLayer> void timeout_stream<NextLayer>::touch() noexcept {
  state_->touch();
}

template <typename NextLayer>
typename timeout_stream<NextLayer>::time_point
timeout_stream<NextLayer>::last_read() const noexcept {
  return state_->last(detail::direction::reading);
}

template <typename NextLayer>
typename timeout_stream<NextLayer>::time_point
timeout_stream<NextLayer>::last_write() const noexcept {
  return state_->last(detail::direction::writing);
}

template <typename NextLayer>
std::uint64_t timeout_stream<NextLayer>::bytes_read() const noexcept {
  return state_->bytes(detail::direction::reading);
}

template <typename NextLayer>
std::uint64_t timeout_stream<NextLayer>::bytes_written() const noexcept {
  return state_->bytes(detail::direction::writing);
}

template <typename NextLayer>
std::optional<typename timeout_stream<NextLayer>::pending_timeout>
timeout_stream<NextLayer>::next_timeout() const {
  if (const auto next = state_->next_timeout())
    return pending_timeout{next->first, next->second};
  return {};
}

// ---------------------------------------------------------------------------
// Operations

template <typename NextLayer>
template <int Direction>
class timeout_stream<NextLayer>::initiate_transfer {
public:
  using executor_type = typename NextLayer::executor_type;

  explicit initiate_transfer(timeout_stream* self) noexcept : self_(self) {}

  executor_type get_executor() const noexcept { return self_->get_executor(); }

  template <typename Handler, typename Buffers>
  void operator()(Handler&& handler, const Buffers& buffers) const {
    constexpr auto d = static_cast<detail::direction>(Direction);
    const auto start = [&buffers](NextLayer& next, auto&& h) {
      if constexpr (d == detail::direction::reading)
        next.async_read_some(buffers, std::forward<decltype(h)>(h));
      else
        next.async_write_some(buffers, std::forward<decltype(h)>(h));
    };
    // TLS streams start empty operations beside others.
    if (detail::buffers_empty(buffers))
      start(self_->next_layer(), std::forward<Handler>(handler));
    else
      detail::begin_bounded(*self_->state_, d, false,
                            std::forward<Handler>(handler), start,
                            std::size_t(0));
  }

private:
  timeout_stream* self_;
};

template <typename NextLayer>
class timeout_stream<NextLayer>::initiate_connect {
public:
  using executor_type = typename NextLayer::executor_type;

  explicit initiate_connect(timeout_stream* self) noexcept : self_(self) {}

  executor_type get_executor() const noexcept { return self_->get_executor(); }

  template <typename Handler, typename Endpoint>
  void operator()(Handler&& handler, const Endpoint& endpoint) const {
    self_->begin_connect(std::forward<Handler>(handler),
                         [&endpoint](NextLayer& next, auto&& h) {
                           detail::lowest_layer(next).async_connect(
                               endpoint, std::forward<decltype(h)>(h));
                         });
  }

private:
  timeout_stream* self_;
};

template <typename NextLayer>
class timeout_stream<NextLayer>::initiate_range_connect {
public:
  using executor_type = typename NextLayer::executor_type;

  explicit initiate_range_connect(timeout_stream* self) noexcept
      : self_(self) {}

  executor_type get_executor() const noexcept { return self_->get_executor(); }

  template <typename Handler, typename EndpointSequence, typename Condition>
  void operator()(Handler&& handler, const EndpointSequence& endpoints,
                  const Condition& condition) const {
    self_->begin_connect(
        std::forward<Handler>(handler),
        [&](NextLayer& next, auto&& h) {
          asio::async_connect(detail::lowest_layer(next), endpoints, condition,
                              std::forward<decltype(h)>(h));
        },
        endpoint_type());
  }

private:
  timeout_stream* self_;
};

template <typename NextLayer>
class timeout_stream<NextLayer>::initiate_wait_idle {
public:
  using executor_type = typename NextLayer::executor_type;

  explicit initiate_wait_idle(timeout_stream* self) noexcept : self_(self) {}

  executor_type get_executor() const noexcept { return self_->get_executor(); }

  template <typename Handler> void operator()(Handler&& handler) const {
    using handler_type = std::decay_t<Handler>;
    state_type& s = *self_->state_;
    detail::idle_wait<NextLayer, handler_type>(
        s, handler_type(std::forward<Handler>(handler)))
        .start();
  }

private:
  timeout_stream* self_;
};

template <typename NextLayer>
template <typename Handler, typename Start, typename... Args>
void timeout_stream<NextLayer>::begin_connect(Handler&& handler, Start&& start,
                                              Args... args) {
  state_->open_again();
  detail::begin_bounded(*state_, detail::direction::writing, true,
                        std::forward<Handler>(handler),
                        std::forward<Start>(start), std::move(args)...);
}

template <typename NextLayer>
template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(error_code)) Token>
auto timeout_stream<NextLayer>::async_wait_idle(Token&& token) {
  return asio::async_initiate<Token, void(error_code)>(initiate_wait_idle(this),
                                                       token);
}

template <typename NextLayer>
template <typename MutableBufferSequence,
          BOOST_ASIO_COMPLETION_TOKEN_FOR(void(error_code, std::size_t)) Token>
auto timeout_stream<NextLayer>::async_read_some(
    const MutableBufferSequence& buffers, Token&& token) {
  constexpr int reading = static_cast<int>(detail::direction::reading);
  return asio::async_initiate<Token, void(error_code, std::size_t)>(
      initiate_transfer<reading>(this), token, buffers);
}

template <typename NextLayer>
template <typename ConstBufferSequence,
          BOOST_ASIO_COMPLETION_TOKEN_FOR(void(error_code, std::size_t)) Token>
auto timeout_stream<NextLayer>::async_write_some(
    const ConstBufferSequence& buffers, Token&& token) {
  constexpr int writing = static_cast<int>(detail::direction::writing);
  return asio::async_initiate<Token, void(error_code, std::size_t)>(
      initiate_transfer<writing>(this), token, buffers);
}

template <typename NextLayer>
template <typename Endpoint,
          BOOST_ASIO_COMPLETION_TOKEN_FOR(void(error_code)) Token, typename>
auto timeout_stream<NextLayer>::async_connect(const Endpoint& endpoint,
                                              Token&& token) {
  return asio::async_initiate<Token, void(error_code)>(initiate_connect(this),
                                                       token, endpoint);
}

template <typename NextLayer>
template <typename EndpointSequence,
          BOOST_ASIO_COMPLETION_TOKEN_FOR(
              void(error_code, detail::endpoint_t<NextLayer>)) Token,
          typename, typename>
auto timeout_stream<NextLayer>::async_connect(const EndpointSequence& endpoints,
                                              Token&& token) {
  return async_connect(endpoints, detail::any_endpoint(),
                       std::forward<Token>(token));
}

template <typename NextLayer>
template <typename EndpointSequence, typename ConnectCondition,
          BOOST_ASIO_COMPLETION_TOKEN_FOR(
              void(error_code, detail::endpoint_t<NextLayer>)) Token,
          typename, typename>
auto timeout_stream<NextLayer>::async_connect(const EndpointSequence& endpoints,
                                              ConnectCondition condition,
                                              Token&& token) {
  return asio::async_initiate<Token, void(error_code, endpoint_type)>(
      initiate_range_connect(this), token, endpoints, std::move(condition));
}

// ---------------------------------------------------------------------------
// Blocking

template <typename NextLayer>
template <typename MutableBufferSequence>
std::size_t
timeout_stream<NextLayer>::read_some(const MutableBufferSequence& buffers) {
  error_code ec;
  const std::size_t n = read_some(buffers, ec);
  detail::throw_if(ec, "read_some");
  return n;
}

template <typename NextLayer>
template <typename MutableBufferSequence>
std::size_t
timeout_stream<NextLayer>::read_some(const MutableBufferSequence& buffers,
                                     error_code& ec) {
  const std::size_t n = next_layer().read_some(buffers, ec);
  state_->moved(detail::direction::reading, n);
  return n;
}

template <typename NextLayer>
template <typename ConstBufferSequence>
std::size_t
timeout_stream<NextLayer>::write_some(const ConstBufferSequence& buffers) {
  error_code ec;
  const std::size_t n = write_some(buffers, ec);
  detail::throw_if(ec, "write_some");
  return n;
}

template <typename NextLayer>
template <typename ConstBufferSequence>
std::size_t
timeout_stream<NextLayer>::write_some(const ConstBufferSequence& buffers,
                                      error_code& ec) {
  const std::size_t n = next_layer().write_some(buffers, ec);
  state_->moved(detail::direction::writing, n);
  return n;
}

template <typename NextLayer>
template <typename Endpoint>
void timeout_stream<NextLayer>::connect(const Endpoint& endpoint) {
  error_code ec;
  connect(endpoint, ec);
  detail::throw_if(ec, "connect");
}

template <typename NextLayer>
template <typename Endpoint>
void timeout_stream<NextLayer>::connect(const Endpoint& endpoint,
                                        error_code& ec) {
  lowest_layer().connect(endpoint, ec);
  if (!ec) {
    state_->open_again();
    state_->connected();
  }
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

namespace boost {
namespace asio {

template <template <typename, typename> class Associator, typename NextLayer,
          typename Handler, typename Default>
struct associator<Associator, asio_wheel::detail::idle_wait<NextLayer, Handler>,
                  Default> : Associator<Handler, Default> {
  using wait = asio_wheel::detail::idle_wait<NextLayer, Handler>;

  static auto get(const wait& w) noexcept {
    return Associator<Handler, Default>::get(w.handler());
  }
  static auto get(const wait& w, const Default& d) noexcept {
    return Associator<Handler, Default>::get(w.handler(), d);
  }
};

} // namespace asio
} // namespace boost

#endif // ASIO_WHEEL_IMPL_TIMEOUT_STREAM_HPP
