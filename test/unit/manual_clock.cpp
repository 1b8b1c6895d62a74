//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/manual_clock.hpp>

#include <asio_wheel/wheel_timer.hpp>

#include <test/manual_context.hpp>
#include <test/outcome.hpp>

#include <boost/asio/io_context.hpp>

#define BOOST_TEST_MODULE unit_manual_clock
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

namespace {

using namespace std::chrono_literals;
using asio_wheel::manual_clock;
using asio_wheel::wheel_timer;
using test::fate;
using test::manual_context;
using test::outcome;

} // namespace

BOOST_AUTO_TEST_CASE(shows_its_start_until_it_is_moved) {
  const manual_clock::time_point start(12h);
  manual_clock c(start);
  BOOST_TEST((c.now() == start));
  BOOST_TEST((manual_clock().now() == manual_clock::time_point()));
  c.advance(5ms);
  BOOST_TEST((c.now() == start + 5ms));
  c.advance(0ms);
  c.advance_to(start + 7ms);
  BOOST_TEST((c.now() == start + 7ms));
  c.advance_to(c.now());
}

BOOST_AUTO_TEST_CASE(copies_show_the_same_time) {
  manual_clock a, other;
  manual_clock b = a;
  a.advance(1s);
  BOOST_TEST((b.now() == a.now()));
  BOOST_TEST((a == b));
  BOOST_TEST((a != other));
}

BOOST_AUTO_TEST_CASE(does_not_go_back) {
  manual_clock c(manual_clock::time_point(1h));
  BOOST_CHECK_THROW(c.advance(-1ns), std::invalid_argument);
  BOOST_CHECK_THROW(c.advance_to(c.now() - 1ns), std::invalid_argument);
  BOOST_TEST((c.now() == manual_clock::time_point(1h)));
}

BOOST_AUTO_TEST_CASE(saturates_at_the_end_of_time) {
  manual_clock c(manual_clock::time_point(1h));
  c.advance(manual_clock::duration::max());
  BOOST_TEST((c.now() == manual_clock::time_point::max()));
}

BOOST_AUTO_TEST_CASE(moving_it_runs_no_handler_but_has_them_run) {
  manual_context c;
  outcome o;
  wheel_timer t(c.io, 1ms);
  t.async_wait(o.tracked());
  test::quietly([&] { c.clock.advance(1s); });
  BOOST_TEST((o.fate() == fate::waiting));
  c.poll();
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(a_wait_due_at_once_needs_no_advance) {
  // Whatever the wheel did before, while a far wait keeps its driver armed.
  for (const auto step : {0ms, 1ms, 3ms, 10ms, 300ms, 70'000ms}) {
    manual_context c;
    wheel_timer far(c.io, 1000h), near(c.io), at_once(c.io);
    far.async_wait([](auto) {});
    for (int i = 0; i != 20; ++i) {
      outcome first, now, past;
      near.expires_after(5ms);
      near.async_wait(first.small());
      c.advance(7ms);
      BOOST_TEST((first.fate() == fate::fired));
      c.advance(step);
      at_once.expires_after(0ms);
      at_once.async_wait(now.small());
      c.poll();
      BOOST_TEST((now.fate() == fate::fired));
      c.clock.advance(step);
      at_once.expires_at(c.now() - 1ms);
      at_once.async_wait(past.small());
      c.poll();
      BOOST_TEST((past.fate() == fate::fired));
    }
  }
}

BOOST_AUTO_TEST_CASE(next_deadline_is_the_earliest_of_all_wheels) {
  manual_context a;
  manual_context b({}, a.clock);
  BOOST_TEST(!a.clock.next_deadline());
  wheel_timer late(a.io, 10s), soon(b.io, 3s), never(a.io);
  never.expires_at(wheel_timer::time_point::max());
  never.async_wait([](auto) {});
  BOOST_TEST(!a.clock.next_deadline()); // pending for ever
  late.async_wait([](auto) {});
  BOOST_TEST((a.clock.next_deadline() == a.now() + 10s));
  soon.async_wait([](auto) {});
  BOOST_TEST((a.clock.next_deadline() == a.now() + 3s));
  BOOST_TEST(a.clock.pending() == 3u);
  soon.cancel();
  BOOST_TEST(a.clock.pending() == 2u);
}

BOOST_AUTO_TEST_CASE(drives_wheels_in_several_contexts) {
  manual_context a;
  manual_context b({}, a.clock);
  outcome in_a, in_b;
  wheel_timer x(a.io, 5ms), y(b.io, 5ms);
  x.async_wait(in_a.tracked());
  y.async_wait(in_b.tracked());
  a.clock.advance(5ms);
  a.poll();
  b.poll();
  BOOST_TEST((in_a.fate() == fate::fired));
  BOOST_TEST((in_b.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(wakes_a_context_that_another_thread_runs) {
  manual_context c;
  outcome o;
  wheel_timer t(c.io, 1h);
  t.async_wait(o.tracked());
  std::thread runner([&] { c.io.run(); });
  c.clock.advance(1h);
  runner.join(); // run() has returned: nothing is pending
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(outlives_its_contexts_and_they_outlive_it) {
  manual_clock clock;
  {
    manual_context c({}, clock);
    wheel_timer t(c.io, 1s);
    t.async_wait([](auto) {});
  }
  clock.advance(1h);
  BOOST_TEST(clock.pending() == 0u);
  BOOST_TEST(!clock.next_deadline());
}

BOOST_AUTO_TEST_CASE(a_hold_can_be_moved_and_let_go) {
  manual_clock c;
  auto a = c.hold();
  manual_clock::hold_token b = std::move(a);
  a.release(); // nothing left in it
  b = c.hold();
  b.release();
  b.release();
}
