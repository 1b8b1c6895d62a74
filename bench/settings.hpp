//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BENCH_SETTINGS_HPP
#define ASIO_WHEEL_BENCH_SETTINGS_HPP

#include <asio_wheel/wheel_options.hpp>

#include <boost/json/object.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/// What the command line says.
struct settings {
  /// How many timers are pending.
  std::vector<std::size_t> sizes{10'000, 100'000, 1'000'000};
  /// Measured rounds; one more before them warms up.
  std::size_t rounds = 5;
  /// The fewest operations of one round: few timers are gone over repeatedly.
  std::size_t operations = 200'000;
  /// How many operations lie between two polls of the context. A loaded reactor
  /// of Asio's takes 128 events at a time; two changes for each of them.
  std::size_t poll_every = 256;
  /// Measure with timers of this executor: "any" or "io_context".
  std::string executor = "any";
  /// Only the workloads, and only the contestants, whose name contains this.
  std::string only;
  std::string who;
  /// Change the timers in random order before all else, so that what belongs to
  /// them lies in memory as after hours of service.
  bool aged = false;
  /// How long the idle workload looks on.
  std::chrono::milliseconds idle{5'000};
  std::uint64_t seed = 1;
  /// How our wheel is built.
  asio_wheel::wheel_options wheel;
};

/// For the JSON file.
inline boost::json::object to_json(const asio_wheel::wheel_options& o) {
  return {{"tick_ns", o.tick.count()},
          {"slots", o.slots},
          {"levels", o.levels},
          {"shards", o.shards},
          {"expiry_batch", o.expiry_batch},
          {"single_threaded", o.single_threaded}};
}

inline boost::json::object to_json(const settings& s) {
  return {{"rounds", s.rounds},
          {"operations", s.operations},
          {"poll_every", s.poll_every},
          {"executor", s.executor},
          {"aged", s.aged},
          {"idle_ms", s.idle.count()},
          {"seed", s.seed},
          {"wheel", to_json(s.wheel)}};
}

} // namespace bench

#endif // ASIO_WHEEL_BENCH_SETTINGS_HPP
