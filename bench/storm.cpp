//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

//
// What a storm of timers does to others on the same thread.
//
//   storm             half a minute
//   storm --quick     a few seconds
//   storm --help
//
// A ping-pong of one byte runs over a pair of local sockets. Then a million
// timers are due at one time, and it runs on. A round trip that is under way
// while the storm lasts, from the time all are due until the last handler has
// run, counts to the storm; those before are the quiet ones. The exit status is
// 1 if a handler did not run once, without an error, and not too early.
//

#include "command_line.hpp"
#include "libraries.hpp"
#include "machine.hpp"
#include "percentile.hpp"
#include "report.hpp"
#include "settings.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
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
using boost::system::error_code;

double microseconds(clock::duration d) {
  return std::chrono::duration<double, std::micro>(d).count();
}

/// Sends a byte to and fro until it is told to end.
class ping_pong {
public:
  struct round_trip {
    clock::time_point begin, end;
  };

  explicit ping_pong(asio::io_context& io) : here_(io), there_(io) {
    asio::local::connect_pair(here_, there_);
    trips_.reserve(1'000'000);
  }

  void start() {
    echo();
    ping();
  }

  /// After the round trip that is under way.
  void end() { ending_ = true; }

  const std::vector<round_trip>& trips() const noexcept { return trips_; }

private:
  using socket = asio::local::stream_protocol::socket;

  void ping() {
    const auto begin = clock::now();
    asio::async_write(here_, asio::buffer(ping_),
                      [this, begin](error_code ec, std::size_t) {
                        if (!ec)
                          pong(begin);
                      });
  }

  void pong(clock::time_point begin) {
    asio::async_read(here_, asio::buffer(pong_),
                     [this, begin](error_code ec, std::size_t) {
                       if (ec)
                         return;
                       trips_.push_back({begin, clock::now()});
                       if (ending_)
                         here_.close();
                       else
                         ping();
                     });
  }

  void echo() {
    asio::async_read(there_, asio::buffer(echo_),
                     [this](error_code ec, std::size_t) {
                       if (!ec)
                         asio::async_write(there_, asio::buffer(echo_),
                                           [this](error_code e, std::size_t) {
                                             if (!e)
                                               echo();
                                           });
                     });
  }

  socket here_, there_;
  char ping_[1] = {'x'}, pong_[1] = {}, echo_[1] = {};
  bool ending_ = false;
  std::vector<round_trip> trips_;
};

struct result {
  std::vector<double> quiet, storm; // sorted, in us
  double length_ms = 0;
  std::string wrong;
};

/// @param lead From now until all timers are due: for setting them, and for the
/// quiet before the storm.
template <typename Library>
result measure(const settings& s, std::chrono::milliseconds lead) {
  const std::size_t size = s.sizes.front();
  asio::io_context io(1);
  Library library(io, s);
  ping_pong game(io);

  std::size_t ran = 0, wrong = 0;
  bool early = false;
  clock::time_point over;
  const auto due = clock::now() + lead;
  std::vector<typename Library::template timer<asio::any_io_executor>> timers;
  timers.reserve(size);
  for (std::size_t i = 0; i != size; ++i) {
    timers.emplace_back(io.get_executor());
    timers.back().expires_at(due);
    timers.back().async_wait([&](const error_code& ec) {
      wrong += ec.failed();
      if (ran++ == 0)
        early = clock::now() < due;
      if (ran == size) {
        over = clock::now();
        game.end();
      }
    });
  }
  const auto begin = clock::now();
  game.start();
  io.run();

  result r;
  for (const auto& t : game.trips()) {
    if (t.end <= due)
      r.quiet.push_back(microseconds(t.end - t.begin));
    else if (t.begin < over)
      r.storm.push_back(microseconds(t.end - t.begin));
  }
  std::sort(r.quiet.begin(), r.quiet.end());
  std::sort(r.storm.begin(), r.storm.end());
  r.length_ms = microseconds(over - due) / 1e3;
  if (ran != size || wrong != 0)
    r.wrong = std::to_string(ran) + " handlers ran, " + std::to_string(wrong) +
              " with an error, of " + std::to_string(size);
  else if (early)
    r.wrong = "a handler ran too early";
  else if (due - begin < lead / 10 || r.quiet.size() < 100 || r.storm.empty())
    r.wrong = "there was no quiet before the storm: take a longer lead";
  return r;
}

