//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

//
// How our timers compare with Asio's, and with those of libuv, libevent and
// libev where they are installed: speed, memory, and peace.
//
//   timers              all of it, 10 minutes
//   timers --quick      10,000 and 100,000 timers, less than a minute
//   timers --help
//
// Each workload is done by all contestants in turn, in this one process and
// thread, each on a loop of its own (Asio: io_context(1)) that is polled after
// every 64 operations; first to warm up, then round by round. A figure is the
// median of the rounds, in nanoseconds of CPU time for one operation, polls and
// handlers included ("the loop alone" is what the polls take). Where timers are
// accessed one by one there is a second figure, with a fence before each
// operation (see machine.hpp).
//
// Not all do the same. steady_timer, wheel_timer and watchdog call handlers on
// executors, also to say that a wait was cancelled, and read the clock for each
// operation. The peers call plain functions, and say nothing of what was
// cancelled. libuv and libev take the time of their last poll for now, and
// libevent the kernel's coarse clock. timing_wheel has no clock and no loop.
//
// The exit status is 1 if any handler did not run, ran twice, or ran with the
// wrong error; 2 if the command line is wrong.
//

#include "command_line.hpp"
#include "contest.hpp"
#include "expiry.hpp"
#include "footprint.hpp"
#include "idle.hpp"
#include "machine.hpp"
#include "peers.hpp"
#include "plan.hpp"
#include "put_off.hpp"
#include "random_access.hpp"
#include "report.hpp"
#include "settings.hpp"
#include "timer_set.hpp"
#include "wheel_set.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/program_options.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace bench {

using namespace std::chrono_literals;

