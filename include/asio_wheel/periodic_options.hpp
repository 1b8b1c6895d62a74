//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_PERIODIC_OPTIONS_HPP
#define ASIO_WHEEL_PERIODIC_OPTIONS_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/missed_tick_policy.hpp>

#include <chrono>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// What a period is between.
enum class periodic_mode : unsigned char {
  /// From tick to tick, however long the work at each takes.
  fixed_rate,
  /// From the end of the work, that is, from the next wait, to the tick: the
  /// work itself never makes a tick late.
  /**
   * With a period of 10, work that begins at the first tick and takes until
   * 35, and work without duration after that:
   *
   * @verbatim
     time        10        20        30        40        50        60
                  |---------|---------|---------|---------|---------|
     at work      [========================]
     fixed_delay  *                                  *         *
       missed     0                                  0         0
     @endverbatim
   */
  fixed_delay
};

/// When the first tick is.
enum class first_tick : unsigned char {
  after_period, ///< a period after the start
  at_once       ///< at the start
};

/// How something periodic goes on.
struct periodic_options {
  using duration = std::chrono::steady_clock::duration;

  /// What the period is between.
  periodic_mode mode = periodic_mode::fixed_rate;

  /// What becomes of ticks that could not be made in time. Not looked at for a
  /// fixed delay, where only the program's being busy elsewhere makes a tick
  /// late: `missed` says by how many periods, and the next tick counts from it.
  missed_tick_policy missed_ticks = missed_tick_policy::skip;

  /// When the first tick is.
  first_tick first = first_tick::after_period;

  /// How much later than needed a tick may be, to share a wake-up with others.
  /// Zero or negative: none. The ticks after it are not later therefore.
  duration slack = duration::zero();
};

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_PERIODIC_OPTIONS_HPP
