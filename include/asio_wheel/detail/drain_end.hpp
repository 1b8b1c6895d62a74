//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_DRAIN_END_HPP
#define ASIO_WHEEL_DETAIL_DRAIN_END_HPP

#include <asio_wheel/detail/alarm.hpp>
#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/shard.hpp>
#include <asio_wheel/detail/stream_registry.hpp>

#include <boost/asio/associator.hpp>

#include <memory>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// The end of a graceful drain: when the time is up or no stream is left.
class drain_end final : public drain_end_base {
public:
  drain_end(shard& s, std::shared_ptr<stream_registry> streams)
      : alarm_(s, true), streams_(std::move(streams)) {}

  ~drain_end() {
    if (is_linked())
      streams_->forget(*this);
  }

  void begin(alarm::time_point end) {
    alarm_.owner().expires_at(alarm_, end, {});
  }
  // Once the wait is started, since only then it can be hastened. It may have
  // ended meanwhile.
  void watch() { streams_->await_end(*this); }
  void hasten() noexcept override { alarm_.owner().hasten(alarm_); }

  alarm& wait_alarm() noexcept { return alarm_; }
  std::size_t streams_left() const noexcept { return streams_->size(); }

private:
  alarm alarm_;
  const std::shared_ptr<stream_registry> streams_;
};

// The handler of that wait: says how many streams are left.
template <typename Handler> class drain_wait {
public:
  drain_wait(std::shared_ptr<drain_end> end, Handler&& h)
      : end_(std::move(end)), handler_(std::move(h)) {}

  const Handler& handler() const noexcept { return handler_; }

  void operator()(const error_code& ec) {
    const std::size_t left = end_->streams_left();
    end_.reset();
    std::move(handler_)(ec, left);
  }

private:
  std::shared_ptr<drain_end> end_;
  Handler handler_;
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

namespace boost {
namespace asio {

template <template <typename, typename> class Associator, typename Handler,
          typename Default>
struct associator<Associator, asio_wheel::detail::drain_wait<Handler>, Default>
    : Associator<Handler, Default> {
  static auto get(const asio_wheel::detail::drain_wait<Handler>& w) noexcept {
    return Associator<Handler, Default>::get(w.handler());
  }
  static auto get(const asio_wheel::detail::drain_wait<Handler>& w,
                  const Default& d) noexcept {
    return Associator<Handler, Default>::get(w.handler(), d);
  }
};

} // namespace asio
} // namespace boost

#endif // ASIO_WHEEL_DETAIL_DRAIN_END_HPP
