//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_BOUNDED_STREAM_HPP
#define ASIO_WHEEL_DETAIL_BOUNDED_STREAM_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/start_wait.hpp>
#include <asio_wheel/detail/stream_bounds.hpp>
#include <asio_wheel/impl/wheel_timer.hpp>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <new>
#include <optional>
#include <type_traits>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// ---------------------------------------------------------------------------
// What a next layer is

template <typename T, typename = void> struct lowest_layer_of {
  using type = T;
};
template <typename T>
struct lowest_layer_of<T, std::void_t<typename T::lowest_layer_type>> {
  using type = typename T::lowest_layer_type;
};
template <typename T> using lowest_layer_t = typename lowest_layer_of<T>::type;

template <typename T> auto& lowest_layer(T& t) noexcept {
  if constexpr (std::is_same_v<lowest_layer_t<T>, T>)
    return t;
  else
    return t.lowest_layer();
}

// What it connects to; of no use if it does not connect.
template <typename LowestLayer, typename = void> struct endpoint_of {
  struct type {};
};
template <typename LowestLayer>
struct endpoint_of<LowestLayer,
                   std::void_t<typename LowestLayer::protocol_type>> {
  using type = typename LowestLayer::protocol_type::endpoint;
};
template <typename NextLayer>
using endpoint_t = typename endpoint_of<lowest_layer_t<NextLayer>>::type;

template <typename T> inline constexpr bool is_socket = false;
template <typename Protocol, typename Executor>
inline constexpr bool is_socket<asio::basic_stream_socket<Protocol, Executor>> =
    true;

// A socket's lowest layer is the basic_socket that it is derived from.
template <typename T> inline constexpr bool may_be_tcp = false;
template <typename Executor>
inline constexpr bool may_be_tcp<asio::basic_socket<asio::ip::tcp, Executor>> =
    true;
template <typename Executor>
inline constexpr bool
    may_be_tcp<asio::basic_stream_socket<asio::ip::tcp, Executor>> = true;

template <typename T, typename = void> inline constexpr bool can_close = false;
template <typename T>
inline constexpr bool
    can_close<T, std::void_t<decltype(std::declval<T&>().close(
                     std::declval<error_code&>()))>> = true;

template <typename T, typename = void>
inline constexpr bool can_shut_down = false;
template <typename T>
inline constexpr bool
    can_shut_down<T, std::void_t<decltype(std::declval<T&>().shutdown(
                         T::shutdown_both, std::declval<error_code&>()))>> =
        true;

// ---------------------------------------------------------------------------

// The stream itself, with its clocks. On the heap, so that a timeout_stream can
// be moved while operations are pending on it; destroyed when neither the
// timeout_stream nor an operation needs it.
template <typename NextLayer>
class bounded_stream final : public stream_bounds {
public:
  using executor_type = typename NextLayer::executor_type;

  template <typename... Args> static bounded_stream* make(Args&&... args) {
    return new bounded_stream(NextLayer(std::forward<Args>(args)...));
  }

  NextLayer& next_layer() noexcept { return next_; }
  const NextLayer& next_layer() const noexcept { return next_; }

  // A new operation is on its way: have it noticed if it takes too long.
  // Returns an error if the wheel does not take that upon it.
  error_code guard(direction d) {
    return alarm_too_late(d) ? watch(next_due(now())) : error_code();
  }

  // Have the alarm go off at the first time at which something may be due.
  void watch() {
    const due d = next_due(now());
    if (d.when == time_point::max())
      withdraw();
    else
      unbounded(watch(d));
  }

  // An idle wait has begun.
  void watch_idle() {
    if (closed_)
      end_idle_waits();
    else
      watch();
  }

  void cancel_pending() noexcept {
    use();
    cancel_all();
    unuse();
  }

  // The settings have changed.
  void set_timeouts(const stream_timeouts& t) {
    timeouts(t, t.write_rate.bytes_per_second != 0 ? unsent() : std::nullopt);
    watch();
  }

  // A wait that is not an operation keeps the state, too.
  void use() noexcept { ++uses_; }

