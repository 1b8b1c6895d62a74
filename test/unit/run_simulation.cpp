//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/run_simulation.hpp>

#include <asio_wheel/watchdog.hpp>
#include <asio_wheel/wheel_timer.hpp>

#include <test/manual_context.hpp>
#include <test/outcome.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

#define BOOST_TEST_MODULE unit_run_simulation
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::manual_clock;
using asio_wheel::run_simulation;
using asio_wheel::simulation_options;
using asio_wheel::wheel_timer;
using boost::system::error_code;
using test::fate;
using test::manual_context;
using test::outcome;

} // namespace

BOOST_AUTO_TEST_CASE(each_timer_sees_its_own_time) {
  manual_context c;
  std::vector<wheel_timer> timers;
  std::vector<manual_clock::duration> seen;
  for (const auto d : {1ms, 5ms, 3'600'000ms, 86'400'000ms})
    timers.emplace_back(c.io, d);
  for (auto& t : timers)
    t.async_wait([&](error_code) {
      seen.push_back(c.now().time_since_epoch());
    });
  const auto result = run_simulation({c.io}, c.clock);
  const std::vector<manual_clock::duration> expected{1ms, 5ms, 1h, 24h};
  BOOST_TEST((seen == expected));
  BOOST_TEST(result.jumps >= 4u);
  BOOST_TEST(result.jumps <= 20u);
  BOOST_TEST(result.has_work.size() == 1u);
  BOOST_TEST(!result.has_work[0]);
}

BOOST_AUTO_TEST_CASE(everything_that_is_ready_runs_before_time_moves) {
  manual_context a;
  manual_context b({}, a.clock);
  wheel_timer t(a.io, 1s);
  int hops = 0;
  bool timer_ran = false;
  t.async_wait([&](error_code) {
    timer_ran = true;
    BOOST_TEST(hops == 100);
  });
  std::function<void()> hop = [&] { // between the contexts
    BOOST_TEST(!timer_ran);
    if (++hops != 100)
      asio::post(hops % 2 ? b.io : a.io, std::ref(hop));
  };
  asio::post(a.io, std::ref(hop));
  run_simulation({a.io, b.io}, a.clock);
  BOOST_TEST(timer_ran);
}

BOOST_AUTO_TEST_CASE(stops_at_until_and_goes_on_from_there) {
  manual_context c;
  outcome early, late;
  wheel_timer t(c.io, 1h), u(c.io, 3h);
  t.async_wait(early.tracked());
  u.async_wait(late.tracked());
  simulation_options options;
  options.until = c.now() + 2h;
  auto result = run_simulation({c.io}, c.clock, options);
  BOOST_TEST((c.now() == *options.until));
  BOOST_TEST((early.fate() == fate::fired));
  BOOST_TEST((late.fate() == fate::waiting));
  BOOST_TEST(result.has_work[0]);
  result = run_simulation({c.io}, c.clock);
  BOOST_TEST((late.fate() == fate::fired));
  BOOST_TEST(!result.has_work[0]);
}

BOOST_AUTO_TEST_CASE(bad_options_are_refused) {
  manual_context c({}, manual_clock(manual_clock::time_point(1h)));
  simulation_options options;
  options.until = c.now() - 1ns;
  BOOST_CHECK_THROW(run_simulation({c.io}, c.clock, options),
                    std::invalid_argument);
  options.until.reset();
  options.settle = -1ns;
  BOOST_CHECK_THROW(run_simulation({c.io}, c.clock, options),
                    std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(says_which_context_still_waits_for_io) {
  manual_context a;
  manual_context b({}, a.clock);
  asio::ip::tcp::acceptor acceptor(b.io,
                                   {asio::ip::address_v4::loopback(), 0});
  acceptor.async_accept([](error_code, asio::ip::tcp::socket) {});
  wheel_timer t(a.io, 1s);
  t.async_wait([](error_code) {});
  const auto result = run_simulation({a.io, b.io}, a.clock);
  BOOST_TEST(!result.has_work[0]);
  BOOST_TEST(result.has_work[1]);
}

BOOST_AUTO_TEST_CASE(a_wait_for_ever_is_left) {
  manual_context c;
  outcome o;
  wheel_timer t(c.io, wheel_timer::time_point::max());
  t.async_wait(o.tracked());
  const auto result = run_simulation({c.io}, c.clock);
  BOOST_TEST((o.fate() == fate::waiting));
  BOOST_TEST(result.has_work[0]);
}

BOOST_AUTO_TEST_CASE(does_not_jump_while_held) {
  manual_context c;
  wheel_timer t(c.io, 1s);
  bool answered = false, seen = false;
  t.async_wait([&](error_code) { seen = answered; });
  auto hold = c.clock.hold();
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    asio::post(c.io, [&] {
      answered = true;
      hold.release();
    });
  });
  run_simulation({c.io}, c.clock);
  other.join();
  BOOST_TEST(seen);
}

