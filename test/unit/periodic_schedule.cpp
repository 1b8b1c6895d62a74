//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/detail/periodic_schedule.hpp>

#define BOOST_TEST_MODULE unit_periodic_schedule
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstdint>
#include <stdexcept>

// The arithmetic. What it means for a timer is tested with periodic_timer.

namespace {

using namespace std::chrono_literals;
using asio_wheel::missed_tick_policy;
using asio_wheel::periodic_mode;
using asio_wheel::periodic_options;
using asio_wheel::detail::periodic_schedule;

using duration = periodic_schedule::duration;
using time_point = periodic_schedule::time_point;

constexpr missed_tick_policy policies[] = {missed_tick_policy::burst,
                                           missed_tick_policy::skip,
                                           missed_tick_policy::delay};

periodic_options with(missed_tick_policy policy) {
  periodic_options o;
  o.missed_ticks = policy;
  return o;
}

} // namespace

BOOST_AUTO_TEST_CASE(each_policy_accounts_for_every_period) {
  // Late by anything from 0 to 3 periods, in every combination of two.
  for (const auto policy : policies)
    for (duration a = 0ms; a <= 30ms; a += 1ms)
      for (duration b = 0ms; b <= 30ms; b += 1ms) {
        periodic_schedule s(time_point(), 10ms, with(policy), 1ms);
        for (const duration late : {a, b}) {
          const time_point due = s.next();
          const time_point now = due + late;
          const std::size_t missed = s.take(now);
          BOOST_TEST(missed == static_cast<std::size_t>(late / 10ms));
          switch (policy) {
          case missed_tick_policy::burst:
            BOOST_TEST((s.next() == due + 10ms));
            break;
          case missed_tick_policy::skip:
            BOOST_TEST((s.next() == due + 10ms * (1 + missed)));
            BOOST_TEST((s.next() > now));
            break;
          case missed_tick_policy::delay:
            BOOST_TEST((s.next() == (late > 2ms ? now : due) + 10ms));
            break;
          }
        }
      }
}

BOOST_AUTO_TEST_CASE(does_not_drift_over_a_million_periods) {
  // Each tick up to a millisecond late, as on a wheel.
  for (const auto policy : policies) {
    const duration period = 1234567ns;
    periodic_schedule s(time_point(), period, with(policy), 1ms);
    for (std::int64_t i = 1; i <= 1'000'000; ++i) {
      if (s.next() != time_point(period * i))
        BOOST_FAIL("tick " << i);
      if (s.take(s.next() + duration(i * 7919 % 1'000'000)) != 0)
        BOOST_FAIL("missed at " << i);
    }
  }
}

BOOST_AUTO_TEST_CASE(saturates_at_both_ends_of_time) {
  for (const auto policy : policies)
    for (const auto mode :
         {periodic_mode::fixed_rate, periodic_mode::fixed_delay})
      for (const time_point start :
           {time_point::min(), time_point(), time_point::max()})
        for (const duration period : {duration(1), duration::max() / 10,
                                      duration::max() - 1ns, duration::max()}) {
          periodic_options o = with(policy);
          o.mode = mode;
          periodic_schedule s(start, period, o, 1ms);
          BOOST_TEST((s.next() > start || start == time_point::max()));
          BOOST_TEST(
              ((s.next() == time_point::max()) ==
               (period == duration::max() || start == time_point::max())));
          // However late: what follows is in order.
          const time_point due = s.next();
          const std::size_t missed = s.take(time_point::max());
          s.resume(time_point::max());
          BOOST_TEST((s.next() >= due));
          if (period == duration(1))
            BOOST_TEST(
                missed ==
                static_cast<std::uint64_t>(
                    time_point::max().time_since_epoch().count()) -
                    static_cast<std::uint64_t>(due.time_since_epoch().count()));
        }
}

BOOST_AUTO_TEST_CASE(an_endless_period_before_the_epoch_has_no_end) {
  periodic_schedule s(time_point(-1h), duration::max(), {}, 1ms);
  BOOST_TEST((s.next() == time_point::max()));
}

BOOST_AUTO_TEST_CASE(a_huge_slack_saturates_what_counts_as_on_time) {
  periodic_options o = with(missed_tick_policy::delay);
  o.slack = duration::max();
  periodic_schedule s(time_point(), 1h, o, 1ms);
  s.take(time_point(1h + 59min)); // within the slack: on time
  BOOST_TEST((s.next() == time_point(2h)));
}

BOOST_AUTO_TEST_CASE(a_tick_made_too_soon_counts_as_in_time) {
  for (const auto policy : policies) {
    periodic_schedule s(time_point(), 10ms, with(policy), 1ms);
    BOOST_TEST(s.take(time_point(3ms)) == 0u);
    BOOST_TEST((s.next() == time_point(20ms)));
  }
}

BOOST_AUTO_TEST_CASE(restart_and_reset_at_end_the_work_of_a_fixed_delay) {
  periodic_options o;
  o.mode = periodic_mode::fixed_delay;
  periodic_schedule s(time_point(), 10ms, o, 1ms);
  BOOST_TEST(!s.at_work());
  s.take(time_point(10ms));
  BOOST_TEST(s.at_work());
  s.restart(time_point(15ms));
  BOOST_TEST(!s.at_work());
  BOOST_TEST((s.next() == time_point(25ms)));
  s.take(time_point(25ms));
  s.reset_at(time_point(99ms));
  BOOST_TEST(!s.at_work());
  s.resume(time_point(50ms)); // nothing to resume
  BOOST_TEST((s.next() == time_point(99ms)));
}
