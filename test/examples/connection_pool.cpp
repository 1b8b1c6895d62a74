//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#define main example_main
#include "../../example/connection_pool.cpp"
#undef main

#include <test/manual_context.hpp>

#define BOOST_TEST_MODULE example_connection_pool
#include <boost/test/unit_test.hpp>

#include <exception>
#include <optional>
#include <stdexcept>

namespace {

using namespace connection_pool;
using boost::system::error_code;

struct fixture : test::manual_context {
  std::size_t opened = 0;
  bool fails = false;
  pool p{io.get_executor(),
         [this]() -> asio::awaitable<pool::connection_ptr> {
           asio_wheel::wheel_timer handshake(io, 20ms);
           co_await handshake.async_wait(use_awaitable);
           if (fails)
             throw system_error(asio::error::connection_refused);
           co_return std::make_unique<connection>(connection{++opened});
         },
         options{2, 1min, 500ms}};

  struct result {
    pool::lease c;
    std::optional<error_code> ec;
  };

  void acquire(result& r) {
    asio::co_spawn(
        io,
        [this, &r]() -> asio::awaitable<void> {
          try {
            r.c = co_await p.acquire();
            r.ec = error_code();
          } catch (const system_error& e) {
            r.ec = e.code();
          }
        },
        asio::detached);
    poll();
  }
};

} // namespace

BOOST_FIXTURE_TEST_CASE(the_one_used_last_is_used_again, fixture) {
  result a, b, c;
  acquire(a);
  acquire(b);
  advance(20ms);
  BOOST_TEST_REQUIRE((a.c && b.c));
  const auto last = b.c->number;
  p.release(std::move(a.c));
  p.release(std::move(b.c));
  BOOST_TEST(p.idle() == 2u);
  acquire(c);
  BOOST_TEST_REQUIRE(!!c.c);
  BOOST_TEST(c.c->number == last);
  BOOST_TEST(opened == 2u);
}

BOOST_FIXTURE_TEST_CASE(idle_ones_are_closed_after_a_minute, fixture) {
  result a, b;
  acquire(a);
  acquire(b);
  advance(20ms);
  p.release(std::move(a.c));
  advance(30s);
  p.release(std::move(b.c));
  advance(29999ms);
  BOOST_TEST(p.open() == 2u);
  advance(1ms);
  BOOST_TEST(p.open() == 1u);
  advance(30s);
  BOOST_TEST(p.open() == 0u);
  BOOST_TEST(p.idle() == 0u);
}

BOOST_FIXTURE_TEST_CASE(one_in_use_is_not_closed, fixture) {
  result a;
  acquire(a);
  advance(20ms);
  p.release(std::move(a.c));
  advance(59s);
  acquire(a);
  BOOST_TEST_REQUIRE(!!a.c);
  advance(1h);
  BOOST_TEST(p.open() == 1u);
  p.release(std::move(a.c));
  advance(59s);
  BOOST_TEST(p.idle() == 1u);
}

BOOST_FIXTURE_TEST_CASE(who_waits_gets_what_is_given_back_in_order, fixture) {
  result a, b, c, d;
  acquire(a);
  acquire(b);
  advance(20ms);
  acquire(c);
  acquire(d);
  advance(100ms);
  BOOST_TEST((!c.ec && !d.ec));
  p.release(std::move(a.c));
  poll();
  BOOST_TEST(!!c.c);
  BOOST_TEST(!d.ec);
  p.release(std::move(b.c));
  poll();
  BOOST_TEST(!!d.c);
  BOOST_TEST(p.open() == 2u);
  BOOST_TEST(opened == 2u);
}

