//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/wheel_timer.hpp>

#include <asio_wheel/watchdog.hpp>

#include <test/failing_new.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#define BOOST_TEST_MODULE stress_allocation
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <vector>

// Memory: what allocates, and what happens when there is none.

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

using test::allocations;
using test::fail_at;
using test::live;
using test::with_new;

using asio_wheel::manual_clock;
using asio_wheel::wheel_timer;
using boost::system::error_code;

struct results {
  int fired = 0;
  int aborted = 0;
  int other = 0;
  void count(error_code ec) {
    ++(!ec ? fired : ec == asio::error::operation_aborted ? aborted : other);
  }
};

struct small {
  results* r;
  void operator()(error_code ec) const { r->count(ec); }
};

struct shared {
  results* r;
  std::shared_ptr<int> owned;
  void operator()(error_code ec) const { r->count(ec); }
};

struct fixture {
  explicit fixture(int = 0) {
    asio_wheel::wheel_options options;
    options.clock = clock;
    asio_wheel::make_wheel(io, options);
  }
  void advance(manual_clock::duration d) {
    clock.advance(d);
    io.restart();
    io.poll();
  }
  manual_clock clock;
  asio::io_context io{1};
  // Made while there is memory: Asio's make_strand() does not survive without.
  asio::strand<asio::io_context::executor_type> strand{io.get_executor()};
};

// Fails each allocation of starting a wait in turn, until it needs no more.
template <typename Start>
void each_failure_leaves_the_timer_as_it_was(Start start) {
  bool succeeded = false;
  for (std::size_t n = 0; !succeeded && n != 50; ++n) {
    BOOST_TEST_CONTEXT("allocation " << n << " fails") {
      results before, r;
      {
        fixture f;
        wheel_timer t(f.io, 10ms);
        wheel_timer other(f.io, 5ms);
        other.async_wait(small{&before});
        const auto expiry = t.expiry();

        fail_at = n;
        bool threw = false;
        try {
          start(f, t, r);
        } catch (const std::bad_alloc&) {
          threw = true;
        }
        const bool reached = fail_at == ~std::size_t{0};
        fail_at = ~std::size_t{0};
        succeeded = !reached;

        BOOST_TEST(threw == reached);
        BOOST_TEST((t.expiry() == expiry));
        BOOST_TEST(t.pending() == (threw ? 0u : 1u));
        // And it can still be used.
        t.async_wait(small{&r});
        f.advance(10ms);
        BOOST_TEST(r.fired == (threw ? 1 : 2));
        BOOST_TEST(before.fired == 1);
        BOOST_TEST(asio_wheel::use_wheel(f.io).pending() == 0u);
      }
      BOOST_TEST(r.aborted + r.other == 0);
    }
  }
  BOOST_TEST(succeeded);
}

} // namespace

BOOST_AUTO_TEST_CASE(no_memory_for_a_small_handler) {
  each_failure_leaves_the_timer_as_it_was(
      [](fixture&, wheel_timer& t, results& r) { t.async_wait(small{&r}); });
}

