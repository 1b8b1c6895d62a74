//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/manual_clock.hpp>

#define BOOST_TEST_MODULE manual_clock
#include <boost/test/unit_test.hpp>

#include <test/manual_context.hpp>
#include <test/outcome.hpp>

#include <asio_wheel/wheel_timer.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::manual_clock;
using asio_wheel::wheel_options;
using asio_wheel::wheel_timer;
using test::fate;
using test::manual_context;
using test::outcome;
using test::quietly;

using duration = manual_clock::duration;
using time_point = manual_clock::time_point;

BOOST_AUTO_TEST_CASE(starts_where_it_is_told_to) {
  BOOST_TEST((manual_clock().now() == time_point()));
  BOOST_TEST((manual_clock(time_point(42s)).now() == time_point(42s)));
  BOOST_TEST((manual_clock(time_point::min()).now() == time_point::min()));
  BOOST_TEST((manual_clock(time_point::max()).now() == time_point::max()));
}

BOOST_AUTO_TEST_CASE(stands_still_until_advanced) {
  manual_clock c;
  c.advance(10ms);
  BOOST_TEST((c.now() == time_point(10ms)));
  c.advance(0ms);
  BOOST_TEST((c.now() == time_point(10ms)));
  c.advance_to(time_point(15ms));
  BOOST_TEST((c.now() == time_point(15ms)));
  c.advance_to(c.now());
  BOOST_TEST((c.now() == time_point(15ms)));
}

BOOST_AUTO_TEST_CASE(does_not_go_back) {
  manual_clock c(time_point(10ms));
  BOOST_CHECK_THROW(c.advance(-1ns), std::invalid_argument);
  BOOST_CHECK_THROW(c.advance(duration::min()), std::invalid_argument);
  BOOST_CHECK_THROW(c.advance_to(time_point(10ms) - 1ns),
                    std::invalid_argument);
  BOOST_CHECK_THROW(c.advance_to(time_point::min()), std::invalid_argument);
  BOOST_TEST((c.now() == time_point(10ms)));
}

BOOST_AUTO_TEST_CASE(saturates_at_the_end_of_time) {
  manual_clock c(time_point(1s));
  c.advance(duration::max());
  BOOST_TEST((c.now() == time_point::max()));
  c.advance(1h);
  BOOST_TEST((c.now() == time_point::max()));
  manual_clock d(time_point::min());
  d.advance(duration::max());
  BOOST_TEST((d.now() == time_point(-1ns)));
}

BOOST_AUTO_TEST_CASE(copies_refer_to_the_same_time) {
  manual_clock a, b = a, c;
  a.advance(1s);
  BOOST_TEST((b.now() == time_point(1s)));
  BOOST_TEST((a == b));
  BOOST_TEST((a != c));
  c = b;
  BOOST_TEST((a == c));
  c.advance(1s);
  BOOST_TEST((a.now() == time_point(2s)));
}