BOOST_FIXTURE_TEST_CASE(patience_ends, fixture) {
  result a, b, c;
  acquire(a);
  acquire(b);
  advance(20ms);
  acquire(c);
  advance(499ms);
  BOOST_TEST(!c.ec);
  advance(1ms);
  BOOST_TEST_REQUIRE(c.ec.has_value());
  BOOST_TEST((*c.ec == asio_wheel::error::operation_timeout));
  p.release(std::move(a.c)); // nobody waits any more
  BOOST_TEST(p.idle() == 1u);
}

BOOST_FIXTURE_TEST_CASE(given_back_in_the_instant_in_which_patience_ends,
                        fixture) {
  result a, b, c;
  acquire(a);
  acquire(b);
  advance(20ms);
  acquire(c);
  clock.advance(500ms); // due, and nobody has noticed
  p.release(std::move(a.c));
  poll();
  BOOST_TEST(!!c.c);
  BOOST_TEST(p.open() == 2u);
}

BOOST_FIXTURE_TEST_CASE(who_waits_may_open_one_for_one_that_broke, fixture) {
  result a, b, c;
  acquire(a);
  acquire(b);
  advance(20ms);
  acquire(c);
  a.c.reset();
  poll();
  BOOST_TEST(!c.ec);
  advance(20ms);
  BOOST_TEST(!!c.c);
  BOOST_TEST(opened == 3u);
  BOOST_TEST(p.open() == 2u);
}

BOOST_FIXTURE_TEST_CASE(one_that_an_exception_drops_takes_no_place, fixture) {
  asio::co_spawn(
      io,
      [this]() -> asio::awaitable<void> {
        const pool::lease c = co_await p.acquire();
        throw std::runtime_error("a query went wrong");
      },
      [](std::exception_ptr e) { BOOST_TEST(!!e); });
  poll();
  advance(20ms);
  BOOST_TEST(opened == 1u);
  BOOST_TEST(p.open() == 0u);
  BOOST_TEST(p.idle() == 0u);
}

BOOST_FIXTURE_TEST_CASE(who_is_cancelled_is_told_so_and_leaves_the_line,
                        fixture) {
  result a, b, d;
  acquire(a);
  acquire(b);
  advance(20ms);
  asio::cancellation_signal cancel;
  std::exception_ptr told;
  asio::co_spawn(
      io, p.acquire(),
      asio::bind_cancellation_slot(
          cancel.slot(), [&](std::exception_ptr e, pool::lease) { told = e; }));
  poll();
  acquire(d);
  cancel.emit(asio::cancellation_type::terminal);
  poll();
  BOOST_TEST_REQUIRE(!!told);
  BOOST_CHECK_EXCEPTION(std::rethrow_exception(told), system_error,
                        [](const system_error& e) {
                          return e.code() == asio::error::operation_aborted;
                        });
  p.release(std::move(a.c));
  poll();
  BOOST_TEST(!!d.c);
}

BOOST_FIXTURE_TEST_CASE(one_that_cannot_be_opened_takes_no_place, fixture) {
  fails = true;
  result a;
  acquire(a);
  advance(20ms);
  BOOST_TEST_REQUIRE(a.ec.has_value());
  BOOST_TEST((*a.ec == asio::error::connection_refused));
  BOOST_TEST(p.open() == 0u);
}

BOOST_FIXTURE_TEST_CASE(close_lets_all_go, fixture) {
  result a, b, c, d;
  acquire(a);
  acquire(b);
  advance(20ms);
  acquire(c);
  p.release(std::move(b.c));
  acquire(d);
  poll();
  p.close();
  poll();
  BOOST_TEST_REQUIRE(d.ec.has_value());
  BOOST_TEST((*d.ec == asio::error::shut_down));
  p.release(std::move(a.c));
  p.release(std::move(c.c));
  BOOST_TEST(p.open() == 0u);
  acquire(d);
  BOOST_TEST((*d.ec == asio::error::shut_down));
  poll();
  BOOST_TEST(io.stopped()); // nothing holds it
}

BOOST_AUTO_TEST_CASE(the_example_runs) { BOOST_TEST(example_main() == 0); }