struct contestant {
  std::string who;
  std::function<result()> measure;
  std::vector<result> results;
};

void measure_all(const settings& s, std::chrono::milliseconds lead, report& r) {
  auto small_batch = s;
  small_batch.wheel.expiry_batch = 16;
  std::vector<contestant> all{
      {"steady_timer", [&] { return measure<asio_timers>(s, lead); }, {}},
      {"wheel_timer", [&] { return measure<wheel_timers>(s, lead); }, {}},
      {"wheel_timer, batch 16",
       [&] { return measure<wheel_timers>(small_batch, lead); },
       {}}};
  for (std::size_t i = 0; i != s.rounds; ++i) {
    std::cerr << "round " << i + 1 << " of " << s.rounds << '\n';
    for (auto& c : all) {
      c.results.push_back(c.measure());
      if (!c.results.back().wrong.empty()) {
        r.add_failure(c.who + ": " + c.results.back().wrong);
        return;
      }
    }
  }

  const auto note = [&](const char* workload, const char* unit, comparison how,
                        std::optional<target> wanted, auto value) {
    for (const auto& c : all) {
      std::vector<double> samples;
      for (const auto& one : c.results)
        samples.push_back(value(one));
      r.add({workload, s.sizes.front(), c.who, false, unit, std::move(samples),
             c.who == "wheel_timer" ? wanted : std::nullopt, how});
    }
  };
  constexpr auto less = comparison::less_is_better;
  note("round trip, quiet, p50", "us", less, {},
       [](const result& x) { return percentile(x.quiet, 0.5); });
  note("round trip, quiet, p99", "us", less, {},
       [](const result& x) { return percentile(x.quiet, 0.99); });
  note("round trip in the storm, p50", "us", less, {},
       [](const result& x) { return percentile(x.storm, 0.5); });
  note("round trip in the storm, p99", "us", less, {},
       [](const result& x) { return percentile(x.storm, 0.99); });
  note("round trip in the storm, longest", "us", less, {},
       [](const result& x) { return x.storm.back(); });
  note("p99 in the storm by quiet p99", "times", comparison::none,
       target{target::kind::at_most, 5}, [](const result& x) {
         return percentile(x.storm, 0.99) / percentile(x.quiet, 0.99);
       });
  note("round trips in the storm", "round trips", comparison::none, {},
       [](const result& x) { return static_cast<double>(x.storm.size()); });
  note("length of the storm", "ms", less, {},
       [](const result& x) { return x.length_ms; });
}

int run(int argc, char** argv) {
  namespace po = boost::program_options;
  settings s;
  std::size_t size = 1'000'000;
  long lead = 2'000;
  std::string json;
  po::options_description options("Options");
  // clang-format off
  options.add_options()
      ("help", "say this and end")
      ("quick", "100,000 timers, one round")
      ("json", po::value(&json)->value_name("FILE"),
       "also write the figures to a file")
      ("timers", po::value(&size)->default_value(size),
       "how many are due at one time")
      ("rounds", po::value(&s.rounds)->default_value(s.rounds),
       "measured rounds")
      ("lead", po::value(&lead)->default_value(lead),
       "ms to set the timers and to measure the quiet");
  // clang-format on
  const auto given = read_command_line(argc, argv, options);
  if (given.count("help") != 0) {
    std::cout << "What a storm of timers does to others.\n\n" << options;
    return 0;
  }
  if (given.count("quick") != 0) {
    if (given["timers"].defaulted())
      size = 100'000;
    if (given["rounds"].defaulted())
      s.rounds = 1;
    if (given["lead"].defaulted())
      lead = 500;
  }
  if (s.rounds < 1 || size < 1 || size > 10'000'000 || lead < 10 ||
      lead > 60'000)
    throw po::error("rounds must be at least 1, timers from 1 to 10000000, "
                    "lead from 10 to 60000");
  s.sizes = {size};

  keep_freed_memory();
  start_idle_thread();
  report r("storm");
  r.print_machine(std::cout);
  measure_all(s, std::chrono::milliseconds(lead), r);
  r.print_table(std::cout);
  if (!json.empty()) {
    auto told = to_json(s);
    told["lead_ms"] = lead;
    r.write_json(json, std::move(told));
  }
  return r.failed() ? 1 : 0;
}

} // namespace
} // namespace bench

int main(int argc, char** argv) {
  try {
    return bench::run(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "storm: " << e.what() << '\n';
    return 2;
  }
}
