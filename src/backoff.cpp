//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/backoff.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>
#include <stdexcept>
#include <string>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace {

void check(bool ok, const char* function, const char* what) {
  if (!ok)
    throw std::invalid_argument(std::string("asio_wheel: backoff::") +
                                function + ": " + what);
}

void check_first_and_cap(backoff::duration first, backoff::duration cap,
                         const char* function) {
  check(first > first.zero(), function, "first must be positive");
  check(cap >= first, function, "cap must not be less than first");
}

// SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
// Generators", 2014, with the constants of Vigna's splitmix64.c): any state is
// as good as any other, and all arithmetic is modulo 2^64 everywhere.
constexpr std::uint64_t golden_gamma = 0x9e3779b97f4a7c15;

std::uint64_t mix(std::uint64_t z) noexcept {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// Another one each time, unlike those of other processes.
std::uint64_t fresh_seed() {
  static const std::uint64_t origin = [] {
    std::random_device device;
    const std::uint64_t high = device();
    return (high << 32) ^ device();
  }();
  static std::atomic<std::uint64_t> count{0};
  return mix(origin + golden_gamma * ++count);
}

} // namespace

backoff::backoff(duration first, duration cap, double factor,
                 double step) noexcept
    : first_(first), cap_(cap), factor_(factor), step_(step) {
  reset();
}

backoff backoff::constant(const duration& d) {
  check(d >= d.zero(), "constant", "d must not be negative");
  return {d, d, 1, 0};
}

backoff backoff::linear(const duration& first, const duration& step,
                        const duration& cap) {
  check_first_and_cap(first, cap, "linear");
  check(step >= step.zero(), "linear", "step must not be negative");
  return {first, cap, 1, static_cast<double>(step.count())};
}

backoff backoff::exponential(const duration& first, const duration& cap,
                             double factor) {
  check_first_and_cap(first, cap, "exponential");
  check(std::isfinite(factor) && factor >= 1, "exponential",
        "factor must be finite and at least 1");
  return {first, cap, factor, 0};
}

backoff& backoff::jitter(asio_wheel::jitter kind) noexcept {
  jitter_ = kind;
  return *this;
}

backoff& backoff::seed(std::uint64_t value) noexcept {
  random_ = value;
  seeded_ = true;
  return *this;
}

void backoff::reset() noexcept {
  growing_ = static_cast<double>(first_.count());
  previous_ = first_;
  attempt_ = 0;
}

backoff::duration backoff::next() {
  using kind = asio_wheel::jitter;
  const duration d = without_jitter();
  duration result = d;
  switch (jitter_) {
  case kind::none:
    break;
  case kind::full:
    result = between(duration::zero(), d);
    break;
  case kind::equal:
    result = between(d - d / 2, d);
    break;
  case kind::decorrelated:
    result = std::min(cap_, between(first_, previous_ > duration::max() / 3
                                                ? duration::max()
                                                : previous_ * 3));
    break;
  }
  previous_ = result;
  ++attempt_;
  // Beyond the cap it need not grow, and after long would not be a number. (Of
  // the two steps one always is exact, so that a fused multiply-add makes no
  // difference.)
  if (growing_ < static_cast<double>(cap_.count()))
    growing_ = growing_ * factor_ + step_;
  return result;
}

backoff::duration backoff::without_jitter() const noexcept {
  if (attempt_ == 0)
    return first_; // exactly
  if (growing_ >= static_cast<double>(cap_.count()))
    return cap_;
  return duration(static_cast<duration::rep>(growing_));
}

std::uint64_t backoff::draw() {
  if (!seeded_)
    seed(fresh_seed());
  random_ += golden_gamma;
  return mix(random_);
}

// Not std::uniform_int_distribution, which each library makes different
// numbers of. Those of the 2^64 numbers that the remainder would favour are
// drawn again.
backoff::duration backoff::between(duration low, duration high) {
  const auto n = static_cast<std::uint64_t>((high - low).count()) + 1;
  const std::uint64_t favoured = (0 - n) % n;
  std::uint64_t r = draw();
  while (r < favoured)
    r = draw();
  return low + duration(static_cast<duration::rep>(r % n));
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel
