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
#include "timer_set.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <string>

// Workloads that do one thing to one timer after another.

namespace bench {

/// Go through a plan; now and then the context gets its turn, as in a server.
/**
 * So handlers of aborted waits run, and their cost is in the figure, as is that
 * of a poll that finds nothing to do.
 */
template <bool Fenced, typename Operation>
double timed(asio::io_context& io, const plan& p, std::size_t poll_every,
             Operation operation) {
  const double start = cpu_nanoseconds();
  std::size_t until_poll = poll_every;
  for (const auto& step : p.steps()) {
    if (Fenced)
      fence();
    operation(step);
    if (--until_poll == 0) {
      until_poll = poll_every;
      io.poll();
    }
  }
  io.poll();
  return cpu_nanoseconds() - start;
}

template <typename Operation>
double timed(bool fenced, asio::io_context& io, const plan& p,
             std::size_t poll_every, Operation operation) {
  return fenced ? timed<true>(io, p, poll_every, operation)
                : timed<false>(io, p, poll_every, operation);
}

/// Nothing: what the loop itself takes, its polls included.
class bare_loop final : public contestant {
public:
  bare_loop(const settings& s, const plan& p)
      : plan_(p), poll_every_(s.poll_every) {
    // With a timer pending a poll asks the kernel, as it does for the others.
    timer_.async_wait([](const boost::system::error_code&) {});
  }

  void prepare() override {}

  double run(bool fenced) override {
    return timed(fenced, io_, plan_, poll_every_, [](const plan::step& step) {
      __asm__ __volatile__("" : : "r"(step.index), "r"(step.microseconds));
    });
  }

  std::string verify() override { return {}; }

private:
  asio::io_context io_{1};
  asio::steady_timer timer_{io_, std::chrono::hours(1)};
  const plan& plan_;
  std::size_t poll_every_;
};

/// Timers that exist get an expiry and a wait.
template <typename Library, typename Executor, typename Handlers>
class adding final : public contestant {
public:
  adding(const settings& s, std::size_t size, const plan& p)
      : timers_(s, size), plan_(p), poll_every_(s.poll_every) {}

  void prepare() override { timers_.cancel_all(); }

  double run(bool fenced) override {
    return timed(
        fenced, timers_.context(), plan_, poll_every_,
        [&](const plan::step& s) { timers_.start(s.index, s.delay()); });
  }

  std::string verify() override { return timers_.verify(); }

private:
  timer_set<Library, Executor, Handlers> timers_;
  const plan& plan_;
  std::size_t poll_every_;
};

/// What is done to a timer with a pending wait.
struct cancel_and_add {
  template <typename Timers> static void apply(Timers& t, const plan::step& s) {
    t.cancel(s.index);
    t.start(s.index, s.delay());
  }
};

struct expire_and_wait_anew {
  template <typename Timers> static void apply(Timers& t, const plan::step& s) {
    t.start(s.index, s.delay());
  }
};

struct rearm {
  template <typename Timers> static void apply(Timers& t, const plan::step& s) {
    t.rearm(s.index, s.delay());
  }
};

/// All timers have a pending wait; each operation changes one timer's.
template <typename Library, typename Executor, typename Handlers,
          typename Operation>
class changing final : public contestant {
public:
  /// @param first The waits that are pending at the start.
  changing(const settings& s, std::size_t size, const plan& first,
           const plan& p)
      : timers_(s, size), first_(first), plan_(p), poll_every_(s.poll_every) {
    if (s.aged) {
      prepare();
      const plan churn(size, 2 * size, plan::order::random,
                       std::chrono::seconds(10), std::chrono::seconds(30),
                       s.seed);
      timed<false>(
          timers_.context(), churn, poll_every_,
          [&](const plan::step& t) { timers_.start(t.index, t.delay()); });
    }
  }

  void prepare() override {
    timed<false>(
        timers_.context(), first_, poll_every_,
        [&](const plan::step& s) { timers_.start(s.index, s.delay()); });
  }

  double run(bool fenced) override {
    return timed(fenced, timers_.context(), plan_, poll_every_,
                 [&](const plan::step& s) { Operation::apply(timers_, s); });
  }

  std::string verify() override { return timers_.verify(); }

private:
  timer_set<Library, Executor, Handlers> timers_;
  const plan &first_, &plan_;
  std::size_t poll_every_;
};

/// Each operation kicks a watchdog.
template <typename Executor> class kicking final : public contestant {
public:
  kicking(const settings& s, std::size_t size, const plan& p,
          std::chrono::nanoseconds period, std::chrono::nanoseconds slack)
      : dogs_(s, size), plan_(p), poll_every_(s.poll_every) {
    for (std::size_t i = 0; i < size; ++i)
      dogs_.start(i, period, slack);
  }

  void prepare() override { dogs_.kick_all(); }

  double run(bool fenced) override {
    return timed(fenced, dogs_.context(), plan_, poll_every_,
                 [&](const plan::step& s) { dogs_.kick(s.index); });
  }

  std::string verify() override { return dogs_.verify(); }

private:
  watchdog_set<wheel_timers, Executor> dogs_;
  const plan& plan_;
  std::size_t poll_every_;
};

} // namespace bench

#endif // ASIO_WHEEL_BENCH_RANDOM_ACCESS_HPP
