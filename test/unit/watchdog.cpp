//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/watchdog.hpp>

#define BOOST_TEST_MODULE watchdog
#include <boost/test/unit_test.hpp>

#include <test/manual_context.hpp>
#include <test/outcome.hpp>
#include <test/queue_context.hpp>
#include <test/tracking_allocator.hpp>
#include <test/tracking_executor.hpp>

#include <asio_wheel/error.hpp>

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::manual_clock;
using asio_wheel::watchdog;
using asio_wheel::wheel_options;
using test::fate;
using test::manual_context;
using test::outcome;
using test::quietly;

using duration = watchdog::duration;
using time_point = watchdog::time_point;
using io_executor = asio::io_context::executor_type;

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(without_slack)

BOOST_AUTO_TEST_CASE(completes_after_a_period_without_a_kick) {
  manual_context m;
  watchdog dog(m.io, 30s);
  outcome o;
  quietly([&] { dog.async_wait(o.tracked()); });
  BOOST_TEST(dog.pending() == 1u);
  m.advance(30s - 1ns);
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(1ns);
  BOOST_TEST(o.fate() == fate::fired);
  BOOST_TEST(dog.pending() == 0u);
}

BOOST_AUTO_TEST_CASE(a_kick_starts_the_period_anew) {
  manual_context m;
  watchdog dog(m.io, 30s);
  outcome o;
  dog.async_wait(o.tracked());
  for (int i = 0; i != 100; ++i) {
    m.advance(29s);
    dog.kick();
    BOOST_TEST(o.fate() == fate::waiting);
  }
  m.advance(30s - 1ns);
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(1ms);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(a_kick_counts_from_its_own_time_not_from_the_check) {
  manual_context m;
  watchdog dog(m.io, 10s);
  outcome o;
  dog.async_wait(o.tracked());
  m.advance(3s);
  dog.kick(); // due at 13
  m.advance(7s); // the check of 10
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(3s - 1ns);
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(1ns);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(the_period_starts_with_construction) {
  manual_context m;
  watchdog dog(m.io, 10s);
  BOOST_TEST((dog.last_kick() == m.now()));
  BOOST_TEST((dog.period() == 10s));
  m.advance(8s);
  outcome o;
  dog.async_wait(o.tracked());
  m.advance(2s - 1ns);
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(1ns);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(waiting_when_already_expired_completes_on_the_next_turn) {
  manual_context m;
  watchdog dog(m.io, 10s);
  m.advance(11s);
  outcome o1, o2;
  quietly([&] { dog.async_wait(o1.tracked()); });
  m.poll();
  BOOST_TEST(o1.fate() == fate::fired);
  // And again, as long as nobody kicks.
  quietly([&] { dog.async_wait(o2.tracked()); });
  m.poll();
  BOOST_TEST(o2.fate() == fate::fired);
  outcome o3;
  dog.kick();
  dog.async_wait(o3.tracked());
  m.poll();
  BOOST_TEST(o3.fate() == fate::waiting);
  m.advance(10s);
  BOOST_TEST(o3.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(a_kick_before_the_check_has_run_saves) {
  manual_context m;
  watchdog dog(m.io, 10s);
  outcome o;
  dog.async_wait(o.tracked());
  m.clock.advance(10s);
  dog.kick();
  m.poll();
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(10s - 1ns);
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(1ms);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(a_kick_from_another_handler_of_the_same_batch_saves) {
  manual_context m;
  watchdog a(m.io, 10s), b(m.io, 10s);
  int ran = 0;
  outcome oa([&](auto) {
    ++ran;
    b.kick();
  });
  outcome ob([&](auto) {
    ++ran;
    a.kick();
  });
  a.async_wait(oa.tracked());
  b.async_wait(ob.tracked());
  m.advance(10s);
  BOOST_TEST(ran == 1);
}

BOOST_AUTO_TEST_CASE(several_waits_complete_together) {
  manual_context m;
  watchdog dog(m.io, 10s);
  std::vector<outcome> o(5);
  for (auto& x : o) {
    dog.async_wait(x.tracked());
    m.advance(1s);
  }
  BOOST_TEST(dog.pending() == 5u);
  m.advance(4s);
  dog.kick();
  m.advance(9s);
  for (auto& x : o)
    BOOST_TEST(x.fate() == fate::waiting);
  m.advance(1s);
  for (auto& x : o)
    BOOST_TEST(x.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(a_kick_in_one_handler_saves_the_waits_behind_it) {
  manual_context m;
  watchdog dog(m.io, 10s);
  std::vector<outcome> o;
  int ran = 0;
  for (int i = 0; i != 3; ++i)
    o.emplace_back([&](auto) {
      if (++ran == 1)
        dog.kick();
    });
  for (auto& x : o)
    dog.async_wait(x.tracked());
  m.advance(10s);
  BOOST_TEST(ran == 1);
  BOOST_TEST(dog.pending() == 2u);
  m.advance(10s);
  BOOST_TEST(ran == 3);
}

BOOST_AUTO_TEST_CASE(zero_and_negative_periods_complete_on_the_next_turn) {
  for (const duration p : {duration(0s), duration(-1s), duration::min()}) {
    manual_context m({}, manual_clock(time_point(1h)));
    watchdog dog(m.io, p);
    outcome o;
    quietly([&] { dog.async_wait(o.tracked()); });
    m.poll();
    BOOST_TEST(o.fate() == fate::fired);
  }
}

BOOST_AUTO_TEST_CASE(the_greatest_period_is_never) {
  manual_context m;
  watchdog dog(m.io, duration::max());
  outcome o;
  dog.async_wait(o.tracked());
  m.advance(100'000h);
  BOOST_TEST(o.fate() == fate::waiting);
  dog.kick();
  m.advance(100'000h);
  BOOST_TEST(o.fate() == fate::waiting);
  BOOST_TEST(!m.io.stopped());
  BOOST_TEST(dog.cancel() == 1u);
  m.poll();
  BOOST_TEST(o.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE(a_pending_wait_looks_once_per_period) {
  manual_context m;
  watchdog dog(m.io, 10s);
  outcome o;
  dog.async_wait(o.tracked());
  m.poll();
  std::size_t handlers = 0;
  for (int i = 0; i != 1000; ++i) {
    handlers += m.advance(100ms);
    dog.kick();
  }
  // 100 s: ten periods.
  BOOST_TEST(handlers <= 11 * wheel_options().levels);
  BOOST_TEST(o.fate() == fate::waiting);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(with_slack)

BOOST_AUTO_TEST_CASE(completes_never_early_and_at_most_the_slack_late) {
  // Kicks at all sorts of times relative to the checks.
  for (auto at = 0ms; at <= 12s; at += 317ms) {
    manual_context m;
    watchdog dog(m.io, 10s, 2s);
    outcome o;
    dog.async_wait(o.tracked());
    while (m.now() < time_point(at))
      m.advance(std::min<duration>(1ms, time_point(at) - m.now()));
    if (o.fate() == fate::fired)
      break; // 10 s to 12 s after its construction
    dog.kick();
    const auto last = m.now();
    while (o.fate() == fate::waiting && m.now() < last + 13s)
      m.advance(1ms);
    BOOST_TEST(o.fate() == fate::fired);
    BOOST_TEST((m.now() >= last + 10s));
    BOOST_TEST((m.now() <= last + 12s));
  }
}

BOOST_AUTO_TEST_CASE(kicks_keep_it_quiet) {
  manual_context m;
  watchdog dog(m.io, 10s, 2s);
  outcome o;
  dog.async_wait(o.tracked());
  for (int i = 0; i != 100; ++i) {
    m.advance(9900ms);
    dog.kick();
    BOOST_TEST(o.fate() == fate::waiting);
  }
}

BOOST_AUTO_TEST_CASE(a_kick_just_before_the_end_saves) {
  manual_context m;
  watchdog dog(m.io, 10s, 2s);
  outcome o;
  dog.async_wait(o.tracked());
  m.advance(10s - 1ns);
  dog.kick();
  m.advance(1ms); // the check finds it
  m.advance(10s - 2ms);
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(2s);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(a_kick_before_the_check_has_run_saves) {
  manual_context m;
  watchdog dog(m.io, 10s, 2s);
  outcome o;
  dog.async_wait(o.tracked());
  m.clock.advance(11s);
  dog.kick();
  m.poll();
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(9s);
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(3s);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(last_kick_is_when_a_check_found_the_mark) {
  manual_context m;
  watchdog dog(m.io, 10s, 2s);
  BOOST_TEST((dog.last_kick() == time_point()));
  m.advance(1s);
  BOOST_TEST((dog.last_kick() == time_point()));
  dog.kick();
  BOOST_TEST((dog.last_kick() == m.now()));
  outcome o;
  dog.async_wait(o.tracked()); // a check
  m.advance(5s);
  BOOST_TEST((dog.last_kick() >= time_point(1s)));
  BOOST_TEST((dog.last_kick() <= time_point(3s)));
  dog.cancel();
  m.poll();
}

BOOST_AUTO_TEST_CASE(more_than_the_period_is_the_period) {
  for (const duration slack : {duration(20s), duration::max()}) {
    manual_context m;
    watchdog dog(m.io, 10s, slack);
    outcome o;
    dog.async_wait(o.tracked());
    m.advance(5s);
    dog.kick();
    const auto last = m.now();
    while (o.fate() == fate::waiting && m.now() < last + 30s)
      m.advance(10ms);
    BOOST_TEST(o.fate() == fate::fired);
    BOOST_TEST((m.now() >= last + 10s));
    BOOST_TEST((m.now() <= last + 20s));
  }
}

BOOST_AUTO_TEST_CASE(less_than_a_tick) {
  for (const duration slack : {duration(1ns), duration(1us), duration(1ms)}) {
    manual_context m;
    watchdog dog(m.io, 10ms, slack);
    outcome o;
    dog.async_wait(o.tracked());
    for (int i = 0; i != 20; ++i) {
      m.advance(9ms);
      BOOST_TEST(o.fate() == fate::waiting);
      dog.kick();
    }
    const auto last = m.now();
    while (o.fate() == fate::waiting && m.now() < last + 30ms)
      m.advance(500us);
    BOOST_TEST((m.now() >= last + 10ms));
    BOOST_TEST((m.now() <= last + 12ms));
  }
}

BOOST_AUTO_TEST_CASE(negative_is_none) {
  manual_context m;
  watchdog dog(m.io, 10s, -1s);
  outcome o;
  dog.async_wait(o.tracked());
  m.advance(5s);
  dog.kick();
  BOOST_TEST((dog.last_kick() == m.now()));
  m.advance(10s);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(a_short_period_with_a_slack) {
  for (const duration p : {duration(0s), duration(-1s), duration::min()}) {
    manual_context m({}, manual_clock(time_point(1h)));
    watchdog dog(m.io, p, 1s);
    outcome o;
    dog.async_wait(o.tracked());
    m.poll();
    BOOST_TEST(o.fate() == fate::fired);
  }
}

BOOST_AUTO_TEST_CASE(never_with_a_slack) {
  manual_context m;
  watchdog dog(m.io, duration::max(), 1s);
  outcome o;
  dog.async_wait(o.tracked());
  for (int i = 0; i != 100; ++i) {
    dog.kick();
    m.advance(1000h);
  }
  BOOST_TEST(o.fate() == fate::waiting);
  dog.cancel();
  m.poll();
}

BOOST_AUTO_TEST_CASE(looks_about_once_per_slack) {
  manual_context m;
  watchdog dog(m.io, 10s, 2s);
  outcome o;
  dog.async_wait(o.tracked());
  m.poll();
  const auto before = m.wheel.stats().scheduled;
  for (int i = 0; i != 10'000; ++i) {
    m.advance(10ms);
    dog.kick();
  }
  // 100 s: fifty slacks, and twice as many are not too many.
  BOOST_TEST(m.wheel.stats().scheduled - before <= 110u);
  BOOST_TEST(o.fate() == fate::waiting);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(pausing)

BOOST_AUTO_TEST_CASE(stops_the_clock) {
  for (const duration slack : {0s, 2s}) {
    manual_context m;
    watchdog dog(m.io, 10s, slack);
    outcome o;
    dog.async_wait(o.tracked());
    m.advance(9s);
    BOOST_TEST(!dog.paused());
    dog.pause();
    BOOST_TEST(dog.paused());
    dog.pause();
    m.advance(1000h);
    BOOST_TEST(o.fate() == fate::waiting);
    BOOST_TEST(dog.pending() == 1u);
    dog.resume();
    BOOST_TEST(!dog.paused());
    BOOST_TEST((dog.last_kick() == m.now()));
    m.advance(10s - 1ns);
    BOOST_TEST(o.fate() == fate::waiting);
    m.advance(slack + 1ms);
    BOOST_TEST(o.fate() == fate::fired);
  }
}

BOOST_AUTO_TEST_CASE(also_when_due_but_not_run_yet) {
  manual_context m;
  watchdog dog(m.io, 10s);
  outcome o;
  dog.async_wait(o.tracked());
  m.clock.advance(10s);
  dog.pause();
  m.poll();
  BOOST_TEST(o.fate() == fate::waiting);
  dog.resume();
  m.advance(10s);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(ignores_kicks_meanwhile) {
  for (const duration slack : {0s, 2s}) {
    manual_context m;
    watchdog dog(m.io, 10s, slack);
    dog.pause();
    m.advance(5s);
    dog.kick();
    m.advance(100s);
    outcome o;
    dog.async_wait(o.tracked());
    m.advance(100s);
    BOOST_TEST(o.fate() == fate::waiting);
    dog.kick();
    dog.resume();
    m.advance(10s + slack);
    BOOST_TEST(o.fate() == fate::fired);
  }
}

BOOST_AUTO_TEST_CASE(may_be_cancelled_meanwhile) {
  manual_context m;
  watchdog dog(m.io, 10s);
  outcome o;
  dog.pause();
  dog.async_wait(o.tracked());
  BOOST_TEST(dog.cancel() == 1u);
  m.poll();
  BOOST_TEST(o.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE(an_expired_one_waits_again_after_it) {
  manual_context m;
  watchdog dog(m.io, 10s);
  m.advance(20s);
  dog.pause();
  outcome o;
  dog.async_wait(o.tracked());
  m.poll();
  BOOST_TEST(o.fate() == fate::waiting);
  dog.resume();
  m.poll();
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(10s);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(resume_without_pause_changes_nothing) {
  manual_context m;
  watchdog dog(m.io, 10s);
  outcome o;
  dog.async_wait(o.tracked());
  m.advance(5s);
  dog.resume();
  m.advance(5s);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(changing_the_period)

BOOST_AUTO_TEST_CASE(counts_from_the_last_kick) {
  manual_context m;
  watchdog dog(m.io, 10s);
  outcome o;
  dog.async_wait(o.tracked());
  m.advance(2s);
  dog.kick();
  m.advance(2s);
  dog.period(20s);
  BOOST_TEST((dog.period() == 20s));
  m.advance(18s - 1ns);
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(1ns);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(to_a_shorter_one_follows_at_once) {
  manual_context m;
  watchdog dog(m.io, 100s);
  outcome o;
  dog.async_wait(o.tracked());
  m.advance(5s);
  dog.period(6s);
  m.advance(1s - 1ns);
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(1ns);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(to_one_that_has_passed_completes_on_the_next_turn) {
  manual_context m;
  watchdog dog(m.io, 100s);
  outcome o;
  dog.async_wait(o.tracked());
  m.advance(5s);
  quietly([&] { dog.period(5s); });
  m.poll();
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(to_never_and_back) {
  manual_context m;
  watchdog dog(m.io, 10s);
  outcome o;
  dog.async_wait(o.tracked());
  dog.period(duration::max());
  m.advance(1000h);
  BOOST_TEST(o.fate() == fate::waiting);
  dog.kick();
  dog.period(10s);
  m.advance(10s - 1ns);
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(1ns);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(while_paused) {
  manual_context m;
  watchdog dog(m.io, 10s);
  outcome o;
  dog.async_wait(o.tracked());
  dog.pause();
  dog.period(5s);
  m.advance(100s);
  BOOST_TEST(o.fate() == fate::waiting);
  dog.resume();
  m.advance(5s);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(with_a_slack) {
  manual_context m;
  watchdog dog(m.io, 10s, 2s);
  outcome o;
  dog.async_wait(o.tracked());
  dog.period(20s);
  m.advance(20s - 1ns);
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(2s + 1ns);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(to_less_than_the_slack_bounds_the_slack) {
  // "Not more than the period is used."
  manual_context m;
  watchdog dog(m.io, 100s, 50s);
  outcome o;
  dog.async_wait(o.tracked());
  m.advance(1s);
  dog.period(4s);
  const auto kicked = m.now();
  dog.kick();
  while (o.fate() == fate::waiting && m.now() < kicked + 100s)
    m.advance(10ms);
  BOOST_TEST((m.now() >= kicked + 4s));
  BOOST_TEST((m.now() <= kicked + 8s));
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(cancelling)

BOOST_AUTO_TEST_CASE(cancel_counts_and_aborts) {
  manual_context m;
  watchdog dog(m.io, 10s);
  std::vector<outcome> o(3);
  BOOST_TEST(dog.cancel() == 0u);
  for (auto& x : o)
    dog.async_wait(x.tracked());
  m.advance(4s);
  dog.kick();
  m.advance(6s);
  BOOST_TEST(quietly([&] { return dog.cancel(); }) == 3u);
  BOOST_TEST(dog.cancel() == 0u);
  BOOST_TEST(dog.pending() == 0u);
  m.poll();
  for (auto& x : o)
    BOOST_TEST(x.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE(cancel_wins_when_due_but_not_run) {
  manual_context m;
  watchdog dog(m.io, 10s);
  outcome o;
  dog.async_wait(o.tracked());
  m.clock.advance(10s);
  BOOST_TEST(dog.cancel() == 1u);
  m.poll();
  BOOST_TEST(o.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE(each_type_of_signal_cancels_its_wait_alone) {
  for (const auto type :
       {asio::cancellation_type::terminal, asio::cancellation_type::partial,
        asio::cancellation_type::total}) {
    manual_context m;
    asio::cancellation_signal signal;
    watchdog dog(m.io, 10s);
    outcome o1, o2;
    dog.async_wait(asio::bind_cancellation_slot(signal.slot(), o1.tracked()));
    dog.async_wait(o2.tracked());
    // Also after checks that armed it again.
    for (int i = 0; i != 5; ++i) {
      m.advance(9s);
      dog.kick();
    }
    signal.emit(type);
    BOOST_TEST(dog.pending() == 1u);
    m.poll();
    BOOST_TEST(o1.fate() == fate::aborted);
    BOOST_TEST(o2.fate() == fate::waiting);
    m.advance(10s);
    BOOST_TEST(o2.fate() == fate::fired);
  }
}

BOOST_AUTO_TEST_CASE(the_slot_is_free_when_the_handler_runs) {
  manual_context m;
  asio::cancellation_signal signal;
  watchdog dog(m.io, 10s);
  outcome o([&](auto) { BOOST_TEST(!signal.slot().has_handler()); });
  dog.async_wait(asio::bind_cancellation_slot(signal.slot(), o.tracked()));
  m.advance(4s);
  dog.kick();
  m.advance(6s);
  m.advance(4s);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(destruction_aborts_later) {
  manual_context m;
  std::optional<watchdog> dog(std::in_place, m.io, 10s);
  outcome o1, o2;
  dog->async_wait(o1.tracked());
  dog->async_wait(o2.tracked());
  m.advance(5s);
  quietly([&] { dog.reset(); });
  m.advance(10s);
  BOOST_TEST(o1.fate() == fate::aborted);
  BOOST_TEST(o2.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE(destruction_when_due_but_not_run_aborts) {
  // The check must not look at what is gone.
  manual_context m;
  auto dog = std::make_unique<watchdog>(m.io, 10s);
  outcome o1, o2;
  dog->async_wait(o1.tracked());
  dog->async_wait(o2.tracked());
  m.clock.advance(10s);
  dog.reset();
  m.poll();
  BOOST_TEST(o1.fate() == fate::aborted);
  BOOST_TEST(o2.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE(destruction_in_the_handler_of_the_first_of_two_waits) {
  manual_context m;
  auto dog = std::make_unique<watchdog>(m.io, 10s);
  outcome o1([&](auto) { dog.reset(); });
  outcome o2([&](auto) { dog.reset(); });
  dog->async_wait(o1.tracked());
  dog->async_wait(o2.tracked());
  m.advance(10s);
  BOOST_TEST((o1.fate() == fate::fired || o2.fate() == fate::fired));
  BOOST_TEST((o1.fate() == fate::aborted || o2.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(the_context_goes_first) {
  std::vector<outcome> o(2);
  std::unique_ptr<watchdog> dog;
  {
    manual_context m;
    dog = std::make_unique<watchdog>(m.io, 10s);
    dog->async_wait(o[0].tracked());
    dog->async_wait(o[1].tracked());
  }
  BOOST_TEST(o[0].fate() == fate::dropped);
  BOOST_TEST(o[1].fate() == fate::dropped);
  BOOST_TEST(dog->cancel() == 0u);
  dog->kick();
}

BOOST_AUTO_TEST_CASE(the_wheel_is_stopped) {
  manual_context m;
  watchdog dog(m.io, 10s);
  outcome o1, o2;
  dog.async_wait(o1.tracked());
  BOOST_TEST(m.wheel.stop() == 1u);
  m.poll();
  BOOST_TEST(o1.fate() == fate::aborted);
  dog.async_wait(o2.tracked());
  m.poll();
  BOOST_TEST((o2.ec() == asio_wheel::error::wheel_stopped));
}

BOOST_AUTO_TEST_CASE(too_many_pending) {
  wheel_options options;
  options.max_pending = 1;
  manual_context m(options);
  watchdog dog(m.io, 10s);
  outcome o1, o2;
  dog.async_wait(o1.tracked());
  dog.async_wait(o2.tracked());
  m.poll();
  BOOST_TEST((o2.ec() == asio_wheel::error::too_many_pending));
  // The wait that was accepted keeps its place through its checks.
  for (int i = 0; i != 3; ++i) {
    m.advance(9s);
    dog.kick();
  }
  m.advance(10s);
  BOOST_TEST(o1.fate() == fate::fired);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(the_loop)

BOOST_AUTO_TEST_CASE(is_not_held_by_a_watchdog_nobody_waits_on) {
  manual_context m;
  watchdog a(m.io, 10s), b(m.io, 10s, 1s);
  a.kick();
  b.kick();
  a.period(5s);
  a.pause();
  a.resume();
  m.poll();
  BOOST_TEST(m.io.stopped());
  BOOST_TEST(!m.clock.next_deadline());
  BOOST_TEST(m.wheel.stats().scheduled == 0u);
}

BOOST_AUTO_TEST_CASE(is_held_by_a_wait) {
  manual_context m;
  watchdog dog(m.io, 10s);
  outcome o;
  dog.async_wait(o.tracked());
  m.poll();
  BOOST_TEST(!m.io.stopped());
  dog.cancel();
  m.poll();
  BOOST_TEST(m.io.stopped());
}

BOOST_AUTO_TEST_CASE(works_in_real_time) {
  asio::io_context io;
  watchdog dog(io, 5ms);
  const auto before = std::chrono::steady_clock::now();
  outcome o;
  dog.async_wait(o.tracked());
  dog.kick();
  BOOST_TEST((dog.last_kick() >= before));
  BOOST_TEST((dog.last_kick() <= std::chrono::steady_clock::now()));
  const auto last = dog.last_kick();
  io.run();
  BOOST_TEST(o.fate() == fate::fired);
  BOOST_TEST((std::chrono::steady_clock::now() >= last + 5ms));
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(handlers)

BOOST_AUTO_TEST_CASE(run_on_the_watchdogs_executor) {
  manual_context m;
  test::execution_log log;
  test::tracking_executor ex(m.io.get_executor(), log);
  asio_wheel::basic_watchdog<decltype(ex)> dog(ex, 10s);
  outcome fired([&](auto) { BOOST_TEST(log.running_in_this_thread()); });
  outcome aborted([&](auto) { BOOST_TEST(log.running_in_this_thread()); });
  dog.async_wait(fired.tracked());
  m.advance(10s);
  BOOST_TEST(fired.fate() == fate::fired);
  dog.async_wait(aborted.tracked());
  dog.cancel();
  m.poll();
  BOOST_TEST(aborted.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE(run_on_their_own_executor_if_they_have_one) {
  manual_context m;
  auto strand = asio::make_strand(m.io);
  test::queue_context other;
  watchdog dog(strand, 10s);
  outcome there, aborted;
  dog.async_wait(asio::bind_executor(other.get_executor(), there.tracked()));
  BOOST_TEST(other.work() >= 1u);
  for (int i = 0; i != 5; ++i) {
    m.advance(9s);
    dog.kick();
  }
  BOOST_TEST(other.size() == 0u); // checks are no business of its executor
  m.advance(10s);
  BOOST_TEST(other.size() == 1u);
  other.run();
  BOOST_TEST(there.fate() == fate::fired);
  BOOST_TEST(other.work() == 0u);

  dog.async_wait(asio::bind_executor(other.get_executor(), aborted.tracked()));
  dog.cancel();
  m.poll();
  BOOST_TEST(other.run() == 1u);
  BOOST_TEST(aborted.fate() == fate::aborted);
  BOOST_TEST(other.work() == 0u);
}

BOOST_AUTO_TEST_CASE(use_their_allocator_and_free_before_the_call) {
  manual_context m;
  test::allocation_log log;
  test::tracking_allocator<int> allocator(log);
  watchdog dog(m.io, 10s);
  outcome o([&](auto) { BOOST_TEST(log.live == 0u); });
  dog.async_wait(asio::bind_allocator(allocator, o.tracked()));
  BOOST_TEST(log.allocations > 0u);
  m.advance(5s);
  dog.kick();
  m.advance(5s);
  BOOST_TEST(log.live > 0u);
  m.advance(5s);
  BOOST_TEST(o.fate() == fate::fired);
  BOOST_TEST(log.live == 0u);
}

BOOST_AUTO_TEST_CASE(may_wait_again) {
  manual_context m;
  watchdog dog(m.io, 10s);
  outcome second;
  outcome first([&](auto) {
    dog.kick();
    quietly([&] { dog.async_wait(second.tracked()); });
  });
  dog.async_wait(first.tracked());
  m.advance(10s);
  BOOST_TEST(first.fate() == fate::fired);
  BOOST_TEST(second.fate() == fate::waiting);
  m.advance(10s);
  BOOST_TEST(second.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(may_destroy_the_watchdog) {
  manual_context m;
  auto dog = std::make_unique<watchdog>(m.io, 10s);
  outcome o([&](auto) { dog.reset(); });
  dog->async_wait(o.tracked());
  m.advance(10s);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(is_fixed_in_its_place) {
  static_assert(!std::is_copy_constructible_v<watchdog>);
  static_assert(!std::is_move_constructible_v<watchdog>);
  static_assert(!std::is_move_assignable_v<watchdog>);
  static_assert(
      std::is_same_v<watchdog::rebind_executor<io_executor>::other,
                     asio_wheel::basic_watchdog<io_executor>>);
  static_assert(noexcept(std::declval<watchdog&>().kick()));
  asio::io_context io;
  asio_wheel::basic_watchdog<io_executor> a(io.get_executor(), 1s);
  watchdog b(io.get_executor(), 1s, 1ms);
  BOOST_TEST((a.get_executor() == io.get_executor()));
  BOOST_TEST((b.get_executor() == io.get_executor()));
}
