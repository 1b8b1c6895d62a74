//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include "clock_state.hpp"

#include <asio_wheel/run_simulation.hpp>

#include <stdexcept>
#include <thread>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace {

// Seeds the clock for as long as the simulation runs.
class seeded {
public:
  seeded(detail::clock_state& clock, std::optional<std::uint64_t> seed)
      : clock_(clock) {
    clock_.seed(seed);
  }
  ~seeded() { clock_.seed(std::nullopt); }
  seeded(const seeded&) = delete;
  seeded& operator=(const seeded&) = delete;

private:
  detail::clock_state& clock_;
};

} // namespace

simulation_result run_simulation(
    std::initializer_list<std::reference_wrapper<asio::io_context>> contexts,
    manual_clock clock, const simulation_options& options) {
  if (options.until && *options.until < clock.now())
    throw std::invalid_argument(
        "asio_wheel: simulation_options::until must not be in the past");
  if (options.settle < options.settle.zero())
    throw std::invalid_argument(
        "asio_wheel: simulation_options::settle must not be negative");

  const seeded seed(*clock.state(), options.seed);
  simulation_result result;

  // Run what is ready everywhere until a whole round runs nothing.
  const auto run_ready = [&] {
    for (std::size_t ran = 1; ran != 0;) {
      ran = 0;
      for (asio::io_context& context : contexts) {
        if (context.stopped())
          context.restart();
        ran += context.poll();
      }
      result.handlers += ran;
    }
  };
  // Wait a little, in real time, for what others may bring.
  const auto listen = [&](std::chrono::steady_clock::duration time) {
    const auto until = std::chrono::steady_clock::now() + time;
    do {
      const std::size_t before = result.handlers;
      run_ready();
      if (result.handlers != before)
        return true;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    } while (std::chrono::steady_clock::now() < until);
    return false;
  };

  for (;;) {
    run_ready();
    if (clock.state()->held()) {
      listen(std::chrono::milliseconds(1));
      continue;
    }
    if (options.settle > options.settle.zero() && listen(options.settle))
      continue;
    const auto next = clock.next_deadline();
    if (!next) {
      if (options.until)
        clock.advance_to(*options.until);
      break;
    }
    if (options.until && *next > *options.until) {
      clock.advance_to(*options.until);
      break;
    }
    clock.advance_to(*next > clock.now() ? *next : clock.now());
    ++result.jumps;
  }

  for (asio::io_context& context : contexts) {
    // A context without work says so when asked to run.
    context.restart();
    result.handlers += context.poll();
    result.has_work.push_back(!context.stopped());
  }
  return result;
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel
