//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

//
// How late timers are.
//
//   precision             half a minute
//   precision --quick     a few seconds
//   precision --help
//
// Ten thousand timers with random delays of 1 ms to 2 s, in real time, on a
// thread that has nothing else to do: from a timer's expiry to its handler. The
// exit status is 1 if a handler did not run once, without an error, and not
// before its timer's expiry.
//

#include "command_line.hpp"
#include "libraries.hpp"
#include "machine.hpp"
#include "percentile.hpp"
#include "plan.hpp"
#include "report.hpp"
#include "settings.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/program_options.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

using namespace std::chrono_literals;

namespace {

using clock = std::chrono::steady_clock;

struct result {
  std::vector<double> late; // sorted, in us
  double cpu_ms = 0, wakeups = 0;
  std::string wrong;
};

template <typename Library> result measure(const settings& s, const plan& p) {
  const std::size_t size = p.steps().size();
  asio::io_context io(1);
  Library library(io, s);
  std::vector<typename Library::template timer<asio::any_io_executor>> timers;
  timers.reserve(size);
  result r;
  r.late.reserve(size);
  std::size_t wrong = 0;
  for (const auto& step : p.steps()) {
    timers.emplace_back(io.get_executor());
    timers.back().expires_after(step.delay());
    timers.back().async_wait(
        [&, expiry = timers.back().expiry()](const auto& ec) {
          r.late.push_back(
              std::chrono::duration<double, std::micro>(clock::now() - expiry)
                  .count());
          wrong += ec.failed();
        });
  }
  const long sleeps_before = sleeps();
  const double cpu_before = cpu_nanoseconds();
  io.run();
  r.cpu_ms = (cpu_nanoseconds() - cpu_before) / 1e6;
  r.wakeups = static_cast<double>(sleeps() - sleeps_before);
  std::sort(r.late.begin(), r.late.end());
  if (r.late.size() != size || wrong != 0)
    r.wrong = std::to_string(r.late.size()) + " handlers ran, " +
              std::to_string(wrong) + " with an error, of " +
              std::to_string(size);
  else if (r.late.front() < 0)
    r.wrong =
        "a handler ran " + std::to_string(-r.late.front()) + " us too early";
  return r;
}

struct contestant {
  std::string who;
  std::function<result(const plan&)> measure;
  std::vector<result> results;
};

void measure_all(const settings& s, report& r) {
  auto fine = s;
  fine.wheel.tick = 100us;
  std::vector<contestant> all{
      {"steady_timer",
       [&](const plan& p) { return measure<asio_timers>(s, p); },
       {}},
      {"wheel_timer",
       [&](const plan& p) { return measure<wheel_timers>(s, p); },
       {}},
      {"wheel_timer, tick 0.1 ms",
       [&](const plan& p) { return measure<wheel_timers>(fine, p); },
       {}}};
  const std::size_t size = s.sizes.front();
  for (std::size_t i = 0; i != s.rounds; ++i) {
    std::cerr << "round " << i + 1 << " of " << s.rounds << '\n';
    const plan p(size, size, plan::order::sequential, 1ms, 2s, s.seed + i);
    for (auto& c : all) {
      c.results.push_back(c.measure(p));
      if (!c.results.back().wrong.empty())
        r.add_failure(c.who + ": " + c.results.back().wrong);
    }
  }

  const auto note = [&](const char* workload, const char* unit, auto value) {
    for (const auto& c : all) {
      std::vector<double> samples;
      for (const auto& one : c.results)
        samples.push_back(value(one));
      r.add({workload, size, c.who, false, unit, std::move(samples),
             std::nullopt});
    }
  };
  note("lateness, p50", "us",
       [](const result& x) { return percentile(x.late, 0.5); });
  note("lateness, p99", "us",
       [](const result& x) { return percentile(x.late, 0.99); });
  note("lateness, most", "us", [](const result& x) { return x.late.back(); });
  note("lateness, least", "us", [](const result& x) { return x.late.front(); });
  note("wake-ups in 2 s", "wake-ups",
       [](const result& x) { return x.wakeups; });
  note("CPU time in 2 s", "ms", [](const result& x) { return x.cpu_ms; });
}

int run(int argc, char** argv) {
  namespace po = boost::program_options;
  settings s;
  std::size_t size = 10'000;
  std::string json;
  po::options_description options("Options");
  // clang-format off
  options.add_options()
      ("help", "say this and end")
      ("quick", "one round")
      ("json", po::value(&json)->value_name("FILE"),
       "also write the figures to a file")
      ("timers", po::value(&size)->default_value(size), "how many")
      ("rounds", po::value(&s.rounds)->default_value(s.rounds),
       "measured rounds")
      ("seed", po::value(&s.seed)->default_value(s.seed),
       "of the random delays");
  // clang-format on
  const auto given = read_command_line(argc, argv, options);
  if (given.count("help") != 0) {
    std::cout << "How late timers are.\n\n" << options;
    return 0;
  }
  if (given.count("quick") != 0 && given["rounds"].defaulted())
    s.rounds = 1;
  if (s.rounds < 1 || size < 1 || size > 10'000'000)
    throw po::error("rounds must be at least 1, timers from 1 to 10000000");
  s.sizes = {size};

  keep_freed_memory();
  start_idle_thread();
  report r("precision");
  r.print_machine(std::cout);
  measure_all(s, r);
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
    std::cerr << "precision: " << e.what() << '\n';
    return 2;
  }
}
