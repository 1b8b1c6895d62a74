//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/scheduler.hpp>

#include <test/manual_context.hpp>

#define BOOST_TEST_MODULE scheduler
#include <boost/test/unit_test.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::delayed_task;
using asio_wheel::error;
using asio_wheel::missed_tick_policy;
using asio_wheel::periodic_mode;
using asio_wheel::periodic_options;
using asio_wheel::scheduler;
using asio_wheel::scheduler_options;
using asio_wheel::task_handle;
using asio_wheel::task_state;
using boost::system::error_code;

namespace {

using order = std::vector<int>;

asio_wheel::wheel_options with_shards(std::size_t n) {
  asio_wheel::wheel_options o;
  o.shards = n;
  return o;
}

struct fixture : test::manual_context {
  using test::manual_context::manual_context;

  scheduler s{io};
  order ran;

  // A task that leaves a number.
  auto note(int n) {
    return [this, n] { ran.push_back(n); };
  }
};

struct strand_fixture : test::manual_context {
  scheduler s{asio::make_strand(io)};
};

// Counts its live copies; its moves and copies may be made to throw.
struct capture {
  inline static int alive = 0;
  inline static bool throws = false;

  capture() { ++alive; }
  capture(const capture&) {
    check();
    ++alive;
  }
  capture(capture&&) {
    check();
    ++alive;
  }
  ~capture() { --alive; }

private:
  static void check() {
    if (throws)
      throw std::runtime_error("a capture that does not want to move");
  }
};

} // namespace

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(scheduling)

BOOST_FIXTURE_TEST_CASE(a_task_runs_once_when_its_time_has_come, fixture) {
  const task_handle h = s.schedule_after(10ms, note(1));
  BOOST_TEST(h.state() == task_state::pending);
  BOOST_TEST((h.expiry() == now() + 10ms));
  BOOST_TEST((h.remaining() == 10ms));
  advance(10ms - 1ns);
  BOOST_TEST(ran.empty());
  advance(1ms);
  BOOST_TEST(ran == order{1});
  BOOST_TEST(h.state() == task_state::done);
  BOOST_TEST((h.remaining() == 0ms));
  BOOST_TEST(!h.error());
  advance(1h);
  BOOST_TEST(ran == order{1});
}

BOOST_FIXTURE_TEST_CASE(a_task_at_an_absolute_time, fixture) {
  s.schedule_at(s.now() + 5ms, note(1));
  BOOST_TEST((s.now() == now()));
  advance(4ms);
  BOOST_TEST(ran.empty());
  advance(1ms);
  BOOST_TEST(ran == order{1});
}

BOOST_FIXTURE_TEST_CASE(tasks_of_different_ticks_run_in_their_order, fixture) {
  for (const int n : {5, 3, 9, 1, 7})
    s.schedule_after(std::chrono::milliseconds(n), note(n));
  advance(20ms);
  BOOST_TEST(ran == (order{1, 3, 5, 7, 9}));
}

BOOST_FIXTURE_TEST_CASE(never_inside_the_function_that_schedules, fixture) {
  s.schedule_after(0s, note(1));
  s.schedule_after(-1h, note(2));
  s.schedule_at(scheduler::time_point::min(), note(3));
  BOOST_TEST(ran.empty());
  poll();
  BOOST_TEST(ran.size() == 3u); // A2
}

BOOST_FIXTURE_TEST_CASE(a1_durations_without_end_never_run, fixture) {
  for (const duration d :
       {duration::max(), duration::max() - 1ns, duration::max() / 10}) {
    const task_handle h = s.schedule_after(d, note(1));
    BOOST_TEST(h.state() == task_state::pending);
  }
  const task_handle h = s.schedule_at(scheduler::time_point::max(), note(1));
  BOOST_TEST((h.remaining() == duration::max()));
  advance(24h * 365);
  BOOST_TEST(ran.empty());
  BOOST_TEST(s.pending() == 4u);
  BOOST_TEST(h.cancel());
  BOOST_TEST(s.stop().size() == 3u);
}

BOOST_FIXTURE_TEST_CASE(a3_a_chain_that_schedules_itself_does_not_drift,
                        fixture) {
  const auto start = now();
  int links = 0;
  std::function<void()> link = [&] {
    ++links;
    BOOST_TEST((now() == start + links * 7ms));
    if (links != 300) // more than two revolutions of the finest level
      s.schedule_after(7ms, link);
  };
  s.schedule_after(7ms, link);
  for (int i = 0; i != 300 * 7; ++i)
    advance(1ms);
  BOOST_TEST(links == 300);
}

BOOST_FIXTURE_TEST_CASE(far_and_near_tasks_of_every_level, fixture) {
  const std::chrono::milliseconds delays[] = {
      255ms, 256ms, 257ms, 65535ms, 65536ms, 65537ms, 12h, 24h * 365};
  for (const auto d : delays) {
    bool done = false;
    s.schedule_after(d, [&] { done = true; });
    advance(d - 1ns);
    BOOST_TEST(!done);
    advance(1ms);
    BOOST_TEST(done);
  }
}

BOOST_FIXTURE_TEST_CASE(a_function_may_take_the_handle_of_its_task, fixture) {
  task_handle inside;
  const task_handle h = s.schedule_after(
      1ms,
      [&](const task_handle& t) {
        BOOST_TEST(t.state() == task_state::running);
        inside = t;
      },
      42);
  advance(1ms);
  BOOST_TEST((inside == h));
  BOOST_TEST(inside.tag() == 42u);
}

BOOST_FIXTURE_TEST_CASE(a_function_may_be_move_only_and_large, fixture) {
  s.schedule_after(1ms,
                   [this, p = std::make_unique<int>(1)] { ran.push_back(*p); });
  std::array<int, 300> large{}; // not of the pool
  large[299] = 2;
  const task_handle cancelled = s.schedule_after(1ms, [large] { (void)large; });
  s.schedule_after(2ms, [this, large, p = std::make_unique<int>(0)] {
    ran.push_back(large[299]);
  });
  BOOST_TEST(cancelled.cancel());
  advance(2ms);
  BOOST_TEST(ran == (order{1, 2}));
}

