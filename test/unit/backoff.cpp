//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/backoff.hpp>

#define BOOST_TEST_MODULE unit_backoff
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using namespace std::chrono_literals;
using asio_wheel::backoff;
using asio_wheel::jitter;

using duration = backoff::duration;

static_assert(std::is_nothrow_copy_constructible_v<backoff>);
static_assert(std::is_trivially_destructible_v<backoff>);

constexpr jitter jitters[] = {jitter::none, jitter::full, jitter::equal,
                              jitter::decorrelated};

std::vector<duration> take(backoff& b, std::size_t n) {
  std::vector<duration> delays;
  for (std::size_t i = 0; i != n; ++i)
    delays.push_back(b.next());
  return delays;
}

std::vector<duration> take(backoff&& b, std::size_t n) { return take(b, n); }

/// 100 ms, 200 ms, ... 1 s.
backoff usual() { return backoff::exponential(100ms, 1s); }

void check_delays(const std::vector<duration>& actual,
                  const std::vector<duration>& expected) {
  BOOST_REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i != actual.size(); ++i)
    BOOST_TEST(actual[i].count() == expected[i].count(), "delay " << i);
}

/// Checks that f throws an invalid_argument that says `what`.
template <typename F> void check_rejected(F&& f, const std::string& what) {
  BOOST_CHECK_EXCEPTION(
      f(), std::invalid_argument, [&](const std::invalid_argument& e) {
        BOOST_TEST_MESSAGE(e.what());
        return std::string(e.what()).find(what) != std::string::npos;
      });
}

} // namespace

// ---------------------------------------------------------------------------
// Without jitter

BOOST_AUTO_TEST_CASE(constant_is_always_the_same) {
  check_delays(take(backoff::constant(7ms), 4), {7ms, 7ms, 7ms, 7ms});
  check_delays(take(backoff::constant(0ms), 2), {0ms, 0ms});
  check_delays(take(backoff::constant(duration::max()), 2),
               {duration::max(), duration::max()});
}

BOOST_AUTO_TEST_CASE(linear_grows_by_the_step_up_to_the_cap) {
  check_delays(take(backoff::linear(10ms, 15ms, 50ms), 6),
               {10ms, 25ms, 40ms, 50ms, 50ms, 50ms});
  check_delays(take(backoff::linear(10ms, 0ms, 50ms), 3), {10ms, 10ms, 10ms});
  check_delays(take(backoff::linear(10ms, 10ms, 10ms), 3), {10ms, 10ms, 10ms});
}

BOOST_AUTO_TEST_CASE(exponential_grows_by_the_factor_up_to_the_cap) {
  check_delays(take(usual(), 6), {100ms, 200ms, 400ms, 800ms, 1s, 1s});
  check_delays(take(backoff::exponential(100ms, 1s, 3), 4),
               {100ms, 300ms, 900ms, 1s});
  check_delays(take(backoff::exponential(100ms, 1s, 1.5), 4),
               {100ms, 150ms, 225ms, 337500us});
  check_delays(take(backoff::exponential(100ms, 1s, 1), 3),
               {100ms, 100ms, 100ms});
}

BOOST_AUTO_TEST_CASE(a_small_factor_is_not_lost_to_rounding) {
  backoff b = backoff::exponential(1ns, 1h, 1.25);
  const auto delays = take(b, 11);
  BOOST_TEST(delays[4].count() == 2);  // 1.25^4 = 2.44
  BOOST_TEST(delays[10].count() == 9); // 1.25^10 = 9.31
}

