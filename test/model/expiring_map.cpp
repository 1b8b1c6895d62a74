//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/expiring_map.hpp>

#define BOOST_TEST_MODULE model_expiring_map
#include <boost/test/unit_test.hpp>

#include <test/manual_context.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <vector>

// Random operations on an expiring_map against a std::map of what is in it and
// a std::multimap of when it ends. A failure names its seed: ASIO_WHEEL_SEED,
// ASIO_WHEEL_STEPS and ASIO_WHEEL_RUNS run it again, for longer, and more.

using namespace std::chrono_literals;
using asio_wheel::expire_after;
using asio_wheel::expiry_reason;
using test::manual_context;

namespace {

// A value that counts how many there are.
class value {
public:
  static std::size_t live;

  explicit value(std::size_t i) : id(i) { ++live; }
  value(const value& other) : id(other.id) { ++live; }
  value& operator=(const value&) = delete;
  ~value() { --live; }

  const std::size_t id;
};
std::size_t value::live = 0;

class world {
public:
  using map = asio_wheel::expiring_map<int, value>;
  using duration = map::duration;
  using time_point = map::time_point;

  world(std::uint64_t seed, std::size_t max_size, expire_after mode)
      : random_(seed), max_size_(max_size), mode_(mode) {
    map::options_type o;
    o.time_to_live = ttl_;
    o.expire_after = mode;
    o.max_size = max_size;
    if (hooked_)
      o.on_expire = [this](const int& key, value&& v, expiry_reason r) {
        hook(key, v.id, r);
      };
    map_ = std::make_unique<map>(m_->io, o);
  }

  void run(std::size_t steps) {
    for (std::size_t i = 0; i != steps && !failed_; ++i) {
      step();
      compare();
    }
    if (one_in(2))
      map_.reset();
    m_.reset();
    if (map_) {
      bool holds = false;
      for (const auto& e : entries_)
        holds = holds || e.second.expiry != time_point::max();
      if (holds)
        check(map_->empty(), "entries are left when the context is gone");
    }
    map_.reset();
    check(value::live == 0, "values are left");
  }

  bool failed() const noexcept { return failed_; }

private:
  struct entry {
    std::size_t id;
    duration ttl;
    time_point expiry;
  };
  struct call {
    int key;
    std::size_t id;
    expiry_reason reason;
  };

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  time_point now() const { return m_->now(); }

  void check(bool ok, const char* what) {
    if (!ok && !failed_) {
      BOOST_ERROR(what);
      failed_ = true;
    }
  }

  time_point after(duration d) const {
    return d > time_point::max() - now() ? time_point::max() : now() + d;
  }

