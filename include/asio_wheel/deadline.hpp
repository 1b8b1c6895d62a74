//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DEADLINE_HPP
#define ASIO_WHEEL_DEADLINE_HPP

#include <asio_wheel/associated_deadline.hpp>
#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/deadline_core.hpp>
#include <asio_wheel/detail/timed_token.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution_context.hpp>

#include <chrono>
#include <cstddef>
#include <type_traits>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// One deadline for a whole request, whatever operations that takes.
/**
 * Operations that are started with bind_deadline() run under it: those that are
 * still pending when it passes end with error::deadline_exceeded. Any number of
 * them may run at a time, and the deadline may be moved meanwhile.
 *
 * What an operation starts in its turn inherits the deadline, if handlers are
 * asked for it: see associated_deadline. Coroutines do not inherit it: they are
 * bounded as a whole (`co_spawn(ex, f(), bind_deadline(d, token))`) or handed
 * the deadline.
 *
 * Holds up `run()` only while operations are pending under it.
 *
 * @par Timing
 * Never early, and at most one wheel_options::tick late, plus the time that the
 * operation's executor needs.
 *
 * @par Thread Safety
 * Distinct objects: safe. Shared objects: safe, save for construction, move and
 * destruction. So operations on different strands may run under one deadline;
 * each is cancelled on its own executor.
 *
 * @par Complexity
 * Constant, for an operation: it is linked into a list under a lock. One wait
 * on the wheel for all of them. Ending them is linear in their number.
 *
 * @par Example
 * @snippet request_deadline.cpp request_deadline
 */
template <typename Executor = asio::any_io_executor> class basic_deadline {
public:
  /// The type of the executor associated with the deadline.
  using executor_type = Executor;

  /// The deadline type for another executor.
  template <typename Executor1> struct rebind_executor {
    using other = basic_deadline<Executor1>;
  };

  using clock_type = std::chrono::steady_clock;
  using duration = clock_type::duration;
  using time_point = clock_type::time_point;

  /// One that never passes: time_point::max() is its expiry.
  explicit basic_deadline(const executor_type& ex);

  /// As above, on a context's executor.
  template <typename ExecutionContext>
  explicit basic_deadline(
      ExecutionContext& context,
      std::enable_if_t<
          std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
          int> = 0);

  /// One that passes at a point in time.
  /** @param expiry_time As for expires_at(). */
  basic_deadline(const executor_type& ex, const time_point& expiry_time);

  /// As above, on a context's executor.
  template <typename ExecutionContext>
  basic_deadline(
      ExecutionContext& context, const time_point& expiry_time,
      std::enable_if_t<
          std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
          int> = 0);

  /// One that passes after a time from now.
  /** @param expiry_time As for expires_after(). */
  basic_deadline(const executor_type& ex, const duration& expiry_time);

  /// As above, on a context's executor.
  template <typename ExecutionContext>
  basic_deadline(
      ExecutionContext& context, const duration& expiry_time,
      std::enable_if_t<
          std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
          int> = 0);

  /// Take over another deadline, with what is pending under it.
  /** The other may then be assigned to and destroyed, and nothing else. */
  basic_deadline(basic_deadline&& other) noexcept = default;

  /// As the destructor, then as the move constructor.
  basic_deadline& operator=(basic_deadline&& other) noexcept;

  /// The operations pending under it end with operation_aborted.
  /** Their handlers are called later, never from here. */
  ~basic_deadline();

  /// The executor associated with the deadline. Its context's wheel is used.
  const executor_type& get_executor() const noexcept { return executor_; }

  /// Have it pass at a point in time.
  /**
   * Counts for the operations that are pending, too; also after an earlier
   * expiry has ended others.
   *
   * @param expiry_time By the wheel's clock; any value. If it is past, pending
   * operations end on the next turn. time_point::max() is "never".
   *
   * @throws What arming a steady_timer may throw (bad_alloc), which only the
   * wheel's first wait after a pause does.
   */
  void expires_at(const time_point& expiry_time);

  /// Have it pass after a time from now.
  /**
   * @param expiry_time Any value: as for expires_at(). Zero and negative ones
   * are past, duration::max() is "never", and what does not fit the clock
   * saturates.
   */
  void expires_after(const duration& expiry_time);

  /// Have it never pass.
  void expires_never() { expires_at(time_point::max()); }

  /// When it passes or has passed; time_point::max() if never.
  time_point expiry() const noexcept { return core_->expiry(); }

  /// How long until then: zero if it has passed, duration::max() if never.
  /** What to tell a peer who works on the request's behalf. */
  duration remaining() const noexcept { return core_->remaining(); }

  /// Whether it has passed.
  bool expired() const noexcept { return core_->expired(); }

  /// End the operations pending under it: with operation_aborted.
  /**
   * Does not change the expiry: new operations may be started.
   *
   * @returns How many operations it ended.
   * @throws What the executors of the operations throw (bad_alloc); all others
   * are ended nevertheless.
   */
  std::size_t cancel() { return core_->end_all(detail::by_user); }

  /// How many operations are pending under it.
  std::size_t pending() const noexcept { return core_->pending(); }

  /// For copies that know of this deadline but do not own it.
  deadline_ref ref() const noexcept { return deadline_ref(core_); }

private:
  executor_type executor_;
  detail::deadline_core_ptr core_;
};

