//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/async_retry.hpp>

#define BOOST_TEST_MODULE unit_async_retry
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
// Attempts and waits

BOOST_AUTO_TEST_CASE(a_success_at_the_first_attempt_is_the_result) {
  retry_fixture f;
  script<> s(f.io, {{{}, 5ms, 7}});
  test::quietly([&] { async_retry(s.operation(), usual(), f.r.handler()); });
  f.run_until(5ms);
  CHECK_RETRIED(f.r, error_code(), 1);
  BOOST_TEST(f.r.value == 7);
  BOOST_TEST(f.wheel.pending() == 0u);
  f.io.restart();
  BOOST_TEST(f.io.run() == 0u); // nothing left
}

BOOST_AUTO_TEST_CASE(waits_between_attempts_as_the_backoff_says) {
  retry_fixture f;
  script<> s(f.io, {{refusal}, {refusal}, {reset}, {refusal}, {{}, 0ms, 3}});
  async_retry(s.operation(), usual(), f.r.handler());
  f.run_until(2s);
  f.check_times(s, {0ms, 100ms, 300ms, 700ms, 1500ms});
  BOOST_TEST(s.attempts == (std::vector<std::size_t>{1, 2, 3, 4, 5}),
             boost::test_tools::per_element());
  CHECK_RETRIED(f.r, error_code(), 5);
  BOOST_TEST(f.r.value == 3);
}

BOOST_AUTO_TEST_CASE(a_delay_counts_from_the_end_of_the_attempt) {
  retry_fixture f;
  script<> s(f.io, {{refusal, 30ms}, {refusal, 50ms}, {}});
  async_retry(s.operation(), usual(), f.r.handler());
  f.run_until(1s);
  f.check_times(s, {0ms, 130ms, 380ms});
}

BOOST_AUTO_TEST_CASE(a_backoff_goes_on_from_where_it_is) {
  retry_fixture f;
  backoff b = usual();
  b.next();
  script<> s(f.io, {{refusal}, {}});
  async_retry(s.operation(), b, f.r.handler());
  f.run_until(1s);
  f.check_times(s, {0ms, 200ms});
}

BOOST_AUTO_TEST_CASE(after_the_most_attempts_the_last_error_is_the_result) {
  retry_fixture f;
  script<> s(f.io, {{refusal, 0ms, 1}, {refusal, 0ms, 2}, {reset, 0ms, 3}});
  async_retry(s.operation(), usual(), at_most(3), f.r.handler());
  f.run_until(300ms);
  CHECK_RETRIED(f.r, reset, 3);
  BOOST_TEST(f.r.value == 3);
  BOOST_TEST(f.wheel.pending() == 0u);

  retry_fixture g;
  script<> once(g.io, {{refusal}});
  async_retry(once.operation(), usual(), at_most(1), g.r.handler());
  g.poll();
  CHECK_RETRIED(g.r, refusal, 1);
}

BOOST_AUTO_TEST_CASE(an_operation_need_not_take_the_number) {
  retry_fixture f;
  asio_wheel::wheel_timer timer(f.io, 10ms);
  std::size_t attempts = 0;
  async_retry([&] { return timer.async_wait(asio::deferred); }, usual(),
              [&](error_code ec, std::size_t n) {
                BOOST_TEST(!ec);
                attempts = n;
              });
  f.advance(10ms);
  BOOST_TEST(attempts == 1u);
}

BOOST_AUTO_TEST_CASE(an_operation_stays_in_its_place_between_attempts) {
  struct operation {
    asio_wheel::wheel_timer* timer;
    std::vector<const void*>* places;
    auto operator()() {
      places->push_back(this);
      return timer->async_wait(asio::deferred);
    }
  };
  retry_fixture f;
  asio_wheel::wheel_timer timer(f.io, 10ms);
  std::vector<const void*> places;
  retry_options o;
  o.retry_if = [](const error_code&) { return true; };
  async_retry(operation{&timer, &places}, usual(), o,
              [](error_code, std::size_t) {});
  f.poll();
  timer.cancel();
  f.poll();
  f.advance(100ms);
  BOOST_REQUIRE(places.size() == 2u);
  BOOST_TEST(places[0] == places[1]);
}

