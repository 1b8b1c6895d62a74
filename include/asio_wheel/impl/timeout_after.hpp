//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_IMPL_TIMEOUT_AFTER_HPP
#define ASIO_WHEEL_IMPL_TIMEOUT_AFTER_HPP

#include <asio_wheel/timeout_after.hpp>

#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

template <typename CompletionToken, typename>
timeout_after_t<std::decay_t<CompletionToken>>
timeout_after(const std::chrono::steady_clock::duration& d,
              CompletionToken&& token, asio::cancellation_type_t type) {
  return timeout_after(d, type)(std::forward<CompletionToken>(token));
}

inline partial_timeout_after
timeout_after(const std::chrono::steady_clock::duration& d,
              asio::cancellation_type_t type) {
  return partial_timeout_after({d, type});
}

template <typename CompletionToken, typename>
timeout_at_t<std::decay_t<CompletionToken>>
timeout_at(const std::chrono::steady_clock::time_point& t,
           CompletionToken&& token, asio::cancellation_type_t type) {
  return timeout_at(t, type)(std::forward<CompletionToken>(token));
}

inline partial_timeout_at
timeout_at(const std::chrono::steady_clock::time_point& t,
           asio::cancellation_type_t type) {
  return partial_timeout_at({t, type});
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_IMPL_TIMEOUT_AFTER_HPP
