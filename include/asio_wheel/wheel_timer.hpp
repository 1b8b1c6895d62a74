//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_WHEEL_TIMER_HPP
#define ASIO_WHEEL_WHEEL_TIMER_HPP

#include <asio_wheel/detail/alarm.hpp>
#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/wheel_service.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <chrono>
#include <cstddef>
#include <type_traits>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

template <typename Executor> class basic_watchdog;

/// A timer on the context's timing wheel, for where a steady_timer stood.
/**
 * Has the interface of boost::asio::steady_timer with the same meaning, so
 * that changing the type is the whole migration, and promises more:
 *
 * @li **Cancel wins until the handler starts.** After cancel(), expires_at()
 * or expires_after(), or the timer's destruction, no wait started before it
 * reports success: not even one that had expired and whose handler was queued
 * on its executor. (A steady_timer's would.)
 * @li rearm_after() and rearm_at() move the deadline and keep the waits; to a
 * later time that is little more than a store.
 * @li Any duration and time point is legal: the past completes on the next
 * turn of the loop, and what is too far for the wheel never does.
 *
 * @par Timing
 * A wait completes never early, and at most one wheel_options::tick late, plus
 * the time the loop needs to get round to it, plus what a slack allows. With a
 * slack s the deadline is rounded up, once, to a multiple of 2^k ticks, k =
 * floor(log2(s / tick)): such waits share slots and wake-ups. expiry() stays as
 * given.
 *
 * @par Thread Safety
 * Distinct objects: safe. Shared objects: unsafe. (As a steady_timer.)
 *
 * @par Complexity
 * Every operation is constant in the number of timers. A wait whose handler is
 * small and trivially copyable, has the default allocator and no connected
 * cancellation slot, and runs on the context's own executor, lives inside the
 * timer and allocates nothing; any other takes one allocation from the
 * handler's allocator, by default a recycling one.
 *
 * @par Example
 * @snippet callback.cpp callback
 */
