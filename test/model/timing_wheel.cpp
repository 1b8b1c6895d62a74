//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/timing_wheel.hpp>

#define BOOST_TEST_MODULE model_timing_wheel
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <string>

// Random operations on a timing_wheel and on a std::multimap that stands for
// what the wheel ought to hold. After each step the two are compared and the
// wheel's invariants are checked.
//
//   ASIO_WHEEL_TEST_SEED=n    repeat a run (the seed is printed)
//   ASIO_WHEEL_TEST_STEPS=n   steps for each geometry

using asio_wheel::timing_wheel;
using asio_wheel::timing_wheel_entry;

namespace {

using tick = timing_wheel::tick_type;
using geometry = timing_wheel::geometry;

constexpr tick never = timing_wheel::never;

std::uint64_t number_from_environment(const char* name, std::uint64_t or_else) {
  const char* const text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : or_else;
}

std::uint64_t seed() {
  static const std::uint64_t value = [] {
    std::random_device device;
    const std::uint64_t s =
        number_from_environment("ASIO_WHEEL_TEST_SEED", device());
    std::cout << "ASIO_WHEEL_TEST_SEED=" << s << std::endl;
    return s;
  }();
  return value;
}

std::uint64_t steps_for_each_geometry() {
  return number_from_environment("ASIO_WHEEL_TEST_STEPS", 120000);
}

struct item;
using timeline = std::multimap<tick, item*>;

struct item : timing_wheel_entry {
  // idle: not in the wheel. pending: in the wheel and in the timeline.
  // retired: in the wheel without a deadline.
  enum { idle, pending, retired } state = idle;
  timeline::iterator where;
};

class model {
public:
  model(geometry g, std::uint64_t random_seed)
      : shape_(g), random_(random_seed) {
    while ((std::size_t{1} << bits_) != g.slots)
      ++bits_;
    reach_ = std::min(63u, bits_ * static_cast<unsigned>(g.levels) + 3);
    check_every_ = std::max<std::uint64_t>(1, g.slots * g.levels / 256);
  }

  void run(std::uint64_t steps) {
    while (step_ < steps) {
      start();
      const std::uint64_t end = step_ + 500 + below(4000);
      while (step_ < end && wheel_->now() < never - (tick{1} << 20)) {
        step();
        ++step_;
        covered_.linked += timeline_.size() + retired_;
        verify();
      }
      finish();
    }
  }

private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

  void holds(bool so, const char* what) {
    if (!so)
      BOOST_FAIL(what << ": " << shape_.slots << "x" << shape_.levels
                      << ", step " << step_ << ", now " << wheel_->now()
                      << "; ASIO_WHEEL_TEST_SEED=" << seed());
  }

public:
  // What a run has exercised, so that a test that does nothing fails.
  struct coverage {
    std::uint64_t due = 0, retired = 0, stops = 0, erased = 0, linked = 0;
  };
  const coverage& covered() const { return covered_; }

private:
  // A new wheel, with many or few entries in use.
  void start() {
    const tick starts[] = {0,
                           1,
                           shape_.slots - 1,
                           (tick{1} << 32) - 3,
                           (tick{1} << 63) - 100,
                           random_() >> 1,
                           random_() >> 20,
                           never - (tick{1} << 34)};
    wheel_ = std::make_unique<timing_wheel>(shape_, starts[below(8)]);
    const std::size_t populations[] = {2, 10, 50, 200, items_.size()};
    population_ = populations[below(5)];
    // Each round has its own pace, so that wheels are full in some of them, and
    // deadlines from all of time in some.
    stride_ = 1 + static_cast<unsigned>(std::min(below(reach_), below(reach_)));
    const std::uint64_t shares[] = {50, 150, 350};
    advances_ = shares[below(3)];
    leaps_ = one_in(4);
    stopped_ = false;
  }

  // All of it comes out at last.
  void finish() {
    advance(never - 1, timing_wheel::unlimited);
    holds(timeline_.empty() && retired_ == 0, "everything came out");
    verify();
    full_check();
    holds(wheel_->empty(), "the wheel is empty at the end");
    wheel_.reset();
  }

  item& any() { return items_[below(population_)]; }

  // How far away: any order of magnitude is as likely as any other, and round
  // numbers are likely.
  tick distance() {
    const unsigned bit =
        static_cast<unsigned>(below(leaps_ && one_in(8) ? 63 : reach_));
    const tick power = tick{1} << bit;
    switch (below(8)) {
    case 0:
      return power;
    case 1:
      return power - 1;
    case 2:
      return power + 1;
    case 3: // whole revolutions of some level
      return (1 + below(4)) << std::min(62u, bit / bits_ * bits_);
    default:
      return power + (random_() & (power - 1));
    }
  }

  tick after(tick from, tick by) {
    return by > never - from ? never : from + by;
  }

  tick some_deadline() {
    const tick now = wheel_->now();
    switch (below(16)) {
    case 0:
      return now;
    case 1:
      return now - std::min(now, distance());
    case 2:
      return never;
    case 3:
      return after(now, 1);
    case 4: { // where a slot or a revolution begins
      const unsigned shift = std::min(
          62u, bits_ * static_cast<unsigned>(below(shape_.levels + 1)));
      return after(now, distance()) >> shift << shift;
    }
    case 5: // together with another
      return timeline_.empty() ? never : some_pending().deadline();
    default:
      return after(now, distance());
    }
  }

  item& some_pending() {
    auto it = timeline_.lower_bound(after(wheel_->now(), distance()));
    return *(it == timeline_.end() ? timeline_.begin() : it)->second;
  }

  void forget(item& x) {
    if (x.state == item::pending)
      timeline_.erase(x.where);
    else if (x.state == item::retired)
      --retired_;
    x.state = item::idle;
  }

  void expect(item& x, tick deadline) {
    x.state = item::pending;
    x.where = timeline_.emplace(deadline, &x);
  }

  void insert(item& x, tick t) {
    const bool linked = wheel_->insert(x, t);
    holds(linked == (t > wheel_->now() && t != never),
          "insert takes what is in the future");
    if (linked)
      expect(x, t);
  }

  void erase(item& x) {
    covered_.erased += x.is_linked();
    wheel_->erase(x);
    forget(x);
  }

  void move(item& x, tick t) {
    const bool was_linked = x.state != item::idle;
    forget(x);
    const bool linked = wheel_->move(x, t);
    holds(linked == (t == never ? was_linked : t > wheel_->now()),
          "move takes what is in the future");
    if (linked && t != never) {
      expect(x, t);
    } else if (linked) {
      x.state = item::retired;
      ++retired_;
    }
  }

  void retire(item& x) {
    wheel_->retire(x);
    if (x.state == item::idle)
      return;
    forget(x);
    x.state = item::retired;
    ++retired_;
  }

  // One change, as user code may make it, also from inside the sink.
  void change() {
    item& x = any();
    if (x.state == item::idle && one_in(2)) {
      insert(x, some_deadline());
    } else {
      switch (below(10)) {
      case 0:
        if (x.state == item::idle)
          insert(x, after(wheel_->now(), 1 + below(shape_.slots)));
        break;
      case 1:
        erase(x);
        break;
      case 2:
        retire(x);
        break;
      case 3:
      case 4:
        move(x, some_deadline());
        break;
      case 5:
      case 6: // earlier
        if (x.state == item::pending) {
          const tick left =
              x.deadline() - std::min(x.deadline(), wheel_->now());
          move(x, x.deadline() - std::min(left, distance()));
        }
        break;
      default: // later
        if (x.state == item::pending)
          move(x, after(x.deadline(), distance()));
        break;
      }
    }
    holds(x.is_linked() == (x.state != item::idle), "linked as expected");
  }

