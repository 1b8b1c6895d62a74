//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#define main example_main
#include "../../example/delayed_delivery.cpp"
#undef main

#include <test/manual_context.hpp>

#define BOOST_TEST_MODULE example_delayed_delivery
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// Days of deliveries in virtual time: each message is delivered once, or is a
// dead letter.

namespace {

using namespace delayed_delivery;
using test::manual_context;

// Without chance: 1, 2, 4 and so on minutes, up to an hour.
settings with(std::size_t workers, std::size_t max_attempts) {
  settings s;
  s.workers = workers;
  s.max_attempts = max_attempts;
  s.retry = asio_wheel::backoff::exponential(1min, 1h);
  return s;
}

struct post : manual_context {
  struct event {
    std::string text;
    duration after;
    bool operator==(const event& o) const {
      return text == o.text && after == o.after;
    }
  };

  const time_point start = now();
  duration takes{};
  std::size_t failures = 0; // how many attempts fail from now on
  std::size_t at_once = 0, most_at_once = 0;
  std::vector<event> attempts;
  std::optional<courier> c; // may go before the context

  explicit post(const settings& s) {
    c.emplace(
        io.get_executor(), [this](const message& m) { return deliver(m); }, s);
    poll();
  }

  asio::awaitable<void> deliver(const message& m) {
    attempts.push_back({m.text, now() - start});
    most_at_once = std::max(most_at_once, ++at_once);
    const std::shared_ptr<void> leave(nullptr, [this](void*) { --at_once; });
    if (takes != 0s) {
      asio_wheel::wheel_timer timer(io, takes);
      co_await timer.async_wait(asio::use_awaitable);
    }
    if (failures != 0) {
      --failures;
      throw std::runtime_error("no answer");
    }
  }

  void run() { asio_wheel::run_simulation({io}, clock); }
};

using events = std::vector<post::event>;

} // namespace

BOOST_AUTO_TEST_CASE(messages_are_delivered_when_they_are_due) {
  post p(with(1, 3));
  p.c->send({"alice", "tomorrow"}, 24h);
  p.c->send({"alice", "in an hour"}, 1h);
  p.c->send({"alice", "now"}, 0s);
  p.run();
  BOOST_TEST((p.attempts ==
              events{{"now", 0s}, {"in an hour", 1h}, {"tomorrow", 24h}}));
  BOOST_TEST(p.c->delivered() == 3u);
  BOOST_TEST(!p.c->closed());
  p.c->close();
  p.run();
  BOOST_TEST(p.c->closed());
}

BOOST_AUTO_TEST_CASE(a_failed_delivery_is_tried_again_after_longer_and_longer) {
  post p(with(2, 10));
  p.failures = 7;
  p.c->send({"alice", "a"}, 1h);
  p.run();
  BOOST_TEST((p.attempts == events{{"a", 60min},
                                   {"a", 61min},
                                   {"a", 63min},
                                   {"a", 67min},
                                   {"a", 75min},
                                   {"a", 91min},
                                   {"a", 123min},
                                   {"a", 183min}}));
  BOOST_TEST(p.c->delivered() == 1u);
  BOOST_TEST(p.c->dead_letters().empty());
}

BOOST_AUTO_TEST_CASE(after_so_many_attempts_it_is_a_dead_letter) {
  post p(with(2, 3));
  p.failures = 3;
  p.c->send({"bob", "a"}, 0s);
  p.run();
  BOOST_TEST(p.attempts.size() == 3u);
  BOOST_TEST(p.c->delivered() == 0u);
  BOOST_TEST(p.c->waiting() == 0u);
  BOOST_REQUIRE(p.c->dead_letters().size() == 1u);
  const dead_letter& d = p.c->dead_letters().front();
  BOOST_TEST(d.what.to == "bob");
  BOOST_TEST(d.what.text == "a");
  BOOST_TEST(d.why == "no answer");
  BOOST_TEST(d.attempts == 3u);
}

BOOST_AUTO_TEST_CASE(a_message_that_is_tried_again_does_not_keep_a_worker) {
  post p(with(1, 3));
  p.failures = 1;
  p.c->send({"alice", "a"}, 0s);
  p.c->send({"bob", "b"}, 1s);
  p.run();
  BOOST_TEST((p.attempts == events{{"a", 0s}, {"b", 1s}, {"a", 1min}}));
}

BOOST_AUTO_TEST_CASE(a_delivery_that_hangs_is_a_failed_one) {
  post p(with(1, 2));
  p.takes = 24h;
  p.c->send({"alice", "a"}, 0s);
  p.c->send({"bob", "b"}, 0s);
  p.run();
  BOOST_TEST(p.at_once == 0u);
  BOOST_TEST(p.attempts.size() == 4u);
  BOOST_REQUIRE(p.c->dead_letters().size() == 2u);
  BOOST_TEST(
      p.c->dead_letters().front().why.find(
          make_error_code(asio_wheel::error::operation_timeout).message()) !=
      std::string::npos);
  BOOST_TEST((p.now() - p.start < 2min));
}

BOOST_AUTO_TEST_CASE(as_many_deliveries_at_once_as_there_are_workers) {
  post p(with(3, 2));
  p.takes = 2s;
  for (int i = 0; i != 300; ++i)
    p.c->send({"alice", std::to_string(i)}, 1h);
  p.run();
  BOOST_TEST(p.c->delivered() == 300u);
  BOOST_TEST(p.most_at_once == 3u);
  BOOST_TEST((p.now() - p.start >= 1h + 200s));
  BOOST_TEST((p.now() - p.start < 1h + 201s));
}

BOOST_AUTO_TEST_CASE(a_message_can_be_taken_back_until_its_first_attempt) {
  post p(with(1, 3));
  const auto a = p.c->send({"alice", "a"}, 1h);
  const auto b = p.c->send({"alice", "b"}, 1h);
  p.advance(59min);
  BOOST_TEST(p.c->take_back(a));
  BOOST_TEST(!p.c->take_back(a));
  p.failures = 1;
  p.advance(1min);
  BOOST_TEST(p.c->waiting() == 1u); // b, again
  BOOST_TEST(!p.c->take_back(b));
  p.run();
  BOOST_TEST((p.attempts == events{{"b", 60min}, {"b", 61min}}));
  BOOST_TEST(p.c->delivered() == 1u);
}

BOOST_AUTO_TEST_CASE(closed_it_delivers_what_it_has_and_loses_nothing) {
  post p(with(2, 5));
  p.c->send({"alice", "a"}, 1h);
  p.c->send({"alice", "b"}, 2h);
  p.c->close();
  BOOST_CHECK_THROW(p.c->send({"alice", "c"}, 1h), boost::system::system_error);
  p.advance(90min);
  BOOST_TEST(p.c->delivered() == 1u);
  BOOST_TEST(!p.c->closed());
  p.failures = 1;
  p.run();
  BOOST_TEST(p.c->closed());
  BOOST_TEST(p.c->delivered() == 1u);
  BOOST_REQUIRE(p.c->dead_letters().size() == 1u); // whole, after one attempt
  const dead_letter& d = p.c->dead_letters().front();
  BOOST_TEST(d.what.text == "b");
  BOOST_TEST(d.why == "no answer");
  BOOST_TEST(d.attempts == 1u);
  BOOST_TEST(p.io.stopped()); // nothing is left to do
}

BOOST_AUTO_TEST_CASE(a_day_of_it) { BOOST_TEST(example_main() == 0); }