// A1
BOOST_AUTO_TEST_CASE(saturates_at_a_cap_at_the_end_of_time) {
  for (const duration cap :
       {duration::max(), duration::max() - 1ns, duration::max() / 10}) {
    for (backoff b :
         {backoff::exponential(1ns, cap), backoff::exponential(1ns, cap, 1e300),
          backoff::exponential(cap, cap),
          backoff::linear(1ns, duration::max(), cap),
          backoff::linear(cap, duration::max(), cap)}) {
      duration last = 0ns;
      for (int i = 0; i != 10'000; ++i) {
        const duration d = b.next();
        BOOST_REQUIRE((d >= last));
        BOOST_REQUIRE((d <= cap));
        last = d;
      }
      BOOST_TEST(last.count() == cap.count());
    }
  }
}

BOOST_AUTO_TEST_CASE(the_first_delay_is_exact_however_long) {
  const duration odd = duration::max() - 12345ns;
  BOOST_TEST((backoff::linear(odd, 1ns, duration::max()).next() == odd));
}

BOOST_AUTO_TEST_CASE(attempt_counts_the_delays_and_reset_starts_again) {
  backoff b = usual();
  BOOST_TEST(b.attempt() == 0u);
  take(b, 3);
  BOOST_TEST(b.attempt() == 3u);
  b.reset();
  BOOST_TEST(b.attempt() == 0u);
  check_delays(take(b, 3), {100ms, 200ms, 400ms});
}

BOOST_AUTO_TEST_CASE(a_copy_goes_on_from_where_the_original_is) {
  backoff a = usual().jitter(jitter::full).seed(1);
  take(a, 2);
  backoff b = a;
  check_delays(take(b, 10), take(a, 10));
  BOOST_TEST(b.attempt() == 12u);
}

// ---------------------------------------------------------------------------
// Jitter. The literal values were computed by another program, from the
// definitions.

BOOST_AUTO_TEST_CASE(full_jitter_with_a_seed) {
  check_delays(take(usual().jitter(jitter::full).seed(42), 6),
               {60701454ns, 177761905ns, 14554519ns, 321758199ns, 440430465ns,
                647007953ns});
  check_delays(take(usual().seed(0).jitter(jitter::full), 2),
               {16524998ns, 192923289ns});
}

BOOST_AUTO_TEST_CASE(equal_jitter_with_a_seed) {
  check_delays(take(usual().jitter(jitter::equal).seed(42), 6),
               {66130230ns, 128631665ns, 366345245ns, 785260654ns, 738897681ns,
                631026875ns});
}

BOOST_AUTO_TEST_CASE(decorrelated_jitter_with_a_seed) {
  check_delays(take(usual().jitter(jitter::decorrelated).seed(42), 6),
               {257988092ns, 277326833ns, 391006858ns, 531563089ns, 149778446ns,
                133284130ns});
}

BOOST_AUTO_TEST_CASE(no_jitter_takes_no_chances) {
  check_delays(take(usual().jitter(jitter::full).jitter(jitter::none), 3),
               {100ms, 200ms, 400ms});
}

BOOST_AUTO_TEST_CASE(every_jitter_keeps_to_its_bounds_and_reaches_them) {
  // So few values that each is drawn.
  for (std::uint64_t seed = 0; seed != 50; ++seed) {
    backoff full = backoff::constant(5ns).jitter(jitter::full).seed(seed);
    backoff equal = backoff::constant(5ns).jitter(jitter::equal).seed(seed);
    std::set<duration> f, e;
    for (int i = 0; i != 200; ++i) {
      f.insert(full.next());
      e.insert(equal.next());
    }
    BOOST_TEST((f == std::set<duration>{0ns, 1ns, 2ns, 3ns, 4ns, 5ns}));
    BOOST_TEST((e == std::set<duration>{3ns, 4ns, 5ns}));

    backoff decorrelated =
        backoff::exponential(100ms, 1s).jitter(jitter::decorrelated).seed(seed);
    duration last = 100ms;
    bool capped = false;
    for (int i = 0; i != 200; ++i) {
      const duration d = decorrelated.next();
      BOOST_TEST((d >= 100ms));
      BOOST_TEST((d <= std::min<duration>(1s, 3 * last)));
      capped = capped || d == 1s;
      last = d;
    }
    BOOST_TEST(capped);
  }
}

