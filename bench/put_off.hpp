//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BENCH_PUT_OFF_HPP
#define ASIO_WHEEL_BENCH_PUT_OFF_HPP

#include "contest.hpp"
#include "expiry.hpp"
#include "plan.hpp"
#include "settings.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

// What a cheap refresh leaves to be done later. Not once per refresh, however
// many there are, but once in each timeout, period or slack.

namespace bench {

/// A timer that was rearmed is linked anew when its former expiry comes.
template <typename Timers> class passing_rearmed final : public contestant {
public:
  /// @param lapse Passes the expiries of @c first, and ends before those of
  /// @c then.
  passing_rearmed(const settings& s, std::size_t size, const plan& first,
                  const plan& then, const time_lapse& lapse)
      : timers_(s, size), first_(first), then_(then), lapse_(lapse) {}

  void prepare() override {
    timers_.cancel_all();
    for (const auto& step : first_.steps())
      timers_.start(step.index, step.delay());
    for (const auto& step : then_.steps())
      timers_.refresh(step.index, step.delay());
    timers_.poll();
  }

  double run(bool) override {
    return lapse_.run(timers_, [](std::size_t) {});
  }

  std::string verify() override {
    return timers_.fired() != 0 ? "handlers ran too early" : timers_.verify();
  }

private:
  Timers timers_;
  const plan &first_, &then_;
  const time_lapse& lapse_;
};

/// A watchdog looks, and finds that it was kicked.
template <typename Dogs> class checking_kicked final : public contestant {
public:
  /**
   * @param order The order in which the watchdogs are started.
   * @param lapse A step less than the time from one check to the next.
   */
  checking_kicked(const settings& s, std::size_t size, const plan& order,
                  const time_lapse& lapse, std::chrono::nanoseconds period,
                  std::chrono::nanoseconds slack)
      : settings_(s), size_(size), order_(order), lapse_(lapse),
        period_(period), slack_(slack) {}

  // Each time they are made anew: those that are kicked at one time would all
  // look at one time. They are started over almost the whole of one lapse; in
  // the next each of them looks once.
  void prepare() override {
    dogs_.emplace(settings_, size_);
    std::size_t started = 0;
    lapse_.run(*dogs_, [&](std::size_t step) {
      for (; started * (lapse_.steps() - 2) < size_ * step && started < size_;
           ++started)
        dogs_->start(order_.steps()[started].index, period_, slack_);
    });
    dogs_->kick_all();
  }

  double run(bool) override {
    return lapse_.run(*dogs_, [](std::size_t) {});
  }

  std::string verify() override { return dogs_->verify(); }

private:
  const settings& settings_;
  std::size_t size_;
  const plan& order_;
  const time_lapse& lapse_;
  std::chrono::nanoseconds period_, slack_;
  std::optional<Dogs> dogs_;
};

} // namespace bench

#endif // ASIO_WHEEL_BENCH_PUT_OFF_HPP
