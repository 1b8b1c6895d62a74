//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BENCH_PLAN_HPP
#define ASIO_WHEEL_BENCH_PLAN_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace bench {

/// What to do in which order, drawn beforehand: the same for all, and no part
/// of what is measured.
class plan {
public:
  /// Which timer, and the delay it gets.
  struct step {
    std::uint32_t index;
    std::uint32_t microseconds;

    std::chrono::microseconds delay() const noexcept {
      return std::chrono::microseconds(microseconds);
    }
  };

  enum class order {
    sequential,
    /// Each step any timer.
    random,
    /// Each timer once, if there are as many steps.
    shuffled
  };

  plan(std::size_t timers, std::size_t operations, order o,
       std::chrono::microseconds least, std::chrono::microseconds most,
       std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_int_distribution<std::uint32_t> any_timer(
        0, static_cast<std::uint32_t>(timers - 1));
    std::uniform_int_distribution<std::uint32_t> any_delay(
        static_cast<std::uint32_t>(least.count()),
        static_cast<std::uint32_t>(most.count()));
    steps_.resize(operations);
    for (std::size_t i = 0; i < operations; ++i) {
      steps_[i].index = o == order::random
                            ? any_timer(random)
                            : static_cast<std::uint32_t>(i % timers);
      steps_[i].microseconds = any_delay(random);
    }
    if (o == order::shuffled)
      std::shuffle(steps_.begin(), steps_.end(), random);
  }

  const std::vector<step>& steps() const noexcept { return steps_; }

private:
  std::vector<step> steps_;
};

} // namespace bench

#endif // ASIO_WHEEL_BENCH_PLAN_HPP
