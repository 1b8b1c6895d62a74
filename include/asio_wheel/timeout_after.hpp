//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_TIMEOUT_AFTER_HPP
#define ASIO_WHEEL_TIMEOUT_AFTER_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/timed_token.hpp>

#include <boost/asio/cancellation_type.hpp>

#include <chrono>
#include <type_traits>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// The completion token that timeout_after() makes of another.
template <typename CompletionToken>
using timeout_after_t =
    detail::timed_token<CompletionToken, detail::limit_after<true>>;

/// The completion token that timeout_at() makes of another.
template <typename CompletionToken>
using timeout_at_t =
    detail::timed_token<CompletionToken, detail::limit_at<true>>;

/// What timeout_after() makes without a token.
using partial_timeout_after =
    detail::partial_timed_token<detail::limit_after<true>>;

/// What timeout_at() makes without a token.
using partial_timeout_at = detail::partial_timed_token<detail::limit_at<true>>;

/// Bound any asynchronous operation: end it if it takes too long.
/**
 * An adapter for completion tokens. The operation that is started with it is
 * cancelled through its cancellation slot when the time is up, and then
 * completes with error::operation_timeout instead of operation_aborted. The
 * wait is on the wheel of the operation's context.
 *
 * The handler keeps its executor, allocator, cancellation slot and whatever
 * else is associated with it. Bounded tokens nest; of two timeouts each says
 * operation_timeout. An operation that was started under a deadline (see
 * bind_deadline()), also if some composed operation in between started it, is
 * ended by that as well, with error::deadline_exceeded; if both are at the same
 * time, that is its result.
 *
 * @param d How long, from the initiation. Zero or negative: until the next
 * turn, so that an operation that completes at once still succeeds.
 * duration::max(): for ever, without a timer.
 * @param token The completion token. Its adapters may be outside or inside,
 * but those that change the signature (as_tuple, redirect_error) only inside:
 * `timeout_after(5s, as_tuple(use_awaitable))`.
 * @param type How the operation is cancelled. Most operations that can be
 * cancelled at all know terminal, after which a stream may only be closed;
 * total and partial are known to fewer.
 *
 * @par Timing
 * Never early, and at most one wheel_options::tick late, plus the time the
 * executor needs. The clock stops when the operation completes, not when its
 * handler is called: a handler that waits for its turn on an executor of its
 * own is not timed out meanwhile.
 *
 * @par Completion Signature
 * That of the operation, which must begin with error_code or
 * std::exception_ptr. May be several.
 *
 * @par Errors
 * @li error::operation_timeout: the time was up before anything else had
 * cancelled the operation, and it ended with operation_aborted (as
 * std::exception_ptr: a system_error with that code) then.
 * @li error::deadline_exceeded: as above, but for the deadline that the
 * operation was started under. If that had passed before, the operation is not
 * even started, and completes with values made by default behind the error.
 * @li error::too_many_pending, error::wheel_stopped: the wheel did not take the
 * wait, and the operation was cancelled therefore.
 * @li whatever else the operation says: also if it succeeds or fails by itself
 * though it was cancelled.
 *
 * A cancellation by the user, by a slot, by `socket.cancel()`, or by
 * wheel_service::stop(), stays operation_aborted.
 *
 * The I/O object is in the state in which a cancellation of that type leaves
 * it.
 *
 * @par Operations That Cannot Be Cancelled
 * An operation that pays no attention to its cancellation slot goes on, and
 * completes late, with its own result. In Boost 1.81 these are
 * `resolver.async_resolve()`, post(), dispatch(), defer(), and operations of
 * libraries older than per-operation cancellation. co_spawn() reaches the
 * operation that the coroutine waits for; a coroutine that has disabled
 * cancellation goes on. `async_wait()` of a windows::object_handle cannot be
 * cancelled so either. An operation that only listens while it waits misses
 * what is said in between: a composed operation of a program's own should look
 * at `self.cancelled()`, as Asio's do. An object of Asio's that is moved while
 * an operation is pending on it loses the operation's slot.
 *
 * @par Per-Operation Cancellation
 * The handler's slot is connected to the operation's: what the operation
 * supports. It may be emitted where the handler's executor is; if that is not
 * the operation's, the cancellation is dispatched there.
 *
 * @par Thread Safety
 * The clock, and the cancellation, run on the operation's executor: the I/O
 * object's. If several threads run that, it has to be a strand, as ever with
 * several asynchronous operations on an object. (An initiation that does not
 * tell its executor, as that of a lambda given to async_initiate(): the
 * handler's executor, or system_executor if it has none.)
 *
 * @par Complexity
 * Constant. One allocation of the handler's allocator (by default a recycling
 * one), and a recycled one, besides the operation's own.
 *
 * @par Example
 * @code
 * co_await socket.async_connect(endpoint, timeout_after(5s, use_awaitable));
 * // The timeout of a whole coroutine:
 * co_await co_spawn(executor, handshake(socket),
 *                   timeout_after(10s, use_awaitable));
 * @endcode
 */
template <
    typename CompletionToken,
    typename = std::enable_if_t<!detail::is_cancellation_type<CompletionToken>>>
[[nodiscard]] timeout_after_t<std::decay_t<CompletionToken>> timeout_after(
    const std::chrono::steady_clock::duration& d, CompletionToken&& token,
    asio::cancellation_type_t type = asio::cancellation_type::terminal);

/// As above, but for the token.
/**
 * Given a token it is timeout_after(d, token, type). Used as a token, also
 * through the pipe, it makes a deferred operation, with which one can go on:
 *
 * @par Example
 * @code
 * auto read = asio::async_read(socket, buffer, asio::deferred);
 * auto n = co_await (std::move(read) | timeout_after(5s));
 * @endcode
 */
[[nodiscard]] partial_timeout_after timeout_after(
    const std::chrono::steady_clock::duration& d,
    asio::cancellation_type_t type = asio::cancellation_type::terminal);

/// Bound any asynchronous operation: end it at a point in time.
/**
 * As timeout_after() for the rest.
 *
 * @param t The time by the wheel's clock, which is steady_clock unless there is
 * a manual_clock: wheel_service::now(). If it is past: until the next turn.
 * time_point::max(): for ever, without a timer.
 * @param token As for timeout_after().
 * @param type As for timeout_after().
 */
template <
    typename CompletionToken,
    typename = std::enable_if_t<!detail::is_cancellation_type<CompletionToken>>>
[[nodiscard]] timeout_at_t<std::decay_t<CompletionToken>>
timeout_at(const std::chrono::steady_clock::time_point& t,
           CompletionToken&& token,
           asio::cancellation_type_t type = asio::cancellation_type::terminal);

/// As above, but for the token; see timeout_after().
[[nodiscard]] partial_timeout_at
timeout_at(const std::chrono::steady_clock::time_point& t,
           asio::cancellation_type_t type = asio::cancellation_type::terminal);

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#include <asio_wheel/impl/timeout_after.hpp>

#endif // ASIO_WHEEL_TIMEOUT_AFTER_HPP