/// The usual deadline.
using deadline = basic_deadline<>;

/// The completion token that bind_deadline() makes of another.
template <typename CompletionToken>
using bind_deadline_t =
    detail::timed_token<CompletionToken, detail::limit_deadline>;

/// What bind_deadline() makes without a token.
using partial_bind_deadline =
    detail::partial_timed_token<detail::limit_deadline>;

/// Run an asynchronous operation under a deadline.
/**
 * An adapter for completion tokens, like timeout_after(), of which everything
 * holds that is not said here. The operation is cancelled (terminal) when the
 * deadline passes. It inherits the deadline to the operations it starts, and
 * those report for themselves if they ask for it: innermost first.
 *
 * Of nested bind_deadline() the innermost is inherited; the others end the
 * operation as well, and each reports for itself.
 *
 * With a timeout besides, as in
 * `timeout_after(2s, bind_deadline(d, use_awaitable))`, the operation ends with
 * whichever comes first, and with deadline_exceeded if both come at once. (The
 * other way round the timeout does not know of the deadline: if both come at
 * once, either may be reported.)
 *
 * @param d The deadline. May go before the operation, which then ends with
 * operation_aborted.
 * @param token The completion token.
 *
 * @par Completion Signature
 * That of the operation, which must begin with error_code or
 * std::exception_ptr.
 *
 * @par Errors
 * @li error::deadline_exceeded: the deadline passed before anything else had
 * cancelled the operation, and it ended with operation_aborted then. Or the
 * deadline had passed already: the operation is then not started at all, and
 * completes on the next turn with values made by default behind the error. (If
 * there are results that cannot be made so, it is started and cancelled.)
 * @li asio::error::operation_aborted: cancel(), or the deadline's destruction,
 * also while the operation was running.
 * @li those of timeout_after() for the rest.
 */
template <typename Executor, typename CompletionToken>
[[nodiscard]] bind_deadline_t<std::decay_t<CompletionToken>>
bind_deadline(const basic_deadline<Executor>& d, CompletionToken&& token);

/// As above, for a deadline that was got from a handler; if none, no bounds.
template <typename CompletionToken>
[[nodiscard]] bind_deadline_t<std::decay_t<CompletionToken>>
bind_deadline(const deadline_ref& d, CompletionToken&& token);

/// As above, but for the token; see timeout_after().
template <typename Executor>
[[nodiscard]] partial_bind_deadline
bind_deadline(const basic_deadline<Executor>& d);

/// As above, but for the token; see timeout_after().
[[nodiscard]] partial_bind_deadline bind_deadline(const deadline_ref& d);

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#include <asio_wheel/impl/deadline.hpp>

#endif // ASIO_WHEEL_DEADLINE_HPP
