//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/wheel_timer.hpp>

#include <asio_wheel/watchdog.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#define BOOST_TEST_MODULE stress_threads
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

// For ThreadSanitizer, and for what only races show. How much is done follows
// ASIO_WHEEL_STRESS, a factor, default 1.

namespace {

namespace asio = boost::asio;
namespace data = boost::unit_test::data;
using namespace std::chrono_literals;
using boost::system::error_code;

std::size_t factor() {
  const char* const text = std::getenv("ASIO_WHEEL_STRESS");
  return text ? std::stoul(text) : 1;
}

// What happened, over all connections.
struct totals {
  std::atomic<std::size_t> started{0};
  std::atomic<std::size_t> fired{0};
  std::atomic<std::size_t> aborted{0};
  std::atomic<std::size_t> other{0};
  std::atomic<std::size_t> counted{0}; // by cancel(), expires_after(), ...
  std::atomic<std::size_t> stale{0};   // success after the cancel
  std::atomic<std::size_t> dropped{0};
};

// One wait; the test's handler shares it.
struct wait_state {
  explicit wait_state(totals& t) : all(t) { ++all.started; }
  ~wait_state() {
    if (calls != 1)
      ++all.dropped;
  }
  totals& all;
  std::atomic<int> calls{0};
  bool cancelled = false; // only where handler and cancel are on one strand
};

struct handler {
  std::shared_ptr<wait_state> state;
  void operator()(error_code ec) const {
    ++state->calls;
    if (!ec) {
      ++state->all.fired;
      if (state->cancelled)
        ++state->all.stale;
    } else if (ec == asio::error::operation_aborted) {
      ++state->all.aborted;
    } else {
      ++state->all.other;
    }
  }
};

// A connection whose timer is used on its strand only, as a program does that
// runs a context on several threads. Does random things to it.
class connection : public std::enable_shared_from_this<connection> {
public:
  connection(asio::io_context& io, asio::thread_pool& other, totals& t,
             unsigned seed, std::size_t steps)
      : strand_(asio::make_strand(io)), io_(io), other_(other), all_(t),
        random_(seed), steps_(steps) {
    timer_.emplace(strand_);
  }

  void go() {
    asio::post(strand_, [self = shared_from_this()] { self->step(); });
  }

private:
  using timer = asio_wheel::wheel_timer;

  void step() {
    if (steps_-- == 0) {
      // All counted before it goes.
      all_.counted += timer_->cancel();
      mark_cancelled();
      timer_.reset();
      return;
    }
    const auto delay = std::chrono::microseconds(random_() % 4000);
    switch (random_() % 10) {
    case 0: // on the strand, where nothing stale may come through
    case 1:
      timer_->async_wait(handler{on_strand()});
      break;
    case 2: // on any thread of the context
      timer_->async_wait(asio::bind_executor(
          io_.get_executor(), handler{std::make_shared<wait_state>(all_)}));
      break;
    case 3: // on another context
      timer_->async_wait(asio::bind_executor(
          other_.get_executor(), handler{std::make_shared<wait_state>(all_)}));
      break;
    case 4:
      all_.counted += timer_->expires_after(delay);
      mark_cancelled();
      break;
    case 5:
      timer_->rearm_after(delay);
      break;
    case 6:
      all_.counted += timer_->cancel();
      mark_cancelled();
      break;
    case 7: { // move away and back
      timer moved(std::move(*timer_));
      *timer_ = std::move(moved);
      break;
    }
    case 8: // destroy and make anew
      all_.counted += timer_->cancel();
      mark_cancelled();
      timer_.emplace(strand_, delay);
      break;
    case 9:
      all_.counted += timer_->cancel_one();
      break;
    }
    go();
  }

  std::shared_ptr<wait_state> on_strand() {
    waits_.push_back(std::make_shared<wait_state>(all_));
    return waits_.back();
  }

  void mark_cancelled() {
    for (const auto& w : waits_)
      w->cancelled = true;
    waits_.clear();
  }

  asio::strand<asio::io_context::executor_type> strand_;
  asio::io_context& io_;
  asio::thread_pool& other_;
  totals& all_;
  std::minstd_rand random_;
  std::size_t steps_;
  std::optional<timer> timer_;
  std::vector<std::shared_ptr<wait_state>> waits_;
};

template <typename Context> void run_on(Context& io, unsigned threads) {
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i)
    others.emplace_back([&] { io.run(); });
  io.run();
  for (auto& t : others)
    t.join();
}

} // namespace

BOOST_DATA_TEST_CASE(b6_d7_each_wait_ends_once_whatever_the_threads_do,
                     data::make({1u, 2u, 4u}) * data::make({1u, 3u}), threads,
                     shards) {
  totals all;
  asio::io_context io;
  asio_wheel::wheel_options options;
  options.shards = shards;
  auto& wheel = asio_wheel::make_wheel(io, options);
  {
    asio::thread_pool other(1);
    for (unsigned i = 0; i != 40; ++i)
      std::make_shared<connection>(io, other, all, i + 1, 250 * factor())->go();
    run_on(io, threads);
    other.join();
  }
  BOOST_TEST(all.started > 0u);
  BOOST_TEST(all.fired + all.aborted == all.started);
  BOOST_TEST(all.aborted == all.counted);
  BOOST_TEST(all.other == 0u);
  BOOST_TEST(all.stale == 0u);
  BOOST_TEST(all.dropped == 0u);
  BOOST_TEST(wheel.pending() == 0u);
  const auto stats = wheel.stats();
  BOOST_TEST(stats.scheduled == all.started);
  BOOST_TEST(stats.fired == all.fired);
  BOOST_TEST(stats.cancelled == all.aborted);
}

