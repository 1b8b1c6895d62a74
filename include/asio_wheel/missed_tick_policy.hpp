//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_MISSED_TICK_POLICY_HPP
#define ASIO_WHEEL_MISSED_TICK_POLICY_HPP

#include <asio_wheel/detail/config.hpp>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// What becomes of ticks at a fixed rate that could not be made in time.
/**
 * A tick that is due while nobody waits is made as soon as somebody does: late.
 * The ticks after it that are due by then as well are *missed*. With a period
 * of 10, and work that begins at the first tick and takes until 35:
 *
 * @verbatim
   time        10        20        30        40        50        60
                |---------|---------|---------|---------|---------|
   at work      [========================]
   burst        *                        **   *         *         *
     missed     0                        10   0         0         0
   skip         *                        *    *         *         *
     missed     0                        1    0         0         0
   delay        *                        *         *         *
     missed     0                        1         0         0
   @endverbatim
 *
 * At 35 the tick of 20 is made, by each of them; the tick of 30 is missed.
 */
enum class missed_tick_policy : unsigned char {
  /// They are made up for, one after the other and at once, until the time is
  /// caught up with: there are as many ticks as periods. For what counts.
  /// `missed` says how many more ticks follow at once.
  burst,
  /// They are left out, and the ticks that follow keep to the grid of the
  /// first. For what looks at the clock. `missed` says how many were left out.
  skip,
  /// They are left out, and the grid is moved: the next tick is a period after
  /// the late one, so that two ticks are never less than a period apart. For
  /// what must not be overrun. `missed` says how many were left out. (A tick
  /// that is late by no more than the timer is inexact moves nothing.)
  delay
};

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_MISSED_TICK_POLICY_HPP