  void handed_out(item& x, tick to) {
    holds(!x.is_linked(), "unlinked before the call");
    holds(x.state != item::idle, "handed out once");
    ++(x.state == item::retired ? covered_.retired : covered_.due);
    if (x.state == item::retired) {
      holds(x.deadline() == never, "a retired entry has no deadline");
    } else {
      holds(x.deadline() == x.where->first, "the deadline is the last one set");
      holds(x.deadline() <= to, "not early");
      holds(x.deadline() == wheel_->now(), "on its tick");
      holds(timeline_.begin()->first == x.deadline(), "in order of tick");
    }
    forget(x);
    if (one_in(8))
      for (std::uint64_t i = below(4); i != 0; --i)
        change();
    if (one_in(64))
      verify();
  }

  void advance(tick asked, std::size_t budget) {
    const tick before = wheel_->now();
    const tick to = std::max(asked, before);
    std::size_t handed = 0;
    const bool done = wheel_->advance(
        asked,
        [&](timing_wheel_entry& e) {
          ++handed;
          stopped_ = true; // as long as we are in here
          handed_out(static_cast<item&>(e), to);
        },
        budget);
    stopped_ = !done;
    holds(handed <= budget, "within its budget");
    if (done) {
      holds(wheel_->now() == to, "arrived");
      holds(timeline_.empty() || timeline_.begin()->first > to, "none is late");
    } else {
      ++covered_.stops;
      holds(budget != timing_wheel::unlimited, "no limit, no stop");
      holds(wheel_->now() >= before && wheel_->now() <= to, "on the way");
      holds(wheel_->next_tick() == wheel_->now(), "has to go on at once");
    }
  }

  void advance() {
    const std::size_t budgets[] = {0, 1, 2, 3, 10, 100};
    const std::size_t budget =
        one_in(2) ? timing_wheel::unlimited : budgets[below(6)];
    const tick now = wheel_->now();
    const tick least = timeline_.empty() ? now : timeline_.begin()->first;
    switch (below(16)) {
    case 0:
      return advance(now - std::min(now, below(3)), budget);
    case 1:
      return advance(wheel_->next_tick() == never ? now : wheel_->next_tick(),
                     budget);
    case 2:
      return advance(least, budget);
    case 3:
      return advance(least - std::min<tick>(least, 1), budget);
    case 4:
    case 5:
      return advance(after(now, 1), budget);
    case 6: // huge
      if (one_in(16))
        return advance(std::min(after(now, distance()), never - 1), budget);
      [[fallthrough]];
    default:
      return advance(after(now, below(tick{1} << stride_)), budget);
    }
  }

  // From wake-up to wake-up until something with a deadline comes out, as a
  // driver does: each wake-up has to bring it nearer.
  void follow() {
    if (stopped_)
      advance(wheel_->now(), timing_wheel::unlimited);
    std::size_t most = (timeline_.size() + retired_ + 1) * (shape_.levels + 1);
    const std::size_t before = timeline_.size();
    while (!timeline_.empty() && timeline_.size() == before) {
      holds(most-- != 0, "wake-ups lead somewhere");
      const tick next = wheel_->next_tick();
      const tick least = timeline_.begin()->first;
      holds(next > wheel_->now() && next <= least, "a useful wake-up");
      bool any_out = false;
      holds(wheel_->advance(next,
                            [&](timing_wheel_entry& e) {
                              item& x = static_cast<item&>(e);
                              any_out |= x.state == item::pending;
                              holds(x.state != item::idle, "handed out once");
                              holds(x.state == item::retired ||
                                        x.deadline() == next,
                                    "on its tick");
                              forget(x);
                            }),
            "no limit, no stop");
      if (any_out)
        return;
    }
  }

  void step() {
    if (below(1000) < advances_)
      advance();
    else if (one_in(50))
      follow();
    else if (one_in(5000))
      clear();
    else
      change();
  }

  void clear() {
    wheel_->clear([&](timing_wheel_entry& e) {
      item& x = static_cast<item&>(e);
      holds(!x.is_linked(), "unlinked before the call");
      holds(x.state != item::idle, "cleared once");
      forget(x);
    });
    stopped_ = false;
    holds(timeline_.empty() && retired_ == 0, "all was cleared");
    holds(wheel_->empty(), "empty after clear");
  }

