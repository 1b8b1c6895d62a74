//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_WATCHDOG_HPP
#define ASIO_WHEEL_WATCHDOG_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/wheel_timer.hpp>

#include <chrono>
#include <cstddef>
#include <type_traits>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace detail {
template <typename Handler, typename Executor> class watchdog_check;
}

/// Notices when something has shown no sign of life for a whole period.
/**
 * Call kick() on every sign of life. A wait completes when nobody kicked for
 * the whole period. A kick is a clock read and a store: no lock, no atomic, no
 * timer operation. With a slack it is just a store: the kick leaves a mark, and
 * a check every slack takes a mark that it finds as a kick at that moment.
 *
 * The period starts with the construction. A watchdog on which nobody waits
 * does nothing, and does not keep `run()` from returning.
 *
 * It stays where it was constructed: kick() stores to a fixed place.
 *
 * @par Timing
 * A wait completes never before the period has passed since the last kick, and
 * at most one wheel_options::tick later, or the slack later if there is one.
 *
 * @par Thread Safety
 * Distinct objects: safe. Shared objects: unsafe; kick() and the rest must be
 * called where the executor runs (with several threads: a strand), and so runs
 * the watchdog's own check.
 *
 * @par Complexity
 * kick(): a store. A pending wait looks at the time once per period, or once
 * per slack.
 *
 * @par Example
 * @code
 * asio_wheel::watchdog dog(socket.get_executor(), 30s);
 * dog.async_wait([&](error_code ec) { if (!ec) socket.close(); });
 * // on every read:
 * dog.kick();
 * @endcode
 */
template <typename Executor = asio::any_io_executor> class basic_watchdog {
public:
  using executor_type = Executor;

  template <typename Executor1> struct rebind_executor {
    using other = basic_watchdog<Executor1>;
  };

  using clock_type = std::chrono::steady_clock;
  using duration = clock_type::duration;
  using time_point = clock_type::time_point;

  /// Start watching.
  /**
   * @param ex Where the check runs, and handlers without an executor of their
   * own.
   * @param period How long without a kick is too long. Zero or negative: a
   * wait completes on the next turn. duration::max(): never.
   * @param slack How much later a wait may complete, for a cheaper kick.
   * Less than two ticks of the wheel counts as none: kick() reads the clock.
   * Not more than the period is used.
   */
  basic_watchdog(const executor_type& ex, const duration& period,
                 const duration& slack = duration::zero());

  /// As above, on a context's executor.
  template <typename ExecutionContext>
  basic_watchdog(
      ExecutionContext& context, const duration& period,
      const duration& slack = duration::zero(),
      std::enable_if_t<
          std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
          int> = 0);

  basic_watchdog(const basic_watchdog&) = delete;
  basic_watchdog& operator=(const basic_watchdog&) = delete;

  /// Cancel pending waits.
  ~basic_watchdog();

  const executor_type& get_executor() noexcept { return timer_.get_executor(); }

  /// A sign of life: the period starts anew.
  void kick() noexcept;

  /// The time of the last kick: the construction's or resume()'s if later.
  /**
   * With a slack, the time at which the last check found a mark: up to a slack
   * after the kick itself; a kick not yet checked counts as now.
   */
  time_point last_kick() const noexcept;

  /// The period.
  duration period() const noexcept { return period_; }

  /// Change the period; counts from the last kick. Pending waits stay.
  void period(const duration& p);

  /// Stop the clock: no wait completes until resume(), kicks or not.
  void pause();

  /// Start the clock again, with a whole period to go.
  void resume();

  /// Whether the clock is stopped.
  bool paused() const noexcept { return paused_; }

  /// Cancel pending waits: their handlers get operation_aborted.
  /**
   * @returns How many waits it cancelled. A wait that has completed its check
   * and whose handler is queued on an executor of its own is not one of them.
   */
  std::size_t cancel() noexcept;

  /// How many waits are pending.
  std::size_t pending() const noexcept { return timer_.pending(); }

  /// Wait until nobody kicked for the whole period.
  /**
   * If that is so already, completes on the next turn. Waiting again after
   * that without a kick completes at once again.
   *
   * @par Completion Signature
   * @code void(boost::system::error_code) @endcode
   *
   * @par Errors
   * As basic_wheel_timer::async_wait(). Success means that the period has
   * passed without a kick.
   *
   * @par Per-Operation Cancellation
   * terminal, partial and total.
   *
   * @throws std::bad_alloc
   */
  template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code))
                WaitToken = asio::default_completion_token_t<executor_type>>
  auto async_wait(
      WaitToken&& token = asio::default_completion_token_t<executor_type>());

private:
  template <typename, typename> friend class detail::watchdog_check;
  class initiate_async_wait;

  time_point now() const noexcept;
  time_point due() const noexcept;
  void take_mark() noexcept;
  bool expired();
  void set_timer();
  template <typename Check> void wait_on(Check&& check);

  // First what a kick touches.
  time_point last_;
  bool marked_ = false;
  bool paused_ = false;
  bool manual_ = false; // the wheel has a manual clock
  duration period_;
  duration slack_;
  basic_wheel_timer<Executor> timer_;
};

/// The usual watchdog.
using watchdog = basic_watchdog<>;

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#include <asio_wheel/impl/watchdog.hpp>

#endif // ASIO_WHEEL_WATCHDOG_HPP
