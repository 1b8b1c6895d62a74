//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/async_retry.hpp>

#define BOOST_TEST_MODULE unit_async_retry_faults
#include <boost/test/unit_test.hpp>

#include <asio_wheel/wheel_timer.hpp>

#include <test/manual_context.hpp>
#include <test/outcome.hpp>
#include <test/retry.hpp>
#include <test/tracking_allocator.hpp>
#include <test/tracking_executor.hpp>

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::async_retry;
using asio_wheel::backoff;
using asio_wheel::error;
using asio_wheel::retry_options;
using boost::system::error_code;
using boost::system::system_error;
using namespace test;

using duration = backoff::duration;

} // namespace

// ---------------------------------------------------------------------------
// The wheel refuses

BOOST_AUTO_TEST_CASE(a_stopped_wheel_ends_the_wait_and_refuses_the_next) {
  retry_fixture f;
  script<> s(f.io, {{refusal}});
  async_retry(s.operation(), usual(), f.r.handler());
  f.poll();
  f.wheel.stop();
  f.poll();
  CHECK_RETRIED(f.r, aborted, 1);

  retried after;
  script<> inlined(f.io, {{refusal, 0ms, 8, step::in_initiation}});
  async_retry(inlined.operation(), usual(), after.handler());
  f.poll();
  CHECK_RETRIED(after, error::wheel_stopped, 1);
  BOOST_TEST(after.value == 8);
}

BOOST_AUTO_TEST_CASE(too_many_waits_refuse_the_next) {
  asio_wheel::wheel_options o;
  o.max_pending = 1;
  retry_fixture f(o);
  asio_wheel::wheel_timer other(f.io, 1h);
  other.async_wait([](error_code) {});
  script<> s(f.io, {{refusal, 0ms, 0, step::in_initiation}});
  async_retry(s.operation(), usual(), f.r.handler());
  f.poll();
  CHECK_RETRIED(f.r, error::too_many_pending, 1);
}

// ---------------------------------------------------------------------------
// Operations that behave badly

BOOST_AUTO_TEST_CASE(an_attempt_may_complete_inside_its_initiation) {
  retry_fixture f;
  script<> s(f.io, {{refusal, 0ms, 1, step::in_initiation},
                    {reset, 0ms, 2, step::in_initiation},
                    {{}, 0ms, 3, step::in_initiation}});
  test::quietly([&] { async_retry(s.operation(), usual(), f.r.handler()); });
  BOOST_TEST((f.r.ended() == fate::waiting));
  f.run_until(300ms);
  f.check_times(s, {0ms, 100ms, 300ms});
  CHECK_RETRIED(f.r, error_code(), 3);

  retry_fixture g;
  script<> first(g.io, {{{}, 0ms, 3, step::in_initiation}});
  test::quietly(
      [&] { async_retry(first.operation(), usual(), g.r.handler()); });
  BOOST_TEST((g.r.ended() == fate::waiting));
  g.poll();
  CHECK_RETRIED(g.r, error_code(), 1);
}

BOOST_AUTO_TEST_CASE(immediate_failures_without_end_do_not_recurse) {
  for (const auto limit : {duration::max(), duration(1h)}) {
    manual_context c;
    std::size_t made = 0;
    std::size_t other_work = 0;
    std::optional<std::size_t> attempts;
    const auto operation = [&] {
      ++made;
      return asio::async_initiate<const asio::deferred_t&, void(error_code)>(
          [](auto h) { std::move(h)(refusal); }, asio::deferred);
    };
    std::function<void()> work = [&] {
      ++other_work;
      if (!attempts)
        asio::post(c.io, work);
    };
    asio::post(c.io, work);
    retry_options o = each_within(limit);
    o.max_attempts = limit == 1h ? 20'000 : 300'000;
    async_retry(c.io.get_executor(), operation, backoff::constant(0ms), o,
                [&](error_code ec, std::size_t n) {
                  BOOST_TEST(ec == refusal);
                  attempts = n;
                });
    c.poll();
    BOOST_TEST(attempts.value() == o.max_attempts);
    BOOST_TEST(made == o.max_attempts);
    BOOST_TEST(other_work > 1000u); // had its turns
  }
}

