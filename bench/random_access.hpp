//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BENCH_RANDOM_ACCESS_HPP
#define ASIO_WHEEL_BENCH_RANDOM_ACCESS_HPP

#include "contest.hpp"
#include "machine.hpp"
#include "plan.hpp"
#include "settings.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

// Workloads that do one thing to one timer after another.

namespace bench {

/// Go through a plan; now and then the loop gets its turn, as in a server.
/**
 * So handlers of aborted waits run, and their cost is in the figure, as is that
 * of a poll that finds nothing to do.
 */
template <bool Fenced, typename Timers, typename Operation>
double timed(Timers& timers, const plan& p, std::size_t poll_every,
             Operation operation) {
  const double start = cpu_nanoseconds();
  std::size_t until_poll = poll_every;
  for (const auto& step : p.steps()) {
    if (Fenced)
      fence();
    operation(step);
    if (--until_poll == 0) {
      until_poll = poll_every;
      timers.poll();
    }
  }
  timers.poll();
  return cpu_nanoseconds() - start;
}

template <typename Timers, typename Operation>
double timed(bool fenced, Timers& timers, const plan& p, std::size_t poll_every,
             Operation operation) {
  return fenced ? timed<true>(timers, p, poll_every, operation)
                : timed<false>(timers, p, poll_every, operation);
}

/// Timers that exist get an expiry and a wait.
template <typename Timers> class adding final : public contestant {
public:
  adding(const settings& s, std::size_t size, const plan& p)
      : timers_(s, size), plan_(p), poll_every_(s.poll_every) {}

  void prepare() override { timers_.cancel_all(); }

  double run(bool fenced) override {
    const auto fired = timers_.fired();
    const double t =
        timed(fenced, timers_, plan_, poll_every_,
              [&](const plan::step& s) { timers_.start(s.index, s.delay()); });
    wrong_ += timers_.pending() + (timers_.fired() - fired) != timers_.size();
    return t;
  }

  std::string verify() override {
    if (wrong_ != 0)
      return std::to_string(wrong_) + " times not each wait was pending or had "
                                      "ended";
    return timers_.verify();
  }

private:
  Timers timers_;
  const plan& plan_;
  std::size_t poll_every_;
  std::uint64_t wrong_ = 0;
};

/// What is done to a timer with a pending wait.
struct cancel_and_add {
  static constexpr bool ends_waits = false;
  template <typename Timers> static void apply(Timers& t, const plan::step& s) {
    t.cancel(s.index);
    t.start(s.index, s.delay());
  }
};

struct refresh {
  static constexpr bool ends_waits = false;
  template <typename Timers> static void apply(Timers& t, const plan::step& s) {
    t.refresh(s.index, s.delay());
  }
};

/// All timers have a pending wait; each operation changes one timer's.
template <typename Timers, typename Operation>
class changing final : public contestant {
public:
  /// @param first The waits that are pending at the start.
  changing(const settings& s, std::size_t size, const plan& first,
           const plan& p)
      : timers_(s, size), first_(first), plan_(p), poll_every_(s.poll_every) {
    if (s.aged) {
      prepare();
      start_all(plan(size, 2 * size, plan::order::random,
                     std::chrono::seconds(10), std::chrono::seconds(30),
                     s.seed));
    }
  }

  void prepare() override {
    fired_before_ = timers_.fired();
    start_all(first_);
  }

  double run(bool fenced) override {
    const double t =
        timed(fenced, timers_, plan_, poll_every_,
              [&](const plan::step& s) { Operation::apply(timers_, s); });
    // One that fired may have been started again. (Of the peers some count a
    // delay from when they last looked at the clock, so that it may be over
    // before the run.)
    if (!Operation::ends_waits)
      lost_ += timers_.pending() + (timers_.fired() - fired_before_) <
               timers_.size();
    return t;
  }

  std::string verify() override {
    if (lost_ != 0)
      return std::to_string(lost_) + " times waits had got lost";
    return timers_.verify();
  }

private:
  void start_all(const plan& p) {
    timed<false>(timers_, p, poll_every_, [&](const plan::step& s) {
      timers_.start(s.index, s.delay());
    });
  }

  Timers timers_;
  const plan &first_, &plan_;
  std::size_t poll_every_;
  std::uint64_t fired_before_ = 0, lost_ = 0;
};

/// Each operation kicks a watchdog.
template <typename Dogs> class kicking final : public contestant {
public:
  kicking(const settings& s, std::size_t size, const plan& p,
          std::chrono::nanoseconds period, std::chrono::nanoseconds slack)
      : dogs_(s, size), plan_(p), poll_every_(s.poll_every) {
    for (std::size_t i = 0; i < size; ++i)
      dogs_.start(i, period, slack);
  }

  void prepare() override { dogs_.kick_all(); }

  double run(bool fenced) override {
    return timed(fenced, dogs_, plan_, poll_every_,
                 [&](const plan::step& s) { dogs_.kick(s.index); });
  }

  std::string verify() override { return dogs_.verify(); }

private:
  Dogs dogs_;
  const plan& plan_;
  std::size_t poll_every_;
};

} // namespace bench

#endif // ASIO_WHEEL_BENCH_RANDOM_ACCESS_HPP
