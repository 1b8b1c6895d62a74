//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_TOKEN_BUCKET_HPP
#define ASIO_WHEEL_DETAIL_TOKEN_BUCKET_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/time_scale.hpp>
#include <asio_wheel/token_rate.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// a * b / c and what is left over, for numbers whose product may not fit. If
// the quotient does not fit, it is the largest number. c is not zero and less
// than 2^63.
struct quotient {
  std::uint64_t value;
  std::uint64_t rest;
};

inline quotient multiply_divide(std::uint64_t a, std::uint64_t b,
                                std::uint64_t c) noexcept {
  constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
  if (b == 0 || a <= largest / b)
    return {a * b / c, a * b % c};
  // By hand, bit by bit of a: q is what has been seen of a, times b / c.
  quotient q{0, 0};
  const auto add = [&](std::uint64_t value, std::uint64_t rest) {
    q.rest += rest; // both are less than c
    value += q.rest >= c ? 1 : 0;
    q.rest -= q.rest >= c ? c : 0;
    q.value = value > largest - q.value ? largest : q.value + value;
  };
  for (int bit = 63; bit >= 0; --bit) {
    add(q.value, q.rest);
    if ((a >> bit & 1) != 0)
      add(b / c, b % c);
  }
  return q;
}

// A token bucket, exactly: arithmetic, without a clock or a timer. What has
// been gathered is counted in whole tokens and a fraction of one, whose
// denominator is the time of the rate in nanoseconds, so that nothing is ever
// rounded. May be in debt, by spend().
//
// (The bucket is Turner's, "New directions in communications", 1986; the same
// kept as a time is the generic cell rate algorithm of ITU-T I.371.)
class token_bucket {
public:
  using duration = std::chrono::steady_clock::duration;
  using time_point = std::chrono::steady_clock::time_point;

  // It is full at first.
  token_bucket(const token_rate& rate, std::int64_t burst, time_point now)
      : rate_(rate), burst_(burst), tokens_(burst), last_(now) {}

  // What the user calls the burst, checked.
  static std::int64_t whole_burst(double burst) {
    constexpr std::int64_t largest = std::int64_t{1} << 53; // exact as a double
    if (!(burst >= 1 && std::isfinite(burst)))
      throw std::invalid_argument(
          "asio_wheel: burst must be at least 1 and finite");
    return static_cast<std::int64_t>(
        std::min(burst, static_cast<double>(largest)));
  }

  const token_rate& rate() const noexcept { return rate_; }
  std::int64_t burst() const noexcept { return burst_; }

  // As of the time up to which it has gathered.
  std::int64_t tokens() const noexcept { return tokens_; }

  // When it has gathered so many, if nobody takes any and it is large enough.
  time_point when(std::uint64_t n) const noexcept {
    if (tokens_ >= 0 && n <= static_cast<std::uint64_t>(tokens_))
      return last_;
    // Missing: n - tokens_ tokens less the fraction; that is one part of
    // whole tokens, and one of a token that is begun.
    const std::uint64_t whole = n - static_cast<std::uint64_t>(tokens_) - 1;
    const std::uint64_t begun = period() - fraction_;
    quotient time = multiply_divide(whole, period(), per_period());
    const std::uint64_t rest = time.rest + begun;
    const std::uint64_t more = rest / per_period() + // rounded up
                               (rest % per_period() != 0 ? 1 : 0);
    constexpr auto longest =
        static_cast<std::uint64_t>(duration::max().count());
    if (time.value > longest || more > longest - time.value)
      return time_point::max();
    return time_scale::add(
        last_, duration(static_cast<std::int64_t>(time.value + more)));
  }

  // Gather up to now.
  void advance(time_point now) noexcept {
    if (now <= last_)
      return;
    quotient gained =
        multiply_divide(bits(now) - bits(last_), per_period(), period());
    last_ = now;
    fraction_ += gained.rest; // both are less than the period
    if (fraction_ >= period()) {
      fraction_ -= period();
      if (gained.value != std::numeric_limits<std::uint64_t>::max())
        ++gained.value;
    }
    if (gained.value >= static_cast<std::uint64_t>(burst_ - tokens_))
      fill();
    else
      tokens_ += static_cast<std::int64_t>(gained.value);
  }

  // Take some if they are there.
  bool take(std::uint64_t n) noexcept {
    if (tokens_ < 0 || n > static_cast<std::uint64_t>(tokens_))
      return false;
    tokens_ -= static_cast<std::int64_t>(n);
    return true;
  }

  // Take some whether they are there or not.
  void spend(std::uint64_t n) noexcept {
    const auto room = static_cast<std::uint64_t>(tokens_ + deepest);
    tokens_ -= static_cast<std::int64_t>(std::min(n, room));
  }

  void give_back(std::uint64_t n) noexcept {
    if (n >= static_cast<std::uint64_t>(burst_ - tokens_))
      fill();
    else
      tokens_ += static_cast<std::int64_t>(n);
  }

  void fill() noexcept {
    tokens_ = burst_;
    fraction_ = 0;
  }

  // What has been gathered stays: the fraction, in parts of the new time,
  // rounded down.
  void rate(const token_rate& r) noexcept {
    const auto parts = static_cast<std::uint64_t>(r.per().count());
    fraction_ = multiply_divide(fraction_, parts, period()).value;
    rate_ = r;
  }

  // What does not fit any more is lost.
  void burst(std::int64_t b) noexcept {
    burst_ = b;
    if (tokens_ >= burst_)
      fill();
  }

private:
  static constexpr std::int64_t deepest = std::int64_t{1} << 62; // debt

  static std::uint64_t bits(time_point t) noexcept {
    return static_cast<std::uint64_t>(t.time_since_epoch().count());
  }

  std::uint64_t per_period() const noexcept {
    return static_cast<std::uint64_t>(rate_.tokens());
  }
  std::uint64_t period() const noexcept {
    return static_cast<std::uint64_t>(rate_.per().count());
  }

  token_rate rate_;
  std::int64_t burst_;
  std::int64_t tokens_;        // from -deepest to burst_
  std::uint64_t fraction_ = 0; // in parts of period()
  time_point last_;            // gathered up to then
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_TOKEN_BUCKET_HPP