BOOST_AUTO_TEST_CASE(no_memory_for_an_owning_handler) {
  const auto owned = std::make_shared<int>(1);
  each_failure_leaves_the_timer_as_it_was(
      [&](fixture&, wheel_timer& t, results& r) {
        t.async_wait(with_new(shared{&r, owned}));
      });
  BOOST_TEST(owned.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(no_memory_for_a_handler_with_a_slot) {
  const auto owned = std::make_shared<int>(1);
  asio::cancellation_signal signal;
  each_failure_leaves_the_timer_as_it_was(
      [&](fixture&, wheel_timer& t, results& r) {
        t.async_wait(asio::bind_cancellation_slot(signal.slot(),
                                                  with_new(shared{&r, owned})));
      });
  BOOST_TEST(owned.use_count() == 1);
  signal.emit(asio::cancellation_type::all); // must not reach anything
}

BOOST_AUTO_TEST_CASE(no_memory_for_a_handler_on_a_strand) {
  const auto owned = std::make_shared<int>(1);
  each_failure_leaves_the_timer_as_it_was([&](fixture& f, wheel_timer& t,
                                              results& r) {
    t.async_wait(asio::bind_executor(f.strand, with_new(shared{&r, owned})));
  });
  BOOST_TEST(owned.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(no_memory_for_the_first_wait_of_a_context_on_real_time) {
  bool succeeded = false;
  for (std::size_t n = 0; !succeeded && n != 50; ++n) {
    results r;
    asio::io_context io(1);
    wheel_timer t(io, 1ms);
    fail_at = n;
    bool threw = false;
    try {
      t.async_wait(small{&r});
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    succeeded = fail_at != ~std::size_t{0};
    fail_at = ~std::size_t{0};
    BOOST_TEST(threw == !succeeded);
    BOOST_TEST(t.pending() == (threw ? 0u : 1u));
    t.async_wait(small{&r});
    io.run();
    BOOST_TEST(r.fired == (threw ? 1 : 2));
  }
  BOOST_TEST(succeeded);
}

// Handing to a strand allocates: the handler is destroyed, the exception leaves
// run(), everything else goes on.
BOOST_AUTO_TEST_CASE(no_memory_to_hand_a_handler_over) {
  const auto owned = std::make_shared<int>(1);
  bool succeeded = false, seen = false;
  for (std::size_t n = 0; !succeeded && n != 50; ++n) {
    results r, others;
    {
      fixture f;
      wheel_timer t(f.io, 1ms), t2(f.io, 1ms);
      t.async_wait(asio::bind_executor(f.strand, with_new(shared{&r, owned})));
      t2.async_wait(small{&others});
      f.clock.advance(1ms);
      fail_at = n;
      bool threw = false;
      try {
        f.io.poll();
      } catch (const std::bad_alloc&) {
        threw = true;
      }
      succeeded = fail_at != ~std::size_t{0};
      fail_at = ~std::size_t{0};
      seen = seen || threw;
      f.io.poll();
      BOOST_TEST(others.fired == 1);
      BOOST_TEST(r.fired + r.aborted + r.other == (threw ? 0 : 1));
      BOOST_TEST(asio_wheel::use_wheel(f.io).pending() == 0u);
      BOOST_TEST(asio_wheel::use_wheel(f.io).stats().abandoned ==
                 (threw ? 1u : 0u));
    }
    BOOST_TEST(owned.use_count() == 1);
  }
  BOOST_TEST(succeeded);
  BOOST_TEST(seen);
}

BOOST_AUTO_TEST_CASE(cancel_and_destroy_do_not_allocate) {
  results r;
  fixture f;
  std::vector<std::unique_ptr<wheel_timer>> timers;
  for (int i = 0; i != 1000; ++i) {
    timers.push_back(std::make_unique<wheel_timer>(f.io, 1h));
    timers.back()->async_wait(small{&r});
  }
  const std::size_t before = allocations;
  for (int i = 0; i != 500; ++i)
    timers[static_cast<std::size_t>(i)]->cancel();
  timers.clear();
  BOOST_TEST(allocations == before);
  f.io.poll();
  BOOST_TEST(r.aborted == 1000);
}

BOOST_AUTO_TEST_CASE(once_warm_a_small_handler_allocates_nothing) {
  results r;
  asio::io_context io(1);
  wheel_timer t(io);
  const auto turn = [&] {
    for (int i = 0; i != 3; ++i) {
      t.expires_after(1ms);
      t.async_wait(small{&r});
      if (i == 1)
        t.rearm_after(2ms);
      if (i == 2)
        t.cancel();
    }
    io.restart();
    io.run();
  };
  turn();
  const std::size_t before = allocations;
  for (int i = 0; i != 20; ++i)
    turn();
  BOOST_TEST(allocations == before);
  BOOST_TEST(r.aborted == 63);
}

BOOST_AUTO_TEST_CASE(once_warm_an_owning_handler_allocates_nothing) {
  asio::io_context io(1);
  wheel_timer t(io);
  const auto owned = std::make_shared<int>(1);
  int left = 0;
  // A chain: each handler starts the next wait, and so reuses its memory.
  struct chain {
    wheel_timer& t;
    std::shared_ptr<int> owned;
    int& left;
    void operator()(error_code) {
      if (left-- == 0)
        return;
      t.expires_after(100us);
      t.async_wait(std::move(*this));
    }
  };
  const auto run = [&](int n) {
    left = n;
    io.restart();
    asio::post(io, [&] { chain{t, owned, left}({}); });
    io.run();
  };
  run(3);
  const std::size_t before = allocations;
  left = 20;
  run(20);
  // The post of each run() is not ours, but recycled as well within a run.
  BOOST_TEST(allocations - before <= 2u);
  BOOST_TEST(owned.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(once_warm_a_turn_of_many_owning_waits_allocates_nothing) {
  results r;
  fixture f;
  const auto owned = std::make_shared<int>(1);
  std::vector<wheel_timer> timers;
  for (int i = 0; i != 100; ++i)
    timers.emplace_back(f.io);
  const auto turn = [&] {
    for (auto& t : timers) { // cancels the last turn's
      t.expires_after(1h);
      t.async_wait(shared{&r, owned});
    }
    f.io.restart();
    f.io.poll();
  };
  turn();
  turn();
  const std::size_t before = allocations;
  for (int i = 0; i != 10; ++i)
    turn();
  BOOST_TEST(allocations == before);
  BOOST_TEST(r.aborted == 1100);
}

BOOST_AUTO_TEST_CASE(a_watchdogs_kick_allocates_nothing) {
  asio::io_context io(1);
  asio_wheel::watchdog dog(io, 1h), sampled(io, 1h, 1min);
  dog.async_wait([](error_code) {});
  sampled.async_wait([](error_code) {});
  const std::size_t before = allocations;
  for (int i = 0; i != 100; ++i) {
    dog.kick();
    sampled.kick();
  }
  BOOST_TEST(allocations == before);
}

BOOST_AUTO_TEST_CASE(nothing_leaks) {
  const auto round = [] {
    results r;
    fixture f;
    std::vector<wheel_timer> timers;
    for (int i = 0; i != 300; ++i)
      timers.emplace_back(f.io, std::chrono::milliseconds(i % 7));
    for (auto& t : timers) {
      t.async_wait(small{&r});
      t.async_wait(shared{&r, std::make_shared<int>(1)});
      t.async_wait(asio::bind_executor(asio::make_strand(f.io), small{&r}));
    }
    f.advance(3ms);
    timers.erase(timers.begin() + 200, timers.end());
    BOOST_TEST(r.fired > 0);
  };
  round(); // the thread keeps some memory for later
  const std::size_t before = live;
  for (int i = 0; i != 3; ++i)
    round();
  BOOST_TEST(live == before);
}
