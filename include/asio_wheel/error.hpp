//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_ERROR_HPP
#define ASIO_WHEEL_ERROR_HPP

#include <asio_wheel/detail/config.hpp>
#include <boost/system/error_category.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/error_condition.hpp>

#include <type_traits>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

using boost::system::error_category;
using boost::system::error_code;
using boost::system::error_condition;

/// What asio_wheel reports beyond Asio's own errors.
/**
 * A cancellation by the user (cancel(), a cancellation slot, a destructor,
 * wheel_service::stop()) is never one of these: it is
 * boost::asio::error::operation_aborted.
 *
 * Each timeout compares equal to condition::timeout and to
 * boost::system::errc::timed_out.
 */
enum class error {
  /// No bytes moved for the whole idle timeout.
  idle_timeout = 1,
  /// The next bytes did not come within the read timeout.
  read_timeout,
  /// The peer did not accept more bytes within the write timeout.
  write_timeout,
  /// The connection was not established within the connect timeout.
  connect_timeout,
  /// The operation did not complete within its timeout.
  operation_timeout,
  /// The deadline over everything passed.
  deadline_exceeded,
  /// The peer stayed below the minimum rate. Not a timeout.
  too_slow,
  /// wheel_options::max_pending waits are pending already. Not a timeout.
  too_many_pending,
  /// The wheel was stopped before the wait was started. Not a timeout.
  wheel_stopped,
  /// Another operation of this kind is pending on the object. Not a timeout.
  operation_in_progress
};

/// What to compare an error_code with when the cause is all that matters.
enum class condition {
  /// Any timeout: the timeouts of enum error, asio::error::timed_out, and
  /// whatever else compares equal to errc::timed_out. (Boost 1.81 does not ask
  /// for a std::error_code of std::system_category(): compare that with
  /// errc::timed_out.)
  timeout = 1
};

/// The category of enum error; its name() is "asio_wheel".
const error_category& wheel_category() noexcept;

/// The category of enum condition; its name() is "asio_wheel.condition".
const error_category& wheel_condition_category() noexcept;

/// Make an error_code of an error. Found by argument-dependent lookup.
inline error_code make_error_code(error e) noexcept {
  return {static_cast<int>(e), wheel_category()};
}

/// Make an error_condition of a condition.
inline error_condition make_error_condition(condition c) noexcept {
  return {static_cast<int>(c), wheel_condition_category()};
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

namespace boost {
namespace system {

template <> struct is_error_code_enum<asio_wheel::error> : std::true_type {};
template <>
struct is_error_condition_enum<asio_wheel::condition> : std::true_type {};

} // namespace system
} // namespace boost

#endif // ASIO_WHEEL_ERROR_HPP