BOOST_AUTO_TEST_CASE(what_throws_at_the_first_attempt_leaves_async_retry) {
  for (const auto how : {step::throws, step::throws_in_initiation})
    for (const duration limit : {duration::max(), duration(1h)}) {
      retry_fixture f;
      asio::cancellation_signal signal;
      script<> s(f.io, {{{}, 0ms, 0, decltype(step::how)(how)}});
      BOOST_CHECK_THROW(async_retry(s.operation(), usual(), each_within(limit),
                                    asio::bind_cancellation_slot(
                                        signal.slot(), f.r.handler())),
                        std::runtime_error);
      BOOST_TEST((f.r.ended() == fate::dropped));
      BOOST_TEST(f.wheel.pending() == 0u);
      signal.emit(asio::cancellation_type::total); // reaches nothing
      f.poll();
    }
}

BOOST_AUTO_TEST_CASE(what_throws_later_leaves_run) {
  enum place { making, initiation, retry_if, before_wait };
  for (const place p : {making, initiation, retry_if, before_wait})
    for (const duration limit : {duration::max(), duration(1h)}) {
      retry_fixture f;
      asio::cancellation_signal signal;
      script<> s(f.io,
                 {{refusal},
                  {{},
                   0ms,
                   0,
                   p == making ? step::throws : step::throws_in_initiation}});
      retry_options o = each_within(limit);
      if (p == retry_if)
        o.retry_if = [](const error_code&) -> bool {
          throw std::runtime_error("in retry_if");
        };
      if (p == before_wait)
        o.before_wait = [](const error_code&, std::size_t, duration) {
          throw std::runtime_error("in before_wait");
        };
      async_retry(s.operation(), usual(), o,
                  asio::bind_cancellation_slot(signal.slot(), f.r.handler()));
      BOOST_CHECK_THROW(f.run_until(100ms), std::runtime_error);
      BOOST_TEST((f.r.ended() == fate::dropped));
      f.poll();
      BOOST_TEST(f.wheel.pending() == 0u);
      signal.emit(asio::cancellation_type::total);
    }
}

BOOST_AUTO_TEST_CASE(an_initiation_that_completes_and_then_throws) {
  manual_context c;
  outcome o;
  const auto operation = [] {
    return asio::async_initiate<const asio::deferred_t&, void(error_code)>(
        [](auto h) {
          std::move(h)(error_code());
          throw std::runtime_error("too late");
        },
        asio::deferred);
  };
  BOOST_CHECK_THROW(
      async_retry(
          c.io.get_executor(), operation, usual(),
          [h = o.tracked()](error_code ec, std::size_t) mutable { h(ec); }),
      std::runtime_error);
  c.poll();
  BOOST_TEST((o.fate() == fate::dropped));
}

BOOST_AUTO_TEST_CASE(an_attempt_whose_handler_is_destroyed_ends_the_retry) {
  for (const bool at_once : {true, false}) {
    manual_context c;
    outcome o;
    std::shared_ptr<void> kept;
    const auto operation = [&] {
      return asio::async_initiate<const asio::deferred_t&, void(error_code)>(
          [&](auto h) {
            if (!at_once)
              kept = std::make_shared<decltype(h)>(std::move(h));
          },
          asio::deferred);
    };
    async_retry(
        c.io.get_executor(), operation, usual(),
        [h = o.tracked()](error_code ec, std::size_t) mutable { h(ec); });
    if (!at_once) {
      BOOST_TEST((o.fate() == fate::waiting));
      kept.reset();
    }
    BOOST_TEST((o.fate() == fate::dropped));
  }
}

// D1
BOOST_AUTO_TEST_CASE(a_context_that_goes_destroys_the_handler_uncalled) {
  for (const duration takes : {duration(0), duration(1h)})
    for (const duration limit : {duration::max(), duration(2h)}) {
      retried r;
      {
        manual_context c;
        script<> s(c.io, {{refusal, takes}});
        async_retry(s.operation(), usual(), each_within(limit), r.handler());
        c.poll(); // to the wait, or into the attempt
      }
      BOOST_TEST((r.ended() == fate::dropped));
    }
}