  duration any_ttl() {
    switch (below(10)) {
    case 0:
      return 0ms;
    case 1:
      return -5ms;
    case 2:
      return duration::max();
    case 3:
      return duration(below(100'000'000'000));
    default:
      return duration(below(30'000'000));
    }
  }

  // --- What the map has to do

  bool alive(int key) const {
    const auto i = entries_.find(key);
    return i != entries_.end() && i->second.expiry > now();
  }

  void set_expiry(int key, time_point t) {
    forget(key);
    entries_.at(key).expiry = t;
    ends_.emplace(t, key);
  }
  void forget(int key) {
    auto i = ends_.lower_bound(entries_.at(key).expiry);
    while (i->second != key)
      ++i;
    ends_.erase(i);
  }
  void drop(int key) {
    forget(key);
    entries_.erase(key);
  }
  // Gone by itself: the hook is to be called.
  void lose(int key) {
    const entry& e = entries_.at(key);
    if (hooked_)
      calls_.push_back({key, e.id,
                        e.expiry <= now() ? expiry_reason::expired
                                          : expiry_reason::evicted});
    drop(key);
  }

  void hook(int key, std::size_t id, expiry_reason r) {
    check(!quiet_, "the hook was called from inside a function");
    const auto i =
        std::find_if(calls_.begin(), calls_.end(), [&](const call& c) {
          return c.key == key && c.id == id && c.reason == r;
        });
    check(i != calls_.end(), "the hook was called wrongly");
    if (i != calls_.end())
      calls_.erase(i);
  }

  // The next to expire, of those that are equal the one that the map chose.
  void evict() {
    const auto equal = ends_.equal_range(ends_.begin()->first);
    for (auto i = equal.first; i != equal.second; ++i)
      if (i->first <= now() ? equal.second == std::next(equal.first)
                            : !map_->contains(i->second))
        return lose(i->second);
    // Those past their time cannot be told apart but by the hook.
    evicted_unknown_ = true;
  }

  // --- Operations

  void put() {
    const int key = static_cast<int>(below(30));
    const std::size_t id = ++last_id_;
    const bool own = one_in(3);
    const duration ttl = own ? any_ttl() : ttl_;
    const bool assign = one_in(2);
    const bool was = alive(key);
    const bool room = entries_.count(key) != 0 || entries_.size() < max_size_;
    quiet_ = true;
    const bool inserted =
        assign ? (own ? map_->insert_or_assign(key, value(id), ttl)
                      : map_->insert_or_assign(key, value(id)))
               : (own ? map_->insert(key, value(id), ttl)
                      : map_->insert(key, value(id)));
    quiet_ = false;
    check(inserted == !was, "insert() found wrongly");
    if (was && !assign)
      return;
    if (was)
      drop(key);
    else if (entries_.count(key) != 0)
      lose(key);
    else if (!room)
      evict();
    entries_.emplace(key, entry{id, ttl, after(ttl)});
    ends_.emplace(after(ttl), key);
  }

  void step() {
    const int key = static_cast<int>(below(30));
    const bool is = alive(key);
    switch (below(16)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
      return put();
    case 5:
    case 6: {
      const auto v = map_->find(key);
      check(v.has_value() == is, "find() is wrong");
      if (v && is) {
        check(v->id == entries_.at(key).id, "find() found another value");
        if (mode_ == expire_after::access)
          set_expiry(key, after(entries_.at(key).ttl));
      }
      return;
    }
    case 7:
    case 8:
      check(map_->touch(key) == is, "touch() is wrong");
      if (is)
        set_expiry(key, after(entries_.at(key).ttl));
      return;
    case 9: {
      const duration ttl = any_ttl();
      check(map_->touch(key, ttl) == is, "touch() with a time is wrong");
      if (is) {
        entries_.at(key).ttl = ttl;
        set_expiry(key, after(ttl));
      }
      return;
    }
    case 10: {
      if (one_in(2)) {
        check(map_->erase(key) == is, "erase() is wrong");
      } else {
        const auto v = map_->extract(key);
        check(v.has_value() == is, "extract() is wrong");
        if (v && is)
          check(v->id == entries_.at(key).id, "extract() took another value");
      }
      if (is)
        drop(key);
      return;
    }
    case 11:
      if (one_in(30)) {
        check(map_->clear() == entries_.size(), "clear() miscounted");
        entries_.clear();
        ends_.clear();
      } else if (one_in(10)) {
        std::size_t n = 0, of = 0;
        map_->for_each([&](const int& k, const value& v) {
          ++n;
          check(alive(k) && entries_.at(k).id == v.id, "for_each() is wrong");
        });
        for (const auto& e : entries_)
          of += alive(e.first);
        check(n == of, "for_each() left some out");
      }
      return;
    case 12:
      m_->clock.advance(duration(below(4'000'000)));
      return;
    case 13:
      m_->clock.advance(1ms * (1 << below(8)));
      return;
    default:
      return poll();
    }
  }

  void poll() {
    // To the next tick, at which at the latest an entry goes.
    const auto part = now().time_since_epoch() % 1ms;
    if (part.count() != 0)
      m_->clock.advance(1ms - part);
    while (!ends_.empty() && ends_.begin()->first <= now())
      lose(ends_.begin()->second);
    m_->poll();
    check(calls_.empty(), "the hook was not called");
    check(m_->io.stopped() ==
              (ends_.empty() || ends_.begin()->first == time_point::max()),
          "run() is held wrongly");
  }

  void compare() {
    if (evicted_unknown_) { // learn it by having all past ones collected
      evicted_unknown_ = false;
      const auto past = static_cast<std::size_t>(
          std::distance(ends_.begin(), ends_.upper_bound(now())));
      check(map_->size() + 1 == entries_.size(), "eviction miscounted");
      check(past != 0, "the wrong one was evicted");
      return poll();
    }
    check(map_->size() == entries_.size(), "size() is another");
    check(entries_.size() <= max_size_, "there are too many");
    const int key = static_cast<int>(below(30));
    const auto t = map_->expiry(key);
    check(t.has_value() == alive(key), "expiry() is wrong");
    if (t && alive(key))
      check(*t == entries_.at(key).expiry, "expiry() is another");
  }

  std::mt19937_64 random_;
  const std::size_t max_size_;
  const expire_after mode_;
  const duration ttl_ = 20ms;
  const bool hooked_ = !one_in(4);
  std::unique_ptr<manual_context> m_ = std::make_unique<manual_context>();
  std::unique_ptr<map> map_;

  std::map<int, entry> entries_;
  std::multimap<time_point, int> ends_;
  std::vector<call> calls_; // to come
  std::size_t last_id_ = 0;
  bool evicted_unknown_ = false;
  bool quiet_ = false;
  bool failed_ = false;
};

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* const s = std::getenv(name);
  return s ? std::strtoull(s, nullptr, 10) : otherwise;
}

void run(std::size_t max_size, expire_after mode) {
  const auto steps = number_from("ASIO_WHEEL_STEPS", 5000);
  const auto first = number_from("ASIO_WHEEL_SEED", std::random_device()());
  const auto runs = number_from("ASIO_WHEEL_RUNS", 20);
  for (std::uint64_t seed = first; seed != first + runs; ++seed)
    BOOST_TEST_CONTEXT("ASIO_WHEEL_SEED=" << seed) {
      world w(seed, max_size, mode);
      w.run(steps);
      if (w.failed())
        return;
    }
}

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

} // namespace

BOOST_AUTO_TEST_CASE(from_the_last_write_it_does_as_the_model) {
  run(no_limit, expire_after::write);
}

BOOST_AUTO_TEST_CASE(from_the_last_access_it_does_as_the_model) {
  run(no_limit, expire_after::access);
}

BOOST_AUTO_TEST_CASE(with_a_limit_it_does_as_the_model) {
  run(10, expire_after::write);
}

BOOST_AUTO_TEST_CASE(with_room_for_one_it_does_as_the_model) {
  run(1, expire_after::access);
}
