//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

//
// What a second thread on the same io_context brings.
//
//   threads             about a minute
//   threads --quick     a few seconds
//   threads --help
//
// Threads that each cancel timers of their own and start them again, at random,
// and poll one io_context: operations per second of real time, all threads
// together. Beside it, the same with an io_context for each thread; and two
// loops without timers, which show what the machine itself gives to a second
// thread. The exit status is 1 if a handler did not run once, with
// operation_aborted.
//

#include "command_line.hpp"
#include "libraries.hpp"
#include "machine.hpp"
#include "plan.hpp"
#include "report.hpp"
#include "settings.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/program_options.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace bench {

using namespace std::chrono_literals;

namespace {

using clock = std::chrono::steady_clock;

/// Lets all of them go at once.
class barrier {
public:
  explicit barrier(unsigned threads) : missing_(threads) {}

  void wait() noexcept {
    --missing_;
    while (missing_ != 0)
      std::this_thread::yield();
  }

private:
  std::atomic<unsigned> missing_;
};

/// One thread's part: first what is not timed, and then, once all threads have
/// come there, what is.
struct part {
  std::function<void(unsigned thread)> prepare, run;
};

/// Seconds from the first thread's start to the last one's end.
double seconds(unsigned threads, const part& p) {
  barrier ready(threads);
  std::vector<clock::time_point> begin(threads), end(threads);
  std::vector<std::thread> running;
  for (unsigned i = 0; i != threads; ++i)
    running.emplace_back([&, i] {
      p.prepare(i);
      ready.wait();
      begin[i] = clock::now();
      p.run(i);
      end[i] = clock::now();
    });
  for (auto& t : running)
    t.join();
  const std::chrono::duration<double> d =
      *std::max_element(end.begin(), end.end()) -
      *std::min_element(begin.begin(), begin.end());
  return d.count();
}

// What the handlers that ran on this thread were told. Not shared: a count that
// all threads write to would be what is measured.
thread_local std::uint64_t aborted = 0, otherwise = 0;

struct counting_handler {
  void operator()(const boost::system::error_code& ec) const noexcept {
    ++(ec == asio::error::operation_aborted ? aborted : otherwise);
  }
};

/// Each thread has its part of the timers, which it also constructs: so they
/// are on its shard.
template <typename Library> class cancel_and_add {
public:
  /// @param contexts One for all threads, or as many as threads.
  cancel_and_add(const settings& s, unsigned threads, unsigned contexts)
      : settings_(s), threads_(threads), contexts_(contexts),
        timers_per_thread_(s.sizes.front() / threads),
        operations_(s.operations / threads) {}

  /// Millions of operations per second.
  double round(std::uint64_t seed, report& r) {
    std::vector<std::unique_ptr<asio::io_context>> contexts;
    std::vector<work_guard> work;
    std::vector<Library> libraries;
    for (unsigned i = 0; i != contexts_; ++i) {
      contexts.push_back(std::make_unique<asio::io_context>(
          static_cast<int>(threads_ / contexts_)));
      work.emplace_back(contexts.back()->get_executor());
      libraries.emplace_back(*contexts.back(), settings_);
    }
    std::vector<std::vector<timer>> timers(threads_);
    std::vector<plan> plans;
    for (unsigned i = 0; i != threads_; ++i)
      plans.emplace_back(timers_per_thread_, operations_, plan::order::random,
                         10s, 60s, seed + i);
    std::atomic<std::uint64_t> told{0}, told_otherwise{0}, cancelled{0};

    const auto prepare = [&](unsigned i) {
      asio::io_context& io = *contexts[i % contexts_];
      timers[i].reserve(timers_per_thread_);
      for (std::size_t k = 0; k != timers_per_thread_; ++k) {
        timers[i].emplace_back(io.get_executor());
        timers[i].back().expires_after(30s);
        timers[i].back().async_wait(counting_handler());
      }
    };
    const auto run = [&](unsigned i) {
      asio::io_context& io = *contexts[i % contexts_];
      std::uint64_t n = 0;
      std::size_t until_poll = settings_.poll_every;
      for (const auto& step : plans[i].steps()) {
        timer& t = timers[i][step.index];
        n += t.cancel();
        t.expires_after(step.delay());
        t.async_wait(counting_handler());
        if (--until_poll == 0) {
          until_poll = settings_.poll_every;
          io.poll();
        }
      }
      io.poll();
      cancelled += n;
      told += std::exchange(aborted, 0);
      told_otherwise += std::exchange(otherwise, 0);
    };
    const double t = seconds(threads_, {prepare, run});

    for (auto& of_thread : timers)
      for (auto& each : of_thread)
        cancelled += each.cancel();
    for (auto& io : contexts)
      io->poll();
    told += std::exchange(aborted, 0);
    told_otherwise += std::exchange(otherwise, 0);
    if (told != cancelled || told_otherwise != 0 ||
        cancelled != threads_ * (timers_per_thread_ + operations_))
      r.add_failure(
          std::to_string(cancelled) + " of " +
          std::to_string(threads_ * (timers_per_thread_ + operations_)) +
          " waits were cancelled, " + std::to_string(told) +
          " handlers were told so, " + std::to_string(told_otherwise) +
          " something else");
    return static_cast<double>(threads_ * operations_) / t / 1e6;
  }

private:
  using timer =
      typename Library::template timer<asio::io_context::executor_type>;

  using work_guard = asio::executor_work_guard<asio::io_context::executor_type>;

  settings settings_;
  unsigned threads_, contexts_;
  std::size_t timers_per_thread_, operations_;
};

/// Arithmetic that touches no memory.
double arithmetic(unsigned threads, std::size_t operations) {
  const std::size_t each = operations / threads;
  const double t = seconds(threads, {[](unsigned) {},
                                     [&](unsigned i) {
                                       std::uint64_t x = i + 1;
                                       for (std::size_t k = 0; k != each; ++k) {
                                         x ^= x << 13;
                                         x ^= x >> 7;
                                         x ^= x << 17;
                                       }
                                       __asm__ __volatile__("" : : "r"(x));
                                     }});
  return static_cast<double>(threads * each) / t / 1e6;
}

/// Random reads, one after the other, of as much memory as the timers take.
double reads(unsigned threads, std::size_t operations,
             const std::vector<std::uint64_t>& memory) {
  const std::size_t each = operations / threads;
  const auto run = [&](unsigned i) {
    std::uint64_t x = i + 1;
    for (std::size_t k = 0; k != each; ++k) {
      x = x * 6364136223846793005u + 1442695040888963407u;
      x += memory[(x >> 33) % memory.size()]; // all zero
    }
    __asm__ __volatile__("" : : "r"(x));
  };
  return static_cast<double>(threads * each) /
         seconds(threads, {[](unsigned) {}, run}) / 1e6;
}

/// A row of a table: how a round of it is run.
struct contestant {
  std::string workload, who;
  std::optional<target> wanted;
  std::function<double(std::uint64_t seed)> round;
  std::vector<double> samples;
};

template <typename Library>
contestant timers(const char* name, const settings& s, unsigned threads,
                  unsigned contexts, std::string who,
                  std::optional<target> wanted, report& r) {
  return {std::string("cancel + add, ") + name,
          std::move(who),
          wanted,
          [=, &r](std::uint64_t seed) {
            return cancel_and_add<Library>(s, threads, contexts).round(seed, r);
          },
          {}};
}

void measure(const settings& s, report& r) {
  auto one_shard = s, two_shards = s;
  one_shard.wheel.shards = 1;
  two_shards.wheel.shards = 2;
  const std::vector<std::uint64_t> memory(s.sizes.front() * 128 /
                                          sizeof(std::uint64_t));
  const target wanted{target::kind::times_faster, 1.7};

  std::vector<contestant> all;
  const auto asio_timer = [&](unsigned threads, unsigned contexts,
                              const char* who) {
    all.push_back(
        timers<asio_timers>("steady_timer", s, threads, contexts, who, {}, r));
  };
  asio_timer(1, 1, "one thread");
  asio_timer(2, 1, "two threads");
  asio_timer(2, 2, "two threads, a context each");
  const auto wheel_timer = [&](const settings& with, unsigned threads,
                               unsigned contexts, const char* who,
                               std::optional<target> t) {
    all.push_back(timers<wheel_timers>("wheel_timer", with, threads, contexts,
                                       who, t, r));
  };
  wheel_timer(two_shards, 1, 1, "one thread, two shards", {});
  wheel_timer(two_shards, 2, 1, "two threads, two shards", wanted);
  wheel_timer(one_shard, 1, 1, "one thread, one shard", {});
  wheel_timer(one_shard, 2, 1, "two threads, one shard", {});
  wheel_timer(one_shard, 2, 2, "two threads, a context each", {});
  for (const unsigned threads : {1u, 2u}) {
    const auto* const who = threads == 1 ? "one thread" : "two threads";
    all.push_back({"arithmetic",
                   who,
                   {},
                   [=, &s](std::uint64_t) {
                     return arithmetic(threads, 100 * s.operations);
                   },
                   {}});
    all.push_back({"random reads",
                   who,
                   {},
                   [=, &s, &memory](std::uint64_t) {
                     return reads(threads, 10 * s.operations, memory);
                   },
                   {}});
  }
  for (auto& c : all)
    c.round(s.seed);
  for (std::size_t i = 0; i != s.rounds; ++i) {
    std::cerr << "round " << i + 1 << " of " << s.rounds << '\n';
    for (auto& c : all)
      c.samples.push_back(c.round(s.seed + 2 * i + 2));
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.workload == "arithmetic" && b.workload == "random reads";
  });
  for (auto& c : all)
    r.add({c.workload, s.sizes.front(), c.who, false, "M/s",
           std::move(c.samples), c.wanted, comparison::more_is_better});
}