template <typename Executor = asio::any_io_executor> class basic_wheel_timer {
public:
  /// The type of the executor associated with the timer.
  using executor_type = Executor;

  /// The timer type for another executor.
  template <typename Executor1> struct rebind_executor {
    using other = basic_wheel_timer<Executor1>;
  };

  /// The clock whose time points the timer takes. (Under a manual_clock its
  /// values differ, not its type.)
  using clock_type = std::chrono::steady_clock;
  using duration = clock_type::duration;
  using time_point = clock_type::time_point;

  /// A timer that has expired already: time_point() is its expiry.
  explicit basic_wheel_timer(const executor_type& ex);

  /// As above, on a context's executor.
  template <typename ExecutionContext>
  explicit basic_wheel_timer(
      ExecutionContext& context,
      std::enable_if_t<
          std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
          int> = 0);

  /// A timer that expires at an absolute time.
  basic_wheel_timer(const executor_type& ex, const time_point& expiry_time);

  /// As above, on a context's executor.
  template <typename ExecutionContext>
  basic_wheel_timer(
      ExecutionContext& context, const time_point& expiry_time,
      std::enable_if_t<
          std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
          int> = 0);

  /// A timer that expires after a time from now.
  basic_wheel_timer(const executor_type& ex, const duration& expiry_time);

  /// As above, on a context's executor.
  template <typename ExecutionContext>
  basic_wheel_timer(
      ExecutionContext& context, const duration& expiry_time,
      std::enable_if_t<
          std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
          int> = 0);

  /// Take over another timer's expiry and pending waits.
  /** The other is then as if constructed from its executor. */
  basic_wheel_timer(basic_wheel_timer&& other) noexcept;

  /// Cancel this timer's waits, then take over the other's expiry and waits.
  basic_wheel_timer& operator=(basic_wheel_timer&& other) noexcept;

  /// Take over a timer with another type of executor.
  template <
      typename Executor1,
      typename = std::enable_if_t<std::is_convertible_v<Executor1, Executor> &&
                                  !std::is_same_v<Executor1, Executor>>>
  basic_wheel_timer(basic_wheel_timer<Executor1>&& other);

  /// Cancel this timer's waits, then take over a timer with another type of
  /// executor.
  template <typename Executor1>
  std::enable_if_t<std::is_convertible_v<Executor1, Executor> &&
                       !std::is_same_v<Executor1, Executor>,
                   basic_wheel_timer&>
  operator=(basic_wheel_timer<Executor1>&& other);

  /// Cancel pending waits. Their handlers are called later, never from here.
  ~basic_wheel_timer() = default;

  /// The executor associated with the timer.
  const executor_type& get_executor() noexcept { return executor_; }

  /// Cancel all pending waits: their handlers get operation_aborted.
  /**
   * Also those that have expired but whose handlers have not started.
   * @returns How many waits it cancelled.
   */
  std::size_t cancel() noexcept;

  /// Cancel the oldest pending wait.
  /** @returns How many waits it cancelled: 0 or 1. */
  std::size_t cancel_one() noexcept;

  /// The time at which the timer expires or expired, as it was given.
  time_point expiry() const noexcept;

  /// How long until expiry(): zero if it is past, duration::max() if that far.
  duration remaining() const noexcept;

  /// How many waits are pending: neither started nor cancelled.
  std::size_t pending() const noexcept;

  /// Set the expiry to an absolute time. Cancels pending waits.
  /**
   * @param expiry_time Any value; max() is "never".
   * @param slack How much later than needed waits may complete; zero or
   * negative: none.
   * @returns How many waits it cancelled.
   */
  std::size_t expires_at(const time_point& expiry_time,
                         const duration& slack = duration::zero()) noexcept;

  /// Set the expiry to a time from now. Cancels pending waits.
  /**
   * @param expiry_time Any value; zero and negative ones expire at once, what
   * does not fit the clock saturates.
   * @param slack As for expires_at().
   * @returns How many waits it cancelled.
   */
  std::size_t expires_after(const duration& expiry_time,
                            const duration& slack = duration::zero()) noexcept;

  /// Move the expiry to an absolute time and keep the pending waits.
  /**
   * Also those that have expired but whose handlers have not started: they
   * wait again.
   * @param expiry_time As for expires_at().
   * @param slack As for expires_at().
   * @returns How many waits it moved.
   * @throws What arming a steady_timer may throw (bad_alloc), which only the
   * wheel's first wait after a pause does. The waits are then unchanged.
   */
  std::size_t rearm_at(const time_point& expiry_time,
                       const duration& slack = duration::zero());

  /// Move the expiry to a time from now and keep the pending waits.
  /** As rearm_at() for the rest. */
  std::size_t rearm_after(const duration& expiry_time,
                          const duration& slack = duration::zero());

  /// Block the calling thread until the timer has expired.
  /**
   * @throws system_error operation_not_supported under a manual_clock, which
   * nobody would move meanwhile.
   */
  void wait();

  /// Block the calling thread until the timer has expired.
  /**
   * @param ec Set to operation_not_supported under a manual_clock, else
   * cleared.
   */
  void wait(error_code& ec);

  /// Wait for the timer to expire.
  /**
   * Any number of waits may be pending on one timer. The handler is called
   * exactly once, never from within this function, on its associated executor
   * (default: the timer's), and its memory is freed before it is called.
   *
   * @par Completion Signature
   * @code void(boost::system::error_code) @endcode
   *
   * @par Errors
   * @li success: the expiry was reached.
   * @li asio::error::operation_aborted: cancel(), expires_at(),
   * expires_after(), a cancellation slot, the timer's destruction or
   * wheel_service::stop().
   * @li error::too_many_pending: wheel_options::max_pending waits are pending.
   * @li error::wheel_stopped: wheel_service::stop() was called before.
   * @li asio::error::operation_not_supported: wheel_options::single_threaded,
   * and the handler is bound to another context.
   *
   * The timer is unchanged by all of them.
   *
   * @par Per-Operation Cancellation
   * terminal, partial and total: each cancels this wait alone, also after the
   * timer was moved. The signal may be emitted from wherever the timer may be
   * used.
   *
   * @throws std::bad_alloc if there is no memory for the operation; the timer
   * is then unchanged and the handler is destroyed.
   */
  template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code))
                WaitToken = asio::default_completion_token_t<executor_type>>
  auto async_wait(
      WaitToken&& token = asio::default_completion_token_t<executor_type>());

private:
  template <typename> friend class basic_wheel_timer;
  template <typename> friend class basic_watchdog;
  class initiate_async_wait;

  detail::alarm alarm_;
  executor_type executor_;
};

/// The usual timer.
using wheel_timer = basic_wheel_timer<>;

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#include <asio_wheel/impl/wheel_timer.hpp>

#endif // ASIO_WHEEL_WHEEL_TIMER_HPP
