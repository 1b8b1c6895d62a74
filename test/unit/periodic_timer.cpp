//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/periodic_timer.hpp>

#include <test/manual_context.hpp>
#include <test/outcome.hpp>
#include <test/tracking_allocator.hpp>
#include <test/tracking_executor.hpp>

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#define BOOST_TEST_MODULE unit_periodic_timer
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::first_tick;
using asio_wheel::missed_tick_policy;
using asio_wheel::periodic_mode;
using asio_wheel::periodic_options;
using asio_wheel::periodic_timer;
using boost::system::error_code;
using test::fate;
using test::manual_context;
using test::outcome;

using duration = periodic_timer::duration;
using time_point = periodic_timer::time_point;

constexpr missed_tick_policy policies[] = {missed_tick_policy::burst,
                                           missed_tick_policy::skip,
                                           missed_tick_policy::delay};

periodic_options with(missed_tick_policy policy) {
  periodic_options o;
  o.missed_ticks = policy;
  return o;
}

periodic_options fixed_delay() {
  periodic_options o;
  o.mode = periodic_mode::fixed_delay;
  return o;
}

periodic_options first_at_once(periodic_options o = {}) {
  o.first = first_tick::at_once;
  return o;
}

/// A tick as it was made: when, in milliseconds, and how many were missed.
struct tick {
  std::int64_t at;
  std::size_t missed;

  friend bool operator==(tick a, tick b) noexcept {
    return a.at == b.at && a.missed == b.missed;
  }
  friend bool operator!=(tick a, tick b) noexcept { return !(a == b); }
  friend std::ostream& operator<<(std::ostream& o, tick t) {
    return o << t.at << '/' << t.missed;
  }
};

using ticks = std::vector<tick>;

/// Waits for one tick after the other on a timer of its own.
struct ticker {
  manual_context& c;
  periodic_timer timer;
  time_point start = c.now();
  ticks seen;
  error_code ended;
  /// Called with each tick; false: wait no more.
  std::function<bool(tick)> work;

  ticker(manual_context& context, duration period, periodic_options o = {})
      : c(context), timer(context.io, period, o) {}

  void wait() {
    timer.async_wait([this](error_code ec, std::size_t missed) {
      if (ec) {
        ended = ec;
        return;
      }
      seen.push_back({(c.now() - start) / 1ms, missed});
      if (!work || work(seen.back()))
        wait();
    });
  }

  void run_until(duration end) {
    c.poll();
    while (c.now() - start < end)
      c.advance(1ms);
  }
};

/// The timeline of the documentation: period 10, from 10 to 35 at work, then
/// none that takes any time.
ticks timeline(periodic_options o) {
  manual_context c;
  ticker t(c, 10ms, o);
  t.work = [&](tick k) {
    if (k.at == 10)
      c.clock.advance(25ms);
    return true;
  };
  t.wait();
  t.run_until(64ms);
  return t.seen;
}

#define CHECK_TICKS(actual, ...)                                               \
  do {                                                                         \
    const ticks actual_ = (actual);                                            \
    const ticks expected_ = __VA_ARGS__;                                       \
    BOOST_CHECK_EQUAL_COLLECTIONS(actual_.begin(), actual_.end(),              \
                                  expected_.begin(), expected_.end());         \
  } while (false)

/// Checks what a function throws: names `period`.
template <typename F> void check_rejects_period(F&& f) {
  BOOST_CHECK_EXCEPTION(
      f(), std::invalid_argument, [](const std::invalid_argument& e) {
        return std::string(e.what()).find("period") != std::string::npos;
      });
}

} // namespace

// ---------------------------------------------------------------------------
// The timelines of the documentation

BOOST_AUTO_TEST_CASE(timeline_of_burst) {
  CHECK_TICKS(timeline(with(missed_tick_policy::burst)),
              {{10, 0}, {35, 1}, {35, 0}, {40, 0}, {50, 0}, {60, 0}});
}

