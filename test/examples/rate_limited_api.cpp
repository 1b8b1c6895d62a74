//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#define main example_main
#include "../../example/rate_limited_api.cpp"
#undef main

#include <test/local_pair.hpp>
#include <test/manual_context.hpp>

#define BOOST_TEST_MODULE example_rate_limited_api
#include <boost/test/unit_test.hpp>

#include <string>
#include <vector>

// Hours of requests in virtual time: none of a token too many is given, and
// none too few.

namespace {

using namespace rate_limited_api;
using test::manual_context;

const request hello(http::verb::get, "/hello", 11);

struct client {
  asio::ip::address address;
  std::chrono::steady_clock::duration period;
  std::uint64_t sent = 0, served = 0, over = 0, busy = 0;

  // Send a request per period, and wait for no answer.
  asio::awaitable<void> run(service& s, std::uint64_t requests) {
    const auto ex = co_await asio::this_coro::executor;
    asio_wheel::wheel_timer timer(ex);
    for (auto t =
             asio_wheel::use_wheel(asio::query(ex, asio::execution::context))
                 .now();
         sent != requests; t += period) {
      timer.expires_at(t);
      co_await timer.async_wait(asio::use_awaitable);
      ++sent;
      asio::co_spawn(ex, one(s), asio::detached);
    }
  }

  asio::awaitable<void> one(service& s) {
    const response res = co_await answer(s, address, hello);
    const auto retry_after = res[http::field::retry_after];
    switch (res.result()) {
    case http::status::ok:
      ++served;
      BOOST_REQUIRE(res.body() == R"({"hello":"world"})");
      BOOST_REQUIRE(retry_after.empty());
      break;
    case http::status::too_many_requests:
      ++over;
      BOOST_REQUIRE(retry_after == "1");
      break;
    default:
      BOOST_REQUIRE((res.result() == http::status::service_unavailable));
      ++busy;
      BOOST_REQUIRE(!retry_after.empty());
    }
  }
};

client from(const char* address, std::chrono::steady_clock::duration period) {
  return {asio::ip::make_address(address), period};
}

void run_until(manual_context& c, manual_context::time_point end) {
  c.poll();
  for (;;) {
    const auto next = c.clock.next_deadline();
    if (!next || *next > end)
      break;
    c.clock.advance_to(*next);
    c.poll();
  }
  c.clock.advance_to(end);
  c.poll();
}

} // namespace

