//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_MANUAL_CLOCK_HPP
#define ASIO_WHEEL_MANUAL_CLOCK_HPP

#include <asio_wheel/detail/config.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace detail {
class clock_state;
}

/// A clock that moves only when told to: virtual time for tests.
/**
 * A manual_clock is a handle; copies refer to the same time. Given in
 * wheel_options::clock it drives any number of wheels, in any number of
 * contexts. Its time points are those of std::chrono::steady_clock, so that a
 * timer's type does not depend on the clock; the epoch is up to the program.
 *
 * Waits on a wheel under a manual clock keep `run()` from returning like any
 * other wait. Setting the time on does not run handlers: it makes the wheels
 * that have something due post their work, which `poll()` or `run()` then
 * does.
 *
 * @par Thread Safety
 * Distinct and shared objects: safe.
 *
 * @par Example
 * @snippet virtual_time.cpp virtual_time
 */
class manual_clock {
public:
  using duration = std::chrono::steady_clock::duration;
  using time_point = std::chrono::steady_clock::time_point;

  /// While one of these lives, run_simulation() does not jump.
  /**
   * For work that the simulation cannot see: a context run by another thread,
   * a real socket. Move-only.
   */
  class hold_token {
  public:
    hold_token() = default;
    hold_token(hold_token&&) = default;
    hold_token& operator=(hold_token&& other) noexcept;
    ~hold_token();

    /// Let go before destruction.
    void release() noexcept;

  private:
    friend class manual_clock;
    explicit hold_token(std::shared_ptr<detail::clock_state> s) noexcept;
    std::shared_ptr<detail::clock_state> state_;
  };

  /// A new clock that shows @c start.
  explicit manual_clock(time_point start = time_point());

  /// The time it shows.
  time_point now() const noexcept;

  /// Set the time on by @c d, saturating at time_point::max().
  /**
   * Wheels with something due by then post their work. Timers armed for a time
   * in between are late by the rest of the step: to see each at its own time,
   * step to next_deadline() or use run_simulation().
   *
   * @throws std::invalid_argument if @c d is negative: time does not go back.
   */
  void advance(duration d);

  /// Set the time to @c t, which must not be before now().
  /** @throws std::invalid_argument if it is: time does not go back. */
  void advance_to(time_point t);

  /// The earliest time at which a wheel on this clock has something to do.
  /**
   * A lower bound: nothing is due earlier; it may stem from a wait that was
   * cancelled or put off since. Empty if nothing is pending, or has only ever
   * been pending without an end.
   */
  std::optional<time_point> next_deadline() const;

  /// How many waits are pending on all wheels on this clock.
  std::size_t pending() const;

  /// Keep run_simulation() from jumping.
  hold_token hold();

  friend bool operator==(const manual_clock& a,
                         const manual_clock& b) noexcept {
    return a.state_ == b.state_;
  }
  friend bool operator!=(const manual_clock& a,
                         const manual_clock& b) noexcept {
    return !(a == b);
  }

  /// For the library's own use.
  const std::shared_ptr<detail::clock_state>& state() const noexcept {
    return state_;
  }

private:
  std::shared_ptr<detail::clock_state> state_;
};

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_MANUAL_CLOCK_HPP
