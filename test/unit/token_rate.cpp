//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/token_rate.hpp>

#include <asio_wheel/detail/token_bucket.hpp>

#define BOOST_TEST_MODULE unit_token_rate
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <limits>
#include <random>

namespace {

using namespace std::chrono_literals;
using asio_wheel::token_rate;
using asio_wheel::detail::token_bucket;

using duration = token_rate::duration;
using time_point = token_bucket::time_point;

__extension__ using wide = __int128;

} // namespace

BOOST_AUTO_TEST_CASE(a_number_is_the_simplest_fraction_it_stands_for) {
  BOOST_TEST((token_rate(100) == token_rate(100, 1s)));
  BOOST_TEST((token_rate(1e6) == token_rate(1, 1us)));
  BOOST_TEST((token_rate(0.1) == token_rate(1, 10s)));
  BOOST_TEST((token_rate(1.0 / 3) == token_rate(1, 3s)));
  BOOST_TEST((token_rate(3 / 0.007) == token_rate(3, 7ms)));
  BOOST_TEST((token_rate(1234567.89) == token_rate(123456789, 100s)));
  std::minstd_rand random(1);
  for (int i = 0; i != 10'000; ++i) {
    const auto p = static_cast<std::int64_t>(1 + random() % 1'000'000);
    const auto q = static_cast<std::int64_t>(1 + random() % 10'000);
    const token_rate exact(p, std::chrono::seconds(q));
    const token_rate number(static_cast<double>(p) / static_cast<double>(q));
    BOOST_REQUIRE((number == exact));
  }
}

BOOST_AUTO_TEST_CASE(a_rate_is_in_lowest_terms) {
  const token_rate r(1000, 1s);
  BOOST_TEST(r.tokens() == 1);
  BOOST_TEST((r.per() == 1ms));
  BOOST_TEST(r.per_second() == 1000.0);
  BOOST_TEST((r != token_rate(1001, 1s)));
}

BOOST_AUTO_TEST_CASE(any_finite_positive_number_is_a_rate) {
  for (const double r :
       {std::numeric_limits<double>::denorm_min(), 1e-300, 1e-12, 1e-9, 1e9,
        4e18, 1e19, 1e300, std::numeric_limits<double>::max()}) {
    const token_rate rate(r);
    BOOST_TEST(rate.tokens() > 0);
    BOOST_TEST((rate.per() > duration::zero()));
    if (r >= 1e-9 && r <= 4e18)
      BOOST_TEST(rate.per_second() == r, boost::test_tools::tolerance(1e-9));
  }
}

BOOST_AUTO_TEST_CASE(a_bucket_agrees_with_one_kept_in_128_bits) {
  for (unsigned seed = 1; seed != 60; ++seed) {
    std::mt19937_64 random(seed);
    const auto any = [&](std::int64_t most) {
      // Of all magnitudes.
      return 1 + static_cast<std::int64_t>((random() >> (1 + random() % 63)) %
                                           static_cast<std::uint64_t>(most));
    };
    const token_rate rate(any(std::int64_t{1} << 62),
                          duration(any(std::int64_t{1} << 62)));
    const std::int64_t burst = any(std::int64_t{1} << 53);
    time_point now(duration(static_cast<std::int64_t>(random() >> 2)) -
                   duration(std::int64_t{1} << 61));
    token_bucket bucket(rate, burst, now);
    const wide per = rate.per().count();
    wide level = burst; // in whole tokens, and a fraction of per
    wide fraction = 0;
    for (int i = 0; i != 200; ++i) {
      const std::int64_t n = any(burst);
      const duration d(any(std::int64_t{1} << 56));
      switch (random() % 6) {
      case 0: {
        const bool took = bucket.take(static_cast<std::uint64_t>(n));
        BOOST_REQUIRE(took == (level >= n));
        level -= took ? n : 0;
        break;
      }
      case 1:
        bucket.spend(static_cast<std::uint64_t>(n));
        level -= n;
        break;
      case 2:
        bucket.give_back(static_cast<std::uint64_t>(n));
        level += n;
        break;
      case 3: {
        // As soon as when() says, and not before.
        const time_point when = bucket.when(static_cast<std::uint64_t>(n));
        if (when == time_point::max() || level >= n)
          break;
        token_bucket early = bucket, on_time = bucket;
        early.advance(when - duration(1));
        BOOST_REQUIRE(early.tokens() < n);
        on_time.advance(when);
        BOOST_REQUIRE(on_time.tokens() >= n);
        break;
      }
      default:
        now += d;
        bucket.advance(now);
        fraction += wide{d.count()} * rate.tokens();
        level += fraction / per;
        fraction %= per;
      }
      if (level >= burst) {
        level = burst;
        fraction = 0;
      }
      BOOST_REQUIRE((wide{bucket.tokens()} == level));
    }
  }
}