namespace {

constexpr auto steady = "steady_timer";
constexpr auto ours = "wheel_timer";
constexpr auto rearm = "rearm_after";
constexpr auto bare = "timing_wheel";
constexpr auto dog = "watchdog";
constexpr auto kick = "kick";
constexpr auto kick_slack = "kick, slack 2 s";

std::optional<target> at_a_million(std::size_t size, double times_faster) {
  if (size == 1'000'000)
    return target{target::kind::times_faster, times_faster};
  return {};
}

/// Where time is not cache misses, twice as fast as Asio is what we want.
std::optional<target> at_each_size(std::size_t size, double then) {
  if (size == 10'000 || size == 100'000)
    return target{target::kind::times_faster, 2};
  return at_a_million(size, then);
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

template <typename Executor> class suite {
public:
  suite(const settings& s, const std::vector<peer>& peers, report& r)
      : settings_(s), peers_(peers), report_(r) {}

  void at_size(std::size_t size) {
    // Few timers are gone over several times, so that a round is not too short
    // to measure.
    const std::size_t operations = std::max(size, settings_.operations);
    const std::size_t runs = (settings_.operations + size - 1) / size;

    loop(size, operations);
    add(size, runs);
    cancel_and_add_random_delay(size, operations);
    cancel_and_add_one_delay(size, operations);
    refresh_random(size, operations);
    refresh_next(size, operations);
    expire(size, runs);
    expire_overdue(size);
    put_off(size, runs);
  }

  // What a kick takes that waits for no memory, and without the polls.
  void kick_one() {
    constexpr std::size_t one = 1, kicks = 1'000'000;
    auto s = settings_;
    s.poll_every = kicks;
    const auto p = make_plan(1, kicks, plan::order::sequential, 30s, 30s);
    contest c("refresh, one timer, sampling", 1, kicks, 1, false);
    c.add<kicking_dogs>(kick_slack, target{target::kind::at_most, 3}, {}, s,
                        one, p, period, slack);
    c.hold(s, report_);
  }

private:
  template <typename Library, typename Handlers = pointer_handlers>
  using timers = timer_set<Library, Executor, Handlers>;
  template <typename Library> using watchdogs = watchdog_set<Library, Executor>;

  plan make_plan(std::size_t size, std::size_t operations, plan::order order,
                 std::chrono::microseconds least,
                 std::chrono::microseconds most) {
    return plan(size, operations, order, least, most, settings_.seed++);
  }

  void loop(std::size_t size, std::size_t operations) {
    const auto p = make_plan(size, operations, plan::order::random, 1s, 60s);
    contest c("the loop alone", size, operations, 1, true);
    c.add<bare_loop>("no timer", {}, {}, settings_, p);
    c.hold(settings_, report_);
  }

  void add(std::size_t size, std::size_t runs) {
    const auto p = make_plan(size, size, plan::order::sequential, 1s, 60s);
    contest c("add", size, size, runs, true);
    c.add<adding<timers<asio_timers>>>(steady, {}, {}, settings_, size, p);
    c.add<adding<timers<wheel_timers>>>(ours, at_each_size(size, 2.5), {},
                                        settings_, size, p);
    c.add<adding<wheel_set>>(bare, at_a_million(size, 15), {}, settings_, size,
                             p);
    for (const auto& x : peers_)
      if (!x.one_delay)
        c.add(x.who, {}, {}, [&] { return x.add(settings_, size, p); });
    c.hold(settings_, report_);

    contest shared("add, shared_ptr handler", size, size, runs, true);
    shared.add<adding<timers<asio_timers, shared_handlers>>>(
        steady, {}, {}, settings_, size, p);
    shared.add<adding<timers<wheel_timers, shared_handlers>>>(
        ours, {}, {}, settings_, size, p);
    shared.hold(settings_, report_);
  }

  void cancel_and_add_random_delay(std::size_t size, std::size_t operations) {
    const auto first = make_plan(size, size, plan::order::sequential, 1s, 60s);
    const auto p = make_plan(size, operations, plan::order::random, 1s, 60s);
    change("cancel + add, new random delay", size, operations, first, nullptr,
           p);
  }

  void cancel_and_add_one_delay(std::size_t size, std::size_t operations) {
    const auto first = started_before(size);
    const auto p = make_plan(size, operations, plan::order::random, 30s, 30s);
    const auto same = one_delay(size, plan::order::shuffled);
    change("cancel + add, one delay for all", size, operations, first, &same,
           p);
  }

  // As if the timers had been started at any time of the last 20 s.
  plan started_before(std::size_t size) {
    return make_plan(size, size, plan::order::sequential, 10s, 30s);
  }

  // For those that can have one delay only: the timers in the order in which
  // earlier operations of this kind would have left them.
  plan one_delay(std::size_t size, plan::order order) {
    return make_plan(size, size, order, 30s, 30s);
  }

  void add_peers(contest& c, peer::changing_function* peer::*make,
                 const std::size_t& size, const plan& first, const plan* same,
                 const plan& p) {
    for (const auto& x : peers_)
      if (const plan* f = x.one_delay ? same : &first)
        c.add(x.who, {}, {},
              [=, &x, &size, &p] { return (x.*make)(settings_, size, *f, p); });
  }

  void change(const std::string& name, std::size_t size, std::size_t operations,
              const plan& first, const plan* same, const plan& p) {
    contest c(name, size, operations, 1, true);
    c.add<changing<timers<asio_timers>, cancel_and_add>>(
        steady, {}, {}, settings_, size, first, p);
    c.add<changing<timers<wheel_timers>, cancel_and_add>>(
        ours, at_each_size(size, 4), at_each_size(size, 4), settings_, size,
        first, p);
    c.add<changing<wheel_set, cancel_and_add>>(bare, at_a_million(size, 20),
                                               at_a_million(size, 5), settings_,
                                               size, first, p);
    add_peers(c, &peer::cancel_and_add, size, first, same, p);
    c.hold(settings_, report_);

    contest shared(name + ", shared_ptr handler", size, operations, 1, true);
    shared.add<changing<timers<asio_timers, shared_handlers>, cancel_and_add>>(
        steady, {}, {}, settings_, size, first, p);
    shared.add<changing<timers<wheel_timers, shared_handlers>, cancel_and_add>>(
        ours, {}, {}, settings_, size, first, p);
    shared.hold(settings_, report_);
  }

  using refreshing_asio = changing<timers<asio_timers>, refresh>;
  using rearming = changing<timers<wheel_timers>, refresh>;
  using kicking_dogs = kicking<watchdogs<wheel_timers>>;
  using moving_entries = changing<wheel_set, refresh>;
  static constexpr std::chrono::nanoseconds period = 60s, slack = 2s, none{};

  void refresh_random(std::size_t size, std::size_t operations) {
    const auto first = started_before(size);
    const auto p = make_plan(size, operations, plan::order::random, 30s, 30s);
    const std::string name = "refresh, random timer";
    contest c(name, size, operations, 1, true);
    c.add<refreshing_asio>(steady, {}, {}, settings_, size, first, p);
    c.add<rearming>(rearm, at_each_size(size, 5), at_each_size(size, 6),
                    settings_, size, first, p);
    c.add<kicking_dogs>(kick, {}, at_a_million(size, 12), settings_, size, p,
                        period, none);
    c.add<moving_entries>(bare, {}, at_a_million(size, 6), settings_, size,
                          first, p);
    const auto same = one_delay(size, plan::order::shuffled);
    add_peers(c, &peer::refresh, size, first, &same, p);
    c.hold(settings_, report_);
    refresh_sampling(name, {}, size, operations, first, p);
  }

  void refresh_next(std::size_t size, std::size_t operations) {
    const auto first = started_before(size);
    const auto p =
        make_plan(size, operations, plan::order::sequential, 30s, 30s);
    const std::string name = "refresh, next timer";
    contest c(name, size, operations, 1, true);
    c.add<refreshing_asio>(steady, {}, {}, settings_, size, first, p);
    c.add<rearming>(rearm, at_each_size(size, 15), {}, settings_, size, first,
                    p);
    c.add<kicking_dogs>(kick, at_a_million(size, 15), {}, settings_, size, p,
                        period, none);
    c.add<moving_entries>(bare, at_a_million(size, 100), {}, settings_, size,
                          first, p);
    const auto same = one_delay(size, plan::order::sequential);
    add_peers(c, &peer::refresh, size, first, &same, p);
    c.hold(settings_, report_);
    refresh_sampling(name, at_a_million(size, 30), size, operations, first, p);
  }

  // By itself: where there are watchdogs with a slack, the others' kick() has
  // to look which kind it is for.
  void refresh_sampling(const std::string& name, std::optional<target> wanted,
                        std::size_t size, std::size_t operations,
                        const plan& first, const plan& p) {
    contest c(name + ", sampling", size, operations, 1, true);
    c.add<refreshing_asio>(steady, {}, {}, settings_, size, first, p);
    c.add<kicking_dogs>(kick_slack, wanted, {}, settings_, size, p, period,
                        slack);
    c.hold(settings_, report_);
  }

  // How far the clocks are set at a time: so far that handlers, and not steps,
  // are what takes the time. Asio sets its timerfd at each step, twice; our
  // wheel on a manual clock has no such thing. With steps of 1 ms, at a
  // million, a third of Asio's time went there.
  static std::chrono::milliseconds step_for(std::size_t size) {
    return std::chrono::milliseconds(
        std::max<std::size_t>(1, 10'000'000 / size));
  }

  void expire(std::size_t size, std::size_t runs) {
    const auto p = make_plan(size, size, plan::order::sequential, 1ms, 60s);
    const auto step = step_for(size);
    const time_lapse lapse(60s + settings_.wheel.tick + step, step);
    contest c("expire", size, size, runs, false);
    c.add<expiring<timers<asio_timers_on_set_clock>>>(steady, {}, {}, settings_,
                                                      size, p, lapse);
    c.add<expiring<timers<wheel_timers_on_set_clock>>>(
        ours, at_each_size(size, 4), {}, settings_, size, p, lapse);
    c.add<expiring<wheel_set>>(bare, at_a_million(size, 4.5), {}, settings_,
                               size, p, lapse);
    c.hold(settings_, report_);

    contest shared("expire, shared_ptr handler", size, size, runs, false);
    shared.add<expiring<timers<asio_timers_on_set_clock, shared_handlers>>>(
        steady, {}, {}, settings_, size, p, lapse);
    shared.add<expiring<timers<wheel_timers_on_set_clock, shared_handlers>>>(
        ours, {}, {}, settings_, size, p, lapse);
    shared.hold(settings_, report_);
  }

  // The peers' clocks cannot be set.
  void expire_overdue(std::size_t size) {
    const auto p = make_plan(size, size, plan::order::sequential, 1ms, 50ms);
    const std::size_t runs = size < 100'000 ? 4 : 1; // each takes 70 ms
    contest c("expire, all overdue", size, size, runs, false);
    c.add<expiring_overdue<timers<asio_timers>>>(steady, {}, {}, settings_,
                                                 size, p);
    c.add<expiring_overdue<timers<wheel_timers>>>(ours, {}, {}, settings_, size,
                                                  p);
    c.add<expiring_overdue<wheel_set_in_leaps>>(bare, {}, {}, settings_, size,
                                                p);
    for (const auto& x : peers_)
      if (!x.one_delay)
        c.add(x.who, {}, {},
              [&] { return x.expire_overdue(settings_, size, p); });
    c.hold(settings_, report_);
  }

  void put_off(std::size_t size, std::size_t runs) {
    constexpr std::chrono::nanoseconds put_off_by = 30s;
    const auto step = step_for(size);
    const auto first = started_before(size);
    const auto then = make_plan(size, size, plan::order::sequential, 40s, 60s);
    const auto order = make_plan(size, size, plan::order::shuffled, 1s, 1s);
    const time_lapse lapse(31s, step);
    // A step less than the time from one check to the next: before a watchdog
    // that was kicked at the start goes off.
    const time_lapse one_period(put_off_by - step, step);
    const auto short_step = std::min<std::chrono::nanoseconds>(step, 20ms);
    const time_lapse one_slack(slack - short_step, short_step);

    // Three workloads that have no counterpart.
    contest rearmed("put off by rearm_after, once per timeout", size, size,
                    runs, false);
    rearmed.add<passing_rearmed<timers<wheel_timers_on_set_clock>>>(
        ours, {}, {}, settings_, size, first, then, lapse);
    rearmed.hold(settings_, report_);
    contest kicked("put off by kick, once per period", size, size, runs, false);
    kicked.add<checking_kicked<watchdogs<wheel_timers_on_set_clock>>>(
        dog, {}, {}, settings_, size, order, one_period, put_off_by, none);
    kicked.hold(settings_, report_);
    contest marked("put off by kick with slack, once per slack", size, size,
                   runs, false);
    marked.add<checking_kicked<watchdogs<wheel_timers_on_set_clock>>>(
        dog, {}, {}, settings_, size, order, one_slack, put_off_by, slack);
    marked.hold(settings_, report_);
  }

  settings settings_;
  const std::vector<peer>& peers_;
  report& report_;
};

bool wanted(const settings& s, const std::string& workload) {
  return workload.find(s.only) != std::string::npos;
}

template <typename Executor>
void measure_footprint(const settings& s, std::size_t size,
                       const std::vector<peer>& peers, double limit,
                       report& r) {
  const std::string any = std::is_same_v<Executor, asio::any_io_executor>
                              ? "any_io_executor"
                              : "io_context::executor_type";
  const auto workload = "memory, " + any;
  if (!wanted(s, workload))
    return;
  std::cerr << workload << ", " << size << " timers\n";
  const plan first(size, size, plan::order::sequential, 1s, 60s, s.seed);
  const auto note = [&](const std::string& who, std::optional<target> t,
                        auto footprint) {
    if (who.find(s.who) != std::string::npos)
      r.add({workload,
             size,
             who,
             false,
             "bytes",
             {footprint(s, size, first)},
             t});
  };
  const auto at_most = [](double bytes) {
    return target{target::kind::at_most, bytes};
  };
  note(steady, {},
       footprint_of_timers<timer_set<asio_timers, Executor, pointer_handlers>>);
  note(
      ours, at_most(limit),
      footprint_of_timers<timer_set<wheel_timers, Executor, pointer_handlers>>);
  note(std::string(ours) + ", shared_ptr", {},
       footprint_of_timers<timer_set<wheel_timers, Executor, shared_handlers>>);
  note(dog, {}, footprint_of_watchdogs<watchdog_set<wheel_timers, Executor>>);
  note(bare, at_most(48), footprint_of_timers<wheel_set>);
  for (const auto& x : peers)
    if (!x.one_delay)
      note(x.who, {}, x.footprint);
}

void measure_idle(const settings& s, report& r) {
  constexpr std::size_t size = 1'000;
  const auto workload =
      "idle for " + std::to_string(s.idle.count()) + " ms, expiry in 60 s";
  if (!wanted(s, workload))
    return;
  std::cerr << workload << ", " << size << " timers\n";
  const auto theirs =
      idle<timer_set<asio_timers, asio::any_io_executor, pointer_handlers>>(
          s, size, 60s);
  const auto our =
      idle<timer_set<wheel_timers, asio::any_io_executor, pointer_handlers>>(
          s, size, 60s);
  const auto note = [&](const char* who, const char* unit, double value,
                        std::optional<target> t) {
    r.add({workload, size, who, false, unit, {value}, t});
  };
  note(steady, "wake-ups", static_cast<double>(theirs.wakeups), {});
  note(ours, "wake-ups", static_cast<double>(our.wakeups),
       target{target::kind::at_most, 0});
  note(steady, "us of CPU time", theirs.cpu_nanoseconds / 1e3, {});
  note(ours, "us of CPU time", our.cpu_nanoseconds / 1e3, {});
}

template <typename Executor>
void measure(const settings& s, const std::vector<peer>& peers, report& r) {
  for (const auto size : s.sizes) {
    suite<Executor>(s, peers, r).at_size(size);
    measure_footprint<asio::any_io_executor>(s, size, peers, 224, r);
    measure_footprint<asio::io_context::executor_type>(s, size, peers, 144, r);
  }
  suite<Executor>(s, peers, r).kick_one();
  measure_idle(s, r);
}

int run(int argc, char** argv) {
  namespace po = boost::program_options;
  settings s;
  std::string json;
  long idle_ms = s.idle.count();
  double tick_ms = 1;
  po::options_description options("Options");
  // clang-format off
  options.add_options()
      ("help", "say this and end")
      ("quick", "10,000 and 100,000 timers, short rounds")
      ("json", po::value(&json)->value_name("FILE"),
       "also write the figures to a file")
      ("sizes", po::value(&s.sizes)->multitoken()->value_name("N..."),
       "how many timers are pending (default: 10000 100000 1000000)")
      ("rounds", po::value(&s.rounds)->default_value(s.rounds),
       "measured rounds")
      ("operations", po::value(&s.operations)->default_value(s.operations),
       "the fewest operations of a round")
      ("poll-every", po::value(&s.poll_every)->default_value(s.poll_every),
       "operations from one poll to the next")
      ("executor", po::value(&s.executor)->default_value(s.executor),
       "of the timers: any or io_context")
      ("only", po::value(&s.only)->value_name("TEXT"),
       "only workloads whose name contains this")
      ("who", po::value(&s.who)->value_name("TEXT"),
       "only contestants whose name contains this")
      ("idle", po::value(&idle_ms)->default_value(idle_ms),
       "how long to be idle, in ms")
      ("seed", po::value(&s.seed)->default_value(s.seed),
       "of the random delays and orders")
      ("aged", po::bool_switch(&s.aged),
       "change the timers in random order first: operations do not lie in\n"
       "memory in the order of their timers, as after hours of service")
      ("tick", po::value(&tick_ms)->default_value(tick_ms),
       "of our wheel, in ms")
      ("slots", po::value(&s.wheel.slots)->default_value(s.wheel.slots),
       "of our wheel")
      ("levels", po::value(&s.wheel.levels)->default_value(s.wheel.levels),
       "of our wheel")
      ("batch",
       po::value(&s.wheel.expiry_batch)->default_value(s.wheel.expiry_batch),
       "of our wheel")
      ("single-threaded", po::bool_switch(&s.wheel.single_threaded),
       "our wheel takes no lock");
  // clang-format on
  const auto given = read_command_line(argc, argv, options);
  if (given.count("help") != 0) {
    std::cout << "How asio_wheel's timers compare with Boost.Asio's.\n\n"
              << options;
    return 0;
  }
  s.idle = std::chrono::milliseconds(idle_ms);
  s.wheel.tick = std::chrono::nanoseconds(
      static_cast<std::chrono::nanoseconds::rep>(tick_ms * 1e6));
  if (given.count("quick") != 0) {
    if (given["sizes"].empty())
      s.sizes = {10'000, 100'000};
    if (given["operations"].defaulted())
      s.operations = 50'000;
    if (given["idle"].defaulted())
      s.idle = 1s;
  }
  if (s.executor != "any" && s.executor != "io_context")
    throw po::error("--executor is any or io_context");
  if (s.rounds < 1 || s.poll_every < 1 ||
      std::count_if(s.sizes.begin(), s.sizes.end(), [](std::size_t n) {
        return n < 1 || n > 100'000'000;
      }) != 0)
    throw po::error("rounds and poll-every must be at least 1, "
                    "sizes from 1 to 100000000");

  keep_freed_memory();
  start_idle_thread();
  report r("timers");
  std::vector<peer> peers;
  for (const auto& library : peer_libraries()) {
    r.add_machine(library.name, library.version);
    peers.insert(peers.end(), library.peers.begin(), library.peers.end());
  }
  r.print_machine(std::cout);
  if (s.executor == "any")
    measure<asio::any_io_executor>(s, peers, r);
  else
    measure<asio::io_context::executor_type>(s, peers, r);
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
    std::cerr << "timers: " << e.what() << '\n';
    return 2;
  }
}
