//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// Waiting for timers on another thread's context, with futures.

#include <asio_wheel.hpp>

#include <boost/asio.hpp>

#include <chrono>
#include <future>
#include <iostream>
#include <thread>

namespace asio = boost::asio;
using namespace std::chrono_literals;

int main() {
  asio::io_context io;
  auto work = asio::make_work_guard(io);
  std::thread runner([&io] { io.run(); });

  asio_wheel::wheel_timer timer(io, 200ms);
  const auto start = std::chrono::steady_clock::now();
  std::future<void> done = timer.async_wait(asio::use_future);
  std::cout << "doing something else meanwhile\n";
  done.get();
  const auto took = std::chrono::steady_clock::now() - start;
  std::cout << "waited for " << took / 1ms << " ms\n";

  // A cancelled wait, like one that fails, is an exception in the future.
  timer.expires_after(1h);
  done = timer.async_wait(asio::use_future);
  timer.cancel();
  try {
    done.get();
  } catch (const boost::system::system_error& e) {
    std::cout << "cancelled: "
              << (e.code() == asio::error::operation_aborted ? "yes" : "no")
              << '\n';
  }

  work.reset();
  runner.join();
}
