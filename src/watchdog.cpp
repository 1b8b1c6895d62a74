//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/watchdog.hpp>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

std::atomic<std::size_t> watchdogs_to_look_at{0};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel
