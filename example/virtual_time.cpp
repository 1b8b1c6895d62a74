//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// An hour of a connection's life, tested in a millisecond.

#include <asio_wheel.hpp>

#include <boost/asio.hpp>

#include <chrono>
#include <functional>
#include <iostream>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using boost::system::error_code;

// What is to be tested. It knows nothing of virtual time.
class session {
public:
  session(asio::io_context& io, std::function<void()> on_dead) : dog_(io, 30s) {
    dog_.async_wait([on_dead](error_code ec) {
      if (!ec)
        on_dead();
    });
  }

  void on_heartbeat() { dog_.kick(); }

private:
  asio_wheel::watchdog dog_;
};

int main() {
  const auto real_start = std::chrono::steady_clock::now();

  //[virtual_time
  asio_wheel::manual_clock clock; // moves when nothing is left to do
  asio_wheel::wheel_options options;
  options.clock = clock;
  asio::io_context io;
  asio_wheel::make_wheel(io, options);

  const auto start = clock.now();
  auto dead_after = 0ns;
  session tested(io, [&] { dead_after = clock.now() - start; });

  // The peer sends a heartbeat every 20 seconds for an hour and then dies.
  asio_wheel::wheel_timer timer(io);
  std::function<void(error_code)> beat = [&](error_code) {
    tested.on_heartbeat();
    if (clock.now() < start + 1h) {
      timer.expires_after(20s);
      timer.async_wait(beat);
    }
  };
  beat({});

  const auto result = asio_wheel::run_simulation({io}, clock);
  //]

  const auto took = std::chrono::steady_clock::now() - real_start;
  const bool right = dead_after >= 1h + 30s && dead_after <= 1h + 30s + 1ms;
  std::cout << "found dead after " << dead_after / 1s << " s of virtual time, "
            << took / 1us << " us of real time and " << result.jumps
            << " jumps: " << (right ? "right" : "WRONG") << '\n';
  return right ? 0 : 1;
}