int run(int argc, char** argv) {
  namespace po = boost::program_options;
  settings s;
  s.rounds = 9;
  s.operations = 1'000'000;
  std::size_t size = 100'000;
  std::string json;
  po::options_description options("Options");
  // clang-format off
  options.add_options()
      ("help", "say this and end")
      ("quick", "short rounds")
      ("json", po::value(&json)->value_name("FILE"),
       "also write the figures to a file")
      ("timers", po::value(&size)->default_value(size),
       "how many timers are pending")
      ("rounds", po::value(&s.rounds)->default_value(s.rounds),
       "measured rounds")
      ("operations", po::value(&s.operations)->default_value(s.operations),
       "of a round, all threads together")
      ("poll-every", po::value(&s.poll_every)->default_value(s.poll_every),
       "a thread's operations from one poll to the next")
      ("seed", po::value(&s.seed)->default_value(s.seed),
       "of the random delays and orders");
  // clang-format on
  const auto given = read_command_line(argc, argv, options);
  if (given.count("help") != 0) {
    std::cout << "What a second thread brings.\n\n" << options;
    return 0;
  }
  if (given.count("quick") != 0) {
    if (given["rounds"].defaulted())
      s.rounds = 3;
    if (given["operations"].defaulted())
      s.operations = 200'000;
  }
  if (s.rounds < 1 || s.operations < 2 || s.poll_every < 1 || size < 2 ||
      size > 10'000'000)
    throw po::error("rounds and poll-every must be at least 1, operations 2, "
                    "timers from 2 to 10000000");
  s.sizes = {size};
  s.operations -= s.operations % 2;

  keep_freed_memory();
  start_idle_thread();
  report r("threads");
  r.print_machine(std::cout);
  measure(s, r);
  r.print_table(std::cout);
  if (!json.empty())
    r.write_json(json, to_json(s));
  return r.failed() ? 1 : 0;
}

} // namespace
} // namespace bench

int main(int argc, char** argv) {
  try {
    return bench::run(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "threads: " << e.what() << '\n';
    return 2;
  }
}