BOOST_AUTO_TEST_CASE(runs_nothing_itself) {
  manual_context m;
  wheel_timer t(m.io, 10ms);
  outcome o;
  t.async_wait(o.tracked());
  quietly([&] { m.clock.advance(1h); });
  BOOST_TEST(o.fate() == fate::waiting);
  m.poll();
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(wakes_a_run_in_another_thread) {
  manual_context m;
  wheel_timer t(m.io, 1h);
  outcome o;
  t.async_wait(o.tracked());
  std::thread runner([&] { m.io.run(); });
  m.clock.advance(1h);
  runner.join();
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(wakes_a_run_for_a_timer_armed_nearer) {
  // The first arming holds run(); the second must not wait for it.
  manual_context m;
  wheel_timer far(m.io, 1h), near(m.io, 1ms);
  outcome o1, o2;
  far.async_wait(o1.tracked());
  near.async_wait([&, h = o2.tracked()](auto ec) mutable {
    h(ec);
    far.cancel();
  });
  std::thread runner([&] { m.io.run(); });
  m.clock.advance(1ms);
  runner.join();
  BOOST_TEST(o1.fate() == fate::aborted);
  BOOST_TEST(o2.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(drives_several_wheels) {
  manual_clock clock;
  manual_context a({}, clock), b({}, clock);
  wheel_timer ta(a.io, 10ms), tb(b.io, 20ms);
  outcome oa, ob;
  ta.async_wait(oa.tracked());
  tb.async_wait(ob.tracked());
  BOOST_TEST(clock.pending() == 2u);
  clock.advance(10ms);
  a.poll();
  b.poll();
  BOOST_TEST(oa.fate() == fate::fired);
  BOOST_TEST(ob.fate() == fate::waiting);
  clock.advance(10ms);
  a.poll();
  b.poll();
  BOOST_TEST(ob.fate() == fate::fired);
  BOOST_TEST(clock.pending() == 0u);
}

BOOST_AUTO_TEST_CASE(drives_wheels_made_at_different_times) {
  // Each has its own epoch.
  manual_clock clock;
  manual_context a({}, clock);
  clock.advance(333us);
  wheel_options coarse;
  coarse.tick = 7ms;
  manual_context b(coarse, clock);
  wheel_timer ta(a.io, 10ms), tb(b.io, 10ms);
  outcome oa, ob;
  ta.async_wait(oa.tracked());
  tb.async_wait(ob.tracked());
  const auto until = [&](time_point t) {
    clock.advance_to(t);
    a.poll();
    b.poll();
  };
  until(time_point(10333us - 1ns));
  BOOST_TEST(oa.fate() == fate::waiting);
  until(time_point(11ms));
  BOOST_TEST(oa.fate() == fate::fired);
  BOOST_TEST(ob.fate() == fate::waiting);
  until(time_point(14333us));
  BOOST_TEST(ob.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(next_deadline_is_the_nearest_of_all_wheels) {
  manual_clock clock;
  BOOST_TEST(!clock.next_deadline());
  manual_context a({}, clock), b({}, clock);
  BOOST_TEST(!clock.next_deadline());
  wheel_timer ta(a.io, 10ms), tb(b.io, 20ms), never(a.io);
  never.expires_at(time_point::max());
  outcome o[3];
  never.async_wait(o[2].tracked());
  BOOST_TEST(!clock.next_deadline());
  tb.async_wait(o[1].tracked());
  BOOST_REQUIRE(clock.next_deadline().has_value());
  BOOST_TEST((*clock.next_deadline() <= tb.expiry()));
  ta.async_wait(o[0].tracked());
  BOOST_TEST((*clock.next_deadline() <= ta.expiry()));
  ta.cancel();
  a.poll();
  BOOST_REQUIRE(clock.next_deadline().has_value());
  BOOST_TEST((*clock.next_deadline() <= tb.expiry()));
  tb.cancel();
  BOOST_TEST(!clock.next_deadline());
  BOOST_TEST(clock.pending() == 1u);
}

BOOST_AUTO_TEST_CASE(next_deadline_is_not_in_the_future_while_something_is_due) {
  manual_context m;
  wheel_timer t(m.io, 10ms), u(m.io);
  outcome o1, o2;
  t.async_wait(o1.tracked());
  m.clock.advance(15ms);
  BOOST_REQUIRE(m.clock.next_deadline().has_value());
  BOOST_TEST((*m.clock.next_deadline() <= m.now()));
  m.poll();
  BOOST_TEST(!m.clock.next_deadline());
  u.async_wait(o2.tracked());
  BOOST_REQUIRE(m.clock.next_deadline().has_value());
  BOOST_TEST((*m.clock.next_deadline() <= m.now()));
}

BOOST_AUTO_TEST_CASE(stepping_from_deadline_to_deadline_sees_each_on_its_tick) {
  manual_context m;
  std::vector<std::unique_ptr<wheel_timer>> timers;
  std::vector<outcome> o;
  std::vector<duration> late;
  for (const duration d : {1ms, 5ms, 255ms, 256ms, 257ms, 65535ms, 65536ms,
                           70000ms, 3600000ms}) {
    timers.push_back(std::make_unique<wheel_timer>(m.io, d));
    o.emplace_back([&, due = m.now() + d](auto) {
      late.push_back(m.now() - due);
    });
    timers.back()->async_wait(o.back().tracked());
  }
  for (int i = 0; i != 1000 && m.clock.next_deadline(); ++i) {
    m.clock.advance_to(*m.clock.next_deadline());
    m.poll();
  }
  BOOST_TEST(late.size() == o.size());
  for (const auto l : late)
    BOOST_TEST((l == 0ms));
}

BOOST_AUTO_TEST_CASE(a_wait_due_at_once_needs_no_advance) {
  // Whatever the wheel did before. One far wait is pending all the time, so
  // that the wheel stays armed.
  for (const auto step : {0ms, 1ms, 3ms, 10ms, 300ms, 70000ms}) {
    manual_context m;
    wheel_timer far(m.io, 1000h), near(m.io), at_once(m.io);
    outcome of;
    far.async_wait(of.small());
    for (int i = 0; i != 20; ++i) {
      outcome on, o0, o1;
      near.expires_after(5ms);
      near.async_wait(on.small());
      m.advance(7ms);
      BOOST_TEST(on.fate() == fate::fired);
      m.advance(step);
      at_once.expires_after(0ms);
      at_once.async_wait(o0.small());
      m.poll();
      BOOST_TEST(o0.fate() == fate::fired);
      m.clock.advance(step);
      at_once.expires_at(m.now() - 1ms);
      at_once.async_wait(o1.small());
      m.poll();
      BOOST_TEST(o1.fate() == fate::fired);
    }
    far.cancel();
    m.poll();
  }
}

BOOST_AUTO_TEST_CASE(a_cancelled_near_wait_does_not_hide_a_due_one) {
  manual_context m;
  wheel_timer far(m.io, 1000h), near(m.io, 5ms), t(m.io);
  outcome o1, o2, o3;
  far.async_wait(o1.small());
  near.async_wait(o2.small());
  near.cancel();
  m.poll();
  m.advance(25ms);
  m.advance(25ms);
  t.async_wait(o3.small());
  m.poll();
  BOOST_TEST(o3.fate() == fate::fired);
  far.cancel();
  m.poll();
}

BOOST_AUTO_TEST_CASE(may_be_advanced_from_a_handler) {
  manual_context m;
  wheel_timer a(m.io, 10ms), b(m.io, 1h);
  outcome ob;
  outcome oa([&](auto) { quietly([&] { m.clock.advance(1h); }); });
  a.async_wait(oa.tracked());
  b.async_wait(ob.tracked());
  m.advance(10ms);
  BOOST_TEST(oa.fate() == fate::fired);
  BOOST_TEST(ob.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(outlives_its_contexts) {
  manual_clock clock;
  outcome o;
  {
    manual_context m({}, clock);
    wheel_timer t(m.io, 10ms);
    t.async_wait(o.tracked());
    BOOST_TEST(clock.pending() == 1u);
  }
  BOOST_TEST(o.fate() == fate::dropped);
  BOOST_TEST(clock.pending() == 0u);
  BOOST_TEST(!clock.next_deadline());
  clock.advance(1h);
}

BOOST_AUTO_TEST_CASE(may_go_before_its_contexts) {
  asio::io_context io;
  {
    wheel_options o;
    o.clock.emplace(time_point(1s));
    asio_wheel::make_wheel(io, o);
  }
  wheel_timer t(io, 1h);
  outcome o;
  t.async_wait(o.tracked());
  BOOST_TEST((asio_wheel::use_wheel(io).now() == time_point(1s)));
  t.expires_after(0s);
  t.async_wait([](auto) {});
  io.run();
  BOOST_TEST(o.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE(is_left_alone_by_options_that_were_refused) {
  manual_clock clock;
  asio::io_context io;
  wheel_options o;
  o.clock = clock;
  o.slots = 3;
  BOOST_CHECK_THROW(asio_wheel::make_wheel(io, o), std::invalid_argument);
  asio_wheel::make_wheel(io, wheel_options());
  o.slots = 256;
  BOOST_CHECK_THROW(asio_wheel::make_wheel(io, o),
                    asio::service_already_exists);
  clock.advance(1h);
  BOOST_TEST(clock.pending() == 0u);
}

BOOST_AUTO_TEST_CASE(hold_tokens_can_be_moved_and_released) {
  manual_clock clock;
  manual_clock::hold_token none, a = clock.hold();
  none.release();
  manual_clock::hold_token b = std::move(a);
  a.release();
  b.release();
  b.release();
  b = clock.hold();
  b = std::move(none);
  std::optional<manual_clock::hold_token> c(clock.hold());
  c.reset();
  static_assert(!std::is_copy_constructible_v<manual_clock::hold_token>);
  BOOST_TEST((clock.now() == time_point()));
}
