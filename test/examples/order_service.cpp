//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#define main example_main
#include "../../example/order_service.cpp"
#undef main

#include <test/manual_context.hpp>

#define BOOST_TEST_MODULE example_order_service
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

// Hours of orders in virtual time: each is paid or lapses, and none both.

namespace {

using namespace order_service;
using test::manual_context;

struct shop : manual_context {
  std::vector<order_id> lapsed;
  orders service;

  explicit shop(const limits& l = limits())
      : service(io, l, [this](order_id id) { lapsed.push_back(id); }) {}
};

using ids = std::vector<order_id>;

} // namespace

BOOST_AUTO_TEST_CASE(an_unpaid_order_lapses_after_half_an_hour) {
  shop s;
  BOOST_TEST(s.service.place(1));
  s.advance(30min - 1ns);
  BOOST_TEST(s.lapsed.empty());
  s.advance(1ms);
  BOOST_TEST(s.lapsed == ids{1});
  BOOST_TEST(!s.service.pay(1));
  s.advance(24h);
  BOOST_TEST(s.lapsed == ids{1});
}

BOOST_AUTO_TEST_CASE(a_paid_order_never_lapses_and_is_paid_once) {
  shop s;
  BOOST_TEST(s.service.place(1));
  s.advance(29min);
  BOOST_TEST(s.service.pay(1));
  BOOST_TEST(!s.service.pay(1));
  BOOST_TEST(!s.service.pay(2)); // never placed
  s.advance(24h);
  BOOST_TEST(s.lapsed.empty());
}

BOOST_AUTO_TEST_CASE(a_payment_wins_as_long_as_the_order_has_not_lapsed) {
  shop s;
  BOOST_TEST(s.service.place(1));
  s.clock.advance(31min); // due, but the loop has not got round to it
  BOOST_TEST(s.service.pay(1));
  s.poll();
  BOOST_TEST(s.lapsed.empty());
}

BOOST_AUTO_TEST_CASE(a_payment_while_the_order_lapses_is_too_late) {
  manual_context c;
  bool accepted = true;
  int lapsed = 0;
  std::function<void(order_id)> on_lapse;
  orders service(c.io, limits(), [&](order_id id) { on_lapse(id); });
  on_lapse = [&](order_id id) {
    ++lapsed;
    accepted = service.pay(id);
    if (lapsed == 1) // and may be placed again
      BOOST_TEST(service.place(id));
  };
  BOOST_TEST(service.place(1));
  asio_wheel::run_simulation({c.io}, c.clock);
  BOOST_TEST(lapsed == 2);
  BOOST_TEST(!accepted);
}

BOOST_AUTO_TEST_CASE(an_order_that_is_open_is_not_placed_again) {
  shop s;
  BOOST_TEST(s.service.place(1));
  s.advance(20min);
  BOOST_TEST(!s.service.place(1));
  s.advance(11min);
  BOOST_TEST(s.lapsed == ids{1});
  BOOST_TEST(s.service.place(1));
}

BOOST_AUTO_TEST_CASE(payments_and_lapsed_orders_make_room) {
  limits l;
  l.open_orders = 2;
  shop s(l);
  BOOST_TEST(s.service.place(1));
  BOOST_TEST(s.service.place(2));
  BOOST_TEST(!s.service.place(3));
  BOOST_TEST(!s.service.pay(3));
  BOOST_TEST(s.service.pay(1));
  BOOST_TEST(s.service.place(3));
  BOOST_TEST(!s.service.place(4));
  s.advance(31min);
  BOOST_TEST(s.service.place(4));
  BOOST_TEST(s.service.counts().rejected == 2u);
}

BOOST_AUTO_TEST_CASE(the_next_service_goes_on_with_what_is_open) {
  std::vector<open_order> left;
  {
    shop s;
    for (order_id id = 1; id != 61; ++id) {
      BOOST_TEST(s.service.place(id));
      s.advance(1min);
    }
    BOOST_TEST(s.service.pay(40));
    left = s.service.stop();
    BOOST_TEST(!s.service.place(61));
    BOOST_TEST(!s.service.pay(50)); // the next one's
    s.advance(24h);
    BOOST_TEST(s.lapsed.size() == 31u); // before it stopped
  }
  BOOST_TEST(left.size() == 28u);
  order_id id = 32;
  for (const open_order& o : left) {
    BOOST_TEST(o.id == id);
    BOOST_TEST((o.left == (id - 31) * 1min));
    id += id == 39 ? 2 : 1;
  }

  limits l;
  l.open_orders = 27;
  shop next(l);
  BOOST_TEST(next.service.resume(left) == ids{60}); // no room for it
  next.advance(10min + 1ms);
  BOOST_TEST(next.service.pay(50));
  next.advance(24h);
  BOOST_TEST(next.lapsed.size() == 26u);
  BOOST_TEST(std::is_sorted(next.lapsed.begin(), next.lapsed.end()));
}

BOOST_AUTO_TEST_CASE(each_of_100000_orders_of_a_day_is_paid_or_lapses) {
  asio_wheel::wheel_options options;
  options.tick = 1s;
  manual_context c(options);
  std::size_t lapsed = 0, paid = 0, late = 0;
  orders service(c.io, limits(), [&](order_id) { ++lapsed; });
  asio_wheel::scheduler outside(c.io);
  const std::size_t orders = 100'000, pay_late = orders / 4;
  for (order_id id = 0; id != orders; ++id)
    outside.schedule_after(std::chrono::seconds(id * 86'400 / orders), [&, id] {
      BOOST_REQUIRE(service.place(id));
      outside.schedule_after(id % 4 == 0 ? 31min
                                         : std::chrono::minutes(id % 29),
                             [&, id] { ++(service.pay(id) ? paid : late); });
    });
  asio_wheel::run_simulation({c.io}, c.clock);
  BOOST_TEST(paid == orders - pay_late);
  BOOST_TEST(lapsed == pay_late);
  BOOST_TEST(late == pay_late);
  BOOST_TEST(service.counts().pending == 0u);
}

BOOST_AUTO_TEST_CASE(payments_from_other_threads_race_with_the_half_hour) {
  for (int round = 0; round != 20; ++round) {
    manual_context c;
    constexpr order_id count = 500;
    std::vector<std::atomic<int>> ends(count); // how often an order came to one
    orders service(c.io, limits(), [&](order_id id) { ++ends[id]; });
    for (order_id id = 0; id != count; ++id)
      BOOST_REQUIRE(service.place(id));
    std::atomic<bool> due{false};
    const auto pay = [&](order_id id) {
      if (service.pay(id))
        ++ends[id];
    };
    const auto wait = [&] {
      while (!due)
        std::this_thread::yield();
    };
    std::vector<std::thread> threads;
    threads.emplace_back([&] { c.io.run(); });
    threads.emplace_back([&] { c.io.run(); });
    threads.emplace_back([&] {
      wait();
      for (order_id id = 0; id != count; ++id)
        pay(id);
    });
    threads.emplace_back([&] {
      wait();
      for (order_id id = count; id-- != 0;)
        pay(id);
    });
    due = true;
    c.clock.advance(30min);
    for (std::thread& t : threads)
      t.join();
    BOOST_TEST(std::all_of(ends.begin(), ends.end(),
                           [](const auto& n) { return n == 1; }));
  }
}
