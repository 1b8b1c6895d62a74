//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

//
// What a scheduler's tasks cost beside a steady_timer on the heap for each, and
// a delay_queue beside a priority_queue.
//
//   scheduler              at 1,000,000 tasks, some minutes
//   scheduler --quick      at 100,000, short rounds
//   scheduler --help
//
// As bench/timers for the rest: in turn, in one process, medians of CPU time.
// The exit status is 1 if any task did not run, or ran twice.
//

#include "command_line.hpp"
#include "contest.hpp"
#include "expiry.hpp"
#include "machine.hpp"
#include "plan.hpp"
#include "queue_set.hpp"
#include "random_access.hpp"
#include "report.hpp"
#include "settings.hpp"
#include "task_set.hpp"

#include <boost/program_options.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace bench {

using namespace std::chrono_literals;

namespace {

constexpr auto steady = "make_unique<steady_timer>";
constexpr auto ours = "schedule_after";
constexpr auto batch = "schedule_batch";

/// Tasks are scheduled where there are none.
template <typename Tasks> class scheduling final : public contestant {
public:
  scheduling(const settings& s, std::size_t size, const plan& p)
      : tasks_(s, size), plan_(p) {}

  void prepare() override { tasks_.cancel_all(); }

  double run(bool) override {
    const double start = cpu_nanoseconds();
    tasks_.start_all(plan_);
    return cpu_nanoseconds() - start;
  }

  std::string verify() override { return tasks_.verify(); }

private:
  Tasks tasks_;
  const plan& plan_;
};

/// All tasks are pending; each operation cancels one and schedules another.
template <typename Tasks> class rescheduling final : public contestant {
public:
  rescheduling(const settings& s, std::size_t size, const plan& first,
               const plan& p)
      : tasks_(s, size), plan_(p), poll_every_(s.poll_every) {
    tasks_.start_all(first);
  }

  void prepare() override {}

  double run(bool fenced) override {
    return timed(fenced, tasks_, plan_, poll_every_, [&](const plan::step& s) {
      tasks_.cancel(s.index);
      tasks_.start(s.index, s.delay());
    });
  }

  std::string verify() override { return tasks_.verify(); }

private:
  Tasks tasks_;
  const plan& plan_;
  std::size_t poll_every_;
};

/// All tasks run in the course of a time lapse.
template <typename Tasks> class running final : public contestant {
public:
  running(const settings& s, std::size_t size, const plan& p,
          const time_lapse& lapse)
      : tasks_(s, size), plan_(p), lapse_(lapse) {}

  void prepare() override {
    tasks_.start_all(plan_);
    tasks_.poll();
  }

  double run(bool) override {
    const auto before = tasks_.ran();
    const double t = lapse_.run(tasks_, [](std::size_t) {});
    missing_ += tasks_.size() - (tasks_.ran() - before);
    return t;
  }

  std::string verify() override {
    if (missing_ != 0)
      return std::to_string(missing_) + " tasks did not run in time";
    return tasks_.verify();
  }

private:
  Tasks tasks_;
  const plan& plan_;
  const time_lapse& lapse_;
  std::uint64_t missing_ = 0;
};

/// Items are pushed, and taken in the course of a time lapse.
template <typename Queue> class passing final : public contestant {
public:
  passing(const settings& s, const plan& p, const time_lapse& lapse)
      : queue_(s), plan_(p), lapse_(lapse) {}

  void prepare() override {}

  double run(bool) override {
    const auto before = queue_.popped();
    const double start = cpu_nanoseconds();
    for (const auto& step : plan_.steps())
      queue_.push(step.index + 1, step.delay());
    const double pushing = cpu_nanoseconds() - start;
    const double t = lapse_.run(queue_, [](std::size_t) {});
    missing_ += plan_.steps().size() - (queue_.popped() - before);
    return pushing + t;
  }

  std::string verify() override {
    if (missing_ != 0)
      return std::to_string(missing_) + " items did not come out in time";
    return {};
  }

private:
  Queue queue_;
  const plan& plan_;
  const time_lapse& lapse_;
  std::uint64_t missing_ = 0;
};

/// Real time that `threads` threads take to cancel and schedule, each among
/// tasks of its own, for one operation of one of them.
double together(std::size_t threads, std::size_t shards, std::size_t size,
                std::size_t operations, std::uint64_t seed) {
  asio::io_context io;
  asio_wheel::wheel_options options;
  options.shards = shards;
  asio_wheel::make_wheel(io, options);
  asio_wheel::scheduler scheduler(io);
  std::vector<std::thread> running;
  std::vector<double> took(threads);
  std::atomic<std::size_t> ready{0};
  for (std::size_t n = 0; n != threads; ++n)
    running.emplace_back([&, n] {
      const plan first(size, size, plan::order::sequential, 1s, 60s, seed + n);
      const plan then(size, operations, plan::order::random, 1s, 60s,
                      seed + n + threads);
      std::vector<asio_wheel::task_handle> tasks(size);
      std::uint64_t ran = 0;
      const auto start = [&](const plan::step& s) {
        tasks[s.index] =
            scheduler.schedule_after(s.delay(), [r = &ran] { ++*r; });
      };
      for (const auto& s : first.steps())
        start(s);
      ++ready;
      while (ready != threads)
        std::this_thread::yield();
      const auto begun = std::chrono::steady_clock::now();
      for (const auto& s : then.steps()) {
        tasks[s.index].cancel();
        start(s);
      }
      took[n] = std::chrono::duration<double, std::nano>(
                    std::chrono::steady_clock::now() - begun)
                    .count() /
                static_cast<double>(operations);
    });
  for (auto& t : running)
    t.join();
  return *std::max_element(took.begin(), took.end());
}

template <typename Tasks>
double footprint(const settings& s, std::size_t size, const plan& p) {
  const auto before = heap_in_use();
  const auto tasks = std::make_unique<Tasks>(s, size);
  tasks->start_all(p);
  return static_cast<double>(heap_in_use() - before) /
         static_cast<double>(size);
}

class suite {
public:
  suite(const settings& s, report& r) : settings_(s), report_(r) {}