// ---------------------------------------------------------------------------
// Executors and memory

BOOST_AUTO_TEST_CASE(everything_runs_on_the_handlers_executor) {
  retry_fixture f;
  test::execution_log log;
  test::tracking_executor ex(f.io.get_executor(), log);
  script<> s(f.io, {{refusal}, {{}, 1h}, {reset, 5ms}, {}});
  std::size_t elsewhere = 0;
  const auto check = [&] { elsewhere += !log.running_in_this_thread(); };
  s.each = [&] {
    if (s.times.size() > 1)
      check();
  };
  retry_options o = each_within(10ms);
  o.retry_if = [&](const error_code&) {
    check();
    return true;
  };
  o.before_wait = [&](const error_code&, std::size_t, duration) { check(); };
  f.r.then = check;
  async_retry(s.operation(), usual(), o,
              asio::bind_executor(ex, f.r.handler()));
  f.run_until(1s);
  CHECK_RETRIED(f.r, error_code(), 4);
  BOOST_TEST(elsewhere == 0u);
}

BOOST_AUTO_TEST_CASE(the_default_is_the_operations_executor) {
  retry_fixture f;
  test::execution_log log;
  using executor = test::tracking_executor<asio::io_context::executor_type>;
  script<executor> s(executor(f.io.get_executor(), log), {{refusal}, {}});
  std::size_t elsewhere = 0;
  f.r.then = [&] { elsewhere += !log.running_in_this_thread(); };
  s.each = [&] {
    if (s.times.size() > 1)
      f.r.then();
  };
  async_retry(s.operation(), usual(), f.r.handler());
  f.run_until(100ms);
  CHECK_RETRIED(f.r, error_code(), 2);
  BOOST_TEST(elsewhere == 0u);
}

BOOST_AUTO_TEST_CASE(an_executor_that_is_given_comes_before_the_operations) {
  retry_fixture f;
  test::execution_log log;
  test::tracking_executor ex(f.io.get_executor(), log);
  script<> s(f.io, {{refusal}, {}});
  std::size_t elsewhere = 0;
  f.r.then = [&] { elsewhere += !log.running_in_this_thread(); };
  async_retry(ex, s.operation(), usual(), f.r.handler());
  f.run_until(100ms);
  CHECK_RETRIED(f.r, error_code(), 2);
  BOOST_TEST(elsewhere == 0u);
}

// D5
BOOST_AUTO_TEST_CASE(an_attempt_that_is_bound_elsewhere_comes_back) {
  for (const duration limit : {duration::max(), duration(1h)}) {
    retry_fixture f;
    asio::io_context other;
    auto strand = asio::make_strand(f.io);
    asio_wheel::wheel_timer timer(f.io, 10ms);
    std::size_t attempts = 0;
    async_retry(
        [&] {
          return timer.async_wait(
              asio::bind_executor(other.get_executor(), asio::deferred));
        },
        usual(), each_within(limit),
        asio::bind_executor(strand, [&](error_code ec, std::size_t n) {
          BOOST_TEST(!ec);
          BOOST_TEST(strand.running_in_this_thread());
          attempts = n;
        }));
    f.advance(10ms);
    other.poll();
    BOOST_TEST(attempts == 0u);
    f.poll();
    BOOST_TEST(attempts == 1u);
  }
}

BOOST_AUTO_TEST_CASE(a_handler_of_another_context_holds_work_there) {
  retry_fixture f;
  asio::io_context other;
  script<> s(f.io, {{refusal}, {{}, 10ms}});
  async_retry(s.operation(), usual(),
              asio::bind_executor(other.get_executor(), f.r.handler()));
  for (int i = 0; i != 200 && f.r.o.calls() == 0; ++i) {
    BOOST_TEST(!other.stopped());
    f.advance(1ms);
    other.poll();
  }
  CHECK_RETRIED(f.r, error_code(), 2);
  other.poll();
  BOOST_TEST(other.stopped());
}

