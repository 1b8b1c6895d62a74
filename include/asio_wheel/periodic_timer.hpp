//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_PERIODIC_TIMER_HPP
#define ASIO_WHEEL_PERIODIC_TIMER_HPP

#include <asio_wheel/detail/alarm.hpp>
#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/periodic_schedule.hpp>
#include <asio_wheel/periodic_options.hpp>
#include <asio_wheel/wheel_timer.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <chrono>
#include <cstddef>
#include <type_traits>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace detail {
template <typename Handler, typename Executor> class periodic_wait;
}

/// Ticks once per period, for as long as somebody waits for the ticks.
/**
 * Each async_wait() completes with one tick, and says how many were missed.
 * What a timer that is set anew in its own handler gets wrong comes right: the
 * ticks do not drift, however late each one's handler is called, and what is to
 * happen after the program was too slow is chosen: see missed_tick_policy, with
 * the timelines of each, and periodic_mode for a period that is to begin where
 * the work ends.
 *
 * The ticks go on, in the reckoning, whether or not somebody waits: a wait that
 * comes late completes on the next turn of the loop, and what else was due
 * meanwhile is missed. No tick is lost to a wait that is cancelled: the next
 * one gets it. A timer on which nobody waits does nothing, and does not keep
 * `run()` from returning.
 *
 * It stays where it was constructed: a pending wait refers to it.
 *
 * @par Timing
 * A tick is made never early, and at most one wheel_options::tick late, or the
 * slack if that is more, plus the time the loop needs. The lateness of one does
 * not add to the next's. A period finer than the wheel's tick is kept on the
 * average, with what does not fit counted as missed.
 *
 * @par Thread Safety
 * Distinct objects: safe. Shared objects: unsafe. A tick looks at the timer
 * just before it calls the handler, on the handler's executor: if that is
 * another than the rest of the program uses the timer on, it must not run at
 * the same time (a strand).
 *
 * @par Complexity
 * Constant; no allocation for the ticks that pass, nor for a wait whose handler
 * is trivially copyable and not larger than 24 bytes, with the restrictions of
 * basic_wheel_timer. The clock is read when a tick is made, and at a fixed
 * delay when a wait starts.
 *
 * @par Example
 * @code
 * asio_wheel::periodic_timer timer(co_await asio::this_coro::executor, 10s);
 * for (;;) {
 *   const auto missed = co_await timer.async_wait(asio::use_awaitable);
 *   if (missed != 0)
 *     log("too slow: no report for ", missed, " periods");
 *   co_await report();
 * }
 * @endcode
 */
template <typename Executor = asio::any_io_executor>
class basic_periodic_timer {
public:
  using executor_type = Executor;

  template <typename Executor1> struct rebind_executor {
    using other = basic_periodic_timer<Executor1>;
  };

  using clock_type = std::chrono::steady_clock;
  using duration = clock_type::duration;
  using time_point = clock_type::time_point;

  /// Start: the periods count from now.
  /**
   * @param ex Where handlers run that have no executor of their own.
   * @param period Must be positive. What does not fit the clock saturates;
   * duration::max(): there are no ticks.
   * @param options How it goes on; see there.
   * @throws std::invalid_argument if the period is not positive.
   */
  basic_periodic_timer(const executor_type& ex, const duration& period,
                       const periodic_options& options = periodic_options());

  /// As above, on a context's executor.
  template <typename ExecutionContext>
  basic_periodic_timer(
      ExecutionContext& context, const duration& period,
      const periodic_options& options = periodic_options(),
      std::enable_if_t<
          std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
          int> = 0);

  basic_periodic_timer(const basic_periodic_timer&) = delete;
  basic_periodic_timer& operator=(const basic_periodic_timer&) = delete;

  /// Cancel the pending wait. Its handler is called later, never from here.
  ~basic_periodic_timer() = default;

  const executor_type& get_executor() noexcept { return executor_; }

  /// The period.
  duration period() const noexcept { return schedule_.period(); }

  /// Change the period. A pending wait stays.
  /**
   * Counts from the last tick, or from the start or reset() if there has been
   * none since. If that is past already, a tick is due now; what was due before
   * the change is not counted as missed. A first tick that was asked for at
   * once, or that reset_at() has set, stays where it is.
   *
   * @param p As for the constructor.
   * @throws std::invalid_argument if it is not positive; what arming a
   * steady_timer may throw (see basic_wheel_timer::rearm_at()). The timer is
   * then unchanged.
   */
  void period(const duration& p);

  /// When the next tick is due: in the past, if it only waits for a wait.
  /**
   * time_point::max(): never. At a fixed delay, between a tick and the next
   * wait: the earliest possible, a period after the last tick.
   */
  time_point next_tick() const noexcept { return schedule_.next(); }

  /// Have the next tick a period from now. A pending wait stays.
  /**
   * What was due is forgotten, and not counted as missed.
   * @throws As for period().
   */
  void reset();

  /// Have the next tick at a time, and the others count from it. A pending wait
  /// stays.
  /**
   * @param t By the wheel's clock (wheel_service::now()). Any value; in the
   * past: that tick is due, and the ticks since then are missed. max(): never.
   * @throws As for period().
   */
  void reset_at(const time_point& t);

  /// Cancel the pending wait: its handler gets operation_aborted.
  /**
   * Also if its tick is due but its handler has not started. The tick is left
   * for the next wait.
   * @returns How many waits it cancelled: 0 or 1.
   */
  std::size_t cancel() noexcept;

  /// Wait for a tick.
  /**
   * One wait may be pending at a time, since a tick is for one of them.
   *
   * @par Completion Signature
   * @code void(boost::system::error_code, std::size_t missed) @endcode
   * `missed`: how many ticks after this one have been due by the time at which
   * the handler is called. They are not made any more, except with
   * missed_tick_policy::burst, where each completes a wait of its own. 0 with
   * an error.
   *
   * @par Errors
   * @li success: a tick.
   * @li asio::error::operation_aborted: cancel(), a cancellation slot, the
   * timer's destruction or wheel_service::stop().
   * @li error::operation_in_progress: a wait is pending already (asserted in
   * debug builds). That one goes on.
   * @li error::too_many_pending, error::wheel_stopped,
   * asio::error::operation_not_supported: as
   * basic_wheel_timer::async_wait().
   *
   * With all of them no tick is used up.
   *
   * @par Per-Operation Cancellation
   * terminal, partial and total.
   *
   * @throws std::bad_alloc if there is no memory for the operation; the timer
   * is then unchanged and the handler is destroyed.
   */
  template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code,
                                                 std::size_t))
                WaitToken = asio::default_completion_token_t<executor_type>>
  auto async_wait(
      WaitToken&& token = asio::default_completion_token_t<executor_type>());

private:
  template <typename, typename> friend class detail::periodic_wait;
  class initiate_async_wait;

  time_point now() const noexcept { return alarm_.owner().now(); }
  void change(const detail::periodic_schedule& s);
  std::size_t take_tick() noexcept { return schedule_.take(now()); }
  template <typename Handler> void start(Handler& handler);

  detail::alarm alarm_;
  executor_type executor_;
  detail::periodic_schedule schedule_;
  duration slack_;
};

/// The usual periodic timer.
using periodic_timer = basic_periodic_timer<>;

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#include <asio_wheel/impl/periodic_timer.hpp>

#endif // ASIO_WHEEL_PERIODIC_TIMER_HPP
