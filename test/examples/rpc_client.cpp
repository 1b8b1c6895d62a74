//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#define main example_main
#include "../../example/rpc_client.cpp"
#undef main

#include <test/manual_context.hpp>

#define BOOST_TEST_MODULE example_rpc_client
#include <boost/test/unit_test.hpp>

#include <optional>

namespace {

using namespace rpc_client;
using mood = simulated_peer::mood;

options exact() {
  options o;
  o.between_attempts = backoff::exponential(100ms, 2s);
  o.between_connects = backoff::exponential(200ms, 30s);
  return o;
}

struct fixture : test::manual_context {
  simulated_peer peer{io.get_executor()};
  client<simulated_peer> c{io.get_executor(), peer, exact()};
  bool ended = false;

  fixture() {
    asio::co_spawn(io, c.run(), [this](std::exception_ptr e) {
      BOOST_TEST(!e);
      ended = true;
    });
    poll();
  }

  struct result {
    std::string reply;
    std::optional<error_code> ec;
  };

  void call(std::string request, result& r) {
    asio::co_spawn(
        io,
        [](client<simulated_peer>& it, std::string text,
           result& to) -> asio::awaitable<void> {
          try {
            to.reply = co_await it.call(std::move(text));
            to.ec = error_code();
          } catch (const system_error& e) {
            to.ec = e.code();
          }
        }(c, std::move(request), r),
        asio::detached);
    poll();
  }

  // Millisecond by millisecond.
  void run_for(duration d) {
    for (duration t{}; t < d; t += 1ms)
      advance(1ms);
  }
};

} // namespace

BOOST_FIXTURE_TEST_CASE(a_call_is_answered, fixture) {
  run_for(5ms);
  BOOST_TEST(c.connected());
  result r;
  call("hello", r);
  run_for(5ms);
  BOOST_TEST_REQUIRE(r.ec.has_value());
  BOOST_TEST(!*r.ec);
  BOOST_TEST(r.reply == "re: hello");
  BOOST_TEST(c.retried() == 0u);
}

BOOST_FIXTURE_TEST_CASE(an_attempt_that_takes_too_long_is_tried_again,
                        fixture) {
  run_for(5ms);
  peer.be(mood::silent);
  result r;
  call("hello", r);
  run_for(500ms);
  peer.be(mood::well);
  run_for(99ms);
  BOOST_TEST(!r.ec);
  run_for(6ms);
  BOOST_TEST_REQUIRE(r.ec.has_value());
  BOOST_TEST(r.reply == "re: hello");
  BOOST_TEST(c.retried() == 1u);
}

BOOST_FIXTURE_TEST_CASE(what_is_not_worth_it_is_not_tried_again, fixture) {
  run_for(5ms);
  result r;
  call("", r);
  run_for(5ms);
  BOOST_TEST_REQUIRE(r.ec.has_value());
  BOOST_TEST((*r.ec == asio::error::invalid_argument));
}

BOOST_FIXTURE_TEST_CASE(a_call_ends_within_its_time, fixture) {
  run_for(5ms);
  peer.be(mood::silent);
  result r;
  call("hello", r);
  run_for(5s);
  BOOST_TEST_REQUIRE(r.ec.has_value());
  BOOST_TEST((*r.ec == asio_wheel::condition::timeout));
  BOOST_TEST(c.retried() == 4u); // after 0.5, 1.1, 1.8 and 2.7 s
}

BOOST_FIXTURE_TEST_CASE(a_call_before_the_connection_waits_for_it, fixture) {
  peer.be(mood::gone);
  result r;
  call("hello", r);
  run_for(150ms); // refused once; the next try to connect is at 205 ms
  peer.be(mood::well);
  run_for(200ms);
  BOOST_TEST_REQUIRE(r.ec.has_value());
  BOOST_TEST(r.reply == "re: hello");
  BOOST_TEST(c.connects() == 1u);
}

BOOST_FIXTURE_TEST_CASE(a_heartbeat_notices_a_silent_peer, fixture) {
  run_for(5ms);
  peer.be(mood::silent);
  run_for(10999ms);
  BOOST_TEST(c.connected());
  run_for(1ms);
  BOOST_TEST(!c.connected());
  peer.be(mood::well);
  run_for(5s + 200ms + 5ms); // the attempt to connect, and the pause
  BOOST_TEST(c.connected());
  BOOST_TEST(c.connects() == 2u);
}

BOOST_FIXTURE_TEST_CASE(a_peer_that_was_started_again_is_found, fixture) {
  run_for(5ms);
  peer.be(mood::gone);
  for (int i = 0; i != 60; ++i)
    advance(60s); // hours, if need be
  BOOST_TEST(!c.connected());
  peer.be(mood::well);
  run_for(31s);
  BOOST_TEST(c.connected());
}

BOOST_FIXTURE_TEST_CASE(stop_ends_it_in_each_state, fixture) {
  c.stop(); // it connects
  poll();
  run_for(5ms);
  BOOST_TEST(ended);
  BOOST_TEST(io.stopped());
}

BOOST_FIXTURE_TEST_CASE(stop_between_heartbeats, fixture) {
  run_for(1s);
  c.stop();
  poll();
  BOOST_TEST(ended);
  BOOST_TEST(!c.connected());
  BOOST_TEST(io.stopped());
}

BOOST_FIXTURE_TEST_CASE(stop_during_a_heartbeat, fixture) {
  run_for(5ms + 10s + 2ms); // connected, and the ping is on its way
  BOOST_TEST(c.connected());
  c.stop();
  poll();
  BOOST_TEST(ended);
  BOOST_TEST(!c.connected());
  BOOST_TEST(io.stopped());
}

BOOST_FIXTURE_TEST_CASE(stop_in_the_instant_of_a_heartbeat, fixture) {
  run_for(5ms);
  clock.advance(10s);
  c.stop(); // the tick is due, and nobody has noticed
  poll();
  BOOST_TEST(ended);
  BOOST_TEST(io.stopped());
}

BOOST_AUTO_TEST_CASE(what_ends_connecting_is_told_and_no_connection) {
  struct aborting_peer {
    asio::awaitable<void> connect() {
      throw system_error(asio::error::operation_aborted); // not tried again
      co_return;
    }
    asio::awaitable<std::string> exchange(std::string) { co_return ""; }
  } peer;
  test::manual_context m;
  client<aborting_peer> c(m.io.get_executor(), peer, exact());
  std::exception_ptr told;
  asio::co_spawn(m.io, c.run(), [&](std::exception_ptr e) { told = e; });
  m.poll();
  BOOST_TEST(!c.connected());
  BOOST_TEST(c.connects() == 0u);
  BOOST_TEST_REQUIRE(!!told);
  BOOST_CHECK_THROW(std::rethrow_exception(told), system_error);
}

BOOST_AUTO_TEST_CASE(the_example_runs) { BOOST_TEST(example_main() == 0); }