BOOST_AUTO_TEST_CASE(pending_tasks_hold_run_and_nothing_else_does) {
  asio::io_context io;
  scheduler s(io);
  const auto start = std::chrono::steady_clock::now();
  bool done = false;
  s.schedule_after(5ms, [&] { done = true; });
  const task_handle h = s.schedule_after(1h, [] {});
  s.schedule_after(1ms, [&] { h.cancel(); });
  io.run();
  BOOST_TEST(done);
  BOOST_TEST((std::chrono::steady_clock::now() - start >= 5ms));
  io.restart();
  BOOST_TEST(io.run() == 0u);
}

BOOST_AUTO_TEST_CASE(a_task_that_is_never_due_holds_run) {
  asio::io_context io;
  scheduler s(io);
  const task_handle h = s.schedule_after(scheduler::duration::max(), [] {});
  BOOST_TEST(io.poll() == 0u);
  BOOST_TEST(!io.stopped());
  h.cancel();
  io.run();
}

BOOST_FIXTURE_TEST_CASE(after_a_batch_the_loop_has_its_turn, fixture) {
  // B4: also if the tasks go on for ever.
  std::function<void()> again = [&] { s.schedule_after(0s, again); };
  again();
  bool turn = false;
  asio::post(io, [&] { turn = true; });
  for (int i = 0; i != 1000 && !turn; ++i)
    io.run_one();
  BOOST_TEST(turn);
  s.stop();
}

BOOST_FIXTURE_TEST_CASE(a_task_may_run_the_context, fixture) {
  s.schedule_after(1ms, [this] {
    ran.push_back(1);
    io.poll();
    ran.push_back(3);
  });
  s.schedule_after(2ms, note(2));
  advance(2ms);
  BOOST_TEST(ran == (order{1, 2, 3}));
}

BOOST_FIXTURE_TEST_CASE(nothing_runs_after_the_context_was_stopped, fixture) {
  s.schedule_after(1ms, [this] {
    ran.push_back(1);
    io.stop();
  });
  s.schedule_after(2ms, note(2));
  clock.advance(5ms);
  io.run();
  BOOST_TEST(ran == order{1});
  poll();
  BOOST_TEST(ran == (order{1, 2}));
}

