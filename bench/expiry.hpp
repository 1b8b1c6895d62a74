//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BENCH_EXPIRY_HPP
#define ASIO_WHEEL_BENCH_EXPIRY_HPP

#include "contest.hpp"
#include "machine.hpp"
#include "plan.hpp"
#include "settings.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/// Sets a clock on in equal steps, and polls after each.
class time_lapse {
public:
  /// @param step A multiple of the wheel's tick.
  time_lapse(std::chrono::nanoseconds length, std::chrono::nanoseconds step)
      : step_(step), steps_(static_cast<std::size_t>(length / step)) {}

  std::chrono::nanoseconds step() const noexcept { return step_; }
  std::size_t steps() const noexcept { return steps_; }

  /// Returns the CPU time. Calls @c after(step number) after each poll.
  template <typename Timers, typename After>
  double run(Timers& timers, After after) const {
    const double start = cpu_nanoseconds();
    for (std::size_t i = 1; i <= steps_; ++i) {
      timers.set_on(step_);
      timers.poll();
      after(i);
    }
    return cpu_nanoseconds() - start;
  }

private:
  std::chrono::nanoseconds step_;
  std::size_t steps_;
};

/// All timers expire in the course of the time lapse; their handlers run.
template <typename Timers> class expiring final : public contestant {
public:
  expiring(const settings& s, std::size_t size, const plan& p,
           const time_lapse& lapse)
      : timers_(s, size), plan_(p), lapse_(lapse) {
    // How many may have fired after each step, and how many must.
    const auto tick = std::max<std::chrono::nanoseconds>(
        s.wheel.tick, std::chrono::milliseconds(1));
    may_.resize(lapse.steps() + 1);
    must_.resize(lapse.steps() + 1);
    for (const auto& step : p.steps()) {
      const std::chrono::nanoseconds d = step.delay();
      const auto first_step_after = [&](std::chrono::nanoseconds t) {
        return std::min<std::size_t>(
            static_cast<std::size_t>(
                (t + lapse.step() - std::chrono::nanoseconds(1)) /
                lapse.step()),
            lapse.steps());
      };
      ++may_[first_step_after(d)];
      ++must_[first_step_after(d + tick)];
    }
    for (std::size_t i = 1; i <= lapse.steps(); ++i) {
      may_[i] += may_[i - 1];
      must_[i] += must_[i - 1];
    }
  }

  void prepare() override {
    for (const auto& step : plan_.steps())
      timers_.start(step.index, step.delay());
    timers_.poll();
  }

  double run(bool) override {
    const auto before = timers_.fired();
    return lapse_.run(timers_, [&](std::size_t step) {
      const auto fired = timers_.fired() - before;
      early_ += fired > may_[step];
      late_ += fired < must_[step];
    });
  }

  std::string verify() override {
    if (early_ != 0 || late_ != 0)
      return std::to_string(early_) + " times handlers had run too early, " +
             std::to_string(late_) + " times more than a tick too late";
    return timers_.verify();
  }

private:
  Timers timers_;
  const plan& plan_;
  const time_lapse& lapse_;
  std::vector<std::uint64_t> may_, must_;
  std::uint64_t early_ = 0, late_ = 0;
};

/// All timers are overdue when the loop gets its turn; their handlers run.
/** In real time: for those that know no other. */
template <typename Timers> class expiring_overdue final : public contestant {
public:
  expiring_overdue(const settings& s, std::size_t size, const plan& p)
      : timers_(s, size), plan_(p) {
    for (const auto& step : p.steps())
      longest_ = std::max<std::chrono::nanoseconds>(longest_, step.delay());
    longest_ += s.wheel.tick;
  }

  void prepare() override {
    timers_.poll();
    for (const auto& step : plan_.steps())
      timers_.start(step.index, step.delay());
    // Some look at a clock of the kernel that goes in ticks of up to 10 ms.
    const auto all_due = std::chrono::steady_clock::now() + longest_ +
                         std::chrono::milliseconds(20);
    while (std::chrono::steady_clock::now() < all_due)
      ;
  }

  double run(bool) override {
    const auto before = timers_.fired();
    const double start = cpu_nanoseconds();
    for (std::size_t polls = 0; polls <= timers_.size(); ++polls) {
      timers_.poll();
      if (timers_.fired() - before >= timers_.size())
        break;
    }
    const double t = cpu_nanoseconds() - start;
    wrong_ +=
        timers_.fired() - before != timers_.size() || timers_.pending() != 0;
    return t;
  }

  std::string verify() override {
    if (wrong_ != 0)
      return std::to_string(wrong_) + " times not each handler ran once";
    return timers_.verify();
  }

private:
  Timers timers_;
  const plan& plan_;
  std::chrono::nanoseconds longest_{};
  std::uint64_t wrong_ = 0;
};

} // namespace bench

#endif // ASIO_WHEEL_BENCH_EXPIRY_HPP
