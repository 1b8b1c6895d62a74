//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/wheel_service.hpp>

#define BOOST_TEST_MODULE wheel_service
#include <boost/test/unit_test.hpp>

#include <test/manual_context.hpp>
#include <test/outcome.hpp>
#include <test/queue_context.hpp>

#include <asio_wheel/error.hpp>
#include <asio_wheel/wheel_timer.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_context.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::error;
using asio_wheel::make_wheel;
using asio_wheel::use_wheel;
using asio_wheel::wheel_options;
using asio_wheel::wheel_service;
using asio_wheel::wheel_timer;
using test::fate;
using test::manual_context;
using test::outcome;
using test::quietly;

using time_point = wheel_service::time_point;

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(finding_it)

BOOST_AUTO_TEST_CASE(use_wheel_makes_one_with_defaults_once) {
  asio::io_context io;
  BOOST_TEST(!asio::has_service<wheel_service>(io));
  wheel_service& w = use_wheel(io);
  BOOST_TEST(asio::has_service<wheel_service>(io));
  BOOST_TEST(&use_wheel(io) == &w);
  BOOST_TEST((w.options().tick == wheel_options().tick));
  BOOST_TEST(&w.context() == &io);
}

BOOST_AUTO_TEST_CASE(a_timer_makes_one_with_defaults) {
  asio::io_context io;
  wheel_timer t(io);
  BOOST_TEST(asio::has_service<wheel_service>(io));
  BOOST_CHECK_THROW(make_wheel(io, wheel_options()),
                    asio::service_already_exists);
}

BOOST_AUTO_TEST_CASE(make_wheel_twice_is_refused) {
  asio::io_context io;
  wheel_options o;
  o.tick = 5ms;
  wheel_service& w = make_wheel(io, o);
  BOOST_CHECK_THROW(make_wheel(io, wheel_options()),
                    asio::service_already_exists);
  BOOST_TEST(&use_wheel(io) == &w);
  BOOST_TEST((w.options().tick == 5ms));
}

BOOST_AUTO_TEST_CASE(each_context_has_its_own) {
  asio::io_context a, b;
  BOOST_TEST(&use_wheel(a) != &use_wheel(b));
}

BOOST_AUTO_TEST_CASE(timers_of_a_context_use_its_wheel) {
  manual_context m;
  auto strand = asio::make_strand(m.io);
  wheel_timer a(m.io, 1h), b(strand, 1h), c(m.io.get_executor(), 1h);
  asio_wheel::basic_wheel_timer<asio::strand<asio::io_context::executor_type>>
      d(strand, 1h);
  outcome o[4];
  a.async_wait(o[0].tracked());
  b.async_wait(o[1].tracked());
  c.async_wait(o[2].tracked());
  d.async_wait(o[3].tracked());
  BOOST_TEST(m.wheel.pending() == 4u);
}

BOOST_AUTO_TEST_CASE(works_in_a_thread_pool) {
  outcome o;
  asio::thread_pool pool(1);
  wheel_service& w = use_wheel(pool);
  wheel_timer t(pool, 1ms);
  BOOST_TEST(&use_wheel(pool) == &w);
  t.async_wait(o.tracked());
  pool.join();
  BOOST_TEST(o.fate() == fate::fired);
  BOOST_TEST((o.thread() != std::this_thread::get_id()));
  BOOST_TEST(w.stats().fired == 1u);
}

