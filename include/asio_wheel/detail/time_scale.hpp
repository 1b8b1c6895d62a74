//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_TIME_SCALE_HPP
#define ASIO_WHEEL_DETAIL_TIME_SCALE_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/timing_wheel.hpp>

#include <chrono>
#include <cstdint>
#include <ratio>
#include <type_traits>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// The one place where time becomes ticks and ticks become time. Tick n begins
// at epoch + n * tick. Everything saturates; nothing overflows.
class time_scale {
public:
  using duration = std::chrono::steady_clock::duration;
  using time_point = std::chrono::steady_clock::time_point;
  using tick_type = timing_wheel::tick_type;

  static_assert(std::is_same_v<duration, std::chrono::nanoseconds>,
                "asio_wheel counts steady_clock's time in nanoseconds");

  time_scale(time_point epoch, std::chrono::nanoseconds tick) noexcept
      : epoch_(epoch), tick_(static_cast<std::uint64_t>(tick.count())),
        reciprocal_(~std::uint64_t{0} / tick_),
        last_((bits(time_point::max()) - bits(epoch)) / tick_) {}

  duration tick() const noexcept {
    return duration(static_cast<std::int64_t>(tick_));
  }

  // The tick that t lies in; 0 before the epoch.
  tick_type floor(time_point t) const noexcept { return divide(since(t)); }

  // The first tick that begins at or after t, or the first multiple of
  // 2^shift ticks that does: a deadline is rounded up once, here.
  tick_type ceil(time_point t, unsigned shift) const noexcept {
    if (t == time_point::max())
      return timing_wheel::never;
    const std::uint64_t ns = since(t);
    if (ns == 0)
      return 0;
    const tick_type coarse = tick_type{1} << shift;
    const tick_type n = divide(ns - 1) + 1;
    const tick_type rounded = (n + (coarse - 1)) & ~(coarse - 1);
    return rounded < n || rounded > last_ ? timing_wheel::never : rounded;
  }

  // When tick n begins.
  time_point begin(tick_type n) const noexcept {
    if (n > last_)
      return time_point::max();
    return time_point(
        duration(static_cast<std::int64_t>(bits(epoch_) + n * tick_)));
  }

  // floor(log2(slack / tick)), 0 if the slack is less than a tick.
  unsigned shift_for(duration slack) const noexcept {
    if (slack.count() < static_cast<std::int64_t>(tick_))
      return 0;
    std::uint64_t ratio = divide(static_cast<std::uint64_t>(slack.count()));
    unsigned shift = 0;
    while (ratio > 1) {
      ratio >>= 1;
      ++shift;
    }
    return shift;
  }

  static time_point add(time_point t, duration d) noexcept {
    if (d.count() >= 0)
      return t > time_point::max() - d ? time_point::max() : t + d;
    return t < time_point::min() - d ? time_point::min() : t + d;
  }

  static duration subtract(time_point a, time_point b) noexcept {
    if (b.time_since_epoch().count() >= 0)
      return a < time_point::min() + b.time_since_epoch() ? duration::min()
                                                          : a - b;
    return a > time_point::max() + b.time_since_epoch() ? duration::max()
                                                        : a - b;
  }

private:
  static std::uint64_t bits(time_point t) noexcept {
    return static_cast<std::uint64_t>(t.time_since_epoch().count());
  }

  // Nanoseconds since the epoch; their difference always fits unsigned.
  std::uint64_t since(time_point t) const noexcept {
    return t <= epoch_ ? 0 : bits(t) - bits(epoch_);
  }

  // ns / tick_, by a multiplication: a division by a number that the compiler
  // does not know takes several times as long. The quotient by way of
  // 2^64 / tick_, rounded down, is right or one too small.
  std::uint64_t divide(std::uint64_t ns) const noexcept {
#if defined(__SIZEOF_INT128__)
    __extension__ using wide = unsigned __int128;
    const auto q = static_cast<std::uint64_t>((wide{ns} * reciprocal_) >> 64);
    return q + (ns - q * tick_ >= tick_ ? 1 : 0);
#else
    return ns / tick_;
#endif
  }

  time_point epoch_;
  std::uint64_t tick_;
  std::uint64_t reciprocal_;
  tick_type last_; // that begins before the end of time
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_TIME_SCALE_HPP