BOOST_AUTO_TEST_CASE(the_whole_takes_one_allocation_freed_before_the_call) {
  retry_fixture f;
  test::allocation_log memory;
  // Takes no memory of its own.
  const auto operation = [&] {
    return asio::async_initiate<const asio::deferred_t&, void(error_code)>(
        [](auto h) { std::move(h)(refusal); }, asio::deferred);
  };
  bool called = false;
  async_retry(f.io.get_executor(), operation, backoff::constant(10ms),
              at_most(5),
              asio::bind_allocator(test::tracking_allocator<void>(memory),
                                   [&](error_code, std::size_t) {
                                     BOOST_TEST(memory.live == 0u);
                                     called = true;
                                   }));
  BOOST_TEST(memory.live == 2u); // the state, and the post
  f.poll();
  BOOST_TEST(memory.live == 1u);
  f.run_until(1s);
  BOOST_TEST(called);
  BOOST_TEST(memory.allocations == 6u); // the state, five posts
}

BOOST_AUTO_TEST_CASE(
    an_attempt_that_completes_later_allocates_for_itself_only) {
  retry_fixture f;
  test::allocation_log memory;
  script<> s(f.io, {{refusal}});
  async_retry(s.operation(), backoff::constant(10ms), at_most(5),
              asio::bind_allocator(test::tracking_allocator<void>(memory),
                                   f.r.handler()));
  f.run_until(1s);
  CHECK_RETRIED(f.r, refusal, 5);
  // The script binds no allocator to its own waits.
  BOOST_TEST(memory.allocations == 1u);
  BOOST_TEST(memory.live == 0u);
}

// ---------------------------------------------------------------------------
// Results

BOOST_AUTO_TEST_CASE(exceptions_are_errors_if_they_are_system_errors) {
  const auto run = [](std::vector<std::exception_ptr> results,
                      std::size_t expected_attempts) {
    manual_context c;
    std::size_t made = 0;
    std::exception_ptr result;
    std::size_t attempts = 0;
    const auto operation = [&](std::size_t n) {
      made = n;
      return asio::async_initiate<const asio::deferred_t&,
                                  void(std::exception_ptr, std::string)>(
          [&c, e = results[n - 1]](auto h) {
            asio::post(c.io, [e, h = std::move(h)]() mutable {
              std::move(h)(e, "text");
            });
          },
          asio::deferred);
    };
    async_retry(c.io.get_executor(), operation, backoff::constant(1ms),
                [&](std::exception_ptr e, std::size_t n, std::string text) {
                  result = e;
                  attempts = n;
                  BOOST_TEST(text == "text");
                });
    c.poll();
    for (int i = 0; i != 10; ++i)
      c.advance(1ms);
    BOOST_TEST(attempts == expected_attempts);
    BOOST_TEST(made == expected_attempts);
    return result;
  };
  const auto system = std::make_exception_ptr(system_error(refusal));
  const auto abort = std::make_exception_ptr(system_error(aborted));
  const auto other = std::make_exception_ptr(std::runtime_error("other"));
  const std::exception_ptr none;
  BOOST_TEST((run({none}, 1) == none));
  BOOST_TEST((run({system, system, none}, 3) == none));
  BOOST_TEST((run({system, other}, 2) == other));
  BOOST_TEST((run({abort}, 1) == abort));
}

BOOST_AUTO_TEST_CASE(a_time_limit_as_an_exception) {
  manual_context c;
  asio_wheel::wheel_timer timer(c.io, 1h);
  std::exception_ptr result;
  const auto operation = [&] {
    return asio::async_initiate<const asio::deferred_t&,
                                void(std::exception_ptr)>(
        [&](auto h) {
          auto slot = asio::get_associated_cancellation_slot(h);
          timer.async_wait(asio::bind_cancellation_slot(
              slot, [h = std::move(h)](error_code ec) mutable {
                std::move(h)(std::make_exception_ptr(system_error(ec)));
              }));
        },
        asio::deferred);
  };
  async_retry(c.io.get_executor(), operation, usual(), within(10ms),
              [&](std::exception_ptr e, std::size_t) { result = e; });
  c.poll();
  c.advance(10ms);
  BOOST_CHECK_EXCEPTION(std::rethrow_exception(result), system_error,
                        [](const system_error& e) {
                          return e.code() == error::deadline_exceeded;
                        });
}

