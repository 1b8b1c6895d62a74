//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_PERIODIC_SCHEDULE_HPP
#define ASIO_WHEEL_DETAIL_PERIODIC_SCHEDULE_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/time_scale.hpp>
#include <asio_wheel/periodic_options.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// When the next tick is, and how many were missed: arithmetic, without a clock
// or a timer. The owner makes a tick not before next(), and calls then
//
//   take(now)    when it makes one: next() is the one after it;
//   resume(now)  when the work at that tick is done. It need not be called at a
//                fixed rate, where it changes nothing.
//
// Everything saturates: at time_point::max() there is never a tick.
class periodic_schedule {
public:
  using duration = std::chrono::steady_clock::duration;
  using time_point = std::chrono::steady_clock::time_point;

  // wheel_tick: how exact the owner's timer is.
  periodic_schedule(time_point now, duration period,
                    const periodic_options& options, duration wheel_tick)
      : base_(now), period_(checked(period)),
        tolerance_(
            time_scale::add(time_point(std::max(options.slack, wheel_tick)),
                            wheel_tick)
                .time_since_epoch()),
        mode_(options.mode), policy_(options.missed_ticks),
        at_base_(options.first == first_tick::at_once) {}

  // When the next tick is. At a fixed delay, before resume(): the earliest.
  time_point next() const noexcept {
    if (at_base_)
      return base_;
    return period_ == duration::max() ? time_point::max()
                                      : time_scale::add(base_, period_);
  }

  duration period() const noexcept { return period_; }

  // The tick of next() is made now. Returns how many more have been due since.
  std::size_t take(time_point now) noexcept {
    const time_point due = next();
    const std::uint64_t late = now > due ? bits(now) - bits(due) : 0;
    const auto period = static_cast<std::uint64_t>(period_.count());
    const std::uint64_t missed = late / period;
    at_base_ = false;
    if (mode_ == periodic_mode::fixed_delay) {
      base_ = now;
      resumed_ = false;
    } else if (policy_ == missed_tick_policy::burst) {
      base_ = due;
    } else if (policy_ == missed_tick_policy::skip) {
      base_ = time_point(
          duration(static_cast<std::int64_t>(bits(due) + missed * period)));
    } else {
      const auto tolerated = static_cast<std::uint64_t>(tolerance_.count());
      base_ = missed != 0 || late > tolerated ? now : due;
    }
    return static_cast<std::size_t>(std::min<std::uint64_t>(
        missed, std::numeric_limits<std::size_t>::max()));
  }

  // At a fixed delay: resume() is to be called before the next tick.
  bool at_work() const noexcept { return !resumed_; }

  // The work at the last tick was done by now.
  void resume(time_point now) noexcept {
    if (!resumed_) {
      resumed_ = true;
      base_ = now;
    }
  }

  // The next tick is this long after the last, but not in the past: what was
  // due by the old period is due now, once, and nothing is missed.
  void period(duration p, time_point now) {
    period_ = checked(p);
    if (!at_work() && next() < now)
      reset_at(now);
  }

  // The next tick is a period from now, whatever was due.
  void restart(time_point now) noexcept {
    base_ = now;
    at_base_ = false;
    resumed_ = true;
  }

  // The next tick is then, whatever was due.
  void reset_at(time_point t) noexcept {
    base_ = t;
    at_base_ = true;
    resumed_ = true;
  }

private:
  static duration checked(duration period) {
    if (period <= duration::zero())
      throw std::invalid_argument("asio_wheel: period must be positive");
    return period;
  }

  static std::uint64_t bits(time_point t) noexcept {
    return static_cast<std::uint64_t>(t.time_since_epoch().count());
  }

  time_point base_; // what the period counts from
  duration period_;
  duration tolerance_; // a tick that is not later than that is on time
  periodic_mode mode_;
  missed_tick_policy policy_;
  bool at_base_;        // the next tick is at base_ itself
  bool resumed_ = true; // false: at work, at a fixed delay
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_PERIODIC_SCHEDULE_HPP
