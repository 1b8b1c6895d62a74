//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#define main example_main
#include "../../example/session_store.cpp"
#undef main

#include <test/manual_context.hpp>

#define BOOST_TEST_MODULE example_session_store
#include <boost/test/unit_test.hpp>

#include <string>
#include <utility>
#include <vector>

// Days of sessions in virtual time: each lives for as long as it is used, and
// ends once.

namespace {

using namespace session_store;
using test::manual_context;

struct web : manual_context {
  std::vector<std::pair<std::string, end>> ends;
  sessions store;

  explicit web(std::size_t most = 100)
      : store(io, with_at_most(most), [this](const session& s, end why) {
          ends.emplace_back(s.user, why);
        }) {}

  // Who has come to an end, and how, since the last call.
  std::vector<std::pair<std::string, end>> ended() {
    return std::exchange(ends, {});
  }

private:
  static limits with_at_most(std::size_t n) {
    limits l;
    l.sessions = n;
    return l;
  }
};

using list = std::vector<std::pair<std::string, end>>;

} // namespace

BOOST_AUTO_TEST_CASE(a_session_ends_after_half_an_hour_without_a_request) {
  web w;
  const std::string id = w.store.log_in("alice");
  BOOST_TEST(id.size() == 32u);
  w.advance(30min - 1ns);
  BOOST_TEST(w.store.size() == 1u);
  BOOST_TEST(w.ended().empty());
  w.advance(1ms);
  BOOST_TEST(!w.store.request(id));
  BOOST_TEST((w.ended() == list{{"alice", end::idle}}));
  BOOST_TEST(w.store.size() == 0u);
}

BOOST_AUTO_TEST_CASE(a_session_in_use_lives_for_days) {
  web w;
  const std::string id = w.store.log_in("alice"), open = w.store.log_in("bob");
  for (int i = 0; i != 100; ++i) {
    w.advance(29min);
    BOOST_REQUIRE(w.store.request(id));
    BOOST_REQUIRE(w.store.keep_alive(open));
  }
  BOOST_TEST(w.ended().empty());
  const auto alice = w.store.request(id), bob = w.store.request(open);
  BOOST_TEST(alice->user == "alice");
  BOOST_TEST(alice->requests == 101u);
  BOOST_TEST(bob->user == "bob");
  BOOST_TEST(bob->requests == 1u);
  w.advance(31min);
  BOOST_TEST(w.ended().size() == 2u);
  BOOST_TEST(!w.store.keep_alive(open));
}

BOOST_AUTO_TEST_CASE(logging_out_ends_a_session_once) {
  web w;
  const std::string id = w.store.log_in("alice");
  BOOST_TEST(w.store.log_out(id));
  BOOST_TEST(!w.store.log_out(id));
  BOOST_TEST(!w.store.request(id));
  w.advance(24h);
  BOOST_TEST((w.ended() == list{{"alice", end::logged_out}}));
}

BOOST_AUTO_TEST_CASE(a_session_that_has_expired_is_not_logged_out) {
  web w;
  const std::string id = w.store.log_in("alice");
  w.clock.advance(30min); // the loop has not got round to it
  BOOST_TEST(!w.store.request(id));
  BOOST_TEST(!w.store.log_out(id));
  w.advance(1ms);
  BOOST_TEST((w.ended() == list{{"alice", end::idle}}));
}

BOOST_AUTO_TEST_CASE(the_one_idle_for_longest_makes_room) {
  web w(3);
  const std::string alice = w.store.log_in("alice");
  w.advance(1min);
  const std::string bob = w.store.log_in("bob");
  w.advance(1min);
  const std::string carol = w.store.log_in("carol");
  w.advance(1min);
  BOOST_TEST(w.store.request(alice));
  w.advance(1min);
  w.store.log_in("dave");
  BOOST_TEST(w.ended().empty()); // never from inside
  w.poll();
  BOOST_TEST((w.ended() == list{{"bob", end::evicted}}));
  BOOST_TEST(!w.store.request(bob));
  BOOST_TEST(w.store.request(carol));
  w.store.log_in("eve");
  w.poll();
  BOOST_TEST((w.ended() == list{{"alice", end::evicted}}));
  BOOST_TEST(w.store.size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_request_keeps_a_session_alive_that_ends_meanwhile) {
  web w;
  const std::string id = w.store.log_in("alice");
  const auto s = w.store.request(id); // takes an hour
  w.advance(1h);
  BOOST_TEST((w.ended() == list{{"alice", end::idle}}));
  BOOST_TEST(s->user == "alice");
}

BOOST_AUTO_TEST_CASE(a_user_logs_in_again_after_each_long_pause) {
  web w;
  asio_wheel::scheduler outside(w.io);
  std::size_t log_ins = 0;
  for (std::size_t user = 0; user != 1000; ++user)
    visit(w.store, outside, user, log_ins)();
  asio_wheel::run_simulation({w.io}, w.clock);
  BOOST_TEST(log_ins > 1000u);
  BOOST_TEST(w.ends.size() == log_ins); // also those that were evicted
  BOOST_TEST(w.store.size() == 0u);
}

BOOST_AUTO_TEST_CASE(a_day_of_it) { BOOST_TEST(example_main() == 0); }
