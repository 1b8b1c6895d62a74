//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BACKOFF_HPP
#define ASIO_WHEEL_BACKOFF_HPP

#include <asio_wheel/detail/config.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// How chance spreads the delays of a backoff.
/**
 * Clients that failed together would otherwise come back together. The forms,
 * and measurements of them, are Marc Brooker's, "Exponential Backoff And
 * Jitter", AWS Architecture Blog, 2015. Below, d is the delay without jitter;
 * what is drawn is uniform, both ends included.
 */
enum class jitter : unsigned char {
  /// d.
  none,
  /// From 0 to d. Spreads best; some come back at once.
  full,
  /// From d / 2 to d. Keeps some distance always.
  equal,
  /// From the first delay to three times the one given before, but not more
  /// than the cap. Grows by itself: factor and step are not looked at. (Of
  /// constant(), whose cap is its first delay, it makes nothing else.)
  decorrelated
};

/// A sequence of delays: how long to wait before each next attempt.
/**
 * A value: cheap to copy, and a copy goes on from where the original is. Made
 * once and copied for each thing that is tried; async_retry() takes one.
 *
 * Without a seed each copy that has given no delay yet draws chances of its
 * own, so that those who share a backoff do not share its jitter.
 *
 * @par Timing
 * Any duration is legal. Delays saturate at the cap, which may be
 * duration::max(). Delays above 2^53 ns, which is 104 days, are exact to a
 * 2^-52th part of them.
 *
 * @par Thread Safety
 * Distinct objects: safe. Shared objects: unsafe.
 *
 * @par Complexity
 * Constant; no allocation. Arithmetic, and with a jitter a few multiplications;
 * the first of a process without a seed asks std::random_device.
 *
 * @par Example
 * @code
 * // 100 ms, 200 ms, 400 ms, ... 30 s, 30 s, each times a chance from 0 to 1
 * auto b = backoff::exponential(100ms, 30s).jitter(jitter::full);
 * @endcode
 */
class backoff {
public:
  using duration = std::chrono::steady_clock::duration;

  /// Always the same delay.
  /**
   * @param d Not negative. Zero: the next attempt is made on the next turn.
   * @throws std::invalid_argument if it is negative.
   */
  static backoff constant(const duration& d);

  /// first, first + step, first + 2 * step, ... up to cap.
  /**
   * @param first Must be positive.
   * @param step Not negative. Zero: always first.
   * @param cap Not less than first.
   * @throws std::invalid_argument naming what is out of range.
   */
  static backoff linear(const duration& first, const duration& step,
                        const duration& cap);

  /// first, first * factor, first * factor^2, ... up to cap.
  /**
   * @param first Must be positive.
   * @param cap Not less than first.
   * @param factor Finite, at least 1.
   * @throws std::invalid_argument naming what is out of range.
   */
  static backoff exponential(const duration& first, const duration& cap,
                             double factor = 2);

  /// Spread the delays to come.
  backoff& jitter(asio_wheel::jitter kind) noexcept;

  /// Make the jitter reproducible.
  /**
   * @param value Any. Equal backoffs with equal seeds give equal delays, on
   * every platform.
   */
  backoff& seed(std::uint64_t value) noexcept;

  /// The next delay.
  /**
   * @throws What std::random_device throws, if there is a jitter and no seed.
   */
  duration next();

  /// Start again from the first delay. The chances go on.
  void reset() noexcept;

  /// How many delays it has given since its construction or reset().
  std::size_t attempt() const noexcept { return attempt_; }

private:
  backoff(duration first, duration cap, double factor, double step) noexcept;

  duration without_jitter() const noexcept;
  std::uint64_t draw();
  duration between(duration low, duration high);

  duration first_;
  duration cap_;
  double factor_;
  double step_;
  double growing_;    // the delay without jitter and cap, at most about the cap
  duration previous_; // what was given last, for decorrelated
  std::size_t attempt_ = 0;
  std::uint64_t random_ = 0;
  bool seeded_ = false;
  asio_wheel::jitter jitter_ = asio_wheel::jitter::none;
};

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_BACKOFF_HPP
