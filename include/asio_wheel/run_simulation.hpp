//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_RUN_SIMULATION_HPP
#define ASIO_WHEEL_RUN_SIMULATION_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/manual_clock.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <vector>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// How run_simulation() goes about it.
struct simulation_options {
  /// Jump no further than to this time; stop there. Default: no limit.
  std::optional<manual_clock::time_point> until;

  /// Real time to wait, when nothing is ready, for what sockets and other
  /// threads may still deliver before each jump. Default: zero.
  std::chrono::steady_clock::duration settle{0};

  /// With a seed, the timers due in one tick run in an order shuffled by it,
  /// the same for the same seed; without, in an unspecified order.
  std::optional<std::uint64_t> seed;
};

/// What a simulation did and what it left.
struct simulation_result {
  /// How many jumps of the clock there were.
  std::size_t jumps = 0;
  /// How many handlers `poll()` counted.
  std::size_t handlers = 0;
  /// For each context in the order given: whether it still has work, such as
  /// an operation on a socket that nobody answers, or a wait for ever.
  std::vector<bool> has_work;
};

/// Run contexts in virtual time: hours in milliseconds.
/**
 * Polls all contexts in turn, restarting those that ran out of work, until a
 * whole round runs nothing and no manual_clock::hold() exists. Then jumps to
 * the clock's next deadline, and so on. Returns when no wait with an end is
 * pending on the clock, or at simulation_options::until.
 *
 * Handlers run on the calling thread. Exceptions from handlers leave it; it
 * may be called again.
 *
 * @throws std::invalid_argument if @c until lies before clock.now(), or
 * @c settle is negative.
 *
 * @par Example
 * @snippet virtual_time.cpp virtual_time
 */
simulation_result run_simulation(
    std::initializer_list<std::reference_wrapper<asio::io_context>> contexts,
    manual_clock clock, const simulation_options& options = {});

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_RUN_SIMULATION_HPP
