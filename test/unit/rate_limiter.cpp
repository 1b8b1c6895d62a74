//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/rate_limiter.hpp>

#include <test/manual_context.hpp>
#include <test/outcome.hpp>
#include <test/tracking_executor.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#define BOOST_TEST_MODULE unit_rate_limiter
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<std::size_t> allocations{0};

} // namespace

void* operator new(std::size_t size) {
  ++allocations;
  if (void* const p = std::malloc(size != 0 ? size : 1))
    return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::rate_limiter;
using asio_wheel::token_rate;
using boost::system::error_code;
using test::fate;
using test::manual_context;
using test::outcome;

using duration = rate_limiter::duration;
using time_point = rate_limiter::time_point;

constexpr auto not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr auto infinity = std::numeric_limits<double>::infinity();

// Let time pass from deadline to deadline, as a loop would see it.
void run_until(manual_context& c, time_point end) {
  c.poll();
  for (;;) {
    const auto next = c.clock.next_deadline();
    if (!next || *next > end)
      break;
    c.clock.advance_to(*next);
    c.poll();
  }
  c.clock.advance_to(end);
  c.poll();
}

// Takes n tokens, again and again, and counts them.
struct client {
  rate_limiter& limiter;
  std::uint64_t n;
  std::uint64_t given = 0;

  void go() {
    limiter.async_acquire(n, [this](error_code ec) {
      if (!ec) {
        given += n;
        go();
      }
    });
  }
};

template <typename F> bool refuses(F&& f, const std::string& name) {
  try {
    std::forward<F>(f)();
  } catch (const std::invalid_argument& e) {
    return std::string(e.what()).find(name) != std::string::npos;
  }
  return false;
}

} // namespace

