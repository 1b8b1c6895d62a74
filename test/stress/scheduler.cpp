//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/scheduler.hpp>

#define BOOST_TEST_MODULE scheduler_threads
#include <boost/test/unit_test.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::scheduler;
using asio_wheel::task_handle;
using asio_wheel::task_state;

namespace {

constexpr int threads = 4;
constexpr int tasks_of_a_thread = 3000;

// What became of one task. It must run if it was not cancelled, once, and must
// not if it was.
struct fate {
  std::atomic<int> runs{0};
  std::atomic<int> cancels{0};
};

asio_wheel::wheel_options with_shards(std::size_t n) {
  asio_wheel::wheel_options o;
  o.shards = n;
  return o;
}

} // namespace

// B6, D7: tasks are scheduled, cancelled, moved and run by several threads.
BOOST_AUTO_TEST_CASE(each_task_runs_once_or_was_cancelled_once) {
  for (const std::size_t shards : {1u, 2u}) {
    asio::thread_pool pool(2);
    asio_wheel::make_wheel(pool, with_shards(shards));
    scheduler s(pool);
    const auto strand = asio::make_strand(pool);
    int in_strand = 0; // guarded by the strand
    std::vector<fate> fates(threads * tasks_of_a_thread);
    std::vector<std::thread> running;
    for (int n = 0; n != threads; ++n)
      running.emplace_back([&, n] {
        std::mt19937 random(static_cast<unsigned>(n));
        std::vector<std::pair<task_handle, fate*>> tasks;
        for (int i = 0; i != tasks_of_a_thread; ++i) {
          fate& f = fates[static_cast<std::size_t>(n * tasks_of_a_thread + i)];
          const auto delay = std::chrono::microseconds(random() % 3000);
          if (i % 3 == 0)
            tasks.emplace_back(
                s.schedule_after(delay, asio::bind_executor(strand,
                                                            [&] {
                                                              ++in_strand;
                                                              ++f.runs;
                                                            })),
                &f);
          else
            tasks.emplace_back(s.schedule_after(delay, [&] { ++f.runs; }), &f);
          auto& other = tasks[random() % tasks.size()];
          if (random() % 2 == 0)
            other.second->cancels += other.first.cancel();
          else
            other.first.reschedule_after(
                std::chrono::microseconds(random() % 3000));
          if (i % 100 == 0)
            s.counts();
        }
      });
    for (auto& t : running)
      t.join();
    while (s.pending() != 0)
      std::this_thread::sleep_for(1ms);
    s.async_drain(asio::use_future).get();
    pool.join();
    for (const fate& f : fates)
      BOOST_TEST_REQUIRE(f.runs + f.cancels == 1);
    const auto c = s.counts();
    BOOST_TEST(c.done + c.cancelled == fates.size());
  }
}

BOOST_AUTO_TEST_CASE(stop_while_others_schedule_and_cancel) {
  asio::thread_pool pool(2);
  scheduler s(pool);
  std::atomic<std::size_t> ran{0}, taken{0}, cancelled{0}, calls{0};
  std::vector<std::thread> running;
  std::atomic<bool> over{false};
  for (int n = 0; n != threads; ++n)
    running.emplace_back([&] {
      while (!over) {
        const task_handle h = s.schedule_after(100us, [&] { ++ran; });
        const task_handle every = s.schedule_every(200us, [&] { ++calls; });
        taken += h.state() != task_state::rejected;
        cancelled += h.cancel();
        every.cancel();
        taken += s.schedule_after(1h, [&] { ++ran; }).state() !=
                 task_state::rejected;
      }
    });
  std::this_thread::sleep_for(50ms);
  std::size_t stopped = 0;
  for (const task_handle& h : s.stop()) {
    BOOST_TEST_REQUIRE(h.state() == task_state::cancelled);
    stopped += h.remaining() == 0s;
  }
  over = true;
  for (auto& t : running)
    t.join();
  s.async_drain(asio::use_future).get();
  pool.join();
  const auto c = s.counts();
  BOOST_TEST(c.pending == 0u);
  BOOST_TEST(c.running == 0u);
  BOOST_TEST(c.failed == 0u);
  BOOST_TEST(c.done == ran);
  BOOST_TEST(c.rejected != 0u);
  BOOST_TEST(stopped != 0u);
  BOOST_TEST(c.done + c.cancelled >= taken); // and those that repeat
}

// The scheduler, and the last handles, go while tasks run.
BOOST_AUTO_TEST_CASE(the_scheduler_goes_while_tasks_run) {
  for (int round = 0; round != 50; ++round) {
    asio::thread_pool pool(2);
    std::vector<task_handle> handles;
    {
      scheduler s(pool);
      for (int i = 0; i != 50; ++i)
        handles.push_back(
            s.schedule_after(std::chrono::microseconds(50 * i),
                             [p = std::make_shared<int>(i)] { ++*p; }));
      std::this_thread::sleep_for(1ms);
    }
    for (const task_handle& h : handles)
      BOOST_TEST_REQUIRE(!h.cancel());
    handles.clear();
    pool.join();
  }
}