  void at_size(std::size_t size) {
    const std::size_t runs = (settings_.operations + size - 1) / size;
    schedule(size, runs);
    cancel_and_schedule(size);
    run(size, runs);
    push_and_pop(size, runs);
    two_threads(size);
    memory(size);
  }

private:
  plan make_plan(std::size_t size, std::size_t operations, plan::order order,
                 std::chrono::microseconds least,
                 std::chrono::microseconds most) {
    return plan(size, operations, order, least, most, settings_.seed++);
  }

  static std::optional<target> times_faster(double n) {
    return target{target::kind::times_faster, n};
  }

  bool wanted(const std::string& workload) const {
    return workload.find(settings_.only) != std::string::npos;
  }

  void schedule(std::size_t size, std::size_t runs) {
    const auto p = make_plan(size, size, plan::order::sequential, 1s, 60s);
    contest c("schedule", size, size, runs, false);
    c.add<scheduling<timer_tasks<asio_timers>>>(steady, {}, {}, settings_, size,
                                                p);
    c.add<scheduling<scheduler_tasks<wheel_timers>>>(ours, times_faster(3), {},
                                                     settings_, size, p);
    c.add<scheduling<batched_tasks<wheel_timers>>>(batch, times_faster(4), {},
                                                   settings_, size, p);
    c.hold(settings_, report_);
  }

  void cancel_and_schedule(std::size_t size) {
    const auto first = make_plan(size, size, plan::order::sequential, 1s, 60s);
    const auto p = make_plan(size, std::max(size, settings_.operations),
                             plan::order::random, 1s, 60s);
    contest c("cancel + schedule, random task", size, p.steps().size(), 1,
              true);
    c.add<rescheduling<timer_tasks<asio_timers>>>(steady, {}, {}, settings_,
                                                  size, first, p);
    c.add<rescheduling<scheduler_tasks<wheel_timers>>>(
        ours, times_faster(4), {}, settings_, size, first, p);
    c.hold(settings_, report_);
  }

  void run(std::size_t size, std::size_t runs) {
    const auto p = make_plan(size, size, plan::order::sequential, 1ms, 60s);
    // See bench/timers.cpp: so far that tasks are what takes the time.
    const std::chrono::milliseconds step(
        std::max<std::size_t>(1, 10'000'000 / size));
    const time_lapse lapse(60s + settings_.wheel.tick + step, step);
    contest c("run", size, size, runs, false);
    c.add<running<timer_tasks<asio_timers_on_set_clock>>>(
        steady, {}, {}, settings_, size, p, lapse);
    c.add<running<scheduler_tasks<wheel_timers_on_set_clock>>>(
        ours, times_faster(3), {}, settings_, size, p, lapse);
    c.hold(settings_, report_);
  }

