//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_ASYNC_RETRY_HPP
#define ASIO_WHEEL_ASYNC_RETRY_HPP

#include <asio_wheel/backoff.hpp>
#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/retry_operation.hpp>
#include <asio_wheel/retry_options.hpp>

#include <boost/asio/async_result.hpp>

#include <type_traits>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// Make attempts at an asynchronous operation until one succeeds.
/**
 * Starts the operation; if it fails with an error that is worth it, waits as
 * long as the backoff says, and starts it again.
 *
 * @param operation Makes an attempt: a function object that returns a deferred
 * asynchronous operation, which is started at once. It is called with the
 * number of the attempt, from 1, if it takes an argument, else without. The
 * deferred operation's completion signature must begin with error_code or
 * std::exception_ptr. What is bound to it (an executor, a slot, timeout_after)
 * is for the attempt; one that is bound to a slot cannot be cancelled by the
 * retry.
 * @param b How long to wait before each next attempt. Goes on from where it is.
 * @param options When to give up; see retry_options.
 * @param token The completion token.
 *
 * The operation, and the functions in the options, are called on the handler's
 * associated executor (the first attempt: by async_retry() itself), never two
 * at a time, and no more once the retry has completed. An exception that leaves
 * one of them, or the starting of an attempt, leaves async_retry() if that
 * called it, else the context's `run()`; the handler is then destroyed
 * uncalled.
 *
 * @par Timing
 * The waits are on the wheel of the operation's context: never early, and at
 * most one wheel_options::tick late, plus the time the executor needs. A delay
 * counts from the end of the attempt. Also one of zero lets the loop's other
 * work have its turn.
 *
 * @par Completion Signature
 * @code void(E, std::size_t attempts, Rs...) @endcode
 * for an operation with `void(E, Rs...)`: how many attempts were made, at least
 * one, and the results of the last.
 *
 * @par Errors
 * That of the last attempt (success included), except:
 * @li asio::error::operation_aborted: the retry was cancelled, between two
 * attempts or during one that failed with an error worth another attempt. Of an
 * attempt that succeeded all the same, or failed with an error that is not,
 * that is the result. Also wheel_service::stop() during a wait.
 * @li error::deadline_exceeded: the attempt took until the end of
 * retry_options::time_limit. (An attempt that fails when there is no time left
 * for the next has its own error: that is why it did not work.)
 * @li error::too_many_pending, error::wheel_stopped,
 * asio::error::operation_not_supported: the wheel did not take the wait for the
 * next attempt.
 *
 * As std::exception_ptr, each is a system_error. Another exception that an
 * operation completes with is not worth another attempt.
 *
 * @par Per-Operation Cancellation
 * terminal, partial and total: each is passed on to the attempt, ends a wait,
 * and no other attempt is made. To be emitted where the handler's executor is.
 *
 * @par Executors
 * The handler's associated one. Its default is the operation's own, as that
 * tells it, and else has to be given: the overloads with an executor. (I/O
 * objects and co_spawn() tell theirs, also through timeout_after(). Of a lambda
 * given to async_initiate(), and of deferred operations that were chained, it
 * is not known; neither is that of async_retry() itself, when that is deferred,
 * if it was not given one.) The wheel is that of the context of the operation's
 * executor, or of the handler's if that is not known.
 *
 * @par Thread Safety
 * As for any composed operation: with several threads, executors have to be
 * strands, and what an attempt uses must not be used by others meanwhile.
 *
 * @par Complexity
 * One allocation of the handler's allocator (by default a recycling one) for
 * the whole; a recycled one for each wait; with a time limit or attempt timeout
 * one more for each attempt, as timeout_after(); besides what the operation and
 * the functions in the options do.
 *
 * @par Example
 * @code
 * const auto attempts = co_await async_retry(
 *     [&] { return socket.async_connect(endpoint, asio::deferred); },
 *     backoff::exponential(100ms, 30s).jitter(jitter::full),
 *     {.time_limit = 5min, .attempt_timeout = 10s}, use_awaitable);
 *
 * // A coroutine, from its beginning each time:
 * auto [e, made, reply] = co_await async_retry(
 *     [&] { return co_spawn(executor, request(server), asio::deferred); },
 *     backoff::constant(1s), {.max_attempts = 3}, as_tuple(use_awaitable));
 * @endcode
 *
 * @throws std::bad_alloc if there is no memory for the whole; what leaves the
 * operation at the first attempt.
 */
template <typename Operation, typename CompletionToken>
auto async_retry(Operation&& operation, backoff b, retry_options options,
                 CompletionToken&& token);

/// As above, without limits.
template <typename Operation, typename CompletionToken>
auto async_retry(Operation&& operation, backoff b, CompletionToken&& token);

/// As above, with the executor of the operation.
/**
 * @param ex Where the operation completes that does not tell it, and the
 * default of the handler's executor.
 */
template <typename Executor, typename Operation, typename CompletionToken>
auto async_retry(const Executor& ex, Operation&& operation, backoff b,
                 retry_options options, CompletionToken&& token);

/// As above, with the executor of the operation, and without limits.
template <typename Executor, typename Operation, typename CompletionToken>
auto async_retry(const Executor& ex, Operation&& operation, backoff b,
                 CompletionToken&& token);

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#include <asio_wheel/impl/async_retry.hpp>

#endif // ASIO_WHEEL_ASYNC_RETRY_HPP
