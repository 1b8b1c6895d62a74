//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/expiring_map.hpp>

#define BOOST_TEST_MODULE unit_expiring_map
#include <boost/test/unit_test.hpp>

#include <test/manual_context.hpp>
#include <test/outcome.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::expire_after;
using asio_wheel::expiring_map;
using asio_wheel::expiry_reason;
using test::manual_context;

using names = expiring_map<std::string, int>;
using duration = names::duration;
using time_point = names::time_point;

struct gone {
  std::string key;
  int value;
  expiry_reason reason;
};

struct fixture : manual_context {
  std::vector<gone> hooked;

  names::options_type options(duration ttl,
                              expire_after mode = expire_after::write,
                              std::size_t max_size = 1000) {
    names::options_type o;
    o.time_to_live = ttl;
    o.expire_after = mode;
    o.max_size = max_size;
    o.on_expire = [this](const std::string& key, int&& value, expiry_reason r) {
      BOOST_TEST(!test::no_upcalls::active());
      hooked.push_back({key, value, r});
    };
    return o;
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(an_entry_goes_when_its_time_is_over) {
  fixture f;
  names m(f.io, f.options(10s));
  BOOST_TEST(m.insert("a", 1));
  f.poll();
  f.advance(10s - 1ns);
  BOOST_TEST(m.find("a").value() == 1);
  BOOST_TEST(f.hooked.empty());
  f.advance(1ns);
  BOOST_TEST(m.empty());
  BOOST_REQUIRE(f.hooked.size() == 1u);
  BOOST_TEST(f.hooked[0].key == "a");
  BOOST_TEST(f.hooked[0].value == 1);
  BOOST_TEST((f.hooked[0].reason == expiry_reason::expired));
}

BOOST_AUTO_TEST_CASE(
    an_entry_past_its_time_is_not_found_before_the_timer_runs) {
  fixture f;
  names m(f.io, f.options(10s));
  m.insert("a", 1);
  f.clock.advance(10s);
  test::no_upcalls quiet;
  BOOST_TEST(!m.find("a").has_value());
  BOOST_TEST(!m.contains("a"));
  BOOST_TEST(!m.touch("a"));
  BOOST_TEST(!m.touch("a", 1h));
  BOOST_TEST(!m.expiry("a").has_value());
  BOOST_TEST(!m.erase("a"));
  BOOST_TEST(!m.extract("a").has_value());
  m.for_each([](const std::string&, int) { BOOST_ERROR("it has expired"); });
  BOOST_TEST(m.size() == 1u);
}

BOOST_AUTO_TEST_CASE(an_entry_past_its_time_is_replaced_and_hooked) {
  fixture f;
  names m(f.io, f.options(10s));
  m.insert("a", 1);
  f.clock.advance(10s);
  test::quietly([&] { BOOST_TEST(m.insert("a", 2)); });
  BOOST_TEST(m.size() == 1u);
  f.poll();
  BOOST_REQUIRE(f.hooked.size() == 1u);
  BOOST_TEST(f.hooked[0].value == 1);
  BOOST_TEST((f.hooked[0].reason == expiry_reason::expired));
  BOOST_TEST(m.find("a").value() == 2);
}

BOOST_AUTO_TEST_CASE(insert_keeps_and_insert_or_assign_replaces) {
  fixture f;
  names m(f.io, f.options(10s));
  BOOST_TEST(m.insert("a", 1));
  BOOST_TEST(!m.insert("a", 2));
  BOOST_TEST(m.find("a").value() == 1);
  f.advance(5s);
  BOOST_TEST(!m.insert_or_assign("a", 3));
  BOOST_TEST(m.insert_or_assign("b", 4));
  BOOST_TEST(m.find("a").value() == 3);
  f.advance(9s); // its time counts from the replacement
  BOOST_TEST(m.contains("a"));
  BOOST_TEST(f.hooked.empty());
}

BOOST_AUTO_TEST_CASE(entries_may_live_for_times_of_their_own) {
  fixture f;
  names m(f.io, f.options(10s));
  m.insert("short", 1, 1s);
  m.insert("long", 2, 1h);
  m.insert("usual", 3);
  m.insert_or_assign("ever", 4, duration::max());
  BOOST_TEST((m.expiry("long").value() == f.now() + 1h));
  BOOST_TEST((m.expiry("ever").value() == time_point::max()));
  f.poll();
  f.advance(1s);
  BOOST_TEST(m.size() == 3u);
  f.advance(9s);
  BOOST_TEST(m.size() == 2u);
  f.advance(1h);
  BOOST_TEST(m.size() == 1u);
  BOOST_TEST(m.contains("ever"));
  f.advance(24h * 365 * 100);
  BOOST_TEST(m.contains("ever"));
}

BOOST_AUTO_TEST_CASE(a1_a2_any_time_to_live_is_legal) {
  fixture f;
  names m(f.io, f.options(10s));
  for (const duration d :
       {duration(0), duration(-1ns), duration::min(), duration::min() + 1ns}) {
    f.hooked.clear();
    test::quietly([&] { BOOST_TEST(m.insert("a", 1, d)); });
    BOOST_TEST(!m.contains("a"));
    f.poll();
    BOOST_TEST(f.hooked.size() == 1u);
  }
  for (const duration d :
       {duration::max(), duration::max() - 1ns, duration::max() / 10}) {
    BOOST_TEST(m.insert_or_assign("b", 1, d));
    f.poll();
    f.advance(24h);
    BOOST_TEST(m.erase("b"));
  }
}

BOOST_AUTO_TEST_CASE(touch_starts_the_time_anew) {
  fixture f;
  names m(f.io, f.options(10s));
  m.insert("a", 1);
  f.poll();
  for (int i = 0; i != 10; ++i) {
    f.advance(9s);
    BOOST_TEST(m.touch("a"));
    BOOST_TEST((m.expiry("a").value() == f.now() + 10s));
  }
  f.advance(10s - 1ns);
  BOOST_TEST(m.contains("a"));
  f.advance(1ns);
  BOOST_TEST(m.empty());
  BOOST_TEST(!m.touch("a"));
}

BOOST_AUTO_TEST_CASE(b9_touch_with_a_time_puts_off_and_draws_near) {
  fixture f;
  names m(f.io, f.options(10s));
  m.insert("a", 1);
  f.poll();
  BOOST_TEST(m.touch("a", 1h));
  f.advance(10s);
  BOOST_TEST(m.contains("a"));
  BOOST_TEST(m.touch("a", 2s));
  f.advance(1s);
  BOOST_TEST(m.touch("a")); // for the time that it has now
  f.advance(2s);
  BOOST_TEST(m.empty());
  BOOST_TEST(f.hooked.size() == 1u);
}

BOOST_AUTO_TEST_CASE(only_with_access_does_finding_start_the_time_anew) {
  for (const auto mode : {expire_after::write, expire_after::access}) {
    fixture f;
    names m(f.io, f.options(10s, mode));
    m.insert("a", 1);
    f.advance(5s);
    BOOST_TEST(m.contains("a"));
    m.for_each([](const std::string&, int) {});
    BOOST_TEST((m.expiry("a").value() == f.now() + 5s));
    m.find("a");
    f.advance(5s);
    BOOST_TEST(m.contains("a") == (mode == expire_after::access));
  }
}

BOOST_AUTO_TEST_CASE(a_full_map_evicts_the_next_to_expire) {
  fixture f;
  names m(f.io, f.options(10s, expire_after::write, 3));
  m.insert("a", 1);
  m.insert("b", 2, 5s);
  m.insert("c", 3, 7s);
  f.clock.advance(1s);
  m.touch("b", 20s);
  m.insert_or_assign("a", 4); // takes no more room
  f.poll();
  BOOST_TEST(f.hooked.empty());
  test::quietly([&] { m.insert("d", 5, 1s); }); // not itself
  BOOST_TEST(m.size() == 3u);
  BOOST_TEST(!m.contains("c"));
  BOOST_TEST(m.contains("d"));
  f.poll();
  BOOST_REQUIRE(f.hooked.size() == 1u);
  BOOST_TEST(f.hooked[0].key == "c");
  BOOST_TEST((f.hooked[0].reason == expiry_reason::evicted));
}

BOOST_AUTO_TEST_CASE(erase_extract_replace_and_clear_do_not_call_the_hook) {
  fixture f;
  names m(f.io, f.options(10s));
  for (const char* key : {"a", "b", "c", "d"})
    m.insert(key, 1);
  BOOST_TEST(m.erase("a"));
  BOOST_TEST(!m.erase("a"));
  BOOST_TEST(m.extract("b").value() == 1);
  BOOST_TEST(!m.extract("b").has_value());
  m.insert_or_assign("c", 2);
  BOOST_TEST(m.clear() == 2u);
  f.poll();
  f.advance(1h);
  BOOST_TEST(f.hooked.empty());
}

BOOST_AUTO_TEST_CASE(for_each_sees_what_there_was_and_may_change_the_map) {
  fixture f;
  names m(f.io, f.options(10s));
  for (int i = 0; i != 100; ++i)
    m.insert(std::to_string(i), i);
  int sum = 0;
  m.for_each([&](const std::string& key, const int& i) {
    BOOST_TEST(key == std::to_string(i));
    sum += i;
    m.clear();
  });
  BOOST_TEST(sum == 4950);
}

BOOST_AUTO_TEST_CASE(entries_that_are_to_expire_hold_run) {
  fixture f;
  names m(f.io, f.options(10s));
  m.insert("ever", 1, duration::max());
  f.poll();
  BOOST_TEST(f.io.stopped());
  m.insert("a", 1);
  f.poll();
  BOOST_TEST(!f.io.stopped());
  m.touch("a", duration::max());
  f.poll();
  BOOST_TEST(f.io.stopped());
  m.insert("b", 1);
  m.insert("c", 1);
  m.erase("b");
  f.poll();
  BOOST_TEST(!f.io.stopped());
  m.erase("c");
  f.poll();
  BOOST_TEST(f.io.stopped());
  m.insert("d", 1);
  m.clear();
  f.poll();
  BOOST_TEST(f.io.stopped());
}

BOOST_AUTO_TEST_CASE(a_storm_lets_other_work_get_its_turn) {
  fixture f;
  names m(f.io, f.options(10s));
  for (int i = 0; i != 1000; ++i)
    m.insert(std::to_string(i), i);
  f.poll();
  f.clock.advance(10s);
  f.io.restart();
  std::size_t before = 0;
  while (f.hooked.empty())
    f.io.poll_one();
  asio::post(f.io, [&] { before = f.hooked.size(); });
  f.io.poll();
  BOOST_TEST(before < 1000u);
  BOOST_TEST(f.hooked.size() == 1000u);
}

BOOST_AUTO_TEST_CASE(the_hook_runs_on_the_executor_and_may_use_the_map) {
  manual_context c;
  auto strand = asio::make_strand(c.io);
  std::unique_ptr<names> m;
  int calls = 0;
  names::options_type o;
  o.time_to_live = 10s;
  o.on_expire = [&](const std::string& key, int&&, expiry_reason) {
    BOOST_TEST(strand.running_in_this_thread());
    if (++calls == 1) {
      m->insert(key, 2); // it lives on
      m->find(key);
      m->touch(key);
    } else {
      m.reset();
    }
  };
  m = std::make_unique<names>(strand, o);
  m->insert("a", 1);
  m->insert("ever", 1, duration::max());
  c.poll();
  c.advance(10s);
  BOOST_TEST(calls == 1);
  BOOST_TEST(m->find("a").value() == 2);
  c.advance(10s);
  BOOST_TEST(calls == 2);
  BOOST_TEST(!m);
}

BOOST_AUTO_TEST_CASE(a_hook_that_throws_does_not_harm_the_others) {
  manual_context c;
  int calls = 0;
  names::options_type o;
  o.time_to_live = 10s;
  o.on_expire = [&](const std::string&, int&&, expiry_reason) {
    if (++calls == 2)
      throw std::runtime_error("hook");
  };
  names m(c.io, o);
  for (const char* key : {"a", "b", "c"})
    m.insert(key, 1);
  c.poll();
  c.clock.advance(10s);
  BOOST_CHECK_THROW(c.poll(), std::runtime_error);
  c.poll();
  BOOST_TEST(calls == 3);
  BOOST_TEST(m.empty());
}

BOOST_AUTO_TEST_CASE(b10_after_the_wheels_stop_it_only_forgets) {
  fixture f;
  names m(f.io, f.options(10s, expire_after::write, 2));
  m.insert("a", 1);
  f.poll();
  f.wheel.stop();
  f.poll();
  BOOST_TEST(m.contains("a"));
  f.advance(10s);
  BOOST_TEST(!m.contains("a"));
  for (const char* key : {"b", "c", "d"})
    BOOST_TEST(m.insert(key, 1));
  f.poll();
  BOOST_TEST(m.size() == 2u);
  BOOST_TEST(f.hooked.empty());
}

BOOST_AUTO_TEST_CASE(d1_entries_go_with_the_context) {
  const auto owned = std::make_shared<int>(1);
  std::optional<expiring_map<int, std::shared_ptr<int>>> m;
  {
    manual_context c;
    m.emplace(c.io);
    m->insert(1, owned, 1h);
    m->insert(2, owned);
    c.poll();
    BOOST_TEST(owned.use_count() == 3);
  }
  BOOST_TEST(owned.use_count() == 1);
  BOOST_TEST(m->empty());
}

BOOST_AUTO_TEST_CASE(destruction_destroys_what_waits_for_the_hook) {
  fixture f;
  {
    names m(f.io, f.options(10s, expire_after::write, 1));
    m.insert("a", 1);
    m.insert("b", 1);
  }
  f.poll();
  BOOST_TEST(f.hooked.empty());
}

BOOST_AUTO_TEST_CASE(options_out_of_range_are_refused) {
  fixture f;
  const auto names_it = [](const char* name) {
    return [name](const std::invalid_argument& e) {
      return std::string(e.what()).find(name) != std::string::npos;
    };
  };
  BOOST_CHECK_EXCEPTION(names(f.io, f.options(0s)), std::invalid_argument,
                        names_it("time_to_live"));
  BOOST_CHECK_EXCEPTION(names(f.io, f.options(-1s)), std::invalid_argument,
                        names_it("time_to_live"));
  BOOST_CHECK_EXCEPTION(names(f.io, f.options(1s, expire_after::write, 0)),
                        std::invalid_argument, names_it("max_size"));
}

// --- User code that throws

namespace {

struct thrown {};

int fuse = 0; // throws when it burns down to 0

void touch_fuse() {
  if (fuse > 0 && --fuse == 0)
    throw thrown();
}

struct brittle {
  static int live;
  explicit brittle(int i) : id(i) { ++live; }
  brittle(const brittle& o) : id((touch_fuse(), o.id)) { ++live; }
  brittle& operator=(const brittle&) = delete;
  ~brittle() { --live; }
  bool operator==(const brittle& o) const {
    touch_fuse();
    return id == o.id;
  }
  int id;
};
int brittle::live = 0;

struct brittle_hash {
  std::size_t operator()(const brittle& b) const {
    touch_fuse();
    return static_cast<std::size_t>(b.id % 3); // they collide
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(what_throws_at_any_time_leaves_the_map_whole) {
  for (int n = 1; n != 150; ++n) {
    {
      manual_context c;
      expiring_map<brittle, brittle, brittle_hash> m(c.io);
      std::size_t size = 0;
      const auto try_to = [](auto&& f) {
        try {
          f();
        } catch (const thrown&) {
        }
      };
      fuse = n;
      for (int i = 0; i != 9; ++i) {
        const brittle key(i), value(i * 10);
        try_to([&] { size += m.insert(key, value, 1h); });
        try_to([&] { m.insert_or_assign(key, value, 2h); });
        BOOST_TEST(m.size() >= size);
        size = m.size();
        try_to([&] { m.find(key); });
        try_to([&] { m.touch(key); });
        if (i % 3 == 0)
          try_to([&] { m.erase(key); });
        else if (i % 3 == 1)
          try_to([&] { m.extract(key); });
        BOOST_TEST(m.size() <= size);
        size = m.size();
      }
      fuse = 0;
      std::size_t found = 0;
      m.for_each([&](const brittle& key, const brittle& value) {
        BOOST_TEST(value.id == key.id * 10);
        BOOST_TEST(m.contains(key));
        ++found;
      });
      BOOST_TEST(found == size);
      c.poll();
      c.advance(2h);
      BOOST_TEST(m.empty());
    }
    BOOST_TEST(brittle::live == 0);
  }
}

// A destructor of the user's may call back in.
BOOST_AUTO_TEST_CASE(d3_a_values_destructor_may_use_the_map) {
  struct calls_back {
    expiring_map<int, std::shared_ptr<calls_back>>* m;
    ~calls_back() { m->size(); }
  };
  manual_context c;
  expiring_map<int, std::shared_ptr<calls_back>> m(c.io);
  const auto put = [&] {
    m.insert_or_assign(1, std::shared_ptr<calls_back>(new calls_back{&m}), 1s);
  };
  put();
  put(); // replaces
  m.erase(1);
  put();
  m.clear();
  put();
  c.poll();
  c.advance(1s);
  BOOST_TEST(m.empty());
}
