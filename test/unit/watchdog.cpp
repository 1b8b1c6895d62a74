//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/watchdog.hpp>

#include <test/manual_context.hpp>
#include <test/outcome.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/strand.hpp>

#define BOOST_TEST_MODULE unit_watchdog
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <random>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::watchdog;
using test::fate;
using test::manual_context;
using test::outcome;

using duration = watchdog::duration;

} // namespace

BOOST_AUTO_TEST_CASE(completes_when_nobody_kicked_for_the_whole_period) {
  manual_context c;
  outcome o;
  watchdog dog(c.io, 30s);
  dog.async_wait(o.tracked());
  c.poll();
  c.advance(30s - 1ns);
  BOOST_TEST((o.fate() == fate::waiting));
  c.advance(1ns);
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(a_kick_starts_the_period_anew) {
  manual_context c;
  outcome o;
  watchdog dog(c.io, 30s);
  dog.async_wait(o.tracked());
  for (int i = 0; i != 10; ++i) {
    c.advance(29s);
    dog.kick();
    BOOST_TEST((dog.last_kick() == c.now()));
  }
  c.advance(30s - 1ns);
  BOOST_TEST((o.fate() == fate::waiting));
  c.advance(1ns);
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(the_period_counts_from_construction_not_from_the_wait) {
  manual_context c;
  outcome o;
  watchdog dog(c.io, 10s);
  c.advance(8s);
  dog.async_wait(o.tracked());
  c.poll();
  c.advance(2s);
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(a_wait_on_an_expired_one_completes_on_the_next_turn) {
  manual_context c;
  outcome first, second;
  watchdog dog(c.io, 10s);
  c.advance(11s);
  test::quietly([&] { dog.async_wait(first.tracked()); });
  c.poll();
  BOOST_TEST((first.fate() == fate::fired));
  dog.async_wait(second.tracked()); // still nobody kicked
  c.poll();
  BOOST_TEST((second.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(without_a_wait_it_does_nothing_and_holds_nothing) {
  manual_context c;
  watchdog dog(c.io, 10s);
  BOOST_TEST(c.wheel.pending() == 0u);
  BOOST_TEST(c.io.run() == 0u);
  BOOST_TEST(c.io.stopped());
}

BOOST_AUTO_TEST_CASE(several_waits_complete_together) {
  manual_context c;
  outcome a, b;
  watchdog dog(c.io, 10s);
  dog.async_wait(a.tracked());
  c.advance(5s);
  dog.kick();
  dog.async_wait(b.tracked());
  BOOST_TEST(dog.pending() == 2u);
  c.advance(10s - 1ns);
  BOOST_TEST((a.fate() == fate::waiting));
  BOOST_TEST((b.fate() == fate::waiting));
  c.advance(1ns);
  BOOST_TEST((a.fate() == fate::fired));
  BOOST_TEST((b.fate() == fate::fired));
  BOOST_TEST(dog.pending() == 0u);
}

BOOST_AUTO_TEST_CASE(zero_and_negative_periods_complete_on_the_next_turn) {
  for (const duration d : {duration(0), duration(-1s), duration::min()}) {
    manual_context c;
    outcome o;
    watchdog dog(c.io, d);
    test::quietly([&] { dog.async_wait(o.tracked()); });
    c.poll();
    BOOST_TEST((o.fate() == fate::fired));
  }
}

BOOST_AUTO_TEST_CASE(a_period_without_end_never_completes) {
  manual_context c;
  outcome o;
  watchdog dog(c.io, duration::max());
  dog.async_wait(o.tracked());
  c.advance(24h * 365 * 100);
  BOOST_TEST((o.fate() == fate::waiting));
  BOOST_TEST(dog.cancel() == 1u);
  c.poll();
  BOOST_TEST((o.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(cancel_aborts_the_waits) {
  manual_context c;
  outcome a, b;
  watchdog dog(c.io, 10s);
  dog.async_wait(a.tracked());
  dog.async_wait(b.tracked());
  c.clock.advance(10s); // due, not run
  BOOST_TEST(dog.cancel() == 2u);
  c.poll();
  BOOST_TEST((a.fate() == fate::aborted));
  BOOST_TEST((b.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(destruction_aborts_even_what_is_queued_on_a_strand) {
  manual_context c;
  outcome o;
  auto strand = asio::make_strand(c.io);
  auto dog = std::make_unique<watchdog>(strand, 10s);
  dog->async_wait(o.tracked());
  c.clock.advance(10s);
  asio::post(strand, [&] {
    // The check is being handed over to this strand behind us.
    c.io.poll();
    dog.reset();
  });
  c.poll();
  BOOST_TEST((o.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(pause_stops_the_clock_and_resume_gives_a_whole_period) {
  manual_context c;
  outcome o;
  watchdog dog(c.io, 10s);
  dog.async_wait(o.tracked());
  c.advance(9s);
  dog.pause();
  BOOST_TEST(dog.paused());
  c.advance(1h);
  BOOST_TEST((o.fate() == fate::waiting));
  dog.kick();
  c.advance(1h);
  BOOST_TEST((o.fate() == fate::waiting));
  dog.resume();
  BOOST_TEST(!dog.paused());
  BOOST_TEST((dog.last_kick() == c.now()));
  c.advance(10s - 1ns);
  BOOST_TEST((o.fate() == fate::waiting));
  c.advance(1ns);
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(pause_pulls_back_what_is_due) {
  manual_context c;
  outcome o;
  watchdog dog(c.io, 10s);
  dog.async_wait(o.tracked());
  c.clock.advance(10s); // due, not run
  dog.pause();
  c.poll();
  BOOST_TEST((o.fate() == fate::waiting));
}

BOOST_AUTO_TEST_CASE(a_wait_started_while_paused_waits) {
  manual_context c;
  outcome o;
  watchdog dog(c.io, 10s);
  dog.pause();
  dog.async_wait(o.tracked());
  c.advance(1h);
  BOOST_TEST((o.fate() == fate::waiting));
  dog.resume();
  c.advance(10s);
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(the_period_can_be_changed_both_ways) {
  manual_context c;
  outcome o;
  watchdog dog(c.io, 10s);
  dog.async_wait(o.tracked());
  c.advance(5s);
  dog.period(20s); // counts from the last kick
  BOOST_TEST((dog.period() == 20s));
  c.advance(14s);
  BOOST_TEST((o.fate() == fate::waiting));
  dog.period(19s); // and that is now
  c.poll();
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(with_a_slack_it_is_never_early_and_late_by_the_slack) {
  constexpr duration period = 30s, slack = 2s, tick = 1ms;
  for (unsigned seed = 1; seed != 40; ++seed) {
    std::minstd_rand random(seed);
    manual_context c;
    c.advance(std::chrono::milliseconds(random() % 10000));
    outcome o;
    watchdog dog(c.io, period, slack);
    dog.async_wait(o.tracked());
    auto last = c.now();
    const unsigned kicks = random() % 30;
    for (unsigned i = 0; i != kicks; ++i) {
      c.advance(std::chrono::milliseconds(random() % 29'000));
      dog.kick();
      last = c.now();
    }
    BOOST_TEST((o.fate() == fate::waiting));
    while (o.fate() == fate::waiting) {
      BOOST_REQUIRE((c.now() <= last + period + slack + tick));
      const auto next = c.clock.next_deadline();
      BOOST_REQUIRE(next.has_value());
      c.clock.advance_to(*next);
      c.poll();
    }
    BOOST_TEST((c.now() >= last + period));
    BOOST_TEST((c.now() <= last + period + slack + tick));
  }
}

BOOST_AUTO_TEST_CASE(with_a_slack_a_kick_in_the_last_moment_counts) {
  manual_context c;
  outcome o;
  watchdog dog(c.io, 10s, 1s);
  dog.async_wait(o.tracked());
  while (c.now().time_since_epoch() < 9990ms)
    c.advance(10ms);
  dog.kick();
  c.advance(20ms);
  BOOST_TEST((o.fate() == fate::waiting));
  c.advance(9s);
  BOOST_TEST((o.fate() == fate::waiting));
}

BOOST_AUTO_TEST_CASE(with_a_slack_it_looks_about_twice_per_slack) {
  manual_context c;
  outcome o;
  watchdog dog(c.io, 100s, 10s);
  dog.async_wait(o.tracked());
  c.poll();
  const auto before = c.wheel.stats().scheduled;
  for (int i = 0; i != 1000; ++i) {
    dog.kick();
    c.advance(1s);
  }
  const auto looks = c.wheel.stats().scheduled - before;
  BOOST_TEST(looks >= 100u);
  BOOST_TEST(looks <= 210u);
}

BOOST_AUTO_TEST_CASE(many_with_one_slack_share_their_wake_ups) {
  manual_context c;
  std::vector<std::unique_ptr<watchdog>> dogs;
  for (int i = 0; i != 100; ++i) {
    c.advance(3ms);
    dogs.push_back(std::make_unique<watchdog>(c.io, 1h, 10s));
    dogs.back()->async_wait([](boost::system::error_code) {});
  }
  c.poll();
  std::size_t steps = 0;
  const auto end = c.now() + 60s;
  for (auto next = c.clock.next_deadline(); next && *next <= end;
       next = c.clock.next_deadline()) {
    c.clock.advance_to(*next);
    c.poll();
    ++steps;
  }
  BOOST_TEST(steps >= 6u);
  BOOST_TEST(steps <= 30u); // not 100 for each round
}

BOOST_AUTO_TEST_CASE(a_slack_beyond_the_period_counts_as_the_period) {
  manual_context c;
  outcome o;
  watchdog dog(c.io, 1s, 1h);
  dog.async_wait(o.tracked());
  c.poll();
  c.advance(2s + 1ms);
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(a_slack_of_less_than_two_ticks_counts_as_none) {
  for (const duration slack : {duration(1ns), duration(1ms), duration(1999us)}) {
    manual_context c;
    outcome o;
    watchdog dog(c.io, 1s, slack);
    dog.async_wait(o.tracked());
    const auto before = c.wheel.stats().scheduled;
    for (int i = 0; i != 100; ++i) {
      c.advance(100ms);
      dog.kick();
      BOOST_TEST((dog.last_kick() == c.now()));
    }
    BOOST_TEST(c.wheel.stats().scheduled - before <= 11u);
    c.advance(1s - 1ns);
    BOOST_TEST((o.fate() == fate::waiting));
    c.advance(1ns);
    BOOST_TEST((o.fate() == fate::fired));
  }
}

BOOST_AUTO_TEST_CASE(the_check_runs_on_the_watchdogs_executor) {
  manual_context c;
  asio::io_context other;
  outcome o;
  auto strand = asio::make_strand(c.io);
  watchdog dog(strand, 10s);
  dog.async_wait(asio::bind_executor(other.get_executor(), o.tracked()));
  c.advance(5s);
  dog.kick();
  c.advance(5s); // looked, and was kicked: the other context has no part in it
  BOOST_TEST(other.poll() == 0u);
  c.advance(5s);
  BOOST_TEST((o.fate() == fate::waiting));
  BOOST_TEST(other.run() == 1u);
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(a_slot_cancels_one_wait_also_after_a_check) {
  manual_context c;
  asio::cancellation_signal signal;
  outcome a, b;
  watchdog dog(c.io, 10s);
  dog.async_wait(asio::bind_cancellation_slot(signal.slot(), a.tracked()));
  dog.async_wait(b.tracked());
  c.advance(5s);
  dog.kick();
  c.advance(5s); // both looked and wait again
  BOOST_TEST(dog.pending() == 2u);
  signal.emit(asio::cancellation_type::total);
  c.poll();
  BOOST_TEST((a.fate() == fate::aborted));
  BOOST_TEST((b.fate() == fate::waiting));
  c.advance(5s);
  BOOST_TEST((b.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(a_stopped_wheel_refuses_its_wait) {
  manual_context c;
  outcome o;
  watchdog dog(c.io, 10s);
  c.wheel.stop();
  dog.async_wait(o.tracked());
  c.poll();
  BOOST_TEST((o.ec() == asio_wheel::error::wheel_stopped));
}

BOOST_AUTO_TEST_CASE(kicks_of_all_kinds_of_watchdogs_side_by_side) {
  // On a real clock, with a slack, and under a manual clock: kick() finds out.
  asio::io_context io;
  manual_context c;
  watchdog real(io, 1h), sampled(io, 1h, 1s), manual(c.io, 1h);
  const auto before = std::chrono::steady_clock::now();
  real.kick();
  sampled.kick();
  c.clock.advance(5s);
  manual.kick();
  BOOST_TEST((real.last_kick() >= before));
  BOOST_TEST((sampled.last_kick() >= before));
  BOOST_TEST((manual.last_kick() == c.now()));
}

BOOST_AUTO_TEST_CASE(the_context_goes_first) {
  outcome o;
  std::optional<watchdog> dog;
  {
    manual_context c;
    dog.emplace(c.io, 10s);
    dog->async_wait(o.tracked());
  }
  BOOST_TEST((o.fate() == fate::dropped));
  BOOST_TEST(dog->cancel() == 0u);
}