  void push_and_pop(std::size_t size, std::size_t runs) {
    const auto p = make_plan(size, size, plan::order::sequential, 1s, 60s);
    const std::chrono::milliseconds step(
        std::max<std::size_t>(1, 10'000'000 / size));
    const time_lapse lapse(60s + settings_.wheel.tick + step, step);
    contest c("push + pop, delayed items", size, size, runs, false);
    c.add<passing<hand_made_queue>>("priority_queue, mutex, timer", {}, {},
                                    settings_, p, lapse);
    c.add<passing<wheel_queue>>("delay_queue", times_faster(3), {}, settings_,
                                p, lapse);
    c.hold(settings_, report_);
  }

  void two_threads(std::size_t size) {
    const std::string workload =
        "cancel + schedule by two threads, real time per operation of both";
    if (!wanted(workload))
      return;
    std::cerr << workload << ", " << size << " tasks each:" << std::flush;
    std::vector<double> one, two, shared;
    for (std::size_t i = 0; i <= settings_.rounds; ++i) {
      const auto measure = [&](std::size_t threads, std::size_t shards) {
        return together(threads, shards, size,
                        std::max(size, settings_.operations),
                        settings_.seed++) /
               static_cast<double>(threads);
      };
      const double a = measure(1, 2), b = measure(2, 2), c = measure(2, 1);
      if (i != 0) { // the first round warms up
        one.push_back(a);
        two.push_back(b);
        shared.push_back(c);
      }
      std::cerr << ' ' << i << std::flush;
    }
    std::cerr << '\n';
    report_.add({workload, size, "one thread", false, "ns", one, {}});
    report_.add({workload, size, "two threads, two shards", false, "ns", two,
                 times_faster(1.7)});
    report_.add(
        {workload, size, "two threads, one shard", false, "ns", shared, {}});
  }

  void memory(std::size_t size) {
    const std::string workload =
        "memory of a task with 8 bytes and what holds it";
    if (!wanted(workload))
      return;
    std::cerr << workload << ", " << size << " tasks\n";
    const auto p = make_plan(size, size, plan::order::sequential, 1s, 60s);
    report_.add({workload,
                 size,
                 steady,
                 false,
                 "bytes",
                 {footprint<timer_tasks<asio_timers>>(settings_, size, p)},
                 {}});
    // The function and the pointer to its task apart, 96 bytes.
    report_.add({workload,
                 size,
                 ours,
                 false,
                 "bytes",
                 {footprint<scheduler_tasks<wheel_timers>>(settings_, size, p)},
                 target{target::kind::at_most, 96 + 8 + 8}});
  }

  settings settings_;
  report& report_;
};

int run(int argc, char** argv) {
  namespace po = boost::program_options;
  settings s;
  s.sizes = {1'000'000};
  std::string json;
  po::options_description options("Options");
  // clang-format off
  options.add_options()
      ("help", "say this and end")
      ("quick", "100,000 tasks, short rounds")
      ("json", po::value(&json)->value_name("FILE"),
       "also write the figures to a file")
      ("sizes", po::value(&s.sizes)->multitoken()->value_name("N..."),
       "how many tasks are pending (default: 1000000)")
      ("rounds", po::value(&s.rounds)->default_value(s.rounds),
       "measured rounds")
      ("operations", po::value(&s.operations)->default_value(s.operations),
       "the fewest operations of a round")
      ("only", po::value(&s.only)->value_name("TEXT"),
       "only workloads whose name contains this")
      ("who", po::value(&s.who)->value_name("TEXT"),
       "only contestants whose name contains this")
      ("seed", po::value(&s.seed)->default_value(s.seed),
       "of the random delays and orders");
  // clang-format on
  const auto given = read_command_line(argc, argv, options);
  if (given.count("help") != 0) {
    std::cout << "What a scheduler's tasks cost beside steady_timers.\n\n"
              << options;
    return 0;
  }
  if (given.count("quick") != 0) {
    if (given["sizes"].defaulted() || given["sizes"].empty())
      s.sizes = {100'000};
    if (given["operations"].defaulted())
      s.operations = 100'000;
  }
  if (s.rounds < 1 ||
      std::count_if(s.sizes.begin(), s.sizes.end(), [](std::size_t n) {
        return n < 1 || n > 100'000'000;
      }) != 0)
    throw po::error("rounds must be at least 1, sizes from 1 to 100000000");

  keep_freed_memory();
  start_idle_thread();
  report r("scheduler");
  r.print_machine(std::cout);
  suite all(s, r);
  for (const std::size_t size : s.sizes)
    all.at_size(size);
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
    std::cerr << "scheduler: " << e.what() << '\n';
    return 2;
  }
}