BOOST_AUTO_TEST_CASE(works_in_a_thread_pool_under_a_manual_clock) {
  outcome o;
  asio_wheel::manual_clock clock;
  asio::thread_pool pool(1);
  wheel_options options;
  options.clock = clock;
  make_wheel(pool, options);
  wheel_timer t(pool, 1h);
  t.async_wait(o.tracked());
  clock.advance(1h);
  pool.join();
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(works_in_the_system_context) {
  auto& context =
      asio::query(asio::system_executor(), asio::execution::context);
  wheel_service& w = use_wheel(context);
  wheel_timer t(asio::system_executor(), 1ms);
  BOOST_TEST(&use_wheel(context) == &w);
  std::promise<test::error_code> done;
  t.async_wait([&](test::error_code ec) { done.set_value(ec); });
  BOOST_TEST(!done.get_future().get());
  t.expires_after(1h);
  done = {};
  t.async_wait([&](test::error_code ec) { done.set_value(ec); });
  BOOST_TEST(w.pending() == 1u);
  BOOST_TEST(t.cancel() == 1u);
  BOOST_TEST((done.get_future().get() == asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(works_in_a_context_of_nobodys_library) {
  std::promise<void> done;
  test::queue_context context;
  wheel_service& w = use_wheel(static_cast<asio::execution_context&>(context));
  wheel_timer t(context.get_executor(), 1ms), u(context.get_executor(), 1h);
  outcome fired, cancelled;
  t.async_wait(fired.tracked());
  u.async_wait(cancelled.tracked());
  while (context.run() == 0)
    std::this_thread::yield();
  BOOST_TEST(fired.fate() == fate::fired);
  BOOST_TEST(u.cancel() == 1u);
  while (context.run() == 0)
    std::this_thread::yield();
  BOOST_TEST(cancelled.fate() == fate::aborted);
  BOOST_TEST(w.pending() == 0u);
  BOOST_TEST(context.work() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(queries)

BOOST_AUTO_TEST_CASE(pending_counts_waits_neither_started_nor_cancelled) {
  manual_context m;
  BOOST_TEST(m.wheel.pending() == 0u);
  wheel_timer a(m.io, 10ms), b(m.io, 1h);
  std::vector<outcome> o(3);
  std::size_t seen = 99;
  outcome last([&](auto) { seen = m.wheel.pending(); });
  a.async_wait(o[0].tracked());
  b.async_wait(o[1].tracked());
  b.async_wait(o[2].small());
  BOOST_TEST(m.wheel.pending() == 3u);
  b.cancel_one();
  BOOST_TEST(m.wheel.pending() == 2u);
  m.clock.advance(10ms);
  BOOST_TEST(m.wheel.pending() == 2u);
  m.poll();
  BOOST_TEST(m.wheel.pending() == 1u);
  b.cancel();
  BOOST_TEST(m.wheel.pending() == 0u);
  a.async_wait(last.tracked());
  BOOST_TEST(m.wheel.pending() == 1u);
  m.poll();
  BOOST_TEST(seen == 0u);
}

BOOST_AUTO_TEST_CASE(next_expiry_is_a_lower_bound) {
  manual_context m;
  BOOST_TEST(!m.wheel.next_expiry());
  wheel_timer a(m.io, 10ms), b(m.io, 700ms), c(m.io);
  c.expires_at(time_point::max());
  BOOST_TEST(!m.wheel.next_expiry());
  std::vector<outcome> o(3);
  c.async_wait(o[2].tracked());
  BOOST_TEST(!m.wheel.next_expiry());
  b.async_wait(o[1].tracked());
  BOOST_REQUIRE(m.wheel.next_expiry().has_value());
  BOOST_TEST((*m.wheel.next_expiry() <= b.expiry()));
  BOOST_TEST((*m.wheel.next_expiry() > m.now()));
  a.async_wait(o[0].tracked());
  BOOST_TEST((*m.wheel.next_expiry() <= a.expiry()));
  m.clock.advance(10ms);
  BOOST_TEST((*m.wheel.next_expiry() <= m.now()));
  m.poll();
  BOOST_TEST((*m.wheel.next_expiry() > m.now()));
  BOOST_TEST((*m.wheel.next_expiry() <= b.expiry()));
  // Going from bound to bound arrives.
  int steps = 0;
  while (o[1].fate() == fate::waiting && ++steps < 100) {
    m.clock.advance_to(*m.wheel.next_expiry());
    m.poll();
  }
  BOOST_TEST(o[1].fate() == fate::fired);
  BOOST_TEST((m.now() == b.expiry()));
  BOOST_TEST(steps <= 8);
  BOOST_TEST(!m.wheel.next_expiry());
}

BOOST_AUTO_TEST_CASE(next_expiry_ends_with_the_last_wait) {
  manual_context m;
  wheel_timer t(m.io, 10ms);
  outcome o;
  t.async_wait(o.tracked());
  t.cancel();
  // What is left of it on the wheel is nobody's business.
  BOOST_TEST(!m.wheel.next_expiry());
  m.poll();
  BOOST_TEST(!m.wheel.next_expiry());
}

BOOST_AUTO_TEST_CASE(now_is_the_wheels_clock) {
  manual_context m({}, asio_wheel::manual_clock(time_point(42s)));
  BOOST_TEST((m.wheel.now() == time_point(42s)));
  m.clock.advance(1s);
  BOOST_TEST((m.wheel.now() == time_point(43s)));
  asio::io_context io;
  const auto before = std::chrono::steady_clock::now();
  const auto now = use_wheel(io).now();
  BOOST_TEST((before <= now));
  BOOST_TEST((now <= std::chrono::steady_clock::now()));
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(statistics)

BOOST_AUTO_TEST_CASE(start_at_zero) {
  manual_context m;
  const auto s = m.wheel.stats();
  BOOST_TEST(s.scheduled == 0u);
  BOOST_TEST(s.fired == 0u);
  BOOST_TEST(s.cancelled == 0u);
  BOOST_TEST(s.moved == 0u);
  BOOST_TEST(s.rejected == 0u);
  BOOST_TEST(s.abandoned == 0u);
  BOOST_TEST(s.wakeups == 0u);
  BOOST_TEST(s.spurious_wakeups == 0u);
  BOOST_TEST(s.peak_pending == 0u);
  BOOST_TEST((s.max_lateness == 0ns));
}

BOOST_AUTO_TEST_CASE(count_each_wait_under_one_outcome) {
  wheel_options options;
  options.max_pending = 8;
  manual_context m(options);
  wheel_timer fired(m.io, 10ms), cancelled(m.io, 1h), moved(m.io, 5ms);
  asio::cancellation_signal signal;
  std::vector<outcome> o(12);
  for (int i = 0; i != 3; ++i)
    fired.async_wait(o[i].tracked());
  for (int i = 3; i != 5; ++i)
    cancelled.async_wait(o[i].tracked());
  cancelled.async_wait(
      asio::bind_cancellation_slot(signal.slot(), o[5].tracked()));
  for (int i = 6; i != 8; ++i)
    moved.async_wait(o[i].tracked());
  for (int i = 8; i != 12; ++i)
    moved.async_wait(o[i].tracked()); // rejected
  signal.emit(asio::cancellation_type::total);
  cancelled.cancel();
  cancelled.cancel();
  BOOST_TEST(moved.rearm_after(8ms) == 2u);
  m.advance(10ms);
  auto s = m.wheel.stats();
  BOOST_TEST(s.scheduled == 8u);
  BOOST_TEST(s.fired == 5u);
  BOOST_TEST(s.cancelled == 3u);
  BOOST_TEST(s.moved == 2u);
  BOOST_TEST(s.rejected == 4u);
  BOOST_TEST(s.abandoned == 0u);
  BOOST_TEST(s.peak_pending == 8u);
  for (int i = 0; i != 12; ++i)
    BOOST_TEST(o[i].fate() == (i < 3 || i == 6 || i == 7 ? fate::fired
                               : i < 6                   ? fate::aborted
                                                         : fate::failed));
  // The peak stays.
  fired.async_wait(o[0].tracked());
  BOOST_TEST(m.wheel.stats().peak_pending == 8u);
}

BOOST_AUTO_TEST_CASE(count_cancellation_by_destructor_expiry_and_stop) {
  manual_context m;
  std::optional<wheel_timer> a(std::in_place, m.io, 1h);
  wheel_timer b(m.io, 1h), c(m.io, 1h);
  std::vector<outcome> o(3);
  a->async_wait(o[0].tracked());
  b.async_wait(o[1].tracked());
  c.async_wait(o[2].tracked());
  a.reset();
  BOOST_TEST(m.wheel.stats().cancelled == 1u);
  b.expires_after(2h);
  BOOST_TEST(m.wheel.stats().cancelled == 2u);
  m.wheel.stop();
  BOOST_TEST(m.wheel.stats().cancelled == 3u);
  m.poll();
  BOOST_TEST(m.wheel.stats().cancelled == 3u);
}

BOOST_AUTO_TEST_CASE(know_the_greatest_lateness) {
  manual_context m;
  wheel_timer t(m.io, 10ms);
  outcome o;
  t.async_wait(o.tracked());
  m.advance(10ms);
  BOOST_TEST((m.wheel.stats().max_lateness == 0ms));
  o.forget();
  t.expires_after(10ms);
  t.async_wait(o.tracked());
  m.advance(35ms);
  BOOST_TEST((m.wheel.stats().max_lateness == 25ms));
  o.forget();
  t.expires_after(10ms);
  t.async_wait(o.tracked());
  m.advance(10ms);
  BOOST_TEST((m.wheel.stats().max_lateness == 25ms));
}

BOOST_AUTO_TEST_CASE(count_wake_ups_of_a_real_clock) {
  asio::io_context io;
  wheel_service& w = use_wheel(io);
  std::vector<std::unique_ptr<wheel_timer>> timers;
  std::vector<outcome> o(100);
  const auto due = w.now() + 3ms;
  for (auto& x : o) {
    timers.push_back(std::make_unique<wheel_timer>(io, due));
    timers.back()->async_wait(x.small());
  }
  io.run();
  for (auto& x : o)
    BOOST_TEST(x.fate() == fate::fired);
  // One for all, save that the first arming may have been for a bound.
  BOOST_TEST(w.stats().wakeups >= 1u);
  BOOST_TEST(w.stats().wakeups <= 3u);
  BOOST_TEST(w.stats().spurious_wakeups < w.stats().wakeups);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(stopping)

BOOST_AUTO_TEST_CASE(cancels_all_that_is_pending) {
  manual_context m;
  test::queue_context other;
  wheel_timer due(m.io, 10ms), handed(m.io, 10ms), armed(m.io, 20ms),
      far(m.io, 1000h), never(m.io), done(m.io, 1ms);
  never.expires_at(time_point::max());
  std::vector<outcome> o(8);
  done.async_wait(o[0].tracked());
  handed.async_wait(asio::bind_executor(other.get_executor(), o[1].tracked()));
  armed.async_wait(o[2].tracked());
  armed.async_wait(o[3].small());
  far.async_wait(o[4].small());
  never.async_wait(o[5].small());
  m.advance(10ms);
  due.async_wait(o[6].tracked());
  armed.async_wait(o[7].tracked());
  BOOST_TEST(armed.cancel_one() == 1u);

  BOOST_TEST(!m.wheel.stopped());
  BOOST_TEST(quietly([&] { return m.wheel.stop(); }) == 6u);
  BOOST_TEST(m.wheel.stopped());
  BOOST_TEST(m.wheel.pending() == 0u);
  BOOST_TEST(!m.wheel.next_expiry());
  m.poll();
  other.run();
  BOOST_TEST(o[0].fate() == fate::fired);
  for (int i = 1; i != 8; ++i)
    BOOST_TEST(o[i].fate() == fate::aborted);
  // And run() returns.
  m.io.restart();
  m.io.run();
}

BOOST_AUTO_TEST_CASE(again_does_nothing) {
  manual_context m;
  BOOST_TEST(m.wheel.stop() == 0u);
  BOOST_TEST(m.wheel.stop() == 0u);
  BOOST_TEST(m.wheel.stopped());
}

BOOST_AUTO_TEST_CASE(refuses_later_waits) {
  manual_context m;
  wheel_timer t(m.io, 10ms);
  std::vector<outcome> o(4);
  test::queue_context other;
  t.async_wait(o[0].tracked());
  m.wheel.stop();
  quietly([&] {
    t.async_wait(o[1].tracked());
    t.async_wait(o[2].small());
    t.async_wait(asio::bind_executor(other.get_executor(), o[3].tracked()));
  });
  BOOST_TEST(t.pending() == 0u);
  BOOST_TEST(t.cancel() == 0u);
  BOOST_TEST((t.expiry() == time_point(10ms)));
  m.poll();
  other.run();
  BOOST_TEST(o[0].fate() == fate::aborted);
  for (int i = 1; i != 4; ++i) {
    BOOST_TEST(o[i].fate() == fate::failed);
    BOOST_TEST((o[i].ec() == error::wheel_stopped));
  }
  BOOST_TEST(m.wheel.stats().rejected == 3u);
  BOOST_TEST(m.wheel.stats().scheduled == 1u);
  // Timers made afterwards too.
  wheel_timer late(m.io, 0ms);
  outcome l;
  late.async_wait(l.tracked());
  m.poll();
  BOOST_TEST((l.ec() == error::wheel_stopped));
}

BOOST_AUTO_TEST_CASE(from_a_handler) {
  manual_context m;
  std::vector<std::unique_ptr<wheel_timer>> timers;
  std::vector<outcome> o;
  std::size_t stopped = 0;
  int ran = 0;
  for (int i = 0; i != 10; ++i)
    o.emplace_back([&](auto) {
      if (++ran == 3)
        stopped = m.wheel.stop();
    });
  for (auto& x : o) {
    timers.push_back(std::make_unique<wheel_timer>(m.io, 10ms));
    timers.back()->async_wait(x.small());
  }
  m.advance(10ms);
  BOOST_TEST(stopped == 7u);
  BOOST_TEST(std::count_if(o.begin(), o.end(), [](auto& x) {
               return x.fate() == fate::fired;
             }) == 3);
  BOOST_TEST(std::count_if(o.begin(), o.end(), [](auto& x) {
               return x.fate() == fate::aborted;
             }) == 7);
}

BOOST_AUTO_TEST_CASE(from_another_thread) {
  asio::io_context io;
  wheel_service& w = use_wheel(io);
  wheel_timer t(io, 1h);
  outcome o;
  t.async_wait(o.tracked());
  std::thread other([&] { BOOST_TEST(w.stop() == 1u); });
  io.run();
  other.join();
  BOOST_TEST(o.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE(all_shards) {
  wheel_options options;
  options.shards = 4;
  manual_context m(options);
  std::vector<std::unique_ptr<wheel_timer>> timers(8);
  std::vector<outcome> o(8);
  for (std::size_t i = 0; i != 8; ++i)
    std::thread([&] {
      timers[i] = std::make_unique<wheel_timer>(m.io, (i + 1) * 1h);
      timers[i]->async_wait(o[i].tracked());
    }).join();
  BOOST_TEST(m.wheel.pending() == 8u);
  BOOST_TEST(m.wheel.stop() == 8u);
  m.poll();
  for (auto& x : o)
    BOOST_TEST(x.fate() == fate::aborted);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(limit)

BOOST_AUTO_TEST_CASE(refuses_the_next_wait_through_its_handler) {
  wheel_options options;
  options.max_pending = 2;
  manual_context m(options);
  test::queue_context other;
  wheel_timer a(m.io, 10ms), b(m.io, 10ms);
  std::vector<outcome> o(5);
  a.async_wait(o[0].tracked());
  b.async_wait(o[1].small());
  quietly([&] {
    b.async_wait(o[2].tracked());
    b.async_wait(o[3].small());
    a.async_wait(asio::bind_executor(other.get_executor(), o[4].tracked()));
  });
  BOOST_TEST(a.pending() == 1u);
  BOOST_TEST(b.pending() == 1u);
  BOOST_TEST(m.wheel.pending() == 2u);
  m.poll();
  other.run();
  for (int i = 2; i != 5; ++i) {
    BOOST_TEST(o[i].fate() == fate::failed);
    BOOST_TEST((o[i].ec() == error::too_many_pending));
    BOOST_TEST((o[i].ec() != asio_wheel::condition::timeout));
  }
  m.advance(10ms);
  BOOST_TEST(o[0].fate() == fate::fired);
  BOOST_TEST(o[1].fate() == fate::fired);
  BOOST_TEST(m.wheel.stats().rejected == 3u);
}

BOOST_AUTO_TEST_CASE(refuses_waits_that_are_due_at_once_too) {
  wheel_options options;
  options.max_pending = 1;
  manual_context m(options);
  wheel_timer t(m.io);
  outcome o1, o2;
  t.async_wait(o1.tracked());
  t.async_wait(o2.tracked());
  m.poll();
  BOOST_TEST(o1.fate() == fate::fired);
  BOOST_TEST((o2.ec() == error::too_many_pending));
}

BOOST_AUTO_TEST_CASE(has_room_again_at_once_after_cancel) {
  wheel_options options;
  options.max_pending = 1;
  manual_context m(options);
  wheel_timer t(m.io, 10ms);
  std::optional<wheel_timer> u(std::in_place, m.io, 10ms);
  asio::cancellation_signal signal;
  std::vector<outcome> o(5);
  t.async_wait(o[0].tracked());
  BOOST_TEST(t.cancel() == 1u);
  u->async_wait(o[1].small());
  u.reset();
  t.async_wait(asio::bind_cancellation_slot(signal.slot(), o[2].tracked()));
  signal.emit(asio::cancellation_type::total);
  t.async_wait(o[3].small());
  BOOST_TEST(t.expires_after(5ms) == 1u);
  t.async_wait(o[4].small());
  m.poll();
  for (int i = 0; i != 4; ++i)
    BOOST_TEST(o[i].fate() == fate::aborted);
  m.advance(5ms);
  BOOST_TEST(o[4].fate() == fate::fired);
  BOOST_TEST(m.wheel.stats().rejected == 0u);
}

BOOST_AUTO_TEST_CASE(has_room_again_in_the_handler) {
  wheel_options options;
  options.max_pending = 1;
  manual_context m(options);
  wheel_timer t(m.io, 10ms);
  outcome second;
  outcome first([&](auto) {
    t.expires_after(10ms);
    t.async_wait(second.tracked());
  });
  t.async_wait(first.tracked());
  m.advance(10ms);
  m.advance(10ms);
  BOOST_TEST(first.fate() == fate::fired);
  BOOST_TEST(second.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(does_not_count_a_moved_wait_twice) {
  wheel_options options;
  options.max_pending = 1;
  manual_context m(options);
  wheel_timer t(m.io, 10ms);
  outcome o;
  t.async_wait(o.tracked());
  for (int i = 0; i != 5; ++i)
    BOOST_TEST(t.rearm_after(20ms) == 1u);
  wheel_timer u(std::move(t));
  m.advance(20ms);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(is_shared_out_among_the_shards) {
  wheel_options options;
  options.shards = 2;
  options.max_pending = 3; // two each
  manual_context m(options);
  wheel_timer t(m.io, 10ms);
  std::vector<outcome> o(3);
  for (auto& x : o)
    t.async_wait(x.tracked());
  BOOST_TEST(m.wheel.pending() == 2u);
  m.advance(10ms);
  BOOST_TEST(o[0].fate() == fate::fired);
  BOOST_TEST(o[1].fate() == fate::fired);
  BOOST_TEST((o[2].ec() == error::too_many_pending));
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(several_shards)

BOOST_AUTO_TEST_CASE(are_added_up) {
  wheel_options options;
  options.shards = 3;
  manual_context m(options);
  std::vector<std::unique_ptr<wheel_timer>> timers(9);
  std::vector<outcome> o(9);
  for (std::size_t i = 0; i != 9; ++i)
    std::thread([&] {
      timers[i] = std::make_unique<wheel_timer>(m.io, (i + 1) * 10ms);
      timers[i]->async_wait(o[i].small());
    }).join();
  BOOST_TEST(m.wheel.pending() == 9u);
  BOOST_REQUIRE(m.wheel.next_expiry().has_value());
  BOOST_TEST((*m.wheel.next_expiry() <= timers[0]->expiry()));
  for (int i = 0; i != 9; ++i) {
    m.advance(9ms);
    BOOST_TEST(o[i].fate() == fate::waiting);
    m.advance(1ms);
    BOOST_TEST(o[i].fate() == fate::fired);
  }
  const auto s = m.wheel.stats();
  BOOST_TEST(s.scheduled == 9u);
  BOOST_TEST(s.fired == 9u);
  BOOST_TEST(s.peak_pending == 9u);
}

BOOST_AUTO_TEST_CASE(are_kept_by_a_timer_and_adopted_by_assignment) {
  wheel_options options;
  options.shards = 2;
  manual_context m(options);
  std::optional<wheel_timer> there[2];
  for (auto& t : there)
    std::thread([&] { t.emplace(m.io, 10ms); }).join();
  wheel_timer here(m.io, 10ms);
  std::vector<outcome> o(3);
  here.async_wait(o[0].tracked());
  there[0]->async_wait(o[1].tracked());
  there[1]->async_wait(o[2].small());
  here = std::move(*there[0]);
  there[0] = std::move(*there[1]);
  there[1].reset();
  BOOST_TEST(m.wheel.pending() == 2u);
  m.advance(10ms);
  BOOST_TEST(o[0].fate() == fate::aborted);
  BOOST_TEST(o[1].fate() == fate::fired);
  BOOST_TEST(o[2].fate() == fate::fired);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(on_one_thread)

BOOST_AUTO_TEST_CASE(behaves_the_same) {
  wheel_options options;
  options.single_threaded = true;
  manual_context m(options);
  auto strand = asio::make_strand(m.io);
  wheel_timer t(m.io, 10ms), u(strand, 10ms);
  std::vector<outcome> o(4);
  t.async_wait(o[0].small());
  t.async_wait(o[1].tracked());
  u.async_wait(o[2].tracked());
  BOOST_TEST(t.rearm_after(20ms) == 2u);
  m.advance(10ms);
  BOOST_TEST(o[0].fate() == fate::waiting);
  BOOST_TEST(o[2].fate() == fate::fired);
  m.advance(10ms);
  BOOST_TEST(o[0].fate() == fate::fired);
  BOOST_TEST(o[1].fate() == fate::fired);
  u.expires_after(1h);
  u.async_wait(o[3].tracked());
  BOOST_TEST(m.wheel.stop() == 1u);
  m.poll();
  BOOST_TEST(o[3].fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE(cancel_from_a_handler_of_the_same_batch) {
  wheel_options options;
  options.single_threaded = true;
  manual_context m(options);
  wheel_timer a(m.io, 10ms), b(m.io, 10ms);
  std::size_t cancelled = 0;
  outcome oa([&](auto) { cancelled += b.cancel(); });
  outcome ob([&](auto) { cancelled += a.cancel(); });
  a.async_wait(oa.small());
  b.async_wait(ob.small());
  m.advance(10ms);
  BOOST_TEST(cancelled == 1u);
  BOOST_TEST(((oa.fate() == fate::aborted) != (ob.fate() == fate::aborted)));
}

BOOST_AUTO_TEST_CASE(with_a_handler_that_polls_and_one_that_throws) {
  wheel_options options;
  options.single_threaded = true;
  manual_context m(options);
  std::vector<std::unique_ptr<wheel_timer>> timers;
  std::vector<outcome> o;
  int ran = 0;
  for (int i = 0; i != 6; ++i)
    o.emplace_back([&](auto) {
      if (++ran == 2)
        throw 42;
      if (ran == 4)
        m.io.poll();
    });
  for (auto& x : o) {
    timers.push_back(std::make_unique<wheel_timer>(m.io, 10ms));
    timers.back()->async_wait(x.small());
  }
  m.clock.advance(10ms);
  m.io.restart();
  BOOST_CHECK_THROW(m.io.poll(), int);
  m.poll();
  for (auto& x : o)
    BOOST_TEST(x.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(wakes_from_real_time) {
  wheel_options options;
  options.single_threaded = true;
  asio::io_context io(1);
  make_wheel(io, options);
  wheel_timer far(io, 1h), near(io, 2ms);
  outcome o1, o2;
  far.async_wait(o1.small());
  near.async_wait([&, h = o2.tracked()](auto ec) mutable {
    h(ec);
    far.cancel();
  });
  io.run();
  BOOST_TEST(o1.fate() == fate::aborted);
  BOOST_TEST(o2.fate() == fate::fired);
}

#if defined(NDEBUG)
BOOST_AUTO_TEST_CASE(refuses_a_handler_of_another_context) {
  wheel_options options;
  options.single_threaded = true;
  manual_context m(options);
  test::queue_context other;
  wheel_timer t(m.io, 10ms);
  outcome o, mine;
  t.async_wait(asio::bind_executor(other.get_executor(), o.tracked()));
  t.async_wait(mine.tracked());
  BOOST_TEST(t.pending() == 1u);
  m.poll();
  other.run();
  BOOST_TEST((o.ec() == asio::error::operation_not_supported));
  m.advance(10ms);
  BOOST_TEST(mine.fate() == fate::fired);
}
#endif

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(the_loop)

namespace {

// A storm of n, with a chain of posted functions beside it. Returns how many
// handlers of the storm ran at most between two links of the chain.
template <typename Start>
std::size_t longest_run(std::size_t n, std::size_t batch, const Start& start) {
  wheel_options options;
  options.expiry_batch = batch;
  manual_context m(options);
  std::size_t ran = 0, since = 0, longest = 0, links = 0;
  std::vector<std::unique_ptr<wheel_timer>> timers;
  const auto handler = [&](auto) {
    ++ran;
    longest = std::max(longest, ++since);
  };
  for (std::size_t i = 0; i != n; ++i) {
    timers.push_back(std::make_unique<wheel_timer>(m.io, 10ms));
    start(*timers.back(), handler);
  }
  std::function<void()> link = [&] {
    since = 0;
    ++links;
    if (ran != n)
      asio::post(m.io, link);
  };
  asio::post(m.io, link);
  m.advance(10ms);
  BOOST_TEST(ran == n);
  BOOST_TEST(links >= n / batch / 2);
  return longest;
}

} // namespace

BOOST_AUTO_TEST_CASE(gets_its_turn_in_a_storm_of_expiries) {
  for (const std::size_t batch : {1, 16, 128})
    BOOST_TEST(longest_run(10'000, batch, [](auto& t, auto h) {
                 t.async_wait(h);
               }) <= 2 * batch);
}

BOOST_AUTO_TEST_CASE(gets_its_turn_in_a_storm_of_cancellations) {
  for (const std::size_t batch : {1, 16, 128})
    BOOST_TEST(longest_run(10'000, batch, [](auto& t, auto h) {
                 t.async_wait(h);
                 t.cancel();
               }) <= 2 * batch);
}

BOOST_AUTO_TEST_CASE(gets_its_turn_in_a_storm_of_waits_on_one_timer) {
  wheel_options options;
  options.expiry_batch = 16;
  manual_context m(options);
  wheel_timer t(m.io, 10ms);
  std::size_t ran = 0, since = 0, longest = 0;
  for (int i = 0; i != 10'000; ++i)
    t.async_wait([&](auto) {
      ++ran;
      longest = std::max(longest, ++since);
    });
  std::function<void()> link = [&] {
    since = 0;
    if (ran != 10'000)
      asio::post(m.io, link);
  };
  asio::post(m.io, link);
  m.advance(10ms);
  BOOST_TEST(ran == 10'000u);
  BOOST_TEST(longest <= 32u);
}

BOOST_AUTO_TEST_CASE(gets_its_turn_beside_a_chain_of_timers_without_delay) {
  manual_context m;
  wheel_timer t(m.io);
  int links = 0, posted = 0;
  std::function<void(test::error_code)> again = [&](auto) {
    if (++links < 1000) {
      t.expires_after(0ms);
      t.async_wait(again);
    }
  };
  t.async_wait(again);
  std::function<void()> other = [&] {
    ++posted;
    if (links < 1000)
      asio::post(m.io, other);
  };
  asio::post(m.io, other);
  m.poll();
  BOOST_TEST(links == 1000);
  BOOST_TEST(posted >= 5);
}

BOOST_AUTO_TEST_CASE(is_held_while_a_wait_is_pending) {
  manual_context m;
  wheel_timer t(m.io, 1h), never(m.io);
  never.expires_at(time_point::max());
  outcome o1, o2;
  t.async_wait(o1.tracked());
  m.io.poll();
  BOOST_TEST(!m.io.stopped());
  m.advance(1h);
  BOOST_TEST(o1.fate() == fate::fired);
  BOOST_TEST(m.io.stopped());
  never.async_wait(o2.tracked());
  m.poll();
  BOOST_TEST(!m.io.stopped());
  never.cancel();
  m.io.run();
  BOOST_TEST(m.io.stopped());
}

BOOST_AUTO_TEST_CASE(is_not_held_by_what_is_left_of_cancelled_waits) {
  manual_context m;
  std::vector<std::unique_ptr<wheel_timer>> timers;
  outcome o;
  for (int i = 0; i != 100; ++i) {
    timers.push_back(std::make_unique<wheel_timer>(m.io, (i + 1) * 1min));
    timers.back()->async_wait([](auto) {});
  }
  for (auto& t : timers)
    t->cancel();
  m.poll();
  BOOST_TEST(m.io.stopped());
  BOOST_TEST(!m.clock.next_deadline());
  BOOST_TEST(m.advance(24h) == 0u);
}

BOOST_AUTO_TEST_CASE(is_not_held_after_a_handler_was_discarded_elsewhere) {
  manual_context m;
  test::queue_context other;
  wheel_timer t(m.io, 10ms);
  outcome o;
  t.async_wait(asio::bind_executor(other.get_executor(), o.tracked()));
  m.advance(10ms);
  t.rearm_after(1h);
  m.poll();
  BOOST_TEST(!m.io.stopped());
  other.discard();
  m.poll();
  BOOST_TEST(o.fate() == fate::dropped);
  BOOST_TEST(m.io.stopped());
}

BOOST_AUTO_TEST_CASE(is_not_woken_while_nothing_is_due) {
  manual_context m;
  wheel_timer t(m.io, 10h);
  outcome o;
  t.async_wait(o.tracked());
  m.poll();
  std::size_t handlers = 0;
  for (int i = 0; i != 10'000; ++i)
    handlers += m.advance(1s);
  // At most one look per level.
  BOOST_TEST(handlers <= wheel_options().levels);
  BOOST_TEST(o.fate() == fate::waiting);
}

BOOST_AUTO_TEST_CASE(is_not_woken_at_all_in_real_time_before_the_first_slot) {
  asio::io_context io;
  wheel_service& w = use_wheel(io);
  std::vector<std::unique_ptr<wheel_timer>> timers;
  for (int i = 0; i != 1000; ++i) {
    timers.push_back(std::make_unique<wheel_timer>(io, 60s));
    timers.back()->async_wait([](auto) {});
  }
  asio::steady_timer end(io, 20ms);
  end.async_wait([&](auto) { io.stop(); });
  io.run();
  BOOST_TEST(w.stats().wakeups == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(shutting_down)

BOOST_AUTO_TEST_CASE(destroys_handlers_uncalled_in_every_state) {
  std::vector<outcome> o(8);
  test::queue_context other;
  {
    manual_context m;
    auto strand = asio::make_strand(m.io);
    wheel_timer a(m.io, 10ms), b(m.io, 1h), c(strand, 10ms), d(m.io, 1h),
        never(m.io);
    never.expires_at(time_point::max());
    a.async_wait(o[0].tracked());
    a.async_wait(o[1].tracked());
    b.async_wait(o[2].tracked());
    c.async_wait(o[3].tracked());
    d.async_wait(o[4].tracked());
    never.async_wait(o[5].tracked());
    d.async_wait(asio::bind_executor(strand, o[6].tracked()));
    d.async_wait(asio::bind_executor(other.get_executor(), o[7].tracked()));
    m.clock.advance(10ms);
    b.cancel();
    d.cancel_one();
  }
  for (auto& x : o)
    BOOST_TEST(x.fate() == fate::dropped);
  BOOST_TEST(other.work() == 0u);
}

BOOST_AUTO_TEST_CASE(of_a_context_that_never_ran) {
  outcome o;
  {
    asio::io_context io;
    wheel_timer t(io);
    t.async_wait(o.tracked());
  }
  BOOST_TEST(o.fate() == fate::dropped);
}

BOOST_AUTO_TEST_CASE(of_a_pool_that_was_stopped) {
  outcome o;
  {
    asio::thread_pool pool(1);
    wheel_timer t(pool, 1h);
    t.async_wait(o.tracked());
    pool.stop();
    pool.join();
  }
  BOOST_TEST(o.fate() == fate::dropped);
}

BOOST_AUTO_TEST_SUITE_END()
