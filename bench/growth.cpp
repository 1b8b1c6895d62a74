//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

//
// How the cost of one operation grows with the number of pending timers.
//
//   growth              1,000 to 4,000,000 timers, some minutes
//   growth --quick      to 64,000, some seconds
//   growth --help
//
// Add, cancel, refresh and expire, as in timers.cpp. In each contest there is
// also a bare array of the same footprint as wheel_timer's, a line of which is
// read, changed and written at random: what the memory takes for one miss, and
// nothing else. What grows with it is the memory hierarchy; what grew faster
// would be the structure.
//

#include "command_line.hpp"
#include "contest.hpp"
#include "expiry.hpp"
#include "footprint.hpp"
#include "libraries.hpp"
#include "machine.hpp"
#include "plan.hpp"
#include "random_access.hpp"
#include "report.hpp"
#include "settings.hpp"
#include "timer_set.hpp"
#include "wheel_set.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/program_options.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

namespace bench {

using namespace std::chrono_literals;

namespace {

template <typename Library>
using timers = timer_set<Library, asio::any_io_executor, pointer_handlers>;

struct cancel {
  static constexpr bool ends_waits = true;
  template <typename Timers> static void apply(Timers& t, const plan::step& s) {
    t.cancel(s.index);
  }
};

/// One cache line of an array at a time is read, changed and written.
class array_access final : public contestant {
public:
  /// @param p Its timers are the array's lines.
  array_access(std::size_t lines, const plan& p) : lines_(lines), plan_(p) {}

  void prepare() override {}

  double run(bool fenced) override {
    ++runs_;
    const double start = cpu_nanoseconds();
    if (fenced)
      go<true>();
    else
      go<false>();
    return cpu_nanoseconds() - start;
  }

  std::string verify() override {
    std::uint64_t accesses = 0;
    for (const auto& l : lines_)
      accesses += l.count;
    return accesses != runs_ * plan_.steps().size() ? "accesses were left out"
                                                    : "";
  }

private:
  struct alignas(64) line {
    std::uint64_t count = 0;
  };

  template <bool Fenced> void go() {
    for (const auto& step : plan_.steps()) {
      if (Fenced)
        fence();
      ++lines_[step.index].count;
    }
  }

  std::vector<line> lines_;
  const plan& plan_;
  std::uint64_t runs_ = 0;
};

class suite {
public:
  suite(const settings& s, report& r) : settings_(s), report_(r) {}

  void at_size(std::size_t size) {
    // Few timers are gone over several times, so that a round is not too short
    // to measure.
    const auto operations = settings_.operations;
    const auto runs = (operations + size - 1) / size;
    const auto in_order = plan::order::sequential;
    const auto first = make_plan(size, size, in_order, 10s, 30s);

    const auto bytes =
        footprint_of_timers<timers<wheel_timers>>(settings_, size, first);
    const auto lines =
        static_cast<std::size_t>(bytes * static_cast<double>(size) / 64 + 1);
    const auto any_line = [&](std::size_t n) {
      return make_plan(lines, n, plan::order::random, 0s, 0s);
    };

    {
      const auto p = make_plan(size, size, in_order, 1s, 60s);
      const auto a = any_line(size);
      contest c("add", size, size, runs, true);
      c.add<adding<timers<asio_timers>>>(steady, {}, {}, settings_, size, p);
      c.add<adding<timers<wheel_timers>>>(ours, {}, {}, settings_, size, p);
      c.add<adding<wheel_set>>(bare, {}, {}, settings_, size, p);
      c.add<array_access>(array, {}, {}, lines, a);
      c.hold(settings_, report_);
    }
    {
      const auto p = make_plan(size, size, plan::order::shuffled, 0s, 0s);
      const auto a = any_line(size);
      contest c("cancel", size, size, runs, true);
      change<cancel>(c, size, first, p);
      c.add<array_access>(array, {}, {}, lines, a);
      c.hold(settings_, report_);
    }
    {
      const auto p = make_plan(size, operations, plan::order::random, 30s, 30s);
      const auto a = any_line(operations);
      contest c("refresh", size, operations, 1, true);
      change<refresh>(c, size, first, p);
      c.add<array_access>(array, {}, {}, lines, a);
      c.hold(settings_, report_);
    }
    {
      const auto p = make_plan(size, size, in_order, 1ms, 60s);
      const auto a = any_line(size);
      // As in timers.cpp: handlers, and not steps, are what takes the time.
      const std::chrono::milliseconds step(
          std::max<std::size_t>(1, 10'000'000 / size));
      const time_lapse lapse(60s + settings_.wheel.tick + step, step);
      contest c("expire", size, size, runs, false);
      c.add<expiring<timers<asio_timers_on_set_clock>>>(
          steady, {}, {}, settings_, size, p, lapse);
      c.add<expiring<timers<wheel_timers_on_set_clock>>>(
          ours, {}, {}, settings_, size, p, lapse);
      c.add<expiring<wheel_set>>(bare, {}, {}, settings_, size, p, lapse);
      c.add<array_access>(array, {}, {}, lines, a);
      c.hold(settings_, report_);
    }
  }

private:
  static constexpr auto steady = "steady_timer";
  static constexpr auto ours = "wheel_timer";
  static constexpr auto bare = "timing_wheel";
  static constexpr auto array = "array";