  void verify() {
    const std::size_t linked = timeline_.size() + retired_;
    const tick next = wheel_->next_tick();
    holds(wheel_->empty() == (linked == 0), "empty if nothing is linked");
    holds((next == never) == (linked == 0), "never if nothing is linked");
    holds(timeline_.empty() || next <= timeline_.begin()->first,
          "the next wake-up is not after the true minimum");
    holds(next > wheel_->now() || next == never || stopped_,
          "the next wake-up lies ahead");
    if (step_ % check_every_ == 0)
      full_check();
  }

  void full_check() {
    const char* const complaint = wheel_->check();
    holds(complaint == nullptr, complaint ? complaint : "");
    std::size_t seen = 0;
    wheel_->for_each([&](timing_wheel_entry& e) {
      ++seen;
      const item& x = static_cast<item&>(e);
      holds(x.state != item::idle, "what is linked is known");
      holds(x.deadline() == (x.state == item::pending ? x.where->first : never),
            "the deadline is the last one set");
    });
    holds(seen == timeline_.size() + retired_, "each is linked once");
  }

  geometry shape_;
  std::mt19937_64 random_;
  unsigned bits_ = 0;
  unsigned reach_ = 0;
  std::uint64_t check_every_ = 1;
  std::uint64_t step_ = 0;
  std::size_t population_ = 0;
  coverage covered_;
  unsigned stride_ = 0;        // advance by up to so many bits
  std::uint64_t advances_ = 0; // so often in a thousand steps
  bool leaps_ = false;
  bool stopped_ = false; // advance() stopped at its budget, or we are in it
  timeline timeline_;
  std::size_t retired_ = 0;
  std::array<item, 400> items_;
  std::unique_ptr<timing_wheel> wheel_; // goes before the items
};

void run_model(std::size_t slots, std::size_t levels) {
  const std::uint64_t steps = steps_for_each_geometry();
  model m(geometry{slots, levels}, seed() + slots * 100 + levels);
  m.run(steps);
  const auto& c = m.covered();
  BOOST_TEST_MESSAGE(slots << "x" << levels << ": " << steps << " steps, "
                           << c.due << " due, " << c.retired << " retired, "
                           << c.erased << " erased, " << c.stops << " stops, "
                           << c.linked / steps << " linked on average");
  if (steps < 100000)
    return;
  BOOST_TEST(c.due > steps / 20);
  BOOST_TEST(c.retired > steps / 500);
  BOOST_TEST(c.erased > steps / 500);
  BOOST_TEST(c.stops > steps / 500);
  BOOST_TEST(c.linked > steps * 2);
}

} // namespace

// Ten geometries, 120,000 steps each.

BOOST_AUTO_TEST_CASE(wheel_of_2_slots_1_level) { run_model(2, 1); }
BOOST_AUTO_TEST_CASE(wheel_of_2_slots_63_levels) { run_model(2, 63); }
BOOST_AUTO_TEST_CASE(wheel_of_8_slots_3_levels) { run_model(8, 3); }
BOOST_AUTO_TEST_CASE(wheel_of_64_slots_1_level) { run_model(64, 1); }
BOOST_AUTO_TEST_CASE(wheel_of_64_slots_6_levels) { run_model(64, 6); }
BOOST_AUTO_TEST_CASE(wheel_of_256_slots_4_levels) { run_model(256, 4); }
BOOST_AUTO_TEST_CASE(wheel_of_512_slots_1_level) { run_model(512, 1); }
BOOST_AUTO_TEST_CASE(wheel_of_1024_slots_6_levels) { run_model(1024, 6); }
BOOST_AUTO_TEST_CASE(wheel_of_4096_slots_2_levels) { run_model(4096, 2); }
BOOST_AUTO_TEST_CASE(wheel_of_65536_slots_1_level) { run_model(65536, 1); }
