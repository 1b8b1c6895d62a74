//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_RETRY_OPTIONS_HPP
#define ASIO_WHEEL_RETRY_OPTIONS_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/error.hpp>

#include <chrono>
#include <cstddef>
#include <functional>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// When async_retry() gives up, and what it tells meanwhile.
struct retry_options {
  using duration = std::chrono::steady_clock::duration;

  /// The most attempts that are made. Zero: no limit. One is always made.
  std::size_t max_attempts = 0;

  /// How long the whole may take, from the initiation. The attempt that takes
  /// longer is cancelled (terminal), and error::deadline_exceeded is the
  /// result. A wait that would take longer is not begun: the result is there at
  /// once, with the error of the last attempt. Zero or negative: until the next
  /// turn. duration::max(): no limit.
  duration time_limit = duration::max();

  /// How long each attempt may take: it is cancelled (terminal) then, and has
  /// failed with error::operation_timeout, as with timeout_after(). Zero or
  /// negative: until the next turn. duration::max(): no limit.
  duration attempt_timeout = duration::max();

  /// Whether an error is worth another attempt. Empty: every error is but
  /// asio::error::operation_aborted, which is what somebody else's cancellation
  /// looks like.
  std::function<bool(const error_code&)> retry_if = {};

  /// Called before each wait: with the error, how many attempts have been made,
  /// and how long the wait will be. To log it, or to prepare for the next
  /// attempt. Empty: nothing.
  std::function<void(const error_code&, std::size_t attempts, duration delay)>
      before_wait = {};
};

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_RETRY_OPTIONS_HPP