  plan make_plan(std::size_t size, std::size_t operations, plan::order order,
                 std::chrono::microseconds least,
                 std::chrono::microseconds most) {
    return plan(size, operations, order, least, most, settings_.seed++);
  }

  template <typename Operation>
  void change(contest& c, const std::size_t& size, const plan& first,
              const plan& p) {
    c.add<changing<timers<asio_timers>, Operation>>(steady, {}, {}, settings_,
                                                    size, first, p);
    c.add<changing<timers<wheel_timers>, Operation>>(ours, {}, {}, settings_,
                                                     size, first, p);
    c.add<changing<wheel_set, Operation>>(bare, {}, {}, settings_, size, first,
                                          p);
  }

  settings settings_;
  report& report_;
};

int run(int argc, char** argv) {
  namespace po = boost::program_options;
  settings s;
  s.sizes = {1'000, 4'000, 16'000, 64'000, 256'000, 1'000'000, 4'000'000};
  s.rounds = 3;
  std::string json;
  po::options_description options("Options");
  // clang-format off
  options.add_options()
      ("help", "say this and end")
      ("quick", "to 64,000 timers, short rounds")
      ("json", po::value(&json)->value_name("FILE"),
       "also write the figures to a file")
      ("sizes", po::value(&s.sizes)->multitoken()->value_name("N..."),
       "how many timers are pending (default: 1000 4000 16000 64000 256000\n"
       "1000000 4000000)")
      ("rounds", po::value(&s.rounds)->default_value(s.rounds),
       "measured rounds")
      ("operations", po::value(&s.operations)->default_value(s.operations),
       "the fewest operations of a round")
      ("only", po::value(&s.only)->value_name("TEXT"),
       "only operations whose name contains this")
      ("who", po::value(&s.who)->value_name("TEXT"),
       "only contestants whose name contains this")
      ("seed", po::value(&s.seed)->default_value(s.seed),
       "of the random delays and orders");
  // clang-format on
  const auto given = read_command_line(argc, argv, options);
  if (given.count("help") != 0) {
    std::cout << "How an operation's cost grows with the pending timers.\n\n"
              << options;
    return 0;
  }
  if (given.count("quick") != 0) {
    if (given["sizes"].empty())
      s.sizes = {1'000, 4'000, 16'000, 64'000};
    if (given["operations"].defaulted())
      s.operations = 100'000;
  }
  if (s.rounds < 1 || s.operations < 1 ||
      std::any_of(s.sizes.begin(), s.sizes.end(),
                  [](std::size_t n) { return n < 1 || n > 10'000'000; }))
    throw po::error("rounds and operations must be at least 1, sizes from 1 to "
                    "10000000");

  keep_freed_memory();
  start_idle_thread();
  report r("growth");
  r.print_machine(std::cout);
  suite all(s, r);
  for (const auto size : s.sizes)
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
    std::cerr << "growth: " << e.what() << '\n';
    return 2;
  }
}