BOOST_DATA_TEST_CASE(
    c1_a_near_wait_from_another_thread_wakes_a_wheel_that_sleeps_far,
    data::make({1u, 2u}), threads) {
  asio::io_context io;
  asio_wheel::wheel_timer far(io, 1h);
  far.async_wait([](error_code) {});
  std::vector<std::thread> runners;
  for (unsigned i = 0; i != threads; ++i)
    runners.emplace_back([&] { io.run(); });

  const std::size_t repeats = 500 * factor();
  std::size_t late = 0, early = 0;
  for (std::size_t i = 0; i != repeats; ++i) {
    asio_wheel::wheel_timer near(io, 1ms);
    const auto expiry = near.expiry();
    std::atomic<bool> done{false};
    std::chrono::steady_clock::time_point when;
    near.async_wait([&](error_code) {
      when = std::chrono::steady_clock::now();
      done = true;
    });
    while (!done)
      std::this_thread::yield();
    early += when < expiry;
    late += when > expiry + 5s; // asleep until the far one, that is
  }
  BOOST_TEST(early == 0u);
  BOOST_TEST(late == 0u);
  asio::post(io, [&] { far.cancel(); });
  for (auto& t : runners)
    t.join();
}

BOOST_AUTO_TEST_CASE(d4_a_watchdogs_check_runs_on_its_strand) {
  asio::io_context io;
  struct guarded {
    explicit guarded(asio::io_context& c)
        : strand(asio::make_strand(c)), dog(strand, 3ms) {}
    asio::strand<asio::io_context::executor_type> strand;
    asio_wheel::watchdog dog;
    std::size_t kicks = 0; // a plain field, touched on the strand only
    bool expired = false;
  };
  std::vector<std::unique_ptr<guarded>> all;
  for (int i = 0; i != 20; ++i)
    all.push_back(std::make_unique<guarded>(io));
  for (auto& g : all) {
    guarded* const p = g.get();
    asio::post(p->strand, [p] {
      p->dog.async_wait([p](error_code ec) {
        p->expired = !ec;
        ++p->kicks;
      });
    });
    // Kicks from posts to the strand, which run on whatever thread is free.
    struct kicker {
      guarded* p;
      int left;
      void operator()() {
        p->dog.kick();
        ++p->kicks;
        if (--left != 0)
          asio::post(p->strand, *this);
      }
    };
    asio::post(p->strand, kicker{p, 2000});
  }
  run_on(io, 4);
  for (auto& g : all) {
    BOOST_TEST(g->expired);
    BOOST_TEST(g->kicks == 2001u);
  }
}

BOOST_DATA_TEST_CASE(stop_races_with_everything, data::make({2u, 4u}),
                     threads) {
  for (std::size_t round = 0; round != 20 * factor(); ++round) {
    totals all;
    std::size_t stopped_count = 0;
    asio::io_context io;
    auto& wheel = asio_wheel::use_wheel(io);
    {
      asio::thread_pool other(1);
      for (unsigned i = 0; i != 10; ++i)
        std::make_shared<connection>(io, other, all, i + 1, 60)->go();
      std::thread stopper([&] {
        std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
        stopped_count = wheel.stop();
      });
      run_on(io, threads);
      stopper.join();
      other.join();
    }
    BOOST_TEST(all.fired + all.aborted + all.other == all.started);
    BOOST_TEST(all.aborted == all.counted + stopped_count);
    BOOST_TEST(all.stale == 0u);
    BOOST_TEST(all.dropped == 0u);
    BOOST_TEST(wheel.stats().rejected == all.other);
  }
}

BOOST_AUTO_TEST_CASE(a_slot_is_emitted_against_expiry_on_its_strand) {
  asio::io_context io;
  std::atomic<std::size_t> fired{0}, aborted{0}, stale{0};
  struct party {
    explicit party(asio::io_context& c)
        : strand(asio::make_strand(c)), timer(strand) {}
    asio::strand<asio::io_context::executor_type> strand;
    asio_wheel::wheel_timer timer;
    asio::cancellation_signal signal;
    bool emitted = false;
  };
  std::vector<std::unique_ptr<party>> parties;
  const std::size_t n = 300 * factor();
  for (std::size_t i = 0; i != n; ++i) {
    parties.push_back(std::make_unique<party>(io));
    party* const p = parties.back().get();
    asio::post(p->strand, [&, p, i] {
      p->timer.expires_after(std::chrono::microseconds(i * 7 % 3000));
      p->timer.async_wait(asio::bind_cancellation_slot(
          p->signal.slot(), [&, p](error_code ec) {
            ++(ec ? aborted : fired);
            stale += !ec && p->emitted;
          }));
    });
    asio::post(io, [p, i] {
      if (i % 16 == 0)
        std::this_thread::sleep_for(200us);
      asio::post(p->strand, [p] {
        p->emitted = true;
        p->signal.emit(asio::cancellation_type::total);
      });
    });
  }
  run_on(io, 4);
  BOOST_TEST(fired + aborted == n);
  BOOST_TEST(stale == 0u);
}

BOOST_AUTO_TEST_CASE(a_thread_pool_of_four_runs_its_timers) {
  totals all;
  {
    asio::thread_pool pool(4);
    std::vector<std::unique_ptr<asio_wheel::wheel_timer>> timers;
    for (int i = 0; i != 2000; ++i) {
      timers.push_back(std::make_unique<asio_wheel::wheel_timer>(
          pool, std::chrono::microseconds(i * 3)));
      timers.back()->async_wait(handler{std::make_shared<wait_state>(all)});
      if (i % 3 == 0)
        all.counted += timers.back()->cancel();
    }
    pool.join();
  }
  BOOST_TEST(all.fired + all.aborted == 2000u);
  BOOST_TEST(all.aborted == all.counted);
  BOOST_TEST(all.dropped == 0u);
}
