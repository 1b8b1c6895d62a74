//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// What the consumer projects build: one timer that fires and one that does not.

#include <asio_wheel.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <iostream>

int main() {
  using namespace std::chrono_literals;

  boost::asio::io_context io;
  int fired = 0;
  int aborted = 0;
  const auto count = [&](boost::system::error_code ec) {
    ++(ec == boost::asio::error::operation_aborted ? aborted : fired);
  };

  asio_wheel::wheel_timer soon(io, 10ms);
  asio_wheel::wheel_timer late(io, 10s);
  soon.async_wait([&](boost::system::error_code ec) {
    count(ec);
    late.cancel();
  });
  late.async_wait(count);
  io.run();

  std::cout << "fired " << fired << ", aborted " << aborted << '\n';
  return fired == 1 && aborted == 1 ? 0 : 1;
}
