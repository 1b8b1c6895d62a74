//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/token_rate.hpp>

#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t second =
    std::chrono::nanoseconds(std::chrono::seconds(1)).count();

// The simplest fraction that is this number when it is a double: the first
// convergent of its continued fraction that is. (See for instance Knuth, The
// Art of Computer Programming, volume 2, 4.5.3.) If none is within the limits,
// the last that is.
token_rate simplest(double number) {
  constexpr double most_tokens = 4e18;
  constexpr double most_seconds = static_cast<double>(largest / second);
  if (number > most_tokens)
    return {largest, std::chrono::nanoseconds(1)};
  double p0 = 0, q0 = 1, p1 = 1, q1 = 0; // convergents, the last two
  for (double x = number;;) {
    const double whole = std::floor(x);
    const double p = whole * p1 + p0;
    const double q = whole * q1 + q0;
    if (p > most_tokens || q > most_seconds)
      break;
    p0 = p1, q0 = q1, p1 = p, q1 = q;
    if (p1 / q1 == number || x == whole)
      break;
    x = 1 / (x - whole);
  }
  if (p1 == 0)
    return {1, token_rate::duration::max()};
  return {static_cast<std::int64_t>(p1),
          std::chrono::nanoseconds(static_cast<std::int64_t>(q1) * second)};
}

} // namespace

token_rate::token_rate(std::int64_t tokens, duration per)
    : tokens_(tokens), per_(per) {
  if (tokens <= 0)
    throw std::invalid_argument("asio_wheel: rate must be positive");
  if (per <= duration::zero())
    throw std::invalid_argument(
        "asio_wheel: the time of a rate must be positive");
  const std::int64_t common =
      std::gcd(tokens, static_cast<std::int64_t>(per.count()));
  tokens_ /= common;
  per_ /= common;
}

token_rate::token_rate(double per_second) : tokens_(1), per_(1) {
  if (!(per_second > 0 && std::isfinite(per_second)))
    throw std::invalid_argument("asio_wheel: rate must be positive and finite");
  *this = simplest(per_second);
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel
