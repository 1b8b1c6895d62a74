//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// A request with a timeout: whichever comes first, the reply or the timeout,
// decides, and the other's handler knows.

#include <asio_wheel.hpp>

#include <boost/asio.hpp>

#include <chrono>
#include <iostream>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using boost::system::error_code;

//[callback
class request {
public:
  explicit request(asio::io_context& io) : timeout_(io) {}

  void start(std::chrono::milliseconds limit) {
    timeout_.expires_after(limit);
    timeout_.async_wait([](error_code ec) {
      if (!ec)
        std::cout << "no reply in time\n";
      else // operation_aborted
        std::cout << "timeout cancelled\n";
    });
  }

  // The server is still at it: the wait stays, its deadline moves.
  void on_progress(std::chrono::milliseconds limit) {
    timeout_.rearm_after(limit);
  }

  void on_reply() {
    // From here on the handler above cannot report success any more, not even
    // if the time was up already and it stood in the queue.
    timeout_.cancel();
    std::cout << "reply\n";
  }

private:
  asio_wheel::wheel_timer timeout_;
};
//]

int main() {
  asio::io_context io;
  request answered(io), unanswered(io);
  answered.start(100ms);
  unanswered.start(100ms);

  // In place of a network: progress after 80 ms, the reply after 150 ms.
  asio_wheel::wheel_timer progress(io, 80ms), reply(io, 150ms);
  progress.async_wait([&](error_code) { answered.on_progress(100ms); });
  reply.async_wait([&](error_code) { answered.on_reply(); });

  io.run(); // returns when no wait is pending any more
}
