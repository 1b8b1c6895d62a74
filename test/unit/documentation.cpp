//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel.hpp>

#include <test/local_pair.hpp>
#include <test/manual_context.hpp>
#include <test/memory_stream.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#define BOOST_TEST_MODULE unit_documentation
#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

// The examples in the headers' documentation, in virtual time. They stand here
// as they do there, but for the layout, between the comments "example" and
// "end": a change to one is a change to the other. (Those in example/ are
// compiled there.)

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio::as_tuple;
using asio::awaitable;
using asio::use_awaitable;
using asio_wheel::async_retry;
using asio_wheel::backoff;
using asio_wheel::cancel_after;
using asio_wheel::jitter;
using asio_wheel::timeout_after;
using boost::system::error_code;

struct fixture : test::manual_context {
  /// Run a coroutine up to where it has to wait. What it throws leaves the run.
  template <typename F> void start(F coroutine) {
    asio::co_spawn(io, std::move(coroutine), [](std::exception_ptr e) {
      if (e)
        std::rethrow_exception(e);
    });
    poll();
  }
};

/// A socket to a server that answers from the attempt of that number on.
struct slow_socket {
  asio_wheel::wheel_timer timer;
  int answers_at;
  int attempts = 0;

  template <typename Token>
  auto async_connect(asio::ip::tcp::endpoint, Token&& token) {
    timer.expires_after(++attempts < answers_at ? 1h : 0h);
    return timer.async_wait(std::forward<Token>(token));
  }
};

const asio::ip::tcp::endpoint endpoint;

} // namespace

BOOST_FIXTURE_TEST_CASE(async_retry_of_an_operation, fixture) {
  slow_socket socket{asio_wheel::wheel_timer(io), 3};
  std::size_t made = 0;
  start([&]() -> awaitable<void> {
    // example
    const auto attempts = co_await async_retry(
        [&] { return socket.async_connect(endpoint, asio::deferred); },
        backoff::exponential(100ms, 30s).jitter(jitter::full),
        {.time_limit = 5min, .attempt_timeout = 10s}, use_awaitable);
    // end
    made = attempts;
  });
  advance(10s);
  BOOST_TEST(socket.attempts == 1);
  advance(100ms); // the longest that the first delay can be
  BOOST_TEST(socket.attempts == 2);
  advance(10s);
  BOOST_TEST(socket.attempts == 2);
  advance(200ms);
  BOOST_TEST(socket.attempts == 3);
  BOOST_TEST(made == 3u);
}

BOOST_FIXTURE_TEST_CASE(async_retry_of_a_coroutine, fixture) {
  const auto executor = io.get_executor();
  const std::string server = "example.com";
  int requests = 0;
  const auto request = [&](std::string host) -> awaitable<std::string> {
    if (++requests < 3)
      throw boost::system::system_error(asio::error::host_not_found_try_again);
    co_return "hello from " + host;
  };
  std::exception_ptr failure;
  std::size_t attempts = 0;
  std::string answer;
  start([&]() -> awaitable<void> {
    // example
    // A coroutine, from its beginning each time:
    auto [e, made, reply] = co_await async_retry(
        [&] { return co_spawn(executor, request(server), asio::deferred); },
        backoff::constant(1s), {.max_attempts = 3}, as_tuple(use_awaitable));
    // end
    failure = e;
    attempts = made;
    answer = reply;
  });
  BOOST_TEST(requests == 1);
  advance(1s);
  BOOST_TEST(requests == 2);
  advance(1s);
  BOOST_TEST(!failure);
  BOOST_TEST(attempts == 3u);
  BOOST_TEST(answer == "hello from example.com");
}

BOOST_AUTO_TEST_CASE(backoff_with_jitter) {
  // example
  // 100 ms, 200 ms, 400 ms, ... 30 s, 30 s, each times a chance from 0 to 1
  auto b = backoff::exponential(100ms, 30s).jitter(jitter::full);
  // end
  auto longest = backoff::exponential(100ms, 30s);
  for (int i = 0; i != 12; ++i) {
    const auto delay = b.next();
    BOOST_TEST((delay >= 0s && delay <= longest.next()));
  }
  BOOST_TEST((longest.next() == 30s));
}

BOOST_FIXTURE_TEST_CASE(cancel_after_a_time, fixture) {
  asio::signal_set signals(io, SIGTERM);
  bool over = false;
  start([&]() -> awaitable<void> {
    // example
    co_await signals.async_wait(cancel_after(1min, as_tuple(use_awaitable)));
    // end
    over = true;
  });
  advance(1min - 1ms);
  BOOST_TEST(!over);
  advance(1ms);
  BOOST_TEST(over);
}