BOOST_AUTO_TEST_CASE(bad_rates_and_bursts_are_refused_by_name) {
  manual_context c;
  for (const double r : {0.0, -0.0, -1.0, not_a_number, infinity, -infinity})
    BOOST_TEST(refuses([&] { rate_limiter(c.io, r, 1); }, "rate"));
  for (const double b : {0.0, -1.0, 0.999, not_a_number, infinity, -infinity})
    BOOST_TEST(refuses([&] { rate_limiter(c.io, 1, b); }, "burst"));
  for (const std::int64_t n : {std::int64_t{0}, std::int64_t{-1},
                               std::numeric_limits<std::int64_t>::min()})
    BOOST_TEST(refuses([&] { token_rate(n, 1s); }, "rate"));
  for (const duration d : {duration(0), duration(-1), duration::min()})
    BOOST_TEST(refuses([&] { token_rate(1, d); }, "rate"));

  rate_limiter limiter(c.io, 5, 10);
  outcome o;
  limiter.spend(10);
  limiter.async_acquire(1, o.tracked());
  BOOST_TEST(refuses([&] { limiter.rate(not_a_number); }, "rate"));
  BOOST_TEST(refuses([&] { limiter.burst(0); }, "burst"));
  BOOST_TEST((limiter.rate() == token_rate(5)));
  BOOST_TEST(limiter.burst() == 10u);
  c.advance(200ms);
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(a_burst_is_whole_and_saturates) {
  manual_context c;
  BOOST_TEST(rate_limiter(c.io, 1, 2.9).burst() == 2u);
  BOOST_TEST(rate_limiter(c.io, 1, 1e300).burst() == std::uint64_t{1} << 53);
}

// ---------------------------------------------------------------------------
// Exactness

BOOST_AUTO_TEST_CASE(an_hour_gives_the_burst_and_an_hours_rate_to_the_token) {
  struct {
    token_rate rate;
    double burst;
    std::uint64_t n; // at a time
    std::uint64_t expected;
  } const cases[] = {
      {{3, 7ms}, 100, 73, 100 + 1'542'857},
      {1e6, 1e6, 997'001, 1'000'000 + 3'600'000'000},
      {1e6, 50'000, 49'999, 50'000 + 3'600'000'000},
      {0.1, 1, 1, 1 + 360},
      {1.0 / 3, 2, 1, 2 + 1200},
      {{1, 3s}, 1, 1, 1 + 1200},
      {{7, 11h}, 1, 1, 1 + 0},
      {999.999, 10'000, 1'234, 10'000 + 3'599'996},
      {{1'000'003, 999'983ns}, 1e9, 999'999'937, 3'601'072'001'224}};
  for (const auto& t : cases) {
    manual_context c;
    rate_limiter limiter(c.io, t.rate, t.burst);
    client all{limiter, t.n};
    all.go();
    run_until(c, c.now() + 1h);
    BOOST_TEST(all.given + limiter.available() == t.expected);
    BOOST_TEST(limiter.available() < t.n);
  }
}

BOOST_AUTO_TEST_CASE(an_hour_of_trying_gives_as_much) {
  manual_context c;
  rate_limiter limiter(c.io, {3, 7ms}, 2000);
  std::minstd_rand random(5);
  std::uint64_t given = 0;
  const auto end = c.now() + 1h;
  while (c.now() != end) {
    c.clock.advance_to(std::min(
        end, c.now() + std::chrono::nanoseconds(random() % 2'000'000'000)));
    const std::uint64_t n = limiter.available();
    BOOST_REQUIRE(limiter.try_acquire(n));
    BOOST_REQUIRE(!limiter.try_acquire(1));
    given += n;
  }
  BOOST_TEST(given == 2000u + 1'542'857u);
}

BOOST_AUTO_TEST_CASE(neither_the_tick_nor_a_small_burst_slows_it_down) {
  // 1,000 tokens in a tick, and room for one.
  manual_context c;
  rate_limiter limiter(c.io, 1e6, 1);
  std::uint64_t given = 0;
  for (int i = 0; i != 20'001; ++i)
    limiter.async_acquire(1, [&](error_code ec) { given += !ec; });
  run_until(c, c.now() + 10ms);
  BOOST_TEST(given == 10'001u);
  BOOST_TEST(limiter.waiting() == 10'000u);
}

BOOST_AUTO_TEST_CASE(nobody_gets_tokens_early_or_more_than_a_tick_late) {
  for (const auto& rate : {token_rate(3, 7ms), token_rate(1, 333us),
                           token_rate(17, 1s), token_rate(1, 1ms)}) {
    manual_context c;
    c.advance(123456ns);
    rate_limiter limiter(c.io, rate, 5);
    const auto start = c.now();
    std::int64_t given = 0;
    std::function<void()> go = [&] {
      limiter.async_acquire(1, [&](error_code ec) {
        if (ec)
          return;
        ++given;
        // The tokens beyond the first five come one after the other.
        const auto due =
            start + (rate.per() * std::max<std::int64_t>(given - 5, 0) +
                     duration(rate.tokens() - 1)) /
                        rate.tokens();
        BOOST_REQUIRE((c.now() >= due));
        BOOST_REQUIRE((c.now() <= due + 1ms));
        go();
      });
    };
    // Two, so that there always is somebody in line.
    go();
    go();
    run_until(c, start + 2s);
    // The last may be there, and wait for the tick.
    BOOST_TEST(given + static_cast<std::int64_t>(limiter.available()) ==
               5 + 2s / 1ns * rate.tokens() / rate.per().count());
  }
}

// ---------------------------------------------------------------------------
// The line

BOOST_AUTO_TEST_CASE(it_is_full_at_first_and_fills_up_to_the_burst) {
  manual_context c;
  rate_limiter limiter(c.io, 10, 5);
  BOOST_TEST(limiter.available() == 5u);
  BOOST_TEST(limiter.try_acquire(3));
  BOOST_TEST(!limiter.try_acquire(3));
  BOOST_TEST(limiter.try_acquire());
  BOOST_TEST(limiter.available() == 1u);
  c.advance(1h);
  BOOST_TEST(limiter.available() == 5u);
  BOOST_TEST(!limiter.try_acquire(6)); // never
}

BOOST_AUTO_TEST_CASE(what_is_there_is_given_on_the_next_turn) {
  manual_context c;
  outcome o;
  rate_limiter limiter(c.io, 10, 5);
  test::quietly([&] { limiter.async_acquire(5, o.tracked()); });
  BOOST_TEST((o.fate() == fate::waiting));
  BOOST_TEST(limiter.available() == 0u); // taken already
  c.poll();
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST(c.wheel.stats().scheduled == 0u); // no timer for that
}

BOOST_AUTO_TEST_CASE(a_small_request_behind_a_big_one_waits) {
  manual_context c;
  outcome big, small;
  rate_limiter limiter(c.io, 10, 10);
  limiter.spend(8);
  limiter.async_acquire(7, big.tracked());
  limiter.async_acquire(1, small.tracked());
  c.poll();
  BOOST_TEST(!limiter.try_acquire(1)); // nor does this overtake
  BOOST_TEST(limiter.available() == 2u);
  BOOST_TEST(limiter.waiting() == 2u);
  c.advance(500ms);
  BOOST_TEST((big.fate() == fate::fired));
  BOOST_TEST((small.fate() == fate::waiting));
  c.advance(100ms);
  BOOST_TEST((small.fate() == fate::fired));
  BOOST_TEST(limiter.waiting() == 0u);
}

BOOST_AUTO_TEST_CASE(those_who_go_ahead_together_do_so_in_order) {
  manual_context c;
  rate_limiter limiter(c.io, 1000, 100);
  limiter.spend(100);
  std::vector<int> order;
  for (int i = 0; i != 50; ++i)
    limiter.async_acquire(2, [&, i](error_code) { order.push_back(i); });
  c.advance(200ms);
  BOOST_TEST(order.size() == 50u);
  BOOST_TEST(std::is_sorted(order.begin(), order.end()));
}

BOOST_AUTO_TEST_CASE(no_tokens_are_there_at_once_whoever_waits) {
  manual_context c;
  outcome first, none;
  rate_limiter limiter(c.io, 1, 5);
  limiter.spend(5);
  limiter.async_acquire(5, first.tracked());
  BOOST_TEST(limiter.try_acquire(0));
  test::quietly([&] { limiter.async_acquire(0, none.tracked()); });
  c.poll();
  BOOST_TEST((none.fate() == fate::fired));
  BOOST_TEST((first.fate() == fate::waiting));
}

BOOST_AUTO_TEST_CASE(more_than_the_burst_is_refused_and_takes_nothing) {
  manual_context c;
  outcome o;
  rate_limiter limiter(c.io, 1, 5);
  test::quietly([&] { limiter.async_acquire(6, o.tracked()); });
  c.poll();
  BOOST_TEST((o.ec() == asio::error::invalid_argument));
  BOOST_TEST(limiter.available() == 5u);
  BOOST_TEST((limiter.time_until(6) == duration::max()));
}

BOOST_AUTO_TEST_CASE(
    the_wheel_has_one_wait_while_somebody_waits_and_none_else) {
  manual_context c;
  rate_limiter limiter(c.io, 1, 1);
  BOOST_TEST(c.wheel.pending() == 0u);
  BOOST_TEST(c.io.run() == 0u); // holds nothing
  outcome a, b;
  limiter.try_acquire();
  limiter.async_acquire(1, a.tracked());
  limiter.async_acquire(1, b.tracked());
  BOOST_TEST(c.wheel.pending() == 1u);
  c.poll();
  BOOST_TEST(!c.io.stopped()); // holds run()
  c.advance(2s);
  BOOST_TEST((b.fate() == fate::fired));
  BOOST_TEST(c.wheel.pending() == 0u);
  c.io.restart();
  BOOST_TEST(c.io.run() == 0u);
}

BOOST_AUTO_TEST_CASE(max_pending_does_not_count_who_waits_in_line) {
  asio_wheel::wheel_options options;
  options.max_pending = 1;
  manual_context c(options);
  asio_wheel::wheel_timer timer(c.io, 1h);
  timer.async_wait([](error_code) {});
  rate_limiter limiter(c.io, 1, 1);
  outcome a, b;
  limiter.try_acquire();
  limiter.async_acquire(1, a.tracked());
  limiter.async_acquire(1, b.tracked());
  c.advance(2s);
  BOOST_TEST((a.fate() == fate::fired));
  BOOST_TEST((b.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(nothing_allocates_once_warm) {
  manual_context c;
  rate_limiter limiter(c.io, 1000, 10);
  std::size_t given = 0, before = 0;
  for (int round = 0; round != 20; ++round) {
    if (round == 10)
      before = allocations;
    for (int i = 0; i != 20; ++i)
      limiter.async_acquire(1, [&given](error_code ec) { given += !ec; });
    c.advance(20ms);
  }
  BOOST_TEST(given == 400u);
  BOOST_TEST(allocations == before);
}

// ---------------------------------------------------------------------------
// Change

BOOST_AUTO_TEST_CASE(a_new_rate_counts_from_now_also_for_those_in_line) {
  manual_context c;
  outcome o;
  rate_limiter limiter(c.io, 1, 10);
  limiter.spend(10);
  limiter.async_acquire(10, o.tracked());
  c.advance(5s);      // five are there
  limiter.rate(0.1);  // B9: later...
  c.advance(30s);     // and three more
  limiter.rate(1000); // ...and sooner
  c.advance(2ms - 1ns);
  BOOST_TEST((o.fate() == fate::waiting));
  c.advance(1ns);
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST(limiter.available() == 0u);
}

BOOST_AUTO_TEST_CASE(a_new_rate_keeps_the_part_of_a_token_that_was_gathered) {
  manual_context c;
  rate_limiter limiter(c.io, {1, 10s}, 5);
  limiter.spend(5);
  c.advance(9s);
  limiter.rate({1, 100s});
  BOOST_TEST((limiter.time_until(1) == 10s)); // a tenth is missing
  limiter.rate({1, 7ns});
  BOOST_TEST((limiter.time_until(1) == 1ns));
}

BOOST_AUTO_TEST_CASE(by_the_old_rate_up_to_the_change) {
  // The wake-up has not come yet; what is due by then is given as of then.
  manual_context c;
  std::vector<outcome> o(10);
  rate_limiter limiter(c.io, 100, 1);
  limiter.spend(1);
  for (auto& each : o)
    limiter.async_acquire(1, each.tracked());
  c.clock.advance(45ms);
  limiter.rate(token_rate(1, 1000h));
  c.poll();
  for (std::size_t i = 0; i != o.size(); ++i)
    BOOST_TEST((o[i].fate() == (i < 4 ? fate::fired : fate::waiting)));
  limiter.cancel();
}

BOOST_AUTO_TEST_CASE(a_larger_burst_takes_effect_at_once) {
  manual_context c;
  rate_limiter limiter(c.io, 10, 5);
  limiter.burst(8);
  BOOST_TEST(limiter.available() == 5u); // nothing is given for that
  c.advance(1s);
  BOOST_TEST(limiter.available() == 8u);
  BOOST_TEST(limiter.burst() == 8u);
}

BOOST_AUTO_TEST_CASE(a_smaller_burst_loses_what_does_not_fit) {
  manual_context c;
  rate_limiter limiter(c.io, 10, 5);
  limiter.burst(2);
  BOOST_TEST(limiter.available() == 2u);
}

BOOST_AUTO_TEST_CASE(who_waits_for_more_than_the_new_burst_fails_in_its_turn) {
  manual_context c;
  outcome first, too_big, last;
  rate_limiter limiter(c.io, 1, 10);
  limiter.spend(10);
  limiter.async_acquire(2, first.tracked());
  limiter.async_acquire(9, too_big.tracked());
  limiter.async_acquire(1, last.tracked());
  limiter.burst(3);
  c.poll();
  BOOST_TEST((too_big.fate() == fate::waiting));
  c.advance(2s);
  BOOST_TEST((first.fate() == fate::fired));
  BOOST_TEST((too_big.ec() == asio::error::invalid_argument));
  BOOST_TEST((last.fate() == fate::waiting));
  c.advance(1s);
  BOOST_TEST((last.fate() == fate::fired));

  // At the head of the line that is at once.
  outcome head;
  limiter.async_acquire(3, head.tracked());
  test::quietly([&] { limiter.burst(2); });
  c.poll();
  BOOST_TEST((head.ec() == asio::error::invalid_argument));
}

BOOST_AUTO_TEST_CASE(what_is_given_back_lets_the_next_go_ahead) {
  manual_context c;
  outcome o;
  rate_limiter limiter(c.io, {1, 1h}, 5);
  limiter.spend(5);
  limiter.async_acquire(3, o.tracked());
  limiter.give_back(2);
  c.poll();
  BOOST_TEST((o.fate() == fate::waiting));
  test::quietly([&] { limiter.give_back(2); });
  c.poll();
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST(limiter.available() == 1u);
  limiter.give_back(100);
  BOOST_TEST(limiter.available() == 5u); // the rest is lost
  limiter.give_back(std::numeric_limits<std::uint64_t>::max());
  BOOST_TEST(limiter.available() == 5u);
}

BOOST_AUTO_TEST_CASE(reset_fills_it_and_lets_the_line_go_ahead) {
  manual_context c;
  outcome a, b, more;
  rate_limiter limiter(c.io, {1, 1h}, 5);
  limiter.spend(100);
  limiter.async_acquire(3, a.tracked());
  limiter.async_acquire(2, b.tracked());
  limiter.async_acquire(1, more.tracked());
  limiter.reset();
  c.poll();
  BOOST_TEST((a.fate() == fate::fired));
  BOOST_TEST((b.fate() == fate::fired));
  BOOST_TEST((more.fate() == fate::waiting));
  limiter.cancel();
}

BOOST_AUTO_TEST_CASE(spending_gets_it_into_debt_and_that_is_paid_first) {
  manual_context c;
  outcome o;
  rate_limiter limiter(c.io, 10, 5);
  limiter.async_acquire(5, [](error_code) {});
  limiter.async_acquire(1, o.tracked());
  limiter.spend(20);
  BOOST_TEST(limiter.available() == 0u);
  c.advance(100ms); // when the token would have come
  BOOST_TEST((o.fate() == fate::waiting));
  c.advance(2s - 1ns);
  BOOST_TEST((o.fate() == fate::waiting));
  c.advance(1ns);
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(time_until_is_behind_all_who_wait) {
  manual_context c;
  rate_limiter limiter(c.io, 10, 5);
  BOOST_TEST((limiter.time_until(5) == 0s));
  limiter.spend(5);
  BOOST_TEST((limiter.time_until(0) == 0s));
  BOOST_TEST((limiter.time_until() == 100ms));
  BOOST_TEST((limiter.time_until(5) == 500ms));
  c.clock.advance(30ms);
  BOOST_TEST((limiter.time_until() == 70ms));
  limiter.async_acquire(4, [](error_code) {});
  limiter.async_acquire(3, [](error_code) {});
  BOOST_TEST((limiter.time_until(1) == 770ms)); // more than fits: they take it
  run_until(c, c.now() + 770ms);
  BOOST_TEST((limiter.time_until(1) == 0s));
  BOOST_TEST(limiter.try_acquire());
}

BOOST_AUTO_TEST_CASE(a1_any_rate_time_and_number_saturates) {
  for (const double r : {5e-324, 1e-9, 1.0, 1e9, 1e300}) {
    for (const double b : {1.0, 1e300}) {
      manual_context c;
      outcome o;
      rate_limiter limiter(c.io, r, b);
      limiter.spend(std::numeric_limits<std::uint64_t>::max());
      limiter.spend(std::numeric_limits<std::uint64_t>::max());
      BOOST_TEST(limiter.available() == 0u);
      limiter.async_acquire(1, o.tracked());
      BOOST_TEST((limiter.time_until() > 0s));
      c.advance(24h * 365 * 100);
      c.advance(duration::max());
      BOOST_TEST((o.fate() == (r >= 1e9 ? fate::fired : fate::waiting)));
      limiter.cancel();
      c.poll();
    }
  }
  manual_context c;
  rate_limiter limiter(c.io, 1e9, 1e300);
  BOOST_TEST(limiter.try_acquire(std::uint64_t{1} << 53));
  BOOST_TEST(!limiter.try_acquire(std::numeric_limits<std::uint64_t>::max()));
  BOOST_TEST((limiter.time_until(std::numeric_limits<std::uint64_t>::max()) ==
              duration::max()));
}

// ---------------------------------------------------------------------------
// Cancellation

BOOST_AUTO_TEST_CASE(a_slot_takes_one_out_of_line_and_the_next_goes_ahead) {
  for (const auto type :
       {asio::cancellation_type::terminal, asio::cancellation_type::partial,
        asio::cancellation_type::total}) {
    manual_context c;
    asio::cancellation_signal signal;
    outcome big, small, last;
    rate_limiter limiter(c.io, 1, 10);
    limiter.spend(8);
    limiter.async_acquire(
        10, asio::bind_cancellation_slot(signal.slot(), big.tracked()));
    limiter.async_acquire(2, small.tracked());
    limiter.async_acquire(1, last.tracked());
    signal.emit(asio::cancellation_type::none);
    c.poll();
    BOOST_TEST(limiter.waiting() == 3u);
    test::quietly([&] { signal.emit(type); });
    BOOST_TEST(limiter.waiting() == 1u); // B8
    c.poll();
    BOOST_TEST((big.fate() == fate::aborted));
    BOOST_TEST((small.fate() == fate::fired)); // at once
    c.advance(1s - 1ns);
    BOOST_TEST((last.fate() == fate::waiting));
    c.advance(1ns); // the wake-up has moved
    BOOST_TEST((last.fate() == fate::fired));
    signal.emit(type); // reaches nothing
    BOOST_TEST(limiter.available() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(b7_cancelled_when_due_but_not_woken_takes_nothing) {
  manual_context c;
  asio::cancellation_signal signal;
  outcome o;
  rate_limiter limiter(c.io, 1, 1);
  limiter.spend(1);
  limiter.async_acquire(
      1, asio::bind_cancellation_slot(signal.slot(), o.tracked()));
  c.clock.advance(1s);
  signal.emit(asio::cancellation_type::total);
  BOOST_TEST(limiter.available() == 1u);
  c.poll();
  BOOST_TEST((o.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(once_given_a_cancellation_comes_too_late) {
  manual_context c;
  asio::cancellation_signal signal;
  outcome o;
  rate_limiter limiter(c.io, 1, 1);
  limiter.async_acquire(
      1, asio::bind_cancellation_slot(signal.slot(), o.tracked()));
  signal.emit(asio::cancellation_type::total);
  BOOST_TEST(limiter.cancel() == 0u);
  c.poll();
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(b1_who_got_tokens_in_one_turn_keeps_them) {
  manual_context c;
  rate_limiter limiter(c.io, 10, 2);
  limiter.spend(2);
  asio::cancellation_signal signal;
  outcome b, waits;
  outcome a([&](error_code) {
    signal.emit(asio::cancellation_type::total);
    limiter.cancel();
  });
  limiter.async_acquire(1, a.tracked());
  limiter.async_acquire(
      1, asio::bind_cancellation_slot(signal.slot(), b.tracked()));
  limiter.async_acquire(1, waits.tracked());
  c.advance(200ms);
  BOOST_TEST((a.fate() == fate::fired));
  BOOST_TEST((b.fate() == fate::fired));
  BOOST_TEST((waits.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(cancel_aborts_all_and_counts_them) {
  manual_context c;
  std::vector<outcome> o(5);
  rate_limiter limiter(c.io, 1, 1);
  limiter.spend(1);
  for (auto& each : o)
    limiter.async_acquire(1, each.tracked());
  test::quietly([&] { BOOST_TEST(limiter.cancel() == 5u); });
  BOOST_TEST(limiter.cancel() == 0u);
  BOOST_TEST(limiter.waiting() == 0u);
  c.poll();
  for (const auto& each : o)
    BOOST_TEST((each.fate() == fate::aborted));
  BOOST_TEST(c.wheel.pending() == 0u);
  // And can be used on.
  outcome next;
  limiter.async_acquire(1, next.tracked());
  c.advance(1s);
  BOOST_TEST((next.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(waits_that_begin_while_an_old_wake_up_is_on_its_way) {
  manual_context c;
  outcome first, second;
  auto strand = asio::make_strand(c.io);
  rate_limiter limiter(strand, 1, 1);
  limiter.spend(1);
  limiter.async_acquire(1, first.tracked());
  limiter.cancel();
  limiter.async_acquire(1, second.tracked());
  c.poll();
  BOOST_TEST((first.fate() == fate::aborted));
  BOOST_TEST((second.fate() == fate::waiting));
  BOOST_TEST(c.wheel.pending() == 1u);
  c.advance(1s);
  BOOST_TEST((second.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(destruction_aborts_later_never_from_within) {
  manual_context c;
  outcome a, b;
  auto limiter = std::make_unique<rate_limiter>(c.io, 1, 1);
  limiter->spend(1);
  limiter->async_acquire(1, a.tracked());
  limiter->async_acquire(1, b.tracked());
  test::quietly([&] { limiter.reset(); });
  BOOST_TEST((a.fate() == fate::waiting));
  c.poll();
  BOOST_TEST((a.fate() == fate::aborted));
  BOOST_TEST((b.fate() == fate::aborted));
  BOOST_TEST(c.wheel.pending() == 0u);
}

BOOST_AUTO_TEST_CASE(a_slot_may_outlive_the_limiter_and_emit) {
  manual_context c;
  asio::cancellation_signal signal;
  outcome o;
  {
    rate_limiter limiter(c.io, 1, 1);
    limiter.spend(1);
    limiter.async_acquire(
        1, asio::bind_cancellation_slot(signal.slot(), o.tracked()));
  }
  signal.emit(asio::cancellation_type::total);
  c.poll();
  BOOST_TEST((o.fate() == fate::aborted));
}

// ---------------------------------------------------------------------------
// The end

BOOST_AUTO_TEST_CASE(b10_a_stopped_wheel_aborts_who_waits_and_refuses_others) {
  manual_context c;
  outcome a, b, late, none;
  rate_limiter limiter(c.io, 1, 1);
  limiter.spend(1);
  limiter.async_acquire(1, a.tracked());
  limiter.async_acquire(1, b.tracked());
  c.wheel.stop();
  test::quietly([&] {
    limiter.async_acquire(1, late.tracked());
    limiter.async_acquire(0, none.tracked());
  });
  c.poll();
  BOOST_TEST((a.fate() == fate::aborted));
  BOOST_TEST((b.fate() == fate::aborted));
  BOOST_TEST((late.ec() == asio_wheel::error::wheel_stopped));
  BOOST_TEST((none.ec() == asio_wheel::error::wheel_stopped));
  BOOST_TEST(limiter.waiting() == 0u);
  c.clock.advance(1s);
  BOOST_TEST(limiter.try_acquire()); // needs no wheel
}

BOOST_AUTO_TEST_CASE(a_slot_may_outlive_a_limiter_on_a_strand_and_its_context) {
  asio::cancellation_signal signal;
  outcome o;
  {
    manual_context c;
    rate_limiter limiter(asio::make_strand(c.io), 1, 1);
    limiter.spend(1);
    limiter.async_acquire(
        1, asio::bind_cancellation_slot(signal.slot(), o.tracked()));
  }
  BOOST_TEST((o.fate() == fate::dropped));
  signal.emit(asio::cancellation_type::total); // reaches nothing
}

BOOST_AUTO_TEST_CASE(the_context_goes_first) {
  outcome a, b;
  asio::cancellation_signal signal;
  std::optional<rate_limiter> limiter;
  {
    manual_context c;
    limiter.emplace(c.io, 1, 1);
    limiter->spend(1);
    limiter->async_acquire(
        1, asio::bind_cancellation_slot(signal.slot(), a.tracked()));
    limiter->async_acquire(1, b.tracked());
  }
  BOOST_TEST((a.fate() == fate::dropped));
  BOOST_TEST((b.fate() == fate::dropped));
  BOOST_TEST(limiter->waiting() == 0u);
  BOOST_TEST(limiter->cancel() == 0u);
  signal.emit(asio::cancellation_type::total);
}

BOOST_AUTO_TEST_CASE(a_dropped_handler_may_use_the_limiter_in_its_destructor) {
  std::optional<rate_limiter> limiter;
  {
    manual_context c;
    limiter.emplace(c.io, 1, 1);
    limiter->spend(1);
    struct user {
      rate_limiter* limiter;
      explicit user(rate_limiter* l) noexcept : limiter(l) {}
      user(user&& other) noexcept
          : limiter(std::exchange(other.limiter, nullptr)) {}
      ~user() {
        if (limiter) {
          limiter->cancel();
          limiter->give_back(1);
        }
      }
      void operator()(error_code) {}
    };
    limiter->async_acquire(1, user(&*limiter));
    limiter->async_acquire(1, user(&*limiter));
  }
  BOOST_TEST(limiter->waiting() == 0u);
}

// ---------------------------------------------------------------------------
// From within handlers, executors, threads

BOOST_AUTO_TEST_CASE(every_function_may_be_called_from_a_handler) {
  manual_context c;
  rate_limiter limiter(c.io, 10, 5);
  outcome inner, last;
  outcome o([&](error_code) {
    limiter.try_acquire(5);
    limiter.async_acquire(5, inner.tracked());
    limiter.give_back(1);
    limiter.reset();
    limiter.spend(5);
    limiter.rate(20);
    limiter.burst(6);
    BOOST_TEST((limiter.rate() == token_rate(20)));
    BOOST_TEST(limiter.available() == 0u);
    BOOST_TEST(limiter.waiting() == 0u);
    BOOST_TEST((limiter.time_until() == 50ms));
    limiter.async_acquire(1, last.tracked());
    BOOST_TEST(limiter.cancel() == 1u);
  });
  limiter.async_acquire(1, o.tracked());
  c.poll();
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST((inner.fate() == fate::fired));
  BOOST_TEST((last.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(the_limiter_may_be_destroyed_from_a_handler) {
  manual_context c;
  auto limiter = std::make_unique<rate_limiter>(c.io, 1000, 2);
  limiter->spend(2);
  outcome b, waits;
  outcome a([&](error_code) { limiter.reset(); });
  limiter->async_acquire(1, a.tracked());
  limiter->async_acquire(1, b.tracked());
  limiter->async_acquire(2, waits.tracked());
  c.advance(2ms);
  BOOST_TEST((a.fate() == fate::fired));
  BOOST_TEST((b.fate() == fate::fired));
  BOOST_TEST((waits.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(an_executor_that_refuses_one_does_not_harm_the_others) {
  manual_context c;
  test::execution_log log;
  outcome first, refused, last;
  rate_limiter limiter(c.io, 1000, 3);
  limiter.spend(3);
  limiter.async_acquire(1, first.tracked());
  limiter.async_acquire(
      1, asio::bind_executor(test::tracking_executor(c.io.get_executor(), log),
                             refused.tracked()));
  limiter.async_acquire(1, last.tracked());
  log.refuse = 1;
  c.clock.advance(3ms);
  BOOST_CHECK_THROW(c.poll(), test::refused);
  c.poll();
  BOOST_TEST((first.fate() == fate::fired));
  BOOST_TEST((refused.fate() == fate::dropped));
  BOOST_TEST((last.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(with_concrete_executors) {
  manual_context c;
  outcome a, b;
  asio_wheel::basic_rate_limiter<asio::io_context::executor_type> plain(c.io, 1,
                                                                        1);
  asio_wheel::basic_rate_limiter<asio::strand<asio::io_context::executor_type>>
      stranded(asio::make_strand(c.io), 1, 1);
  plain.spend(1);
  stranded.spend(1);
  plain.async_acquire(1, a.tracked());
  stranded.async_acquire(1, b.tracked());
  c.advance(1s);
  BOOST_TEST((a.fate() == fate::fired));
  BOOST_TEST((b.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(b6_four_threads_take_cancel_and_change) {
  manual_context c;
  rate_limiter limiter(c.io, 1e6, 1000);
  std::atomic<std::uint64_t> given{0};
  std::atomic<int> ended{0};
  auto work = asio::make_work_guard(c.io);
  std::vector<std::thread> threads;
  constexpr int rounds = 2000;
  for (unsigned t = 0; t != 3; ++t)
    threads.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      for (int i = 0; i != rounds; ++i) {
        const std::uint64_t n = 1 + random() % 9;
        switch (random() % 8) {
        case 0:
          given += limiter.try_acquire(n) ? n : 0;
          ++ended;
          break;
        case 1:
          limiter.cancel();
          ++ended;
          break;
        case 2:
          limiter.rate(1e6);
          limiter.burst(1000);
          ++ended;
          break;
        default:
          limiter.async_acquire(n, [&, n](error_code ec) {
            given += ec ? 0 : n;
            ++ended;
          });
        }
      }
    });
  threads.emplace_back([&] { c.io.run(); });
  const auto start = c.now();
  while (ended != 3 * rounds) {
    c.clock.advance(10us);
    std::this_thread::yield();
  }
  work.reset();
  for (auto& t : threads)
    t.join();
  const auto arrived = static_cast<std::uint64_t>((c.now() - start) / 1us);
  BOOST_TEST(given + limiter.available() <= 1000u + arrived);
  BOOST_TEST(limiter.waiting() == 0u);
}
