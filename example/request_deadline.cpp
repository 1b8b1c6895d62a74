//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// One deadline for a whole request: a front end that has a second to answer
// asks two services, each of which has a timeout of its own and is told how
// long the answer is of use. In virtual time.

#include <asio_wheel.hpp>

#include <boost/asio.hpp>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <string>
#include <utility>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio::use_awaitable;
using boost::system::system_error;
using std::chrono::milliseconds;

milliseconds in_ms(std::chrono::nanoseconds d) {
  return std::chrono::duration_cast<milliseconds>(d);
}

// A service of somebody else's: needs some time for an answer, but does not
// work on when nobody waits for it any more.
struct service {
  std::string name;
  milliseconds needs;

  asio::awaitable<std::string>
  answer(std::map<std::string, std::string> header) const {
    const auto executor = co_await asio::this_coro::executor;
    std::cout << "    " << name << ": " << header.at("Timeout-Ms")
              << " ms for what takes " << needs.count() << " ms\n";
    asio_wheel::deadline deadline(
        executor, milliseconds(std::stoll(header.at("Timeout-Ms"))));
    asio_wheel::wheel_timer work(executor, needs);
    const auto [ec] = co_await work.async_wait(
        asio_wheel::bind_deadline(deadline, asio::as_tuple(use_awaitable)));
    if (ec) {
      std::cout << "    " << name << ": gives up\n";
      work.expires_after(1ms); // the wire: who asked will hardly hear of it
      co_await work.async_wait(use_awaitable);
      throw system_error(ec);
    }
    co_return "answer of " + name;
  }
};

//[request_deadline
// Ask a service: no longer than it may take by itself, nor than the request
// may. Whichever comes first is what the caller gets to see.
asio::awaitable<std::string> ask(const service& s, milliseconds timeout,
                                 asio_wheel::deadline& deadline) {
  const auto left = std::min(timeout, in_ms(deadline.remaining()));
  std::map<std::string, std::string> header;
  header["Timeout-Ms"] = std::to_string(left.count());
  co_return co_await asio::co_spawn(
      co_await asio::this_coro::executor, s.answer(std::move(header)),
      asio_wheel::timeout_after(
          timeout, asio_wheel::bind_deadline(deadline, use_awaitable)));
}

asio::awaitable<std::string> handle_request(const service& users,
                                            const service& pages) {
  asio_wheel::deadline deadline(co_await asio::this_coro::executor, 1s);
  co_await ask(users, 500ms, deadline);
  co_return co_await ask(pages, 800ms, deadline);
}
//]

// A request, and what came of it: after how long.
struct request {
  std::string title;
  service users, pages;
  std::string expected;
  milliseconds expected_after;
};

asio::awaitable<void> run(const request& r, asio_wheel::manual_clock clock,
                          bool& right) {
  std::cout << r.title << '\n';
  const auto start = clock.now();
  std::string result;
  try {
    result = co_await handle_request(r.users, r.pages);
  } catch (const system_error& e) {
    result = e.code().message();
  }
  const auto after = in_ms(clock.now() - start);
  const bool as_expected = result == r.expected && after == r.expected_after;
  std::cout << "  " << result << ", after " << after.count() << " ms"
            << (as_expected ? "" : ": WRONG") << '\n';
  right = right && as_expected;
}

int main() {
  asio_wheel::manual_clock clock; // moves when nothing is left to do
  asio_wheel::wheel_options options;
  options.clock = clock;
  asio::io_context io;
  asio_wheel::make_wheel(io, options);

  using asio_wheel::error;
  const auto message = [](error e) { return make_error_code(e).message(); };
  const request requests[] = {
      {"both are quick",
       {"users", 20ms},
       {"pages", 100ms},
       "answer of pages",
       120ms},
      {"the users hang",
       {"users", 60s},
       {"pages", 100ms},
       message(error::operation_timeout),
       500ms},
      {"the pages hang",
       {"users", 20ms},
       {"pages", 60s},
       message(error::operation_timeout),
       820ms},
      {"each is in time, but not both",
       {"users", 400ms},
       {"pages", 700ms},
       message(error::deadline_exceeded),
       1000ms},
  };

  bool right = true;
  for (const request& r : requests) {
    asio::co_spawn(io, run(r, clock, right), asio::detached);
    asio_wheel::run_simulation({io}, clock);
  }
  return right ? 0 : 1;
}