BOOST_AUTO_TEST_CASE(timeline_of_skip) {
  CHECK_TICKS(timeline(with(missed_tick_policy::skip)),
              {{10, 0}, {35, 1}, {40, 0}, {50, 0}, {60, 0}});
  CHECK_TICKS(timeline({}), {{10, 0}, {35, 1}, {40, 0}, {50, 0}, {60, 0}});
}

BOOST_AUTO_TEST_CASE(timeline_of_delay) {
  CHECK_TICKS(timeline(with(missed_tick_policy::delay)),
              {{10, 0}, {35, 1}, {45, 0}, {55, 0}});
}

BOOST_AUTO_TEST_CASE(timeline_of_fixed_delay) {
  CHECK_TICKS(timeline(fixed_delay()), {{10, 0}, {45, 0}, {55, 0}});
}

// ---------------------------------------------------------------------------
// Ticks

BOOST_AUTO_TEST_CASE(the_first_tick_is_a_period_after_the_construction) {
  manual_context c;
  periodic_timer timer(c.io, 10s);
  BOOST_TEST((timer.next_tick() == c.now() + 10s));
  c.advance(4s); // nobody waits yet
  outcome o;
  timer.async_wait(
      [h = o.tracked()](error_code ec, std::size_t missed) mutable {
        BOOST_TEST(missed == 0u);
        h(ec);
      });
  c.advance(6s - 1ns);
  BOOST_TEST((o.fate() == fate::waiting));
  c.advance(1ns);
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(the_first_tick_may_be_at_once) {
  manual_context c;
  for (periodic_options o : {periodic_options(), fixed_delay()}) {
    ticker t(c, 10ms, first_at_once(o));
    test::quietly([&] { t.wait(); }); // not from within
    BOOST_TEST(t.seen.empty());
    t.run_until(25ms);
    CHECK_TICKS(t.seen, {{0, 0}, {10, 0}, {20, 0}});
  }
}

BOOST_AUTO_TEST_CASE(a_late_wait_completes_at_once_and_tells_what_was_missed) {
  for (const auto policy : policies) {
    manual_context c;
    ticker t(c, 10ms, with(policy));
    c.advance(47ms);
    t.work = [](tick) { return false; };
    test::quietly([&] { t.wait(); });
    c.poll();
    CHECK_TICKS(t.seen, {{47, 3}});
  }
}

BOOST_AUTO_TEST_CASE(burst_makes_as_many_ticks_as_periods) {
  manual_context c;
  ticker t(c, 10ms, with(missed_tick_policy::burst));
  c.advance(47ms);
  t.wait();
  t.run_until(50ms);
  CHECK_TICKS(t.seen, {{47, 3}, {47, 2}, {47, 1}, {47, 0}, {50, 0}});
}

BOOST_AUTO_TEST_CASE(a_burst_lets_other_work_have_its_turn) {
  manual_context c;
  ticker t(c, 1ms, with(missed_tick_policy::burst));
  c.advance(1000ms);
  std::size_t at_other_work = 0;
  t.work = [&](tick k) { return k.missed != 0; };
  t.wait();
  asio::post(c.io, [&] { at_other_work = t.seen.size(); });
  c.poll();
  BOOST_TEST(t.seen.size() == 1000u);
  BOOST_TEST(at_other_work < 1000u);
}

BOOST_AUTO_TEST_CASE(missed_is_counted_when_the_handler_is_called) {
  manual_context c;
  periodic_timer timer(c.io, 10ms);
  auto strand = asio::make_strand(c.io);
  std::optional<std::size_t> missed;
  // The strand is at work for 30 ms when the tick is due.
  asio::post(strand, [&] { c.clock.advance(45ms); });
  timer.async_wait(asio::bind_executor(
      strand, [&](error_code, std::size_t m) { missed = m; }));
  c.poll();
  c.poll();
  BOOST_REQUIRE(missed.has_value());
  BOOST_TEST(*missed == 3u);
  BOOST_TEST((timer.next_tick() - c.now() == 5ms));
}

BOOST_AUTO_TEST_CASE(what_was_missed_while_a_handler_was_queued_counts) {
  manual_context c;
  asio::io_context other;
  periodic_timer timer(c.io, 10ms);
  std::optional<std::size_t> missed;
  timer.async_wait(asio::bind_executor(
      other.get_executor(), [&](error_code, std::size_t m) { missed = m; }));
  c.advance(10ms); // handed to the other context
  c.clock.advance(20ms);
  other.poll();
  BOOST_REQUIRE(missed.has_value());
  BOOST_TEST(*missed == 2u);
  BOOST_TEST((timer.next_tick() == time_point(c.now()) + 10ms));
}

BOOST_AUTO_TEST_CASE(does_not_drift_when_handlers_are_late) {
  manual_context c;
  ticker t(c, 10ms);
  t.work = [&](tick) {
    c.clock.advance(7ms);
    return true;
  };
  t.wait();
  t.run_until(10s);
  BOOST_REQUIRE(t.seen.size() >= 999u);
  for (std::size_t i = 0; i != t.seen.size(); ++i)
    BOOST_TEST(t.seen[i].at == static_cast<std::int64_t>(10 * (i + 1)));
}

// A3, through many revolutions of the wheel's first levels.
BOOST_AUTO_TEST_CASE(a_long_chain_stays_on_the_grid) {
  manual_context c;
  std::int64_t n = 0;
  const time_point start = c.now();
  periodic_timer timer(c.io, 3ms);
  std::function<void()> wait = [&] {
    timer.async_wait([&](error_code ec, std::size_t missed) {
      if (ec)
        return;
      ++n;
      if (missed != 0 || c.now() - start != n * 3ms)
        BOOST_FAIL("tick " << n);
      wait();
    });
  };
  wait();
  for (int i = 0; i != 200'000; ++i)
    c.advance(3ms);
  BOOST_TEST(n == 200'000);
  timer.cancel();
  c.poll();
}

BOOST_AUTO_TEST_CASE(a_period_that_is_no_multiple_of_the_tick_does_not_drift) {
  manual_context c;
  ticker t(c, 2500us);
  t.wait();
  t.run_until(1s);
  BOOST_REQUIRE(t.seen.size() == 400u);
  for (std::size_t i = 0; i != t.seen.size(); ++i) {
    const std::int64_t due_us = 2500 * static_cast<std::int64_t>(i + 1);
    BOOST_TEST(t.seen[i].at * 1000 >= due_us);
    BOOST_TEST(t.seen[i].at * 1000 < due_us + 1000);
    BOOST_TEST(t.seen[i].missed == 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_period_finer_than_the_tick_is_kept_on_the_average) {
  manual_context c;
  ticker t(c, 100us);
  t.wait();
  t.run_until(50ms);
  std::size_t all = 0;
  for (const tick k : t.seen)
    all += 1 + k.missed;
  BOOST_TEST(all == 500u);
  BOOST_TEST(t.seen.size() == 50u); // no hot loop

  ticker every(c, 100us, with(missed_tick_policy::burst));
  every.wait();
  every.run_until(50ms);
  BOOST_TEST(every.seen.size() == 500u);
}

// A1
BOOST_AUTO_TEST_CASE(huge_periods_never_tick) {
  for (const auto mode :
       {periodic_mode::fixed_rate, periodic_mode::fixed_delay})
    for (const duration period :
         {duration::max(), duration::max() - 1ns, duration::max() / 10}) {
      manual_context c;
      periodic_options o;
      o.mode = mode;
      ticker t(c, period, o);
      t.wait();
      c.advance(24h * 365 * 20);
      BOOST_TEST(t.seen.empty());
      BOOST_TEST(t.timer.cancel() == 1u);
      c.poll();
      BOOST_TEST((t.ended == asio::error::operation_aborted));
      // The first at once, and then no more.
      ticker once(c, period, first_at_once(o));
      once.wait();
      c.poll();
      BOOST_TEST(once.seen.size() == 1u);
      c.advance(24h * 365 * 3);
      BOOST_TEST(once.seen.size() == 1u);
      once.timer.cancel();
      c.poll();
    }
}

BOOST_AUTO_TEST_CASE(slack_makes_a_tick_later_and_not_those_after_it) {
  manual_context c;
  periodic_options o = with(missed_tick_policy::delay);
  o.slack = 16ms;
  ticker t(c, 100ms, o);
  t.wait();
  t.run_until(10s + 20ms);
  BOOST_REQUIRE(t.seen.size() == 100u);
  for (std::size_t i = 0; i != t.seen.size(); ++i) {
    const auto due = static_cast<std::int64_t>(100 * (i + 1));
    BOOST_TEST(t.seen[i].at >= due);
    BOOST_TEST(t.seen[i].at < due + 16);
    BOOST_TEST(t.seen[i].at % 16 == 0);
  }
}

BOOST_AUTO_TEST_CASE(a_negative_slack_is_none) {
  manual_context c;
  periodic_options o;
  o.slack = duration::min();
  ticker t(c, 10ms, o);
  t.wait();
  t.run_until(20ms);
  CHECK_TICKS(t.seen, {{10, 0}, {20, 0}});
}

// ---------------------------------------------------------------------------
// Fixed delay

BOOST_AUTO_TEST_CASE(fixed_delay_counts_from_the_wait) {
  manual_context c;
  periodic_timer timer(c.io, 10ms, fixed_delay());
  outcome first, second;
  const auto wait = [&](outcome& o) {
    timer.async_wait(
        [h = o.tracked()](error_code ec, std::size_t) mutable { h(ec); });
  };
  wait(first);
  c.advance(10ms);
  BOOST_TEST((first.fate() == fate::fired));
  BOOST_TEST((timer.next_tick() == c.now() + 10ms)); // at the earliest
  c.advance(1h);
  wait(second);
  BOOST_TEST((timer.next_tick() == c.now() + 10ms));
  c.advance(10ms - 1ns);
  BOOST_TEST((second.fate() == fate::waiting));
  c.advance(1ns);
  BOOST_TEST((second.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(fixed_delay_goes_on_counting_after_a_cancelled_wait) {
  manual_context c;
  ticker t(c, 10ms, fixed_delay());
  t.wait();
  t.run_until(12ms); // waits since 10
  t.timer.cancel();
  c.advance(4ms);
  t.wait();
  t.run_until(30ms);
  CHECK_TICKS(t.seen, {{10, 0}, {20, 0}, {30, 0}});
}

BOOST_AUTO_TEST_CASE(fixed_delay_tells_how_late_a_blocked_loop_made_it) {
  manual_context c;
  ticker t(c, 10ms, fixed_delay());
  t.wait();
  c.advance(45ms);
  CHECK_TICKS(t.seen, {{45, 3}});
  c.advance(10ms);
  CHECK_TICKS(t.seen, {{45, 3}, {55, 0}});
}

BOOST_AUTO_TEST_CASE(period_at_a_fixed_delay_while_at_work_is_for_the_next) {
  manual_context c;
  ticker t(c, 10ms, fixed_delay());
  t.work = [&](tick k) {
    if (k.at == 10) {
      c.clock.advance(100ms);
      t.timer.period(20ms);
    }
    return true;
  };
  t.wait();
  t.run_until(150ms);
  CHECK_TICKS(t.seen, {{10, 0}, {130, 0}, {150, 0}});
}

// ---------------------------------------------------------------------------
// Changes

BOOST_AUTO_TEST_CASE(period_counts_from_the_last_tick_and_keeps_the_wait) {
  manual_context c;
  ticker t(c, 10ms);
  t.wait();
  t.run_until(14ms);
  t.timer.period(30ms); // longer
  BOOST_TEST((t.timer.period() == 30ms));
  BOOST_TEST((t.timer.next_tick() - t.start == 40ms));
  t.run_until(45ms);
  t.timer.period(7ms); // shorter
  t.run_until(55ms);
  CHECK_TICKS(t.seen, {{10, 0}, {40, 0}, {47, 0}, {54, 0}});
}

BOOST_AUTO_TEST_CASE(period_makes_a_tick_due_but_never_a_missed_one) {
  for (const auto policy : policies) {
    manual_context c;
    ticker t(c, 1h, with(policy));
    t.wait();
    c.advance(30min);
    test::quietly([&] { t.timer.period(1s); });
    c.poll();
    BOOST_REQUIRE(t.seen.size() == 1u);
    BOOST_TEST(t.seen[0] == (tick{1'800'000, 0}));
    c.advance(1s);
    BOOST_REQUIRE(t.seen.size() == 2u);
    BOOST_TEST(t.seen[1] == (tick{1'801'000, 0}));
  }
}

BOOST_AUTO_TEST_CASE(period_before_the_first_tick_counts_from_the_start) {
  manual_context c;
  ticker t(c, 10ms);
  c.advance(4ms);
  t.timer.period(20ms);
  t.wait();
  t.run_until(40ms);
  CHECK_TICKS(t.seen, {{20, 0}, {40, 0}});

  ticker at_once(c, 10ms, first_at_once());
  at_once.timer.period(20ms);
  at_once.wait();
  at_once.run_until(20ms);
  CHECK_TICKS(at_once.seen, {{0, 0}, {20, 0}});
}

BOOST_AUTO_TEST_CASE(period_pulls_back_a_tick_that_is_due_but_not_started) {
  manual_context c;
  ticker t(c, 10ms);
  t.wait();
  c.clock.advance(10ms); // due, not run
  t.timer.period(30ms);
  c.poll();
  BOOST_TEST(t.seen.empty());
  t.run_until(30ms);
  CHECK_TICKS(t.seen, {{30, 0}});
}

BOOST_AUTO_TEST_CASE(period_may_become_endless_and_end_again) {
  manual_context c;
  ticker t(c, 10ms);
  t.wait();
  t.run_until(12ms);
  t.timer.period(duration::max());
  BOOST_TEST((t.timer.next_tick() == time_point::max()));
  t.run_until(100ms);
  t.timer.period(95ms);
  t.run_until(105ms);
  CHECK_TICKS(t.seen, {{10, 0}, {105, 0}});
}

// B9
BOOST_AUTO_TEST_CASE(extended_and_shortened_it_ticks_once_at_the_last) {
  manual_context c;
  ticker t(c, 10ms);
  t.wait();
  t.timer.period(1h);
  t.timer.period(20ms);
  t.run_until(39ms);
  CHECK_TICKS(t.seen, {{20, 0}});
}

BOOST_AUTO_TEST_CASE(reset_starts_a_period_now) {
  manual_context c;
  ticker t(c, 10ms);
  t.wait();
  t.run_until(18ms);
  t.timer.reset();
  BOOST_TEST((t.timer.next_tick() - t.start == 28ms));
  t.timer.period(20ms); // counts from the reset
  t.run_until(60ms);
  CHECK_TICKS(t.seen, {{10, 0}, {38, 0}, {58, 0}});
}

BOOST_AUTO_TEST_CASE(reset_forgets_what_was_due) {
  for (periodic_options o :
       {with(missed_tick_policy::burst), with(missed_tick_policy::skip),
        with(missed_tick_policy::delay), fixed_delay()}) {
    manual_context c;
    ticker t(c, 10ms, o);
    c.advance(45ms);
    t.timer.reset();
    t.wait();
    c.poll();
    BOOST_TEST(t.seen.empty());
    t.run_until(55ms);
    CHECK_TICKS(t.seen, {{55, 0}});
  }
}

BOOST_AUTO_TEST_CASE(reset_at_sets_the_next_tick_and_the_grid) {
  manual_context c;
  ticker t(c, 10ms);
  t.wait();
  t.run_until(12ms);
  t.timer.reset_at(t.start + 33ms);
  BOOST_TEST((t.timer.next_tick() == t.start + 33ms));
  t.run_until(55ms);
  CHECK_TICKS(t.seen, {{10, 0}, {33, 0}, {43, 0}, {53, 0}});
}

// A2
BOOST_AUTO_TEST_CASE(reset_at_the_past_makes_the_ticks_since_then_missed) {
  manual_context c;
  c.advance(100ms);
  ticker t(c, 10ms);
  t.wait();
  test::quietly([&] { t.timer.reset_at(t.start - 25ms); });
  c.poll();
  CHECK_TICKS(t.seen, {{0, 2}});
  t.run_until(5ms);
  CHECK_TICKS(t.seen, {{0, 2}, {5, 0}});
}

BOOST_AUTO_TEST_CASE(reset_at_either_end_of_time) {
  manual_context c;
  ticker t(c, 1h);
  t.wait();
  t.timer.reset_at(time_point::max());
  c.advance(24h * 365);
  BOOST_TEST(t.seen.empty());
  t.timer.reset_at(time_point::min());
  c.poll();
  BOOST_REQUIRE(t.seen.size() == 1u);
  BOOST_TEST(t.seen[0].missed > 2'000'000u);
  c.advance(1h);
  BOOST_TEST(t.seen.size() == 2u);
}

// ---------------------------------------------------------------------------
// Cancellation

BOOST_AUTO_TEST_CASE(cancel_leaves_the_tick_to_the_next_wait) {
  manual_context c;
  ticker t(c, 10ms);
  t.wait();
  c.clock.advance(10ms); // due, not run
  BOOST_TEST(t.timer.cancel() == 1u);
  BOOST_TEST(t.timer.cancel() == 0u);
  t.wait(); // before the handler of the other
  c.poll();
  BOOST_TEST((t.ended == asio::error::operation_aborted));
  CHECK_TICKS(t.seen, {{10, 0}});
}

BOOST_AUTO_TEST_CASE(an_aborted_wait_tells_of_nothing_missed) {
  manual_context c;
  periodic_timer timer(c.io, 10ms);
  std::optional<std::size_t> missed;
  timer.async_wait([&](error_code ec, std::size_t m) {
    BOOST_TEST((ec == asio::error::operation_aborted));
    missed = m;
  });
  c.clock.advance(50ms);
  timer.cancel();
  c.poll();
  BOOST_TEST(missed.value() == 0u);
  BOOST_TEST((c.now() - timer.next_tick() == 40ms));
}

// B7, through a slot.
BOOST_AUTO_TEST_CASE(a_slot_cancels_the_wait_also_when_its_tick_is_due) {
  for (const auto type :
       {asio::cancellation_type::terminal, asio::cancellation_type::partial,
        asio::cancellation_type::total}) {
    manual_context c;
    periodic_timer timer(c.io, 10ms);
    asio::cancellation_signal signal;
    outcome o;
    timer.async_wait(asio::bind_cancellation_slot(
        signal.slot(),
        [h = o.tracked()](error_code ec, std::size_t) mutable { h(ec); }));
    signal.emit(asio::cancellation_type::none);
    c.poll();
    BOOST_TEST((o.fate() == fate::waiting));
    c.clock.advance(10ms);
    signal.emit(type);
    BOOST_TEST((o.fate() == fate::waiting));
    c.poll();
    BOOST_TEST((o.fate() == fate::aborted));
    signal.emit(type); // reaches nothing
  }
}

// B1
BOOST_AUTO_TEST_CASE(
    of_two_due_together_the_first_may_cancel_or_destroy_other) {
  for (const bool destroy : {false, true}) {
    manual_context c;
    std::optional<periodic_timer> a(std::in_place, c.io, 10ms);
    std::optional<periodic_timer> b(std::in_place, c.io, 10ms);
    outcome first, second;
    const auto handler = [&](outcome& o, std::optional<periodic_timer>& other) {
      return [&, destroy, h = o.tracked()](error_code ec, std::size_t) mutable {
        h(ec);
        if (!ec && destroy)
          other.reset();
        else if (!ec)
          BOOST_TEST(other->cancel() == 1u);
      };
    };
    a->async_wait(handler(first, b));
    b->async_wait(handler(second, a));
    c.advance(10ms);
    BOOST_TEST(
        ((first.fate() == fate::fired) != (second.fate() == fate::fired)));
    BOOST_TEST(
        ((first.fate() == fate::aborted) != (second.fate() == fate::aborted)));
  }
}

BOOST_AUTO_TEST_CASE(destruction_aborts_the_wait_later) {
  manual_context c;
  outcome o;
  std::optional<periodic_timer> timer(std::in_place, c.io, 10ms);
  timer->async_wait(
      [h = o.tracked()](error_code ec, std::size_t) mutable { h(ec); });
  c.clock.advance(10ms);
  test::quietly([&] { timer.reset(); });
  BOOST_TEST((o.fate() == fate::waiting));
  c.poll();
  BOOST_TEST((o.fate() == fate::aborted));
  BOOST_TEST(c.wheel.pending() == 0u); // B8
}

BOOST_AUTO_TEST_CASE(a_handler_may_destroy_the_timer) {
  manual_context c;
  auto timer = std::make_unique<periodic_timer>(c.io, 10ms);
  bool called = false;
  timer->async_wait([&](error_code ec, std::size_t) {
    BOOST_TEST(!ec);
    timer.reset();
    called = true;
  });
  c.advance(10ms);
  BOOST_TEST(called);
}

// D1
BOOST_AUTO_TEST_CASE(a_context_that_goes_first_destroys_the_handler_uncalled) {
  outcome o;
  std::optional<manual_context> c(std::in_place);
  periodic_timer timer(c->io, 10ms);
  timer.async_wait(
      [h = o.tracked()](error_code ec, std::size_t) mutable { h(ec); });
  c.reset();
  BOOST_TEST((o.fate() == fate::dropped));
  BOOST_TEST(timer.cancel() == 0u);
}

// B10
BOOST_AUTO_TEST_CASE(after_stop_a_wait_is_refused_and_uses_no_tick) {
  manual_context c;
  ticker t(c, 10ms);
  t.wait();
  c.wheel.stop();
  c.poll();
  BOOST_TEST((t.ended == asio::error::operation_aborted));
  c.advance(25ms);
  test::quietly([&] { t.wait(); });
  c.poll();
  BOOST_TEST((t.ended == asio_wheel::error::wheel_stopped));
  BOOST_TEST((t.timer.next_tick() - t.start == 10ms));
  BOOST_TEST(t.seen.empty());
}

BOOST_AUTO_TEST_CASE(too_many_waits_on_the_wheel_refuse_one) {
  asio_wheel::wheel_options o;
  o.max_pending = 1;
  manual_context c(o);
  ticker a(c, 10ms), b(c, 10ms);
  a.wait();
  b.wait();
  c.poll();
  BOOST_TEST((b.ended == asio_wheel::error::too_many_pending));
  c.advance(10ms);
  BOOST_TEST(a.seen.size() == 1u);
}

// ---------------------------------------------------------------------------
// Misuse and bad input

#if defined(NDEBUG)
// B3: in debug builds it asserts.
BOOST_AUTO_TEST_CASE(a_second_wait_is_refused_and_the_first_goes_on) {
  manual_context c;
  ticker t(c, 10ms);
  t.wait();
  outcome o;
  std::size_t missed = 7;
  auto strand = asio::make_strand(c.io);
  test::quietly([&] {
    t.timer.async_wait(asio::bind_executor(
        strand, [&, h = o.tracked()](error_code ec, std::size_t m) mutable {
          BOOST_TEST(strand.running_in_this_thread());
          missed = m;
          h(ec);
        }));
  });
  c.poll();
  BOOST_TEST((o.ec() == asio_wheel::error::operation_in_progress));
  BOOST_TEST(missed == 0u);
  c.advance(10ms);
  CHECK_TICKS(t.seen, {{10, 0}});
}
#endif

BOOST_AUTO_TEST_CASE(a_period_that_is_not_positive_is_rejected) {
  manual_context c;
  for (const duration d : {duration(0), duration(-1ns), duration::min()}) {
    check_rejects_period([&] { periodic_timer timer(c.io, d); });
    ticker t(c, 10ms);
    t.wait();
    check_rejects_period([&] { t.timer.period(d); });
    BOOST_TEST((t.timer.period() == 10ms)); // nothing lost
    t.run_until(10ms);
    CHECK_TICKS(t.seen, {{10, 0}});
    t.timer.cancel();
    c.poll();
  }
}

// ---------------------------------------------------------------------------
// From inside the handler; executors; allocation

BOOST_AUTO_TEST_CASE(everything_may_be_called_from_inside_the_handler) {
  manual_context c;
  ticker t(c, 10ms);
  t.work = [&](tick k) {
    switch (k.at) {
    case 10:
      t.timer.period(5ms);
      return true;
    case 15:
      BOOST_TEST(t.timer.cancel() == 0u);
      t.timer.reset();
      return true;
    case 20:
      t.timer.reset_at(c.now() + 7ms);
      return true;
    case 27:
      t.wait();
      BOOST_TEST(t.timer.cancel() == 1u);
      t.timer.period(10ms);
      return true;
    default:
      return false;
    }
  };
  t.wait();
  t.run_until(60ms);
  CHECK_TICKS(t.seen, {{10, 0}, {15, 0}, {20, 0}, {27, 0}, {37, 0}});
  BOOST_TEST((t.ended == asio::error::operation_aborted));
}

// B4
BOOST_AUTO_TEST_CASE(waits_from_inside_the_handler_do_not_recurse) {
  manual_context c;
  periodic_timer timer(c.io, 1ns, with(missed_tick_policy::burst));
  std::size_t n = 0;
  bool inside = false;
  std::function<void()> wait = [&] {
    timer.async_wait([&](error_code, std::size_t) {
      BOOST_TEST_REQUIRE(!inside);
      inside = true;
      if (++n != 10'000)
        wait();
      inside = false;
    });
  };
  c.clock.advance(1ms);
  wait();
  c.poll();
  BOOST_TEST(n == 10'000u);
}

BOOST_AUTO_TEST_CASE(without_a_wait_it_holds_nothing) {
  manual_context c;
  periodic_timer timer(c.io, 10ms);
  BOOST_TEST(c.wheel.pending() == 0u);
  BOOST_TEST(c.io.run() == 0u);
  BOOST_TEST(c.io.stopped());
}

BOOST_AUTO_TEST_CASE(handlers_without_an_executor_run_on_the_timers) {
  manual_context c;
  test::execution_log log;
  test::tracking_executor ex(c.io.get_executor(), log);
  asio_wheel::basic_periodic_timer<decltype(ex)> timer(ex, 10ms);
  bool on_executor = false;
  timer.async_wait([&](error_code, std::size_t) {
    on_executor = log.running_in_this_thread();
  });
  c.advance(10ms);
  BOOST_TEST(on_executor);
}

BOOST_AUTO_TEST_CASE(a_small_handler_allocates_nothing_and_others_their_own) {
  manual_context c;
  periodic_timer timer(c.io, 10ms);
  test::allocation_log memory;
  outcome o;
  timer.async_wait(asio::bind_allocator(
      test::tracking_allocator<void>(memory),
      [&, h = o.tracked()](error_code ec, std::size_t) mutable {
        BOOST_TEST(memory.live == 0u); // freed before the call
        h(ec);
      }));
  BOOST_TEST(memory.live == 1u);
  c.advance(10ms);
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST(memory.allocations == 1u);

  struct small {
    void* p[3];
    void operator()(error_code, std::size_t) const {}
  };
  static_assert(
      asio_wheel::detail::small_wait::fits<
          asio_wheel::detail::periodic_wait<small, asio::any_io_executor>>());
}