BOOST_AUTO_TEST_CASE(by_default_an_aborted_attempt_is_the_last) {
  retry_fixture f;
  script<> s(f.io, {{refusal, 1h}});
  async_retry(s.operation(), usual(), f.r.handler());
  f.poll();
  s.timer.cancel(); // not through the retry
  f.poll();
  CHECK_RETRIED(f.r, aborted, 1);
}

BOOST_AUTO_TEST_CASE(retry_if_decides_what_is_worth_another_attempt) {
  retry_fixture f;
  script<> s(f.io, {{refusal}, {aborted}, {reset}});
  std::vector<error_code> asked;
  retry_options o;
  o.retry_if = [&](const error_code& ec) {
    asked.push_back(ec);
    return ec != reset;
  };
  async_retry(s.operation(), usual(), o, f.r.handler());
  f.run_until(1s);
  CHECK_RETRIED(f.r, reset, 3);
  BOOST_TEST((asked == std::vector<error_code>{refusal, aborted, reset}));
}

BOOST_AUTO_TEST_CASE(before_wait_is_told_what_comes) {
  retry_fixture f;
  script<> s(f.io, {{refusal}, {reset}, {refusal}});
  std::vector<std::string> told;
  retry_options o = at_most(3);
  o.before_wait = [&](const error_code& ec, std::size_t n, duration delay) {
    BOOST_TEST(s.times.size() == n);
    told.push_back(std::to_string(ec == refusal) + ' ' + std::to_string(n) +
                   ' ' + std::to_string(delay / 1ms));
  };
  async_retry(s.operation(), usual(), o, f.r.handler());
  f.run_until(1s);
  BOOST_TEST(told == (std::vector<std::string>{"1 1 100", "0 2 200"}),
             boost::test_tools::per_element());
}

// ---------------------------------------------------------------------------
// Limits of time

BOOST_AUTO_TEST_CASE(an_attempt_that_takes_too_long_is_cut_and_made_again) {
  retry_fixture f;
  script<> s(f.io, {{{}, 1h}, {{}, 49ms, 5}});
  std::vector<error_code> errors;
  retry_options o = each_within(50ms);
  o.before_wait = [&](const error_code& ec, std::size_t, duration) {
    errors.push_back(ec);
  };
  async_retry(s.operation(), usual(), o, f.r.handler());
  f.run_until(1s);
  f.check_times(s, {0ms, 150ms});
  BOOST_TEST((errors == std::vector<error_code>{error::operation_timeout}));
  CHECK_RETRIED(f.r, error_code(), 2);
  BOOST_TEST(f.r.value == 5);
}

BOOST_AUTO_TEST_CASE(the_timeout_of_the_last_attempt_is_the_result) {
  retry_fixture f;
  script<> s(f.io, {{{}, 1h}});
  retry_options o = each_within(50ms);
  o.max_attempts = 2;
  async_retry(s.operation(), usual(), o, f.r.handler());
  f.run_until(1s);
  CHECK_RETRIED(f.r, error::operation_timeout, 2);
}