BOOST_AUTO_TEST_CASE(reset_starts_decorrelated_jitter_from_the_first_delay) {
  backoff b =
      backoff::exponential(1ms, 1h).jitter(jitter::decorrelated).seed(3);
  for (int i = 0; i != 100; ++i) {
    BOOST_TEST((b.next() <= 3ms));
    take(b, 5);
    b.reset();
  }
}

BOOST_AUTO_TEST_CASE(what_full_jitter_draws_is_evenly_distributed) {
  constexpr int draws = 100'000;
  std::array<int, 20> buckets{};
  const duration most = 1s;
  backoff b = backoff::constant(most).jitter(jitter::full).seed(99);
  for (int i = 0; i != draws; ++i)
    ++buckets[std::min<std::size_t>(
        buckets.size() - 1,
        static_cast<std::size_t>(b.next() / (most / buckets.size())))];
  // Chi squared with 19 degrees of freedom is above 43.8 once in 1,000 times.
  const double expected = double(draws) / double(buckets.size());
  double chi2 = 0;
  for (const int n : buckets)
    chi2 += (n - expected) * (n - expected) / expected;
  BOOST_TEST(chi2 < 43.8);
  BOOST_TEST(chi2 > 5); // nor too even
}

BOOST_AUTO_TEST_CASE(jitter_of_the_longest_and_of_no_delay) {
  for (const jitter j : jitters) {
    backoff longest = backoff::constant(duration::max()).jitter(j).seed(5);
    backoff none = backoff::constant(0ns).jitter(j).seed(5);
    backoff wide = backoff::exponential(1ns, duration::max()).jitter(j).seed(5);
    for (int i = 0; i != 1000; ++i) {
      BOOST_REQUIRE((longest.next() >= 0ns));
      BOOST_REQUIRE((none.next() == 0ns));
      BOOST_REQUIRE((wide.next() >= 0ns));
    }
  }
}

BOOST_AUTO_TEST_CASE(without_a_seed_each_draws_chances_of_its_own) {
  const backoff shared = usual().jitter(jitter::full);
  std::set<duration> firsts;
  for (int i = 0; i != 100; ++i)
    firsts.insert(take(backoff(shared), 1)[0]);
  BOOST_TEST(firsts.size() > 90u);
}

BOOST_AUTO_TEST_CASE(a_seed_given_late_counts_from_there) {
  backoff b = usual().jitter(jitter::full);
  take(b, 3);
  b.reset();
  b.seed(42);
  check_delays(take(b, 2), {60701454ns, 177761905ns});
}

// ---------------------------------------------------------------------------
// Bad input

BOOST_AUTO_TEST_CASE(bad_input_is_rejected_by_name) {
  check_rejected([] { backoff::constant(-1ns); }, "d must not be negative");
  check_rejected([] { backoff::constant(duration::min()); }, "constant");

  for (const duration d : {duration(0), duration(-1ns), duration::min()}) {
    check_rejected([&] { backoff::linear(d, 1ms, 1s); },
                   "linear: first must be positive");
    check_rejected([&] { backoff::exponential(d, 1s); },
                   "exponential: first must be positive");
  }
  check_rejected([] { backoff::linear(10ms, -1ns, 1s); }, "step");
  check_rejected([] { backoff::linear(10ms, 1ms, 10ms - 1ns); },
                 "cap must not be less than first");
  check_rejected([] { backoff::exponential(10ms, 10ms - 1ns); },
                 "cap must not be less than first");
  check_rejected([] { backoff::exponential(10ms, duration::min()); }, "cap");

  for (const double factor :
       {0.999, 0.0, -2.0, std::numeric_limits<double>::infinity(),
        std::numeric_limits<double>::quiet_NaN()})
    check_rejected([&] { backoff::exponential(10ms, 1s, factor); },
                   "factor must be finite and at least 1");
}
