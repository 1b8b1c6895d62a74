//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_TOKEN_RATE_HPP
#define ASIO_WHEEL_TOKEN_RATE_HPP

#include <asio_wheel/detail/config.hpp>

#include <chrono>
#include <cstdint>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// So many tokens in so much time, exactly: a fraction of whole numbers.
/**
 * `token_rate(3, 7ms)` gives three tokens every seven milliseconds, also after
 * a year; `token_rate(1, 3s)` gives 1,200 an hour.
 *
 * @par Thread Safety
 * Distinct objects: safe. Shared objects: unsafe.
 */
class token_rate {
public:
  using duration = std::chrono::steady_clock::duration;

  /// Tokens per second.
  /**
   * Taken for the simplest fraction that this number stands for: 0.1 is one
   * token in ten seconds, 1.0 / 3 one in three. (As a binary fraction the
   * latter is less than that, and would give 1,199 an hour.)
   *
   * Converts, so that a number will do where a rate is wanted.
   *
   * @param per_second Finite and greater than zero. What is less than one token
   * in 292 years counts as that; what is more than 4e18 a second counts as
   * without limit, or rather as 9e18 in a nanosecond.
   * @throws std::invalid_argument if it is not finite or not positive.
   */
  token_rate(double per_second);

  /// So many tokens in a time.
  /**
   * Only their ratio counts: 1,000 in a second is one in a millisecond.
   *
   * @param tokens At least 1.
   * @param per Greater than zero.
   * @throws std::invalid_argument if one of them is not.
   */
  token_rate(std::int64_t tokens, duration per);

  /// The tokens, in lowest terms.
  std::int64_t tokens() const noexcept { return tokens_; }

  /// The time in which there are so many, in lowest terms.
  duration per() const noexcept { return per_; }

  /// The same as a number, tokens per second.
  double per_second() const noexcept {
    return static_cast<double>(tokens_) /
           std::chrono::duration<double>(per_).count();
  }

  friend bool operator==(const token_rate& a, const token_rate& b) noexcept {
    return a.tokens_ == b.tokens_ && a.per_ == b.per_;
  }
  friend bool operator!=(const token_rate& a, const token_rate& b) noexcept {
    return !(a == b);
  }

private:
  std::int64_t tokens_;
  duration per_;
};

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_TOKEN_RATE_HPP
