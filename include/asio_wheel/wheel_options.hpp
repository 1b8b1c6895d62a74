//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_WHEEL_OPTIONS_HPP
#define ASIO_WHEEL_WHEEL_OPTIONS_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/manual_clock.hpp>

#include <chrono>
#include <cstddef>
#include <optional>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// How a wheel_service is built. The defaults suit a server.
struct wheel_options {
  /// The grain of time: a wait completes never early and at most one tick
  /// late, plus the time the loop takes to get round to it. 1 us to 1 h.
  std::chrono::nanoseconds tick = std::chrono::milliseconds(1);

  /// Slots per level: a power of two from 2 to 65,536.
  std::size_t slots = 256;

  /// Levels: at least 1, log2(slots) * levels at most 63. One level is the
  /// classic hashed wheel with rounds.
  std::size_t levels = 4;

  /// How many independent wheels, each with a lock of its own: 1 to 1,024. A
  /// timer belongs to the shard of the thread that constructs it. More than
  /// one helps only where several threads run the context.
  std::size_t shards = 1;

  /// The most waits that may be pending; the next one completes with
  /// error::too_many_pending. With several shards each takes an equal part,
  /// rounded up. Zero: no limit.
  std::size_t max_pending = 0;

  /// How many handlers run before the loop's other work gets its turn: 1 to
  /// max_expiry_batch.
  std::size_t expiry_batch = 128;

  static constexpr std::size_t max_expiry_batch = 1'000'000;

  /// True promises that every call, drain and handler is on one thread: no
  /// lock is taken. A handler bound to another context is refused (asserted;
  /// in release it completes with asio::error::operation_not_supported).
  bool single_threaded = false;

  /// The clock; empty: std::chrono::steady_clock.
  std::optional<manual_clock> clock;

  /// The hierarchical wheel that is the default: 1 ms.
  static wheel_options hierarchical() { return {}; }

  /// The classic hashed wheel: a tick of 100 ms, 512 slots, one level.
  static wheel_options hashed() {
    wheel_options o;
    o.tick = std::chrono::milliseconds(100);
    o.slots = 512;
    o.levels = 1;
    return o;
  }
};

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_WHEEL_OPTIONS_HPP
