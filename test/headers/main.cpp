//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//
// Linked with a self_contained.cpp of each public header: a function there that
// lacks its inline is defined twice.

#include <asio_wheel.hpp>

int main() { return 0; }
