//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/wheel_timer.hpp>

#include <asio_wheel/watchdog.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#define BOOST_TEST_MODULE integration_real_time
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <functional>
#include <random>
#include <thread>
#include <vector>

// On the real clock. Never early is strict; late is bounded loosely, since the
// machine may have other things to do.

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::wheel_timer;
using boost::system::error_code;
using clock_type = std::chrono::steady_clock;

constexpr auto much_too_late = 5s;

struct measure {
  std::size_t fired = 0, early = 0, late = 0;
  void operator()(clock_type::time_point expiry) {
    const auto now = clock_type::now();
    ++fired;
    early += now < expiry;
    late += now > expiry + much_too_late;
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(a_thousand_timers_none_early) {
  asio::io_context io(1);
  std::minstd_rand random(1);
  std::vector<wheel_timer> timers;
  measure m;
  for (int i = 0; i != 1000; ++i)
    timers.emplace_back(io, std::chrono::microseconds(random() % 500'000));
  for (auto& t : timers)
    t.async_wait([&m, e = t.expiry()](error_code ec) {
      BOOST_TEST(!ec);
      m(e);
    });
  io.run();
  BOOST_TEST(m.fired == 1000u);
  BOOST_TEST(m.early == 0u);
  BOOST_TEST(m.late == 0u);
}

BOOST_AUTO_TEST_CASE(a_tick_of_a_microsecond_none_early) {
  asio::io_context io(1);
  asio_wheel::wheel_options options;
  options.tick = 1us;
  asio_wheel::make_wheel(io, options);
  measure m;
  wheel_timer t(io);
  int left = 300;
  std::function<void()> go = [&] {
    t.expires_after(std::chrono::nanoseconds(left * 333));
    t.async_wait([&, e = t.expiry()](error_code) {
      m(e);
      if (--left != 0)
        go();
    });
  };
  go();
  io.run();
  BOOST_TEST(m.fired == 300u);
  BOOST_TEST(m.early == 0u);
  BOOST_TEST(m.late == 0u);
}

BOOST_AUTO_TEST_CASE(a_wheel_of_100_ms_is_late_by_at_most_its_tick) {
  asio::io_context io(1);
  auto& wheel =
      asio_wheel::make_wheel(io, asio_wheel::wheel_options::hashed());
  measure m;
  std::vector<wheel_timer> timers;
  for (int i = 1; i != 6; ++i)
    timers.emplace_back(io, std::chrono::milliseconds(i * 30));
  for (auto& t : timers)
    t.async_wait([&m, e = t.expiry()](error_code) { m(e); });
  io.run();
  BOOST_TEST(m.fired == 5u);
  BOOST_TEST(m.early == 0u);
  BOOST_TEST(m.late == 0u);
  BOOST_TEST(wheel.stats().wakeups <= 3u);
}

BOOST_AUTO_TEST_CASE(rearmed_again_and_again_not_early) {
  asio::io_context io(1);
  measure m;
  wheel_timer t(io, 30ms), pusher(io);
  t.async_wait([&](error_code) { m(t.expiry()); });
  int pushes = 0;
  std::function<void(error_code)> push = [&](error_code) {
    t.rearm_after(30ms);
    if (++pushes != 20) {
      pusher.expires_after(5ms);
      pusher.async_wait(std::ref(push));
    }
  };
  push({});
  io.run();
  BOOST_TEST(m.fired == 1u);
  BOOST_TEST(m.early == 0u);
  BOOST_TEST(m.late == 0u);
}

BOOST_AUTO_TEST_CASE(a_watchdog_not_before_its_period_after_the_last_kick) {
  for (const auto slack : {0ms, 20ms}) {
    asio::io_context io(1);
    asio_wheel::watchdog dog(io, 50ms, slack);
    wheel_timer kicker(io);
    measure m;
    int kicks = 0;
    clock_type::time_point last;
    std::function<void(error_code)> kick = [&](error_code) {
      last = clock_type::now();
      dog.kick();
      if (++kicks != 30) {
        kicker.expires_after(3ms);
        kicker.async_wait(std::ref(kick));
      }
    };
    kick({});
    dog.async_wait([&](error_code) { m(last + 50ms); });
    io.run();
    BOOST_TEST(m.fired == 1u);
    BOOST_TEST(m.early == 0u);
    BOOST_TEST(m.late == 0u);
  }
}

BOOST_AUTO_TEST_CASE(the_blocking_wait_is_not_early) {
  asio::io_context io;
  wheel_timer t(io, 20ms);
  const auto expiry = t.expiry();
  t.wait();
  BOOST_TEST((clock_type::now() >= expiry));
}

BOOST_AUTO_TEST_CASE(on_a_pool_of_threads_none_early) {
  std::atomic<std::size_t> fired{0}, early{0};
  asio::thread_pool pool(3);
  std::vector<wheel_timer> timers;
  for (int i = 0; i != 500; ++i) {
    timers.emplace_back(pool, std::chrono::microseconds(i * 400));
    timers.back().async_wait(
        [&, e = timers.back().expiry()](error_code) {
          ++fired;
          early += clock_type::now() < e;
        });
  }
  pool.join();
  BOOST_TEST(fired == 500u);
  BOOST_TEST(early == 0u);
}
