//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BENCH_IDLE_HPP
#define ASIO_WHEEL_BENCH_IDLE_HPP

#include "machine.hpp"
#include "settings.hpp"

#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>

namespace bench {

struct idle_result {
  /// How often the thread woke up, not counting the end of the measurement.
  long wakeups;
  double cpu_nanoseconds;
};

/// Timers that are far from due, and a thread that has nothing else to do.
template <typename Timers>
idle_result idle(const settings& s, std::size_t size,
                 std::chrono::nanoseconds expiry) {
  Timers timers(s, size);
  for (std::size_t i = 0; i < size; ++i)
    timers.start(i, expiry);
  auto& io = timers.context();
  io.poll();

  // Not run_for(), which wakes up once a second.
  boost::asio::steady_timer end(io, s.idle);
  end.async_wait([&](const boost::system::error_code&) { io.stop(); });
  const long sleeps_before = sleeps();
  const double cpu_before = cpu_nanoseconds();
  io.run();
  return {sleeps() - sleeps_before - 1, cpu_nanoseconds() - cpu_before};
}

} // namespace bench

#endif // ASIO_WHEEL_BENCH_IDLE_HPP
