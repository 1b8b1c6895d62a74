//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//
// Compiled once for each public header, which it includes before anything else
// and twice.

#define ASIO_WHEEL_TEST_INCLUDE() <ASIO_WHEEL_TEST_HEADER>
#include ASIO_WHEEL_TEST_INCLUDE()
#include ASIO_WHEEL_TEST_INCLUDE()