  // An operation has returned.
  void unuse() noexcept {
    if (--uses_ != 0)
      return;
    if (!owned_)
      delete this;
    else if (armed_ &&
             (!acts_alone() || next_due(now()).when == time_point::max()))
      withdraw();
  }

  // The timeout_stream has gone. The next layer's destructor aborts what is
  // pending.
  void disown() noexcept {
    owned_ = false;
    withdraw();
    user_ends_all();
    closed();
    next_.~NextLayer();
    if (uses_ == 0)
      delete this;
  }

  // As disown(), but for the next layer, which is handed over.
  NextLayer release() {
    cancel_all();
    NextLayer next(std::move(next_));
    disown();
    return next;
  }

  void close(error_code& ec) {
    withdraw();
    user_ends_all();
    if constexpr (can_close<lowest_layer_t<NextLayer>>)
      lowest_layer(next_).close(ec);
    closed();
  }

  void open_again() noexcept {
    if (closed_)
      opened();
  }

  // The other's settings and counts.
  template <typename NextLayer1>
  void copy_settings(const bounded_stream<NextLayer1>& other) {
    set_timeouts(other.timeouts());
    deadline(other.deadline());
    copy_counts(other);
  }

  bool idle() const noexcept { return uses_ == 0; }

  std::optional<std::pair<error, time_point>> next_timeout() const {
    const due d = next_due(now());
    if (d.when == time_point::max())
      return {};
    return std::pair(d.what, d.when);
  }

private:
  // The handler of the alarm's wait. That of one that was withdrawn is not
  // called; after wheel_service::stop() the state may have gone.
  struct check_handler {
    bounded_stream* self;
    void operator()(const error_code& ec) const {
      if (!ec)
        self->check();
    }
  };

  explicit bounded_stream(NextLayer&& next)
      : stream_bounds(make_alarm(next.get_executor()), is_socket<NextLayer>,
                      may_be_tcp<lowest_layer_t<NextLayer>>) {
    ::new (static_cast<void*>(&next_)) NextLayer(std::move(next));
    alarm_.owner().streams().add(*this, drain_share_);
  }

  ~bounded_stream() {} // disown() has destroyed next_

  error_code watch(const due& d) {
    if (d.when == time_point::max())
      return {};
    set_alarm(d);
    if (!armed_) {
      outcome why = outcome::none;
      start_wait(alarm_, check_handler{this}, next_.get_executor(), &why);
      if (why != outcome::none)
        return error_of(why);
      armed_ = true;
    }
    return {};
  }

  // Nothing is to go on if the wheel does not look after it.
  void unbounded(const error_code& ec) noexcept {
    if (ec) {
      end_all(static_cast<error>(ec.value()));
      end_idle_waits();
    }
  }

  // Runs on the stream's executor.
  void check() {
    armed_ = false;
    ++uses_;
    struct release {
      bounded_stream* self;
      ~release() { self->unuse(); }
    } guard{this};
    const time_point t = now();
    if (wants_unsent())
      look_at_unsent(t, unsent());
    due d = next_due(t);
    for (; d.when <= t; d = next_due(t))
      if (expire(d, t))
        act(d.what);
    if (anything_pending() || acts_alone())
      unbounded(watch(d));
  }

  std::optional<std::uint32_t> unsent() {
    if constexpr (may_be_tcp<lowest_layer_t<NextLayer>>)
      return unsent_bytes(lowest_layer(next_).native_handle());
    else
      return {};
  }

  // What a timeout does besides ending operations.
  void act(error what) {
    using lowest = lowest_layer_t<NextLayer>;
    error_code ignored;
    const bool connect_failed =
        connecting() && what != error::too_slow && what != error::read_timeout;
    if (action_ == timeout_action::close || connect_failed) {
      if constexpr (can_close<lowest>)
        lowest_layer(next_).close(ignored);
      closed();
    } else if (action_ == timeout_action::shutdown) {
      if constexpr (can_shut_down<lowest>)
        lowest_layer(next_).shutdown(lowest::shutdown_both, ignored);
      closed();
    }
  }

  union {
    NextLayer next_;
  };
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_BOUNDED_STREAM_HPP
