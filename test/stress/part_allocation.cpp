//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/delay_queue.hpp>
#include <asio_wheel/expiring_map.hpp>
#include <asio_wheel/periodic_timer.hpp>
#include <asio_wheel/rate_limiter.hpp>
#include <asio_wheel/scheduler.hpp>

#include <test/failing_new.hpp>
#include <test/manual_context.hpp>

#include <boost/asio/error.hpp>

#define BOOST_TEST_MODULE stress_part_allocation
#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

// The parts on the wheel: what allocates, and what happens when there is no
// memory.

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using boost::system::error_code;
using test::allocations;
using test::fail_at;
using test::manual_context;
using test::with_new;

constexpr auto never = ~std::size_t{0};

// After two turns to warm up, turns take nothing from operator new, and keep
// nothing of malloc(), which is where nodes and recycled memory come from.
template <typename F> void check_allocates_nothing(F&& turn) {
  turn();
  turn();
  const std::size_t counted = allocations;
  const std::size_t bytes = test::bytes_in_use();
  for (int i = 0; i != 8; ++i)
    turn();
  BOOST_TEST(test::bytes_in_use() == bytes);
  BOOST_TEST(allocations == counted);
}

// Whether it threw because its n-th allocation failed; `reached` is whether
// there was an n-th.
template <typename F> bool runs_out(std::size_t n, bool& reached, F&& f) {
  bool threw = false;
  fail_at = n;
  try {
    f();
  } catch (const std::bad_alloc&) {
    threw = true;
  }
  reached = fail_at == never;
  fail_at = never;
  return threw;
}

// Calls attempt(n) for n = 0, 1, ... until it says that there is no n-th
// allocation any more. Returns for how many there was one.
template <typename F> std::size_t each_failure(F&& attempt) {
  std::size_t n = 0;
  for (; n != 50; ++n) {
    BOOST_TEST_CONTEXT("allocation " << n << " fails") {
      if (!attempt(n))
        return n;
    }
  }
  BOOST_TEST_REQUIRE(n != 50);
  return n;
}

} // namespace

// Nothing in steady state

BOOST_AUTO_TEST_CASE(once_warm_a_scheduler_allocates_nothing) {
  manual_context f;
  asio_wheel::scheduler tasks(f.io);
  std::vector<asio_wheel::task_handle> handles(1000);
  std::size_t ran = 0, cancelled = 0;
  const auto turn = [&] {
    for (std::size_t i = 0; i != handles.size(); ++i)
      handles[i] = tasks.schedule_after(std::chrono::milliseconds(1 + i % 50),
                                        [&ran] { ++ran; });
    for (std::size_t i = 0; i < handles.size(); i += 2)
      cancelled += handles[i].cancel();
    for (std::size_t i = 1; i < handles.size(); i += 4)
      handles[i].reschedule_after(60ms);
    for (int i = 0; i != 70; ++i)
      f.advance(1ms);
  };
  check_allocates_nothing(turn);
  BOOST_TEST(ran == 5000u);
  BOOST_TEST(cancelled == 5000u);
}

BOOST_AUTO_TEST_CASE(once_warm_a_delay_queue_allocates_nothing) {
  manual_context f;
  asio_wheel::delay_queue<int> queue(f.io);
  std::vector<asio_wheel::delay_key> keys(1000);
  std::size_t popped = 0, removed = 0, awaited = 0;
  const auto turn = [&] {
    for (std::size_t i = 0; i != keys.size(); ++i)
      keys[i] = queue.push(1, std::chrono::milliseconds(1 + i % 50));
    for (std::size_t i = 0; i < keys.size(); i += 2)
      removed += queue.remove(keys[i]).has_value();
    for (std::size_t i = 1; i < keys.size(); i += 4)
      queue.reset(keys[i], 60ms);
    queue.async_pop([&](error_code ec, int) { awaited += !ec; });
    f.advance(70ms);
    while (queue.try_pop())
      ++popped;
  };
  check_allocates_nothing(turn);
  BOOST_TEST(removed == 5000u);
  BOOST_TEST(awaited == 10u);
  BOOST_TEST(popped == 4990u);
}

BOOST_AUTO_TEST_CASE(once_warm_a_periodic_timer_allocates_nothing) {
  manual_context f;
  asio_wheel::periodic_timer timer(f.io, 10ms);
  std::size_t ticks = 0;
  const auto turn = [&] {
    for (int i = 0; i != 20; ++i) {
      timer.async_wait([&](error_code ec, std::size_t) { ticks += !ec; });
      f.advance(10ms);
    }
  };
  check_allocates_nothing(turn);
  BOOST_TEST(ticks == 200u);
}

BOOST_AUTO_TEST_CASE(once_warm_a_rate_limiter_allocates_nothing) {
  manual_context f;
  asio_wheel::rate_limiter limiter(f.io, 1000, 10);
  std::size_t granted = 0;
  const auto turn = [&] {
    while (limiter.try_acquire())
      ;
    for (int i = 0; i != 20; ++i)
      limiter.async_acquire(1, [&](error_code ec) { granted += !ec; });
    f.advance(10ms);
    f.advance(20ms);
  };
  check_allocates_nothing(turn);
  BOOST_TEST(granted == 200u);
}