BOOST_AUTO_TEST_CASE(retries_nest) {
  retry_fixture f;
  script<> s(f.io, {{refusal}});
  std::size_t inner = 0;
  const auto operation = [&] {
    return async_retry(
        f.io.get_executor(),
        [&](std::size_t n) {
          ++inner;
          return s.make(n);
        },
        backoff::constant(1ms), at_most(3), asio::deferred);
  };
  std::size_t outer = 0;
  async_retry(operation, backoff::constant(100ms), at_most(2),
              [&](error_code ec, std::size_t n, std::size_t last, picky) {
                BOOST_TEST(ec == refusal);
                BOOST_TEST(last == 3u);
                outer = n;
              });
  f.run_until(1s);
  BOOST_TEST(outer == 2u);
  BOOST_TEST(inner == 6u);
}

BOOST_AUTO_TEST_CASE(a_handler_may_start_the_next_retry) {
  retry_fixture f;
  script<> s(f.io, {{refusal}});
  retried second;
  f.r.then = [&] {
    s.steps = {{}};
    test::quietly(
        [&] { async_retry(s.operation(), usual(), second.handler()); });
  };
  async_retry(s.operation(), usual(), at_most(2), f.r.handler());
  f.run_until(1s);
  CHECK_RETRIED(f.r, refusal, 2);
  CHECK_RETRIED(second, error_code(), 1);
}

// ---------------------------------------------------------------------------
// Threads

// The attempts complete on other threads while they are being started.
BOOST_AUTO_TEST_CASE(attempts_that_complete_while_they_are_being_started) {
  asio::thread_pool pool(4);
  std::atomic<std::size_t> done{0};
  const auto operation = [&](std::size_t n) {
    return asio::async_initiate<const asio::deferred_t&, void(error_code)>(
        [&, n](auto h) {
          const auto ex = asio::get_associated_executor(h, pool.get_executor());
          asio::post(ex, [n, h = std::move(h)]() mutable {
            std::move(h)(n < 3 ? refusal : error_code());
          });
        },
        asio::deferred);
  };
  constexpr std::size_t retries = 2000;
  for (std::size_t i = 0; i != retries; ++i) {
    async_retry(pool.get_executor(), operation, backoff::constant(0ms),
                [&](error_code ec, std::size_t n) {
                  if (!ec && n == 3)
                    ++done;
                });
    if (i % 2 == 0)
      async_retry(pool.get_executor(), operation, backoff::constant(0ms),
                  asio::bind_executor(asio::make_strand(pool),
                                      [&](error_code ec, std::size_t n) {
                                        if (!ec && n == 3)
                                          ++done;
                                      }));
  }
  pool.join();
  BOOST_TEST(done == retries + retries / 2);
}

// B6
BOOST_AUTO_TEST_CASE(cancellation_against_the_end_of_a_wait) {
  asio::thread_pool pool(4);
  std::atomic<std::size_t> ended{0};
  constexpr std::size_t retries = 500;
  struct retry {
    asio::strand<asio::thread_pool::executor_type> strand;
    asio::cancellation_signal signal;
    asio_wheel::wheel_timer timer;
    asio_wheel::wheel_timer canceller;
    explicit retry(asio::thread_pool& p)
        : strand(asio::make_strand(p)), timer(strand), canceller(strand) {}
  };
  std::vector<std::unique_ptr<retry>> all;
  for (std::size_t i = 0; i != retries; ++i) {
    all.push_back(std::make_unique<retry>(pool));
    retry& r = *all.back();
    asio::post(r.strand, [&r, &ended] {
      retry_options o = within(20ms);
      o.attempt_timeout = 1ms;
      async_retry(
          [&r] {
            r.timer.expires_after(1ms);
            return r.timer.async_wait(asio::deferred);
          },
          backoff::constant(1ms), o,
          asio::bind_cancellation_slot(
              r.signal.slot(),
              asio::bind_executor(
                  r.strand, [&ended](error_code, std::size_t) { ++ended; })));
    });
    r.canceller.expires_after(i % 8 * 1ms);
    r.canceller.async_wait(
        [&r](error_code) { r.signal.emit(asio::cancellation_type::total); });
  }
  pool.join();
  BOOST_TEST(ended == retries);
}