BOOST_AUTO_TEST_CASE(the_time_limit_cuts_the_attempt) {
  for (const duration timeout : {duration(1h), duration(200ms)}) {
    retry_fixture f;
    // The second begins at 110; with the timeout both end at 310.
    script<> s(f.io, {{refusal, 10ms}, {{}, 1h}});
    retry_options o = within(310ms);
    o.attempt_timeout = timeout;
    async_retry(s.operation(), usual(), o, f.r.handler());
    f.run_until(309ms);
    BOOST_TEST((f.r.ended() == fate::waiting));
    f.run_until(310ms);
    CHECK_RETRIED(f.r, error::deadline_exceeded, 2);
    BOOST_TEST((f.r.ec() == asio_wheel::condition::timeout));
    BOOST_TEST(f.wheel.pending() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_wait_that_ends_with_the_time_limit_is_not_begun) {
  retry_fixture f;
  script<> s(f.io, {{refusal}, {reset, 50ms}});
  std::size_t hooks = 0;
  retry_options o = within(350ms); // the third would begin at 350
  o.before_wait = [&](const error_code&, std::size_t, duration) { ++hooks; };
  async_retry(s.operation(), usual(), o, f.r.handler());
  f.run_until(150ms);
  CHECK_RETRIED(f.r, reset, 2);
  BOOST_TEST(hooks == 1u);

  retry_fixture g;
  script<> t(g.io, {{refusal}, {reset, 50ms}, {{}}});
  async_retry(t.operation(), usual(), within(350ms + 1ns), g.r.handler());
  g.run_until(350ms);
  CHECK_RETRIED(g.r, error_code(), 3);
}

// D7: whichever is first, there is one result.
BOOST_AUTO_TEST_CASE(a_success_in_the_instant_of_the_limit_or_the_limit) {
  for (const auto how : {step::usual, step::deaf}) {
    retry_fixture f;
    script<> s(f.io, {{{}, 50ms, 1, decltype(step::how)(how)}});
    async_retry(s.operation(), usual(), within(50ms), f.r.handler());
    f.run_until(50ms);
    BOOST_TEST(f.r.o.calls() == 1);
    BOOST_TEST((!f.r.ec() || f.r.ec() == error_code(error::deadline_exceeded)));
    if (how == step::deaf)
      BOOST_TEST(!f.r.ec());
  }
}

// A2
BOOST_AUTO_TEST_CASE(limits_that_are_not_positive_give_one_attempt_a_turn) {
  for (const duration d : {duration(0), duration(-1ns), duration::min()}) {
    retry_fixture f;
    script<> long_one(f.io, {{refusal, 1h}});
    async_retry(long_one.operation(), usual(), within(d), f.r.handler());
    f.poll();
    CHECK_RETRIED(f.r, error::deadline_exceeded, 1);

    retry_fixture g;
    script<> short_one(g.io, {{{}, 0ms, 1, step::in_initiation}});
    async_retry(short_one.operation(), usual(), within(d), g.r.handler());
    g.poll();
    CHECK_RETRIED(g.r, error_code(), 1);

    retry_fixture h;
    script<> cut(h.io, {{refusal, 1h}});
    retry_options o = each_within(d);
    o.max_attempts = 1;
    async_retry(cut.operation(), usual(), o, h.r.handler());
    h.poll();
    CHECK_RETRIED(h.r, error::operation_timeout, 1);
  }
}

// A1
BOOST_AUTO_TEST_CASE(huge_limits_and_delays_are_never_reached) {
  for (const duration d :
       {duration::max(), duration::max() - 1ns, duration::max() / 10}) {
    retry_fixture f;
    asio::cancellation_signal signal;
    script<> s(f.io, {{refusal, 1h}, {}});
    retry_options o = within(duration::max() - 1ns);
    o.attempt_timeout = d;
    async_retry(s.operation(), backoff::constant(d / 2), o,
                asio::bind_cancellation_slot(signal.slot(), f.r.handler()));
    f.poll();
    f.advance(1h);
    f.advance(24h * 365);
    BOOST_TEST((f.r.ended() == fate::waiting));
    signal.emit(asio::cancellation_type::total);
    f.poll();
    CHECK_RETRIED(f.r, aborted, 1);
  }
}

// ---------------------------------------------------------------------------
// Cancellation

constexpr asio::cancellation_type types[] = {asio::cancellation_type::terminal,
                                             asio::cancellation_type::partial,
                                             asio::cancellation_type::total};

BOOST_AUTO_TEST_CASE(cancellation_ends_a_wait) {
  for (const auto type : types)
    for (const duration when : {duration(50ms), duration(100ms)}) {
      retry_fixture f;
      asio::cancellation_signal signal;
      script<> s(f.io, {{refusal, 0ms, 4}, {}});
      async_retry(s.operation(), usual(),
                  asio::bind_cancellation_slot(signal.slot(), f.r.handler()));
      f.poll();
      f.clock.advance(when); // B7: at 100 the wait is due, but has not run
      signal.emit(asio::cancellation_type::none);
      test::quietly([&] { signal.emit(type); });
      f.poll();
      CHECK_RETRIED(f.r, aborted, 1);
      BOOST_TEST(f.r.value == 4); // the last attempt's
      BOOST_TEST(s.times.size() == 1u);
      BOOST_TEST(f.wheel.pending() == 0u);
      signal.emit(type); // reaches nothing
    }
}

BOOST_AUTO_TEST_CASE(cancellation_reaches_the_attempt) {
  for (const auto type : types)
    for (const duration limit : {duration::max(), duration(1h)}) {
      retry_fixture f;
      asio::cancellation_signal signal;
      script<> s(f.io, {{refusal}, {{}, 1min}});
      async_retry(s.operation(), usual(), each_within(limit),
                  asio::bind_cancellation_slot(signal.slot(), f.r.handler()));
      f.run_until(150ms);
      BOOST_TEST(s.times.size() == 2u);
      test::quietly([&] { signal.emit(type); });
      f.poll();
      CHECK_RETRIED(f.r, aborted, 2);
    }
}

BOOST_AUTO_TEST_CASE(after_a_cancellation_no_other_attempt_is_made) {
  const step success = {{}, 10ms, 1, step::deaf};
  const step worth_it = {refusal, 10ms, 2, step::deaf};
  const step not_worth_it = {reset, 10ms, 3, step::deaf};
  const auto result = [](step s) {
    retry_fixture f;
    asio::cancellation_signal signal;
    script<> all(f.io, {s, {}});
    retry_options o;
    o.retry_if = [](const error_code& ec) { return ec == refusal; };
    async_retry(all.operation(), usual(), o,
                asio::bind_cancellation_slot(signal.slot(), f.r.handler()));
    f.poll();
    signal.emit(asio::cancellation_type::terminal);
    f.run_until(1s);
    BOOST_TEST(f.r.o.calls() == 1);
    BOOST_TEST(f.r.attempts == 1u);
    BOOST_TEST(f.r.value == s.value);
    BOOST_TEST(all.times.size() == 1u);
    return f.r.ec();
  };
  BOOST_TEST(result(success) == error_code());
  BOOST_TEST(result(worth_it) == aborted);
  BOOST_TEST(result(not_worth_it) == reset);
}

BOOST_AUTO_TEST_CASE(cancellation_from_inside_the_functions_counts) {
  enum place { in_operation, in_retry_if, in_before_wait };
  for (const place p : {in_operation, in_retry_if, in_before_wait}) {
    retry_fixture f;
    asio::cancellation_signal signal;
    const auto emit = [&](place here) {
      if (here == p)
        signal.emit(asio::cancellation_type::total);
    };
    script<> s(f.io, {{refusal}});
    s.each = [&] { emit(in_operation); };
    retry_options o;
    o.retry_if = [&](const error_code&) {
      emit(in_retry_if);
      return true;
    };
    o.before_wait = [&](const error_code&, std::size_t, duration) {
      emit(in_before_wait);
    };
    async_retry(s.operation(), usual(), o,
                asio::bind_cancellation_slot(signal.slot(), f.r.handler()));
    f.run_until(1s);
    CHECK_RETRIED(f.r, aborted, 1);
  }
}

BOOST_AUTO_TEST_CASE(what_an_attempt_left_in_its_slot_is_not_reached) {
  retry_fixture f;
  asio::cancellation_signal signal;
  int emissions = 0;
  // Fails, but does not clear its slot.
  const auto operation = [&] {
    return asio::async_initiate<const asio::deferred_t&, void(error_code)>(
        [&](auto h) {
          auto slot = asio::get_associated_cancellation_slot(h);
          slot.assign([&](asio::cancellation_type) { ++emissions; });
          asio::post(f.io,
                     [h = std::move(h)]() mutable { std::move(h)(refusal); });
        },
        asio::deferred);
  };
  outcome o;
  async_retry(
      f.io.get_executor(), operation, usual(),
      asio::bind_cancellation_slot(
          signal.slot(),
          [h = o.tracked()](error_code ec, std::size_t) mutable { h(ec); }));
  f.poll();
  signal.emit(asio::cancellation_type::total);
  BOOST_TEST(emissions == 0);
  f.poll();
  BOOST_TEST((o.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(timeout_after_bounds_the_whole) {
  retry_fixture f;
  script<> s(f.io, {{refusal, 10ms}});
  async_retry(f.io.get_executor(), s.operation(), usual(),
              asio_wheel::timeout_after(150ms, f.r.handler()));
  f.run_until(149ms);
  BOOST_TEST((f.r.ended() == fate::waiting));
  f.run_until(150ms);
  CHECK_RETRIED(f.r, error::operation_timeout, 2);
}