// An entry is two allocations, which are recycled: that memory does not come
// from operator new.
BOOST_AUTO_TEST_CASE(
    touching_and_finding_in_an_expiring_map_allocates_nothing) {
  manual_context f;
  asio_wheel::expiring_map_options<int, int> options;
  options.time_to_live = 1min;
  options.expire_after = asio_wheel::expire_after::access;
  asio_wheel::expiring_map<int, int> map(f.io.get_executor(), options);
  for (int i = 0; i != 100; ++i)
    map.insert(i, i);
  const auto turn = [&] {
    for (int i = 0; i != 100; ++i) {
      map.touch(i);
      map.find(i);
      map.contains(i);
    }
    f.advance(50s);
  };
  check_allocates_nothing(turn);
  BOOST_TEST(map.size() == 100u);
}

// No memory

BOOST_AUTO_TEST_CASE(no_memory_for_a_task_schedules_nothing) {
  const auto owned = std::make_shared<int>(1);
  const auto failures = each_failure([&](std::size_t n) {
    manual_context f;
    asio_wheel::scheduler tasks(f.io);
    int ran = 0, others = 0;
    tasks.schedule_after(1ms, [&] { ++others; });
    // Too large for the scheduler's own memory.
    const std::array<char, 1000> large{};
    bool reached = false;
    const bool threw = runs_out(n, reached, [&] {
      tasks.schedule_after(2ms, [&ran, large, owned] { ran += 1 + large[0]; });
    });
    BOOST_TEST(threw == reached);
    BOOST_TEST(tasks.pending() == (threw ? 1u : 2u));
    tasks.schedule_after(2ms, [&ran, large, owned] { ran += 1 + large[0]; });
    f.advance(2ms);
    BOOST_TEST(others == 1);
    BOOST_TEST(ran == (threw ? 1 : 2));
    BOOST_TEST(tasks.pending() == 0u);
    return reached;
  });
  BOOST_TEST(failures != 0u);
  BOOST_TEST(owned.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(no_memory_for_a_drain_leaves_the_scheduler_as_it_was) {
  const auto owned = std::make_shared<int>(1);
  const auto failures = each_failure([&](std::size_t n) {
    manual_context f;
    asio_wheel::scheduler tasks(f.io);
    int ran = 0, drained = 0;
    tasks.schedule_after(1ms, [&] { ++ran; });
    f.clock.advance(1ms);
    bool reached = false;
    const bool threw = runs_out(n, reached, [&] {
      tasks.async_drain(
          with_new([&drained, owned](error_code ec) { drained += !ec; }));
    });
    BOOST_TEST(threw == reached);
    f.poll();
    BOOST_TEST(ran == 1);
    BOOST_TEST(drained == (threw ? 0 : 1));
    return reached;
  });
  BOOST_TEST(failures != 0u);
  BOOST_TEST(owned.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(no_memory_for_a_pop_loses_no_item) {
  const auto owned = std::make_shared<int>(1);
  const auto failures = each_failure([&](std::size_t n) {
    manual_context f;
    asio_wheel::delay_queue<std::string> queue(f.io);
    queue.push("first", 1ms);
    std::string popped;
    bool reached = false;
    const bool threw = runs_out(n, reached, [&] {
      queue.async_pop(with_new(
          [&popped, owned](error_code, std::string s) { popped += s; }));
    });
    BOOST_TEST(threw == reached);
    f.advance(1ms);
    BOOST_TEST(popped == (threw ? "" : "first"));
    BOOST_TEST(queue.size() == (threw ? 1u : 0u));
    queue.push("second", 1ms);
    queue.async_pop([&](error_code, std::string s) { popped += s; });
    f.advance(1ms);
    BOOST_TEST(popped == (threw ? "first" : "firstsecond"));
    return reached;
  });
  BOOST_TEST(failures != 0u);
  BOOST_TEST(owned.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(no_memory_for_a_push_that_waits_takes_no_room) {
  const auto owned = std::make_shared<int>(1);
  const auto failures = each_failure([&](std::size_t n) {
    manual_context f;
    asio_wheel::delay_queue_options options;
    options.capacity = 1;
    asio_wheel::delay_queue<int> queue(f.io, options);
    queue.push(1, 1ms);
    int pushed = 0;
    bool reached = false;
    const bool threw = runs_out(n, reached, [&] {
      queue.async_push(
          2, 1ms,
          with_new([&pushed, owned](error_code ec, asio_wheel::delay_key) {
            pushed += !ec;
          }));
    });
    BOOST_TEST(threw == reached);
    f.advance(1ms);
    BOOST_TEST(queue.try_pop().value_or(0) == 1);
    f.advance(1ms);
    BOOST_TEST(pushed == (threw ? 0 : 1));
    BOOST_TEST(queue.size() == (threw ? 0u : 1u));
    return reached;
  });
  BOOST_TEST(failures != 0u);
  BOOST_TEST(owned.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(no_memory_for_a_period_leaves_its_ticks) {
  const auto owned = std::make_shared<int>(1);
  const auto failures = each_failure([&](std::size_t n) {
    manual_context f;
    asio_wheel::periodic_timer timer(f.io, 10ms);
    int ticks = 0;
    bool reached = false;
    const bool threw = runs_out(n, reached, [&] {
      timer.async_wait(
          with_new([&ticks, owned](error_code ec, std::size_t missed) {
            BOOST_TEST(missed == 0u);
            ticks += !ec;
          }));
    });
    BOOST_TEST(threw == reached);
    f.advance(10ms);
    BOOST_TEST(ticks == (threw ? 0 : 1));
    timer.async_wait([&](error_code ec, std::size_t) { ticks += !ec; });
    f.advance(10ms);
    BOOST_TEST(ticks == (threw ? 1 : 2));
    return reached;
  });
  BOOST_TEST(failures != 0u);
  BOOST_TEST(owned.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(no_memory_to_wait_for_tokens_takes_none) {
  const auto owned = std::make_shared<int>(1);
  const auto failures = each_failure([&](std::size_t n) {
    manual_context f;
    asio_wheel::rate_limiter limiter(f.io, 1000, 10);
    BOOST_TEST(limiter.try_acquire(10));
    int granted = 0;
    bool reached = false;
    const bool threw = runs_out(n, reached, [&] {
      limiter.async_acquire(
          5, with_new([&granted, owned](error_code ec) { granted += !ec; }));
    });
    BOOST_TEST(threw == reached);
    BOOST_TEST(limiter.waiting() == (threw ? 0u : 1u));
    f.advance(10ms);
    BOOST_TEST(granted == (threw ? 0 : 1));
    BOOST_TEST(limiter.available() == (threw ? 10u : 5u));
    return reached;
  });
  BOOST_TEST(failures != 0u);
  BOOST_TEST(owned.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(no_memory_for_an_entry_leaves_the_map_as_it_was) {
  const auto failures = each_failure([&](std::size_t n) {
    manual_context f;
    asio_wheel::expiring_map_options<std::string, std::string> options;
    options.time_to_live = 1min;
    asio_wheel::expiring_map<std::string, std::string> map(f.io.get_executor(),
                                                           options);
    map.insert("a", "one");
    const std::string key(100, 'k'), value(100, 'v');
    bool reached = false;
    const bool threw = runs_out(n, reached, [&] { map.insert(key, value); });
    BOOST_TEST(threw == reached);
    BOOST_TEST(map.size() == (threw ? 1u : 2u));
    BOOST_TEST(map.contains(key) == !threw);
    BOOST_TEST(map.insert(key, value) == threw);
    BOOST_TEST((map.find("a") == std::string("one")));
    BOOST_TEST((map.find(key) == value));
    f.advance(61s);
    BOOST_TEST(map.empty());
    return reached;
  });
  BOOST_TEST(failures != 0u);
}

// A list of what there is, while others add to it

// Calls f. Whenever it gets memory, which it must not do under a lock, `add` is
// called, as if by another thread. Returns how often.
template <typename Add, typename F> int while_others_add(Add&& add, F&& f) {
  int added = 0;
  const std::function<void()> hook = [&] {
    if (added++ < 100) // so that it ends
      add();
  };
  test::on_new = &hook;
  f();
  test::on_new = nullptr;
  return added;
}

BOOST_AUTO_TEST_CASE(a_list_of_tasks_ends_though_others_schedule) {
  for (const int tasks_before : {1, 1000}) {
    manual_context f;
    asio_wheel::scheduler tasks(f.io);
    const auto add = [&] { tasks.schedule_after(1h, [] {}); };
    for (int i = 0; i != tasks_before; ++i)
      add();
    int seen = 0;
    int added = while_others_add(
        add, [&] { tasks.for_each([&](asio_wheel::task_handle) { ++seen; }); });
    BOOST_TEST(added == 1);
    BOOST_TEST(seen == tasks_before + 1);
    const std::size_t pending = tasks.pending();
    std::vector<asio_wheel::task_handle> handles;
    added = while_others_add(add, [&] { handles = tasks.stop(); });
    BOOST_TEST(added != 0);
    BOOST_TEST(added < 4); // its own memory, the list, and to sort it
    BOOST_TEST(handles.size() == pending + 1);
    BOOST_TEST(tasks.pending() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_look_at_a_map_ends_though_others_insert) {
  for (const int entries_before : {1, 1000}) {
    manual_context f;
    asio_wheel::expiring_map_options<int, int> options;
    options.time_to_live = 1min;
    asio_wheel::expiring_map<int, int> map(f.io.get_executor(), options);
    int last = 0;
    const auto add = [&] { map.insert(last++, 1); };
    for (int i = 0; i != entries_before; ++i)
      add();
    int seen = 0;
    const int added = while_others_add(
        add, [&] { map.for_each([&](int, int n) { seen += n; }); });
    BOOST_TEST(added == 1);
    BOOST_TEST(seen == entries_before + 1);
  }
}
