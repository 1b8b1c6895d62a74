//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_STREAM_TIMEOUTS_HPP
#define ASIO_WHEEL_STREAM_TIMEOUTS_HPP

#include <asio_wheel/detail/config.hpp>

#include <chrono>
#include <cstdint>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// No timeout.
inline constexpr std::chrono::steady_clock::duration never =
    std::chrono::steady_clock::duration::max();

/// Which bytes end a connection's idle time.
enum class idle_activity : unsigned char {
  received = 1, ///< those that were read
  sent = 2,     ///< those that were written
  both = 3      ///< all
};

/// What a timeout does, besides ending the pending operations with its error.
enum class timeout_action : unsigned char {
  /// Nothing. What was read or written stays so, and the stream can be used
  /// again: the next operation starts with fresh clocks.
  cancel,
  /// Shut the connection down, both directions.
  shutdown,
  /// Close the socket.
  close
};

/// How fast a peer has to be, for peers that drip.
/**
 * A direction has an account of time. It starts full, with `grace` in it; it
 * loses the time for which an operation of that direction is pending, and gains
 * the time that each byte moved is worth, 1 / bytes_per_second, up to `grace`
 * again. When it is empty, the operation ends with error::too_slow. Time in
 * which the program itself does not read (or write) costs a peer nothing, and a
 * burst earns no right to stall for longer than `grace`.
 */
struct minimum_rate {
  /// Zero: no minimum.
  std::uint64_t bytes_per_second = 0;
  /// Must be positive.
  std::chrono::steady_clock::duration grace = std::chrono::seconds(5);
};

/// The settings of a timeout_stream.
/**
 * Each duration must be positive; `never`, the default, turns it off. A timeout
 * is noticed never early, and late by at most one wheel_options::tick or 1/64
 * of itself, at most one second, whichever is more.
 */
struct stream_timeouts {
  using duration = std::chrono::steady_clock::duration;

  /// How long the next bytes may take. Runs while a read is pending, anew for
  /// each async_read_some(). error::read_timeout
  duration read = never;

  /// How long the peer may accept nothing. Runs while a write is pending, anew
  /// for each async_write_some(): a slow transfer that moves never times out.
  /// Over TCP on Linux, bytes that the peer's side acknowledged meanwhile count
  /// as progress, and a stall is noticed up to 1/8 of the timeout later.
  /// error::write_timeout
  duration write = never;

  /// How long async_connect() may take, over all endpoints. The socket is
  /// closed. error::connect_timeout
  duration connect = never;

  /// How long no bytes at all may move. Runs whether or not an operation is
  /// pending; while a write over TCP is, what the peer's side acknowledged
  /// counts as for write. error::idle_timeout
  duration idle = never;

  /// Which bytes count against idle.
  idle_activity idle_counts = idle_activity::both;

  /// What a timeout does.
  timeout_action action = timeout_action::cancel;

  /// How fast reads must be. error::too_slow
  minimum_rate read_rate = {};

  /// How fast writes must be; over TCP on Linux bytes count when the peer's
  /// side has acknowledged them. error::too_slow
  minimum_rate write_rate = {};
};

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_STREAM_TIMEOUTS_HPP