BOOST_FIXTURE_TEST_CASE(delay_queue_of_orders, fixture) {
  struct order {
    int number;
  };
  int shipped = 0;
  std::vector<int> cancelled;
  const auto ship = [&] { ++shipped; };
  const auto cancel = [&](const order& o) { cancelled.push_back(o.number); };
  // example
  asio_wheel::delay_queue<order> unpaid(io);
  auto key = unpaid.push(order{42}, 30min);
  // end
  unpaid.push(order{43}, 30min);
  // example
  // when it is paid:
  if (unpaid.remove(key))
    ship();
  // end
  start([&]() -> awaitable<void> {
    // example
    // a consumer:
    for (;;) {
      order o = co_await unpaid.async_pop(asio::use_awaitable);
      cancel(o);
    }
    // end
  });
  advance(30min - 1ms);
  BOOST_TEST(shipped == 1);
  BOOST_TEST(cancelled.empty());
  advance(1ms);
  BOOST_TEST(cancelled == std::vector<int>{43},
             boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(expiring_map_of_sessions, fixture) {
  struct session {
    std::string user;
  };
  const std::string id = "c0ffee";
  const std::string user = "ann";
  std::vector<std::string> left;
  const auto log_out = [&](const std::string&, const session& s) {
    left.push_back(s.user);
  };
  std::string served;
  const auto serve = [&](const session& s) { served = s.user; };
  // example
  asio_wheel::expiring_map_options<std::string, session> options;
  options.time_to_live = 20min;
  options.expire_after = asio_wheel::expire_after::access;
  options.max_size = 100'000;
  options.on_expire = [&](const std::string& key, session&& s,
                          asio_wheel::expiry_reason) { log_out(key, s); };
  asio_wheel::expiring_map<std::string, session> sessions(io, options);
  // end
  poll();
  // example
  sessions.insert_or_assign(id, session{user});
  // end
  advance(19min);
  // example
  if (auto s = sessions.find(id)) // and lives for another 20 minutes
    serve(*s);
  // end
  BOOST_TEST(served == "ann");
  advance(20min - 1ms);
  BOOST_TEST(left.empty());
  advance(1ms);
  BOOST_TEST(left == std::vector<std::string>{"ann"},
             boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(periodic_timer_for_reports, fixture) {
  int reports = 0;
  const auto report = [&]() -> awaitable<void> {
    if (++reports == 1) { // takes 25 s
      asio_wheel::wheel_timer work(co_await asio::this_coro::executor, 25s);
      co_await work.async_wait(use_awaitable);
    }
  };
  std::vector<std::size_t> logged;
  const auto log = [&](const char*, std::size_t missed, const char*) {
    logged.push_back(missed);
  };
  start([&]() -> awaitable<void> {
    // example
    asio_wheel::periodic_timer timer(co_await asio::this_coro::executor, 10s);
    for (;;) {
      const auto missed = co_await timer.async_wait(asio::use_awaitable);
      if (missed != 0)
        log("too slow: no report for ", missed, " periods");
      co_await report();
    }
    // end
  });
  advance(10s);
  BOOST_TEST(reports == 1);
  BOOST_TEST(logged.empty());
  advance(25s); // the second is 15 s late, and the third left out
  BOOST_TEST(reports == 2);
  BOOST_TEST(logged == std::vector<std::size_t>{1},
             boost::test_tools::per_element());
  advance(5s);
  BOOST_TEST(reports == 3);
  BOOST_TEST(logged.size() == 1u);
}

BOOST_FIXTURE_TEST_CASE(rate_limiter_for_messages, fixture) {
  const std::vector<std::string> messages(30, "hello");
  std::size_t sent = 0;
  const auto send = [&](const std::string&) -> awaitable<void> {
    ++sent;
    co_return;
  };
  // example
  asio_wheel::rate_limiter limiter(io, 100, 20); // per second; at once
  // end
  start([&]() -> awaitable<void> {
    // example
    for (auto& message : messages) {
      co_await limiter.async_acquire(1, asio::use_awaitable);
      co_await send(message);
    }
    // end
  });
  BOOST_TEST(sent == 20u);
  advance(10ms);
  BOOST_TEST(sent == 21u);
  for (int i = 0; i != 9; ++i)
    advance(10ms);
  BOOST_TEST(sent == 30u);
}

BOOST_FIXTURE_TEST_CASE(rate_limited_stream_over_timeouts, fixture) {
  test::local_pair pair(io);
  auto& socket = pair.ours;
  const std::string data(256 * 1024 + 1, 'x');
  bool written = false;
  // example
  using stream = asio_wheel::rate_limited_stream<asio_wheel::timeout_stream<>>;

  auto all = std::make_shared<asio_wheel::rate_limiter>(io, 10e6, 256 * 1024);
  stream s(std::move(socket));
  s.next_layer().timeouts({.write = 10s});
  s.write_limiter(all); // 10 MB per second, for all connections together
  // end
  start([&]() -> awaitable<void> {
    // example
    co_await asio::async_write(s, asio::buffer(data), use_awaitable);
    // end
    written = true;
  });
  std::size_t received = 0;
  std::array<char, 4096> sink;
  const auto receive = [&](std::size_t n) {
    while (received < n) {
      poll();
      if (pair.theirs.available() != 0)
        received += pair.theirs.read_some(asio::buffer(sink));
    }
  };
  receive(256 * 1024);
  while (all->waiting() == 0)
    poll();
  BOOST_TEST(!written);
  advance(1ms);
  receive(data.size());
  while (!written)
    poll();
  BOOST_TEST(received == data.size());
}

BOOST_FIXTURE_TEST_CASE(timeout_after_as_a_token, fixture) {
  slow_socket socket{asio_wheel::wheel_timer(io), 2};
  error_code ended;
  start([&]() -> awaitable<void> {
    try {
      // example
      co_await socket.async_connect(endpoint, timeout_after(5s, use_awaitable));
      // end
    } catch (const boost::system::system_error& e) {
      ended = e.code();
    }
  });
  advance(5s - 1ms);
  BOOST_TEST(!ended);
  advance(1ms);
  BOOST_TEST(ended == error_code(asio_wheel::error::operation_timeout));
}

BOOST_FIXTURE_TEST_CASE(timeout_after_a_whole_coroutine, fixture) {
  const auto executor = io.get_executor();
  slow_socket socket{asio_wheel::wheel_timer(io), 2};
  const auto handshake = [](slow_socket& s) -> awaitable<void> {
    co_await s.async_connect(endpoint, use_awaitable);
  };
  error_code ended;
  start([&]() -> awaitable<void> {
    try {
      // example
      // The timeout of a whole coroutine:
      co_await co_spawn(executor, handshake(socket),
                        timeout_after(10s, use_awaitable));
      // end
    } catch (const boost::system::system_error& e) {
      ended = e.code();
    }
  });
  advance(10s - 1ms);
  BOOST_TEST(!ended);
  advance(1ms);
  BOOST_TEST(ended == error_code(asio_wheel::error::operation_timeout));
}

BOOST_FIXTURE_TEST_CASE(timeout_after_in_a_pipe, fixture) {
  test::memory_stream socket(io.get_executor());
  auto peer = socket.other_end();
  std::array<char, 5> bytes;
  const auto buffer = asio::buffer(bytes);
  std::size_t read_bytes = 0;
  start([&]() -> awaitable<void> {
    // example
    auto read = asio::async_read(socket, buffer, asio::deferred);
    auto n = co_await(std::move(read) | timeout_after(5s));
    // end
    read_bytes = n;
  });
  advance(5s - 1ms);
  peer.feed("hello");
  poll();
  BOOST_TEST(read_bytes == 5u);
}

BOOST_FIXTURE_TEST_CASE(timeout_stream_with_three_timeouts, fixture) {
  test::local_pair pair(io);
  auto& socket = pair.ours;
  std::array<char, 16> data;
  std::size_t first = 0;
  error_code second;
  // example
  asio_wheel::timeout_stream<> s(std::move(socket));
  s.timeouts({.read = 10s, .write = 10s, .idle = 60s});
  // end
  start([&]() -> awaitable<void> {
    // example
    auto n = co_await s.async_read_some(asio::buffer(data), use_awaitable);
    // end
    first = n;
    std::tie(second, n) =
        co_await s.async_read_some(asio::buffer(data), as_tuple(use_awaitable));
  });
  pair.say("hello");
  while (first == 0)
    poll();
  BOOST_TEST(first == 5u);
  advance(10s - 1ms);
  BOOST_TEST(!second);
  advance(1s);
  BOOST_TEST(second == error_code(asio_wheel::error::read_timeout));
}

BOOST_FIXTURE_TEST_CASE(watchdog_of_a_socket, fixture) {
  test::local_pair pair(io);
  auto& socket = pair.ours;
  // example
  asio_wheel::watchdog dog(socket.get_executor(), 30s);
  dog.async_wait([&](error_code ec) {
    if (!ec)
      socket.close();
  });
  // end
  advance(20s);
  // example
  // on every read:
  dog.kick();
  // end
  advance(20s);
  BOOST_TEST(socket.is_open());
  advance(40s);
  BOOST_TEST(!socket.is_open());
}

BOOST_AUTO_TEST_CASE(make_wheel_with_options) {
  asio::io_context io;
  // example
  asio_wheel::wheel_options options;
  options.tick = std::chrono::milliseconds(10);
  asio_wheel::make_wheel(io, options);
  // end
  BOOST_TEST((asio_wheel::use_wheel(io).options().tick == 10ms));
}
