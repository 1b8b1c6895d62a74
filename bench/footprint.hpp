//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BENCH_FOOTPRINT_HPP
#define ASIO_WHEEL_BENCH_FOOTPRINT_HPP

#include "machine.hpp"
#include "plan.hpp"
#include "settings.hpp"

#include <chrono>
#include <cstddef>
#include <memory>

namespace bench {

/// Bytes per timer with a pending wait, all told: the timer itself in its
/// vector, the operation, and its share of what the service holds.
template <typename Timers>
double footprint_of_timers(const settings& s, std::size_t size,
                           const plan& first) {
  const auto before = heap_in_use();
  const auto timers = std::make_unique<Timers>(s, size);
  for (const auto& step : first.steps())
    timers->start(step.index, step.delay());
  return static_cast<double>(heap_in_use() - before) /
         static_cast<double>(size);
}

/// The same of watchdogs; the plan is not looked at.
template <typename Dogs>
double footprint_of_watchdogs(const settings& s, std::size_t size,
                              const plan&) {
  const auto before = heap_in_use();
  const auto dogs = std::make_unique<Dogs>(s, size);
  for (std::size_t i = 0; i < size; ++i)
    dogs->start(i, std::chrono::seconds(60), {});
  return static_cast<double>(heap_in_use() - before) /
         static_cast<double>(size);
}

} // namespace bench

#endif // ASIO_WHEEL_BENCH_FOOTPRINT_HPP
