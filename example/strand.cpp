//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// Timers on a strand over several threads: their handlers never run at the same
// time, so that what they share needs no lock.

#include <asio_wheel.hpp>

#include <boost/asio.hpp>

#include <chrono>
#include <deque>
#include <iostream>
#include <map>
#include <thread>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using boost::system::error_code;

int main() {
  asio::thread_pool pool(4);
  auto strand = asio::make_strand(pool);

  // Used by the handlers alone, and by main() once the pool has ended.
  int fired = 0;
  std::map<std::thread::id, int> by_thread;
  auto count = [&](error_code ec) {
    if (!ec) {
      ++fired;
      ++by_thread[std::this_thread::get_id()];
    }
  };

  // A handler runs on its timer's executor ...
  std::deque<asio_wheel::wheel_timer> timers;
  for (int i = 0; i < 5000; ++i) {
    timers.emplace_back(strand, i * 100us);
    timers.back().async_wait(count);
  }

  // ... unless it is bound to one of its own.
  asio_wheel::wheel_timer other(pool, 250ms);
  other.async_wait(asio::bind_executor(strand, count));

  // On the strand, cancelling is final: the handler has run already, or gets
  // operation_aborted.
  int cancelled = 0;
  asio_wheel::wheel_timer stop(strand, 400ms);
  stop.async_wait([&](error_code) {
    for (auto& timer : timers)
      cancelled += static_cast<int>(timer.cancel());
  });

  pool.join(); // returns when no wait is pending any more
  std::cout << fired << " fired on " << by_thread.size() << " threads, "
            << cancelled << " cancelled; " << fired + cancelled << " in all\n";
}