BOOST_AUTO_TEST_CASE(memory_is_used_again) {
  fixture f;
  for (int round = 0; round != 3; ++round) {
    std::vector<task_handle> handles;
    for (int i = 0; i != 2000; ++i)
      handles.push_back(f.s.schedule_after(1ms * i, f.note(i)));
    for (std::size_t i = 0; i != handles.size(); i += 2)
      BOOST_TEST(handles[i].cancel());
    f.advance(2s);
  }
  BOOST_TEST(f.ran.size() == 3000u);
  const auto c = f.s.counts();
  BOOST_TEST(c.done == 3000u);
  BOOST_TEST(c.cancelled == 3000u);
  BOOST_TEST(c.pending == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(cancelling)

BOOST_FIXTURE_TEST_CASE(cancel_is_true_once_and_the_task_does_not_run,
                        fixture) {
  const task_handle h = s.schedule_after(1ms, note(1));
  const task_handle copy = h;
  BOOST_TEST(copy.cancel());
  BOOST_TEST(!h.cancel());
  BOOST_TEST(h.state() == task_state::cancelled);
  advance(1h);
  BOOST_TEST(ran.empty());
}

BOOST_FIXTURE_TEST_CASE(cancel_destroys_the_function_at_once, fixture) {
  const auto captured = std::make_shared<int>();
  const task_handle h = s.schedule_after(1h, [captured] {});
  BOOST_TEST(captured.use_count() == 2);
  h.cancel();
  BOOST_TEST(captured.use_count() == 1);
}

BOOST_FIXTURE_TEST_CASE(a_function_is_destroyed_when_it_has_run, fixture) {
  const auto captured = std::make_shared<int>();
  const task_handle h = s.schedule_after(1ms, [captured] {});
  advance(1ms);
  BOOST_TEST(captured.use_count() == 1);
  BOOST_TEST(h.state() == task_state::done);
}

BOOST_FIXTURE_TEST_CASE(b1_a_task_cancels_one_that_is_due_with_it, fixture) {
  std::vector<task_handle> tasks;
  for (int i = 0; i != 10; ++i)
    tasks.push_back(s.schedule_after(1ms, [&, i] {
      ran.push_back(i);
      for (const auto& t : tasks)
        t.cancel();
    }));
  advance(1ms);
  BOOST_TEST(ran.size() == 1u);
  BOOST_TEST(s.counts().cancelled == 9u);
}

BOOST_FIXTURE_TEST_CASE(cancelling_in_the_task_itself_is_false, fixture) {
  bool result = true;
  const task_handle h =
      s.schedule_after(1ms, [&](const task_handle& t) { result = t.cancel(); });
  advance(1ms);
  BOOST_TEST(!result);
  BOOST_TEST(h.state() == task_state::done);
  BOOST_TEST(!h.cancel());
}

BOOST_FIXTURE_TEST_CASE(b7_cancel_on_the_tick_it_is_due, fixture) {
  const task_handle h = s.schedule_after(1ms, note(1));
  clock.advance(1ms); // due, and the wheel has not looked
  BOOST_TEST(h.cancel());
  poll();
  BOOST_TEST(ran.empty());
}

BOOST_FIXTURE_TEST_CASE(d3_a_captures_destructor_may_use_the_scheduler,
                        fixture) {
  struct schedules_when_it_goes {
    fixture* f;
    bool armed = true;
    explicit schedules_when_it_goes(fixture* fix) : f(fix) {}
    schedules_when_it_goes(schedules_when_it_goes&& o) noexcept
        : f(o.f), armed(std::exchange(o.armed, false)) {}
    ~schedules_when_it_goes() {
      if (armed) {
        f->s.schedule_after(1ms, f->note(7));
        f->s.counts();
      }
    }
  };
  s.schedule_after(1h, [x = schedules_when_it_goes(this)] {}).cancel();
  s.schedule_after(1ms, [x = schedules_when_it_goes(this)] {});
  advance(1ms);
  advance(1ms);
  BOOST_TEST(ran == (order{7, 7}));
  s.schedule_after(1h, [x = schedules_when_it_goes(this)] {});
  BOOST_TEST(s.stop().size() == 1u); // its own task is rejected
  BOOST_TEST(s.pending() == 0u);
}

BOOST_FIXTURE_TEST_CASE(b8_counts_are_exact_at_each_step, fixture) {
  std::vector<task_handle> t;
  for (int i = 0; i != 4; ++i)
    t.push_back(s.schedule_after(1ms, [] {}));
  BOOST_TEST(s.pending() == 4u);
  t[0].cancel();
  BOOST_TEST(s.pending() == 3u);
  clock.advance(1ms); // due but not run
  t[1].cancel();
  BOOST_TEST(s.pending() == 2u);
  poll();
  BOOST_TEST(s.pending() == 0u);
  const auto c = s.counts();
  BOOST_TEST(c.done == 2u);
  BOOST_TEST(c.cancelled == 2u);
  BOOST_TEST(c.running == 0u);
}

BOOST_FIXTURE_TEST_CASE(b10_a_handle_may_be_overwritten_and_cancels_nothing,
                        fixture) {
  task_handle h = s.schedule_after(1ms, note(1));
  h = s.schedule_after(2ms, note(2));
  h = task_handle();
  advance(2ms);
  BOOST_TEST(ran == (order{1, 2}));
}

BOOST_AUTO_TEST_CASE(a_handle_outlives_everything) {
  task_handle pending, done, never;
  {
    fixture f;
    done = f.s.schedule_after(1ms, f.note(1));
    pending = f.s.schedule_after(1h, f.note(2));
    never = f.s.schedule_after(scheduler::duration::max(), f.note(2));
    f.advance(1ms);
  }
  BOOST_TEST(done.state() == task_state::done);
  BOOST_TEST(pending.state() == task_state::cancelled);
  BOOST_TEST(never.state() == task_state::cancelled);
  BOOST_TEST(!pending.cancel());
  BOOST_TEST(!pending.reschedule_after(1ms));
  BOOST_TEST((pending.remaining() == 0s));
  pending.tag(3);
  BOOST_TEST(pending.tag() == 3u);
}

BOOST_AUTO_TEST_CASE(a_handle_outlives_a_strand_and_its_context) {
  task_handle idle, due;
  {
    test::manual_context c;
    scheduler s(asio::make_strand(c.io));
    due = s.schedule_after(0s, [] {});
    c.poll();
    idle = s.schedule_after(1h, [] {});
  } // the strand's service is gone
  BOOST_TEST(due.state() == task_state::done);
  BOOST_TEST(idle.state() == task_state::cancelled);
  {
    test::manual_context c;
    std::optional<scheduler> s(std::in_place, asio::make_strand(c.io));
    idle = s->schedule_after(1h, [] {});
    due = s->schedule_after(1ms, [&] {
      s.reset();
      throw 1;
    });
    c.clock.advance(1ms);
    BOOST_CHECK_THROW(c.io.poll(), int);
    c.poll();
  }
  BOOST_TEST(due.state() == task_state::failed);
  BOOST_TEST(idle.state() == task_state::cancelled);
  BOOST_TEST(!idle.cancel());
}

BOOST_AUTO_TEST_CASE(a_handle_without_a_task_does_nothing) {
  const task_handle h;
  BOOST_TEST(!h);
  BOOST_TEST(!h.cancel());
  BOOST_TEST(!h.reschedule_after(1s));
  BOOST_TEST(!h.reschedule_at(scheduler::time_point::max()));
  BOOST_TEST(h.state() == task_state::rejected);
  BOOST_TEST(!h.error());
  BOOST_TEST((h.expiry() == scheduler::time_point()));
  BOOST_TEST((h.remaining() == 0s));
  BOOST_TEST(h.tag() == 0u);
  h.tag(1);
}

BOOST_FIXTURE_TEST_CASE(handles_compare_hash_and_print, fixture) {
  const task_handle a = s.schedule_after(1s, [] {}),
                    b = s.schedule_after(1s, [] {});
  BOOST_TEST((a != b));
  BOOST_TEST((std::set<task_handle>{a, b, a}.size() == 2u));
  BOOST_TEST((std::unordered_set<task_handle>{a, b, b}.size() == 2u));
  std::ostringstream text;
  for (const task_state st :
       {task_state::pending, task_state::running, task_state::done,
        task_state::cancelled, task_state::failed, task_state::rejected})
    text << st << ' ';
  BOOST_TEST(text.str() == "pending running done cancelled failed rejected ");
  static_assert(sizeof(task_handle) == sizeof(void*));
}

BOOST_AUTO_TEST_CASE(d1_the_context_goes_first) {
  const auto captured = std::make_shared<int>();
  std::optional<test::manual_context> c(std::in_place);
  std::optional<scheduler> s(std::in_place, c->io);
  const task_handle h = s->schedule_after(1h, [captured] {});
  const task_handle due = s->schedule_after(1ms, [captured] {});
  c->clock.advance(1ms);
  c.reset();
  BOOST_TEST(captured.use_count() == 1); // destroyed, not called
  BOOST_TEST(h.state() == task_state::cancelled);
  BOOST_TEST(due.state() == task_state::cancelled);
  const task_handle late = s->schedule_after(1s, [captured] {});
  BOOST_TEST(late.state() == task_state::rejected);
  BOOST_TEST((late.error() == asio::error::operation_aborted));
  s.reset();
  BOOST_TEST(captured.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(d1_the_context_goes_while_a_drain_is_posted) {
  const auto captured = std::make_shared<int>();
  std::optional<test::manual_context> c(std::in_place);
  scheduler s(c->io);
  for (int i = 0; i != 3; ++i)
    s.schedule_after(0s, [captured, &c] { c->io.stop(); });
  c->poll();
  BOOST_TEST(captured.use_count() == 3); // the others are posted
  c.reset();
  BOOST_TEST(captured.use_count() == 1);
  BOOST_TEST(s.pending() == 0u);
}

BOOST_AUTO_TEST_CASE(the_scheduler_goes_while_its_tasks_run) {
  test::manual_context c;
  std::optional<scheduler> s(std::in_place, c.io);
  order ran;
  s->schedule_after(1ms, [&] {
    ran.push_back(1);
    s.reset();
    ran.push_back(2);
  });
  const task_handle other = s->schedule_after(2ms, [&] { ran.push_back(3); });
  c.advance(2ms);
  BOOST_TEST(ran == (order{1, 2}));
  BOOST_TEST(other.state() == task_state::cancelled);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(moving)

BOOST_FIXTURE_TEST_CASE(a_task_is_moved_later_and_earlier, fixture) {
  const task_handle h = s.schedule_after(10ms, note(1));
  BOOST_TEST(h.reschedule_after(1h)); // B9
  advance(10ms);
  BOOST_TEST(ran.empty());
  BOOST_TEST(h.reschedule_after(5ms));
  BOOST_TEST((h.remaining() == 5ms));
  advance(4ms);
  BOOST_TEST(ran.empty());
  advance(1ms);
  BOOST_TEST(ran == order{1});
  BOOST_TEST(!h.reschedule_after(1ms));
  advance(1h);
  BOOST_TEST(ran == order{1});
}

BOOST_FIXTURE_TEST_CASE(b2_a_task_that_is_due_already_is_moved, fixture) {
  task_handle second;
  s.schedule_after(1ms, [&] {
    ran.push_back(1);
    BOOST_TEST(second.reschedule_after(1h));
  });
  second = s.schedule_after(2ms, note(2));
  advance(5ms);
  BOOST_TEST(ran == order{1});
  advance(1h);
  BOOST_TEST(ran == (order{1, 2}));
}

BOOST_FIXTURE_TEST_CASE(to_never_and_back, fixture) {
  const task_handle h = s.schedule_after(10ms, note(1));
  BOOST_TEST(h.reschedule_at(scheduler::time_point::max()));
  advance(1h);
  BOOST_TEST(ran.empty());
  BOOST_TEST(h.reschedule_after(10ms));
  advance(10ms);
  BOOST_TEST(ran == order{1});
}

BOOST_FIXTURE_TEST_CASE(to_the_past_is_the_next_turn, fixture) {
  const task_handle h = s.schedule_after(1h, note(1));
  BOOST_TEST(h.reschedule_at(scheduler::time_point::min()));
  BOOST_TEST(ran.empty());
  poll();
  BOOST_TEST(ran == order{1});
}

BOOST_FIXTURE_TEST_CASE(a9_the_wake_up_follows_the_true_minimum, fixture) {
  const task_handle far = s.schedule_after(10s, note(3));
  const task_handle near = s.schedule_after(10ms, note(1));
  s.schedule_after(20ms, [&] {
    ran.push_back(2);
    far.reschedule_after(1ms);
  });
  near.cancel();
  advance(20ms);
  advance(1ms);
  BOOST_TEST(ran == (order{2, 3}));
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(failing)

BOOST_FIXTURE_TEST_CASE(by_default_an_exception_leaves_run, fixture) {
  const task_handle h =
      s.schedule_after(1ms, [] { throw std::runtime_error("task"); });
  s.schedule_after(2ms, note(2));
  clock.advance(2ms);
  BOOST_CHECK_EXCEPTION(io.run(), std::runtime_error, [](const auto& e) {
    return std::string(e.what()) == "task";
  });
  BOOST_TEST(h.state() == task_state::failed);
  BOOST_TEST(ran.empty());
  poll();
  BOOST_TEST(ran == order{2});
  BOOST_TEST(s.counts().failed == 1u);
}

BOOST_AUTO_TEST_CASE(the_error_hook_gets_task_and_exception) {
  test::manual_context c;
  std::vector<std::string> errors;
  scheduler_options options;
  options.on_error = [&](const task_handle& h, std::exception_ptr e) {
    BOOST_TEST(h.state() == task_state::failed);
    try {
      std::rethrow_exception(e);
    } catch (const std::exception& x) {
      errors.push_back(std::to_string(h.tag()) + x.what());
    }
  };
  scheduler s(c.io, options);
  const auto captured = std::make_shared<int>();
  for (int i = 0; i != 3; ++i)
    s.schedule_after(
        i * 1ms, [captured] { throw std::runtime_error(" failed"); },
        static_cast<std::uintptr_t>(i));
  bool other = false;
  s.schedule_after(3ms, [&] { other = true; });
  c.advance(3ms);
  BOOST_TEST(errors ==
             (std::vector<std::string>{"0 failed", "1 failed", "2 failed"}));
  BOOST_TEST(other);
  BOOST_TEST(captured.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(what_the_hook_throws_leaves_run) {
  test::manual_context c;
  scheduler_options options;
  options.on_error = [](const task_handle&, std::exception_ptr e) {
    std::rethrow_exception(e);
  };
  scheduler s(c.io, options);
  s.schedule_after(0s, [] { throw 1; });
  s.schedule_after(0s, [] { throw 2; });
  BOOST_CHECK_THROW(c.io.poll(), int);
  BOOST_CHECK_THROW(c.io.poll(), int);
  c.io.poll();
  BOOST_TEST(s.counts().failed == 2u);
}

BOOST_FIXTURE_TEST_CASE(a_capture_that_throws_schedules_nothing, fixture) {
  {
    capture x;
    auto f = [x] {};
    capture::throws = true;
    BOOST_CHECK_THROW(s.schedule_after(1ms, f), std::runtime_error);
    BOOST_CHECK_THROW(s.schedule_every(1ms, std::move(f)), std::runtime_error);
    std::vector<delayed_task<decltype(f)>> many;
    capture::throws = false;
    many.push_back({1ms, f});
    many.push_back({1ms, f});
    capture::throws = true;
    BOOST_CHECK_THROW(s.schedule_batch(many), std::runtime_error);
    capture::throws = false;
  }
  BOOST_TEST(capture::alive == 0);
  BOOST_TEST(s.pending() == 0u);
  s.schedule_after(1ms, note(1));
  advance(1ms);
  BOOST_TEST(ran == order{1});
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(limits)

BOOST_AUTO_TEST_CASE(more_than_max_pending_are_rejected) {
  test::manual_context c;
  scheduler_options options;
  options.max_pending = 2;
  scheduler s(c.io, options);
  const auto captured = std::make_shared<int>();
  const task_handle a = s.schedule_after(1s, [captured] {});
  s.schedule_after(2s, [captured] {});
  const task_handle rejected = s.schedule_after(1s, [captured] {});
  BOOST_TEST(rejected.state() == task_state::rejected);
  BOOST_TEST((rejected.error() == error::too_many_pending));
  BOOST_TEST(captured.use_count() == 3);
  BOOST_TEST(!rejected.cancel());
  BOOST_TEST(!rejected.reschedule_after(1s));
  a.cancel(); // makes room at once
  BOOST_TEST(s.schedule_after(1s, [] {}).state() == task_state::pending);
  BOOST_TEST(s.counts().rejected == 1u);
  c.advance(2s);
  BOOST_TEST(s.counts().done == 2u);
  BOOST_TEST(s.schedule_after(1s, [] {}).state() == task_state::pending);
}

BOOST_AUTO_TEST_CASE(a_wheel_that_is_full_does_not_mind) {
  asio_wheel::wheel_options options;
  options.max_pending = 1;
  test::manual_context c(options);
  asio_wheel::wheel_timer t(c.io, 1h);
  t.async_wait([](error_code) {});
  scheduler s(c.io);
  bool done = false;
  s.schedule_after(1ms, [&] { done = true; });
  c.advance(1ms);
  BOOST_TEST(done);
}

BOOST_FIXTURE_TEST_CASE(stop_returns_what_did_not_run_in_order_of_expiry,
                        fixture) {
  std::vector<task_handle> tasks;
  const auto captured = std::make_shared<int>();
  for (const auto d : {5h, 1h, 3h, 2h, 4h})
    tasks.push_back(s.schedule_after(d, [captured] {}));
  tasks.push_back(s.schedule_after(scheduler::duration::max(), [] {}));
  tasks[2].cancel();
  s.schedule_after(0s, [] {});
  poll();
  const auto stopped = s.stop();
  BOOST_TEST_REQUIRE(stopped.size() == 5u);
  const std::size_t expected[] = {1, 3, 4, 0, 5};
  for (std::size_t i = 0; i != 5; ++i) {
    BOOST_TEST((stopped[i] == tasks[expected[i]]));
    BOOST_TEST(stopped[i].state() == task_state::cancelled);
    BOOST_TEST(!stopped[i].cancel());
  }
  BOOST_TEST(captured.use_count() == 1);
  BOOST_TEST(s.stop().empty());
  io.run(); // is held by nothing
}

BOOST_FIXTURE_TEST_CASE(after_stop_tasks_are_rejected, fixture) {
  s.stop();
  const task_handle h = s.schedule_after(1ms, note(1));
  BOOST_TEST(h.state() == task_state::rejected);
  BOOST_TEST((h.error() == error::wheel_stopped));
  BOOST_TEST((s.schedule_every(1ms, note(1)).error() == error::wheel_stopped));
  const std::vector<delayed_task<std::function<void()>>> many(3,
                                                              {1ms, [] {}, 0});
  BOOST_TEST(s.schedule_batch(many) == 0u);
  advance(1s);
  BOOST_TEST(ran.empty());
}

BOOST_FIXTURE_TEST_CASE(stop_in_a_task, fixture) {
  std::size_t stopped = 0;
  s.schedule_after(1ms, [&] {
    ran.push_back(1);
    stopped = s.stop().size();
  });
  s.schedule_after(1ms, [&] {
    ran.push_back(1);
    stopped = s.stop().size();
  });
  s.schedule_after(1h, note(2));
  advance(1ms);
  BOOST_TEST(ran == order{1});
  BOOST_TEST(stopped == 2u);
}

BOOST_FIXTURE_TEST_CASE(when_the_wheel_is_stopped_so_is_the_scheduler,
                        fixture) {
  const task_handle h = s.schedule_after(1h, note(1));
  wheel.stop();
  poll();
  BOOST_TEST(h.state() == task_state::cancelled);
  BOOST_TEST((s.schedule_after(1ms, note(1)).error() == error::wheel_stopped));
  scheduler other(io);
  const task_handle refused = other.schedule_after(1ms, note(1));
  BOOST_TEST((refused.error() == error::wheel_stopped));
}

BOOST_FIXTURE_TEST_CASE(for_each_shows_what_is_pending, fixture) {
  s.schedule_after(
      0s, [] {}, 1);
  s.schedule_after(
      1h, [] {}, 2);
  s.schedule_after(
      scheduler::duration::max(), [] {}, 3);
  s.schedule_after(
       1h, [] {}, 4)
      .cancel();
  s.schedule_every(
      1s, [] {}, {}, 5);
  std::set<std::uintptr_t> seen;
  s.for_each([&](const task_handle& h) {
    seen.insert(h.tag());
    BOOST_TEST(s.pending() >= 1u); // may be called from here
  });
  BOOST_TEST((seen == std::set<std::uintptr_t>{1, 2, 3, 5}));
  s.for_each([](const task_handle& h) { h.cancel(); });
  BOOST_TEST(s.pending() == 0u);
}

BOOST_AUTO_TEST_CASE(bad_periods_are_refused) {
  fixture f;
  for (const auto d : {0ns, -1ns})
    BOOST_CHECK_EXCEPTION(f.s.schedule_every(d, [] {}), std::invalid_argument,
                          [](const std::invalid_argument& e) {
                            return std::string(e.what()).find("period") !=
                                   std::string::npos;
                          });
  BOOST_TEST(f.s.pending() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(batches)

BOOST_FIXTURE_TEST_CASE(a_batch_is_scheduled_as_one_by_one, fixture) {
  std::vector<delayed_task<std::function<void()>>> tasks;
  for (int i = 0; i != 1000; ++i)
    tasks.push_back({std::chrono::milliseconds(i % 10 + 1), note(i),
                     static_cast<std::uintptr_t>(i)});
  std::vector<task_handle> handles;
  s.schedule_batch(tasks, std::back_inserter(handles));
  BOOST_TEST_REQUIRE(handles.size() == 1000u);
  for (std::size_t i = 0; i != 1000; ++i)
    BOOST_TEST(handles[i].tag() == i);
  BOOST_TEST((tasks[3].function != nullptr)); // copied
  for (std::size_t i = 0; i != 1000; i += 2)
    BOOST_TEST(handles[i].cancel());
  for (int ms = 1; ms <= 10; ++ms) {
    ran.clear();
    advance(1ms);
    BOOST_TEST(ran.size() == (ms % 2 == 0 ? 100u : 0u));
    for (const int n : ran)
      BOOST_TEST(n % 10 + 1 == ms);
  }
}

BOOST_FIXTURE_TEST_CASE(a_batch_moves_from_what_it_may_move, fixture) {
  std::vector<delayed_task<std::unique_ptr<int>>> unused;
  auto f = [this, p = std::make_unique<int>(5)] { ran.push_back(*p); };
  std::array<delayed_task<decltype(f)>, 1> tasks{{{1ms, std::move(f)}}};
  BOOST_TEST(s.schedule_batch(std::move(tasks)) == 1u);
  advance(1ms);
  BOOST_TEST(ran == order{5});
  BOOST_TEST(s.schedule_batch(std::vector<delayed_task<void (*)()>>()) == 0u);
}

BOOST_AUTO_TEST_CASE(a_batch_beyond_the_limit_is_taken_in_part) {
  test::manual_context c;
  scheduler_options options;
  options.max_pending = 150;
  scheduler s(c.io, options);
  const std::vector<delayed_task<std::function<void()>>> tasks(200,
                                                               {1s, [] {}, 0});
  BOOST_TEST(s.schedule_batch(tasks) == 150u);
  BOOST_TEST(s.counts().rejected == 50u);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(periods)

BOOST_FIXTURE_TEST_CASE(a_task_runs_once_per_period, fixture) {
  const task_handle h = s.schedule_every(10ms, note(1));
  for (int i = 1; i <= 5; ++i) {
    advance(9ms);
    BOOST_TEST(ran.size() == static_cast<std::size_t>(i - 1));
    BOOST_TEST((h.remaining() == 1ms));
    advance(1ms);
    BOOST_TEST(ran.size() == static_cast<std::size_t>(i));
    BOOST_TEST(h.state() == task_state::pending);
  }
  BOOST_TEST(h.cancel());
  advance(1h);
  BOOST_TEST(ran.size() == 5u);
  BOOST_TEST(s.counts().cancelled == 1u);
}

BOOST_FIXTURE_TEST_CASE(missed_calls_are_told_and_skipped, fixture) {
  std::vector<std::size_t> missed;
  s.schedule_every(
      10ms, [&](const task_handle&, std::size_t n) { missed.push_back(n); });
  advance(35ms);
  BOOST_TEST(missed == (std::vector<std::size_t>{2}));
  advance(5ms);
  BOOST_TEST(missed == (std::vector<std::size_t>{2, 0}));
}

BOOST_FIXTURE_TEST_CASE(burst_makes_up_for_them, fixture) {
  periodic_options options;
  options.missed_ticks = missed_tick_policy::burst;
  std::vector<std::size_t> missed;
  s.schedule_every(
      10ms, [&](const task_handle&, std::size_t n) { missed.push_back(n); },
      options);
  advance(35ms);
  BOOST_TEST(missed == (std::vector<std::size_t>{2, 1, 0}));
}

BOOST_FIXTURE_TEST_CASE(a_fixed_delay_counts_from_the_end, fixture) {
  periodic_options options;
  options.mode = periodic_mode::fixed_delay;
  options.first = asio_wheel::first_tick::at_once;
  std::vector<scheduler::time_point> at;
  s.schedule_every(
      10ms,
      [&] {
        at.push_back(now());
        clock.advance(7ms); // works
      },
      options);
  const auto start = now();
  poll();
  for (int i = 0; i != 40; ++i)
    advance(1ms);
  BOOST_TEST_REQUIRE(at.size() >= 3u);
  BOOST_TEST((at[0] == start));
  BOOST_TEST((at[1] == start + 17ms));
  BOOST_TEST((at[2] == start + 34ms));
}

BOOST_FIXTURE_TEST_CASE(cancelled_inside_itself_it_is_the_last_call, fixture) {
  const auto captured = std::make_shared<int>();
  bool first = false, second = true;
  const task_handle h =
      s.schedule_every(1ms, [&, captured](const task_handle& t) {
        ran.push_back(1);
        first = t.cancel();
        second = t.cancel();
        BOOST_TEST(t.state() == task_state::running);
      });
  advance(5ms);
  BOOST_TEST(ran == order{1});
  BOOST_TEST(first);
  BOOST_TEST(!second);
  BOOST_TEST(h.state() == task_state::cancelled);
  BOOST_TEST(captured.use_count() == 1);
}

BOOST_FIXTURE_TEST_CASE(it_is_moved_and_goes_on_from_there, fixture) {
  const task_handle h = s.schedule_every(10ms, note(1));
  h.reschedule_after(3ms);
  advance(3ms);
  BOOST_TEST(ran.size() == 1u);
  advance(10ms);
  BOOST_TEST(ran.size() == 2u);
}

BOOST_FIXTURE_TEST_CASE(a_call_that_throws_is_the_last, fixture) {
  const auto captured = std::make_shared<int>();
  const task_handle h =
      s.schedule_every(1ms, [captured] { throw std::runtime_error("once"); });
  clock.advance(1ms);
  BOOST_CHECK_THROW(io.poll(), std::runtime_error);
  BOOST_TEST(h.state() == task_state::failed);
  BOOST_TEST(captured.use_count() == 1);
  advance(1s);
  BOOST_TEST(s.counts().failed == 1u);
}

BOOST_FIXTURE_TEST_CASE(stopped_while_it_runs_it_does_not_run_again, fixture) {
  const task_handle h = s.schedule_every(1ms, [this] {
    ran.push_back(1);
    BOOST_TEST(s.stop().empty());
  });
  advance(5ms);
  BOOST_TEST(ran == order{1});
  BOOST_TEST(h.state() == task_state::cancelled);
  io.run();
}

BOOST_FIXTURE_TEST_CASE(a_period_without_end_never_runs, fixture) {
  const task_handle h = s.schedule_every(scheduler::duration::max(), note(1));
  advance(24h * 365);
  BOOST_TEST(ran.empty());
  BOOST_TEST(h.cancel());
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(executors)

BOOST_AUTO_TEST_CASE(tasks_run_on_the_schedulers_executor) {
  test::manual_context c;
  const auto strand = asio::make_strand(c.io);
  scheduler s(strand);
  int ran = 0;
  for (int i = 0; i != 300; ++i)
    s.schedule_after(1ms, [&] {
      BOOST_TEST(strand.running_in_this_thread());
      ++ran;
    });
  c.advance(1ms);
  BOOST_TEST(ran == 300);
}

BOOST_FIXTURE_TEST_CASE(a_function_has_an_executor_of_its_own, fixture) {
  asio::io_context other;
  const task_handle h =
      s.schedule_after(1ms, asio::bind_executor(other, note(1)));
  BOOST_TEST(other.poll() == 0u);
  BOOST_TEST(!other.stopped()); // held
  advance(1ms);
  BOOST_TEST(ran.empty());
  BOOST_TEST(h.state() == task_state::pending); // handed over, not begun
  BOOST_TEST(other.run() == 1u);
  BOOST_TEST(ran == order{1});
  BOOST_TEST(h.state() == task_state::done);
}

BOOST_FIXTURE_TEST_CASE(cancel_wins_until_it_begins_there, fixture) {
  asio::io_context other;
  const auto captured = std::make_shared<int>();
  const task_handle h = s.schedule_after(
      1ms, asio::bind_executor(other, [this, captured] { ran.push_back(1); }));
  advance(1ms);
  BOOST_TEST(h.cancel());
  BOOST_TEST(captured.use_count() == 1);
  other.run();
  BOOST_TEST(ran.empty());
  BOOST_TEST(s.counts().cancelled == 1u);
}

BOOST_FIXTURE_TEST_CASE(moved_while_it_is_handed_over_it_waits_again, fixture) {
  asio::io_context other;
  const task_handle h =
      s.schedule_after(1ms, asio::bind_executor(other, note(1)));
  advance(1ms);
  BOOST_TEST(h.reschedule_after(1h));
  other.poll();
  BOOST_TEST(ran.empty());
  advance(1h);
  other.poll();
  BOOST_TEST(ran == order{1});
}

BOOST_FIXTURE_TEST_CASE(due_again_before_it_has_arrived_it_runs_once, fixture) {
  asio::io_context other;
  const task_handle h =
      s.schedule_after(1ms, asio::bind_executor(other, note(1)));
  advance(1ms);
  BOOST_TEST(h.reschedule_after(1ms));
  advance(1ms);
  other.poll();
  BOOST_TEST(ran == order{1});
  BOOST_TEST(h.state() == task_state::done);
}

BOOST_FIXTURE_TEST_CASE(a_periodic_task_on_another_executor, fixture) {
  asio::io_context other;
  const task_handle h =
      s.schedule_every(10ms, asio::bind_executor(other, note(1)));
  for (int i = 1; i <= 3; ++i) {
    advance(10ms);
    other.poll();
    BOOST_TEST(ran.size() == static_cast<std::size_t>(i));
  }
  h.cancel();
  BOOST_TEST(other.run() == 0u);
}

BOOST_FIXTURE_TEST_CASE(a_task_whose_executor_goes_is_cancelled, fixture) {
  const auto captured = std::make_shared<int>();
  std::optional<asio::io_context> other(std::in_place);
  const task_handle h = s.schedule_after(
      1ms, asio::bind_executor(*other, [this, captured] { ran.push_back(1); }));
  advance(1ms);
  other.reset();
  BOOST_TEST(h.state() == task_state::cancelled);
  BOOST_TEST(captured.use_count() == 1);
  BOOST_TEST(s.pending() == 0u);
  s.schedule_after(1ms, note(2));
  advance(1ms);
  BOOST_TEST(ran == order{2});
}

BOOST_FIXTURE_TEST_CASE(one_that_throws_there_throws_there, fixture) {
  asio::io_context other;
  const task_handle h =
      s.schedule_after(1ms, asio::bind_executor(other, [] { throw 1; }));
  advance(1ms);
  BOOST_CHECK_THROW(other.run(), int);
  BOOST_TEST(h.state() == task_state::failed);
  s.schedule_after(1ms, note(2));
  advance(1ms);
  BOOST_TEST(ran == order{2});
}

BOOST_AUTO_TEST_CASE(with_several_shards_all_tasks_run) {
  test::manual_context c(with_shards(4));
  scheduler_options options;
  options.max_pending = 41; // 11 for each
  scheduler s(c.io, options);
  std::atomic<int> ran{0};
  std::vector<std::thread> threads;
  for (int n = 0; n != 4; ++n)
    threads.emplace_back([&] {
      for (int i = 0; i != 12; ++i)
        s.schedule_after(1ms, [&] { ++ran; });
    });
  for (auto& t : threads)
    t.join();
  BOOST_TEST(s.pending() == 44u);
  BOOST_TEST(s.counts().rejected == 4u);
  c.advance(1ms);
  BOOST_TEST(ran == 44);
  s.schedule_after(1h, [] {});
  BOOST_TEST(s.stop().size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(draining)

struct drain_fixture : fixture {
  int drained = 0;
  error_code ec;
  auto drain() {
    return [this](error_code e) {
      ++drained;
      ec = e;
      ran.push_back(-1);
    };
  }
};

BOOST_FIXTURE_TEST_CASE(with_nothing_due_it_completes_on_the_next_turn,
                        drain_fixture) {
  s.schedule_after(1h, note(1));
  s.async_drain(drain());
  BOOST_TEST(drained == 0);
  poll();
  BOOST_TEST(drained == 1);
  BOOST_TEST(!ec);
}

BOOST_FIXTURE_TEST_CASE(it_waits_for_what_is_due_and_nothing_else,
                        drain_fixture) {
  for (int i = 0; i != 1000; ++i) // more than a batch
    s.schedule_after(1ms, [this] {
      ran.push_back(1);
      s.schedule_after(0s, note(2)); // not waited for
    });
  clock.advance(1ms);
  s.async_drain(drain());
  io.restart();
  while (drained == 0 && io.run_one() != 0) {
  }
  const auto ones = std::count(ran.begin(), ran.end(), 1);
  BOOST_TEST(ones == 1000);
  poll();
  BOOST_TEST(std::count(ran.begin(), ran.end(), 2) == 1000);
}

BOOST_FIXTURE_TEST_CASE(also_for_what_was_handed_over, drain_fixture) {
  asio::io_context other;
  s.schedule_after(1ms, asio::bind_executor(other, note(1)));
  const task_handle h =
      s.schedule_after(2ms, asio::bind_executor(other, note(2)));
  advance(2ms);
  s.async_drain(drain());
  poll();
  BOOST_TEST(drained == 0);
  other.run_one();
  poll();
  BOOST_TEST(drained == 0);
  h.cancel(); // counts as well
  poll();
  BOOST_TEST(drained == 1);
}

BOOST_FIXTURE_TEST_CASE(a_second_drain_waits_longer_than_the_first,
                        drain_fixture) {
  asio::io_context other;
  const auto schedule = [&] {
    s.schedule_after(0s, asio::bind_executor(other, note(1)));
    poll();
  };
  schedule();
  s.async_drain(drain());
  schedule();
  s.async_drain(drain());
  s.async_drain(drain());
  schedule();
  poll();
  BOOST_TEST(drained == 0);
  other.run_one();
  poll();
  BOOST_TEST(drained == 1);
  other.run_one();
  poll();
  BOOST_TEST(drained == 1);
  other.run_one();
  poll();
  BOOST_TEST(drained == 3);
  BOOST_TEST(ran == (order{1, -1, 1, 1, -1, -1}));
}

BOOST_FIXTURE_TEST_CASE(in_a_task_it_waits_for_that_task, drain_fixture) {
  s.schedule_after(1ms, [this] {
    s.async_drain(drain());
    ran.push_back(1);
  });
  advance(1ms);
  BOOST_TEST(ran == (order{1, -1}));
}

BOOST_FIXTURE_TEST_CASE(after_stop_it_waits_for_what_runs, drain_fixture) {
  asio::io_context other;
  s.schedule_after(0s, asio::bind_executor(other, [this] {
                     s.stop();
                     s.async_drain(drain());
                     poll();
                     BOOST_TEST(drained == 0);
                   }));
  poll();
  other.run();
  poll();
  BOOST_TEST(drained == 1);
}

BOOST_FIXTURE_TEST_CASE(a_drain_holds_run, drain_fixture) {
  asio::io_context other;
  s.schedule_after(0s, asio::bind_executor(other, note(1)));
  poll();
  s.async_drain(drain());
  poll();
  BOOST_TEST(!io.stopped());
  other.run();
  io.run();
  BOOST_TEST(drained == 1);
}

BOOST_FIXTURE_TEST_CASE(a_drain_can_be_cancelled, drain_fixture) {
  asio::io_context other;
  s.schedule_after(0s, asio::bind_executor(other, note(1)));
  poll();
  asio::cancellation_signal signal;
  s.async_drain(asio::bind_cancellation_slot(signal.slot(), drain()));
  signal.emit(asio::cancellation_type::total);
  BOOST_TEST(drained == 0);
  poll();
  BOOST_TEST(drained == 1);
  BOOST_TEST((ec == asio::error::operation_aborted));
  other.run();
  BOOST_TEST(ran == (order{-1, 1}));
}

BOOST_AUTO_TEST_CASE(d1_the_context_goes_while_it_drains) {
  asio::io_context other;
  const auto captured = std::make_shared<int>();
  std::optional<test::manual_context> c(std::in_place);
  scheduler s(c->io);
  s.schedule_after(0s, asio::bind_executor(other, [] {}));
  c->poll();
  s.async_drain([captured](error_code) { BOOST_ERROR("called"); });
  c.reset();
  BOOST_TEST(captured.use_count() == 1);
  other.run();
}

BOOST_FIXTURE_TEST_CASE(the_scheduler_may_go_meanwhile, drain_fixture) {
  asio::io_context other;
  std::optional<scheduler> s2(std::in_place, io);
  s2->schedule_after(0s, asio::bind_executor(other, note(1)));
  poll();
  s2->async_drain(drain());
  s2.reset(); // cancels the task: nothing is due any more
  poll();
  BOOST_TEST(drained == 1);
  BOOST_TEST(other.run() == 1u); // an empty thunk
  BOOST_TEST(ran == order{-1});
}

BOOST_AUTO_TEST_SUITE_END()
