//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_CANCEL_AFTER_HPP
#define ASIO_WHEEL_CANCEL_AFTER_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/timed_token.hpp>

#include <boost/asio/cancellation_type.hpp>

#include <chrono>
#include <type_traits>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// The completion token that cancel_after() makes of another.
template <typename CompletionToken>
using cancel_after_t =
    detail::timed_token<CompletionToken, detail::limit_after<false>>;

/// The completion token that cancel_at() makes of another.
template <typename CompletionToken>
using cancel_at_t =
    detail::timed_token<CompletionToken, detail::limit_at<false>>;

/// What cancel_after() makes without a token.
using partial_cancel_after =
    detail::partial_timed_token<detail::limit_after<false>>;

/// What cancel_at() makes without a token.
using partial_cancel_at = detail::partial_timed_token<detail::limit_at<false>>;

/// Cancel any asynchronous operation after a time.
/**
 * As timeout_after(), but the operation's result is left alone: one that is
 * cancelled in time completes with what it makes of a cancellation, mostly
 * operation_aborted. This is boost::asio::cancel_after() of later versions, on
 * the wheel. (There, with both namespaces open, the name needs its namespace.)
 *
 * @param d As for timeout_after().
 * @param token The completion token. Its adapters may be outside or inside.
 * @param type As for timeout_after().
 *
 * @par Completion Signature
 * That of the operation: any, also several.
 *
 * @par Errors
 * The operation's. An operation whose wait the wheel does not take
 * (error::too_many_pending, error::wheel_stopped) is cancelled at once, and so
 * is one whose wait wheel_service::stop() ends.
 *
 * Everything else, from timing to the operations that cannot be cancelled, is
 * as described at timeout_after().
 *
 * @par Example
 * @code
 * co_await signals.async_wait(
 *     cancel_after(1min, as_tuple(use_awaitable)));
 * @endcode
 */
template <
    typename CompletionToken,
    typename = std::enable_if_t<!detail::is_cancellation_type<CompletionToken>>>
[[nodiscard]] cancel_after_t<std::decay_t<CompletionToken>> cancel_after(
    const std::chrono::steady_clock::duration& d, CompletionToken&& token,
    asio::cancellation_type_t type = asio::cancellation_type::terminal);

/// As above, but for the token; see timeout_after().
[[nodiscard]] partial_cancel_after cancel_after(
    const std::chrono::steady_clock::duration& d,
    asio::cancellation_type_t type = asio::cancellation_type::terminal);

/// Cancel any asynchronous operation at a point in time.
/**
 * @param t As for timeout_at().
 * @param token As for cancel_after().
 * @param type As for cancel_after().
 */
template <
    typename CompletionToken,
    typename = std::enable_if_t<!detail::is_cancellation_type<CompletionToken>>>
[[nodiscard]] cancel_at_t<std::decay_t<CompletionToken>>
cancel_at(const std::chrono::steady_clock::time_point& t,
          CompletionToken&& token,
          asio::cancellation_type_t type = asio::cancellation_type::terminal);

/// As above, but for the token; see timeout_after().
[[nodiscard]] partial_cancel_at
cancel_at(const std::chrono::steady_clock::time_point& t,
          asio::cancellation_type_t type = asio::cancellation_type::terminal);

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#include <asio_wheel/impl/cancel_after.hpp>

#endif // ASIO_WHEEL_CANCEL_AFTER_HPP