BOOST_AUTO_TEST_CASE(settles_for_what_sockets_bring) {
  manual_context c;
  asio::ip::tcp::acceptor acceptor(c.io,
                                   {asio::ip::address_v4::loopback(), 0});
  asio::ip::tcp::socket client(c.io), server(c.io);
  client.connect(acceptor.local_endpoint());
  acceptor.accept(server);
  wheel_timer timeout(c.io, 1s);
  bool timed_out = false;
  timeout.async_wait([&](error_code ec) { timed_out = !ec; });
  char buffer[1];
  server.async_receive(asio::buffer(buffer), [&](error_code, std::size_t) {
    timeout.cancel();
  });
  std::thread other([&] {
    std::this_thread::sleep_for(5ms);
    client.send(asio::buffer("x", 1));
  });
  simulation_options options;
  options.settle = 500ms;
  run_simulation({c.io}, c.clock, options);
  other.join();
  BOOST_TEST(!timed_out);
}

BOOST_AUTO_TEST_CASE(a_seed_shuffles_each_tick_and_gives_the_same_order_again) {
  const auto order = [](std::optional<std::uint64_t> seed) {
    manual_context c;
    std::vector<wheel_timer> timers;
    std::vector<int> seen;
    for (int i = 0; i != 300; ++i) {
      timers.emplace_back(c.io, i < 200 ? 5ms : 9ms);
      timers.back().async_wait([&seen, i](error_code) { seen.push_back(i); });
    }
    simulation_options options;
    options.seed = seed;
    run_simulation({c.io}, c.clock, options);
    return seen;
  };
  const auto a = order(1), again = order(1), b = order(2);
  BOOST_TEST(a.size() == 300u);
  BOOST_TEST((a == again));
  BOOST_TEST((a != b));
  BOOST_TEST((a != order({})));
  for (std::size_t i = 0; i != 300; ++i)
    BOOST_TEST((a[i] < 200) == (i < 200)); // ticks stay in order
}

BOOST_AUTO_TEST_CASE(an_exception_leaves_and_it_can_go_on) {
  manual_context c;
  outcome o;
  wheel_timer t(c.io, 1s), u(c.io, 2s);
  t.async_wait([](error_code) { throw std::runtime_error("handler"); });
  u.async_wait(o.tracked());
  BOOST_CHECK_THROW(run_simulation({c.io}, c.clock), std::runtime_error);
  run_simulation({c.io}, c.clock);
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(a_year_of_heartbeats) {
  manual_context c;
  wheel_timer t(c.io);
  std::size_t beats = 0;
  std::function<void(error_code)> beat = [&](error_code) {
    if (++beats == 365 * 24)
      return;
    t.expires_after(1h);
    t.async_wait(std::ref(beat));
  };
  beat({});
  run_simulation({c.io}, c.clock);
  BOOST_TEST(beats == 365u * 24);
  BOOST_TEST((c.now().time_since_epoch() >= 8759h));
  BOOST_TEST((c.now().time_since_epoch() <= 8759h + 8759 * 1ms));
}