BOOST_AUTO_TEST_CASE(each_client_gets_its_rate_for_an_hour_and_no_more) {
  manual_context c;
  service s(c.io.get_executor());
  client greedy = from("10.0.0.1", 50ms), eager = from("10.0.0.2", 100ms),
         modest = from("10.0.0.3", 1s), v6 = from("2001:db8::1", 250ms),
         same_network = from("2001:db8::2", 250ms);
  for (client* each : {&greedy, &eager, &modest, &v6, &same_network})
    asio::co_spawn(c.io, each->run(s, 1h / each->period), asio::detached);
  asio_wheel::run_simulation({c.io}, c.clock);

  // The bucket at first, and five a second until the last request.
  BOOST_TEST(greedy.served == 10u + 17'999u); // until 3599.95 s
  BOOST_TEST(greedy.over == 72'000u - greedy.served);
  BOOST_TEST(eager.served == 10u + 17'999u); // until 3599.9 s
  BOOST_TEST(modest.served == 3600u);
  // Those two share one.
  BOOST_TEST(v6.served + same_network.served == 10u + 17'998u);
  BOOST_TEST(s.answers[200] == greedy.served + eager.served + modest.served +
                                   v6.served + same_network.served);
  BOOST_TEST(s.answers[503] == 0u);
}

BOOST_AUTO_TEST_CASE(all_together_get_the_services_rate_for_an_hour) {
  manual_context c;
  limits l;
  l.service = {10, 5};
  service s(c.io.get_executor(), l);
  std::vector<client> clients;
  for (int i = 0; i != 10; ++i)
    clients.push_back(from(("10.0.1." + std::to_string(i)).c_str(), 500ms));
  const auto start = c.now();
  for (client& each : clients) // twenty a second
    asio::co_spawn(c.io, each.run(s, 2 * 3700), asio::detached);
  run_until(c, start + 1h);

  std::uint64_t served = 0, busy = 0, sent = 0;
  for (const client& each : clients) {
    served += each.served;
    busy += each.busy;
    sent += each.sent;
    BOOST_TEST(each.over == 0u);
    BOOST_TEST(each.served >= 3000u); // a fair share, or nearly so
  }
  BOOST_TEST(served == 5u + 36'000u);
  BOOST_TEST(s.doors.service().waiting() == sent - served - busy);
  BOOST_TEST(s.doors.service().waiting() != 0u);
  asio_wheel::run_simulation({c.io}, c.clock);
}

BOOST_AUTO_TEST_CASE(who_comes_again_when_told_is_served) {
  manual_context c;
  limits l;
  l.client = {{1, 7s}, 2};
  service s(c.io.get_executor(), l);
  int served = 0, refused = 0;
  asio::co_spawn(
      c.io,
      [&]() -> asio::awaitable<void> {
        asio_wheel::wheel_timer timer(c.io);
        for (int i = 0; i != 1000; ++i) {
          const response res =
              co_await answer(s, asio::ip::make_address("10.0.0.1"), hello);
          if (res.result() == http::status::ok) {
            ++served;
            continue;
          }
          ++refused;
          timer.expires_after(
              seconds(std::stoi(std::string(res[http::field::retry_after]))));
          co_await timer.async_wait(asio::use_awaitable);
        }
      },
      asio::detached);
  const auto start = c.now();
  asio_wheel::run_simulation({c.io}, c.clock);
  BOOST_TEST(served == 501); // two at first, then one after each refusal
  BOOST_TEST(refused == 499);
  BOOST_TEST((c.now() - start == 499 * 7s));
}

BOOST_AUTO_TEST_CASE(clients_that_are_gone_are_forgotten) {
  manual_context c;
  service s(c.io.get_executor());
  std::size_t most = 0;
  for (unsigned i = 0; i != 50'000; ++i) {
    asio::co_spawn(c.io, answer(s, asio::ip::address_v4(0x0a000000 + i), hello),
                   asio::detached);
    c.advance(10ms);
    most = std::max(most, s.doors.clients());
  }
  BOOST_TEST(s.answers[200] == 50'000u);
  BOOST_TEST(most <= 1000u);
}

BOOST_AUTO_TEST_CASE(over_a_connection) {
  manual_context c;
  limits l;
  l.client = {{1, 90s}, 2};
  service s(c.io.get_executor(), l);
  test::local_pair pair(c.io);
  asio::co_spawn(c.io, session(s, std::move(pair.ours)), asio::detached);
  beast::flat_buffer buffer;
  const auto ask = [&](const std::string& target) {
    pair.say("GET " + target + " HTTP/1.1\r\nHost: here\r\n\r\n");
    while (pair.theirs.available() == 0)
      c.poll();
    response res;
    http::read(pair.theirs, buffer, res);
    return res;
  };
  BOOST_TEST(ask("/hello").body() == R"({"hello":"world"})");
  BOOST_TEST((ask("/nothing").result() == http::status::not_found));
  response res = ask("/status");
  BOOST_TEST((res.result() == http::status::too_many_requests));
  BOOST_TEST(res[http::field::retry_after] == "90");
  BOOST_TEST(res.keep_alive());
  // By then the connection is gone: the read timeout.
  c.advance(90s);
  s.stopping = true;
  test::local_pair again(c.io);
  pair.theirs = std::move(again.theirs);
  asio::co_spawn(c.io, session(s, std::move(again.ours)), asio::detached);
  res = ask("/status");
  BOOST_TEST((res.result() == http::status::ok));
  BOOST_TEST(
      res.body() ==
      R"({"clients":1,"in_line":0,"answers":{"200":1,"404":1,"429":1}})");
  BOOST_TEST(!res.keep_alive()); // since it stops
}
