//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/timing_wheel.hpp>

#define BOOST_TEST_MODULE unit_timing_wheel
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using asio_wheel::timing_wheel;
using asio_wheel::timing_wheel_entry;
using tick = timing_wheel::tick_type;
using geometry = timing_wheel::geometry;

namespace {

constexpr tick never = timing_wheel::never;
constexpr std::size_t unlimited = timing_wheel::unlimited;

const std::vector<geometry> shapes = {
    {2, 1},  {2, 5},   {2, 63},  {8, 3},    {64, 1},    {64, 6},
    {64, 7}, {256, 4}, {512, 1}, {4096, 2}, {65536, 1}, {65536, 3},
};

unsigned log2_of_slots(geometry g) {
  unsigned bits = 0;
  while ((std::size_t{1} << bits) != g.slots)
    ++bits;
  return bits;
}

// How far a level reaches, in ticks; at most 2^63.
tick span_of(geometry g, std::size_t level) {
  return tick{1} << (log2_of_slots(g) * (level + 1));
}

std::string name_of(geometry g) {
  return std::to_string(g.slots) + "x" + std::to_string(g.levels);
}

// Points to start from: boundaries of slots and revolutions and next to them.
std::vector<tick> starts_of(geometry g) {
  const tick far = tick{1} << 40;
  std::vector<tick> starts{0, 1, g.slots - 1, g.slots, far + 12345};
  if (g.levels > 1)
    starts.push_back(span_of(g, 1) - 1);
  starts.push_back(far + span_of(g, 0) * 3 + g.slots / 2);
  return starts;
}

struct entry : timing_wheel_entry {
  explicit entry(int i = 0) : id(i) {}
  int id;
};

// Keeps entries in order of creation, so that a test can say what came out.
// Declare it before the wheel: entries outlive the wheel they are linked in.
class entries {
public:
  explicit entries(int count = 0) {
    for (int i = 0; i != count; ++i)
      all_.emplace_back(i);
  }
  entry& operator[](std::size_t i) { return all_[i]; }
  std::size_t size() const { return all_.size(); }
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  std::size_t linked() const {
    return static_cast<std::size_t>(
        std::count_if(all_.begin(), all_.end(),
                      [](const entry& e) { return e.is_linked(); }));
  }

private:
  std::deque<entry> all_;
};

// A wheel that records what comes out of it, and checks what is always so.
struct recorder {
  timing_wheel wheel;
  std::vector<int> out;     // had a deadline
  std::vector<tick> at;     // and came out at these
  std::vector<int> retired; // had none any more

  explicit recorder(geometry g, tick start = 0) : wheel(g, start) {}

  bool advance(tick to, std::size_t budget = unlimited) {
    const bool done = wheel.advance(
        to, [&](timing_wheel_entry& e) { record(e); }, budget);
    const geometry g = wheel.shape();
    if (g.slots * g.levels <= 2048) // check() is linear in them
      BOOST_TEST(wheel.check() == nullptr);
    return done;
  }

  void record(timing_wheel_entry& e) {
    BOOST_TEST(!e.is_linked());
    if (e.deadline() == never) {
      retired.push_back(static_cast<entry&>(e).id);
      return;
    }
    BOOST_TEST(e.deadline() == wheel.now());
    BOOST_TEST((at.empty() || at.back() <= wheel.now()));
    out.push_back(static_cast<entry&>(e).id);
    at.push_back(wheel.now());
  }

  std::vector<int> sorted_out() const {
    std::vector<int> copy = out;
    std::sort(copy.begin(), copy.end());
    return copy;
  }
};

using ids = std::vector<int>;
using ticks = std::vector<tick>;

// Go on from wake-up to wake-up, as a driver does, until something comes out
// or nothing is left. Returns the number of wake-ups.
std::size_t follow(recorder& r, std::size_t most = 1000) {
  std::size_t wakes = 0;
  const std::size_t before = r.out.size();
  while (r.out.size() == before && wakes != most) {
    const tick next = r.wheel.next_tick();
    if (next == never)
      break;
    BOOST_TEST(next > r.wheel.now());
    ++wakes;
    r.advance(next);
  }
  return wakes;
}

// An entry comes out on its tick and not before, however the wheel gets there.
void expect_on_its_tick(geometry g, tick start, tick delay) {
  BOOST_TEST_CONTEXT(name_of(g) << ", from " << start << ", after " << delay) {
    const tick due = start + delay;
    {
      entries e(1);
      recorder r(g, start); // in one jump, after a jump to just before
      BOOST_TEST_REQUIRE(r.wheel.insert(e[0], due));
      BOOST_TEST(r.wheel.next_tick() == due);
      r.advance(due - 1);
      BOOST_TEST(r.out.empty());
      BOOST_TEST(e[0].is_linked());
      BOOST_TEST(r.wheel.next_tick() == due);
      r.advance(due);
      BOOST_TEST(r.at == ticks{due}, boost::test_tools::per_element());
    }
    {
      entries e(1);
      recorder r(g, start); // late by far
      BOOST_TEST_REQUIRE(r.wheel.insert(e[0], due));
      BOOST_TEST(r.advance(never));
      BOOST_TEST(r.at == ticks{due}, boost::test_tools::per_element());
      BOOST_TEST(r.wheel.now() == never);
    }
    {
      entries e(1);
      recorder r(g, start); // by halves of what is left
      BOOST_TEST_REQUIRE(r.wheel.insert(e[0], due));
      while (r.wheel.now() + 1 < due) {
        r.advance(r.wheel.now() + (due - r.wheel.now()) / 2);
        BOOST_TEST_REQUIRE(r.out.empty());
      }
      r.advance(due);
      BOOST_TEST(r.at == ticks{due}, boost::test_tools::per_element());
    }
    {
      entries e(1);
      recorder r(g, start); // by wake-ups: one, as next_tick() is exact
      BOOST_TEST_REQUIRE(r.wheel.insert(e[0], due));
      BOOST_TEST(follow(r) == 1u);
      BOOST_TEST(r.at == ticks{due}, boost::test_tools::per_element());
      BOOST_TEST(r.wheel.empty());
    }
  }
}

std::string complaint_about(geometry g) {
  try {
    timing_wheel wheel(g);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "none";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

//------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(construction)

BOOST_AUTO_TEST_CASE(a_new_wheel_is_empty_and_stands_at_its_start) {
  for (tick start : {tick{0}, tick{77}, tick{1} << 32, never - 1, never}) {
    timing_wheel wheel({64, 6}, start);
    BOOST_TEST(wheel.now() == start);
    BOOST_TEST(wheel.empty());
    BOOST_TEST(wheel.next_tick() == never);
    BOOST_TEST(wheel.check() == nullptr);
  }
}

BOOST_AUTO_TEST_CASE(every_geometry_that_fits_63_bits_is_accepted) {
  for (unsigned bits = 1; bits <= 16; ++bits) {
    for (std::size_t levels = 1; levels <= 63 / bits; ++levels) {
      const geometry g{std::size_t{1} << bits, levels};
      timing_wheel wheel(g);
      BOOST_TEST(wheel.shape().slots == g.slots);
      BOOST_TEST(wheel.shape().levels == g.levels);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_default_geometry_is_legal) {
  timing_wheel wheel(geometry{});
  BOOST_TEST(wheel.shape().slots == geometry().slots);
  BOOST_TEST(wheel.shape().levels == geometry().levels);
}

BOOST_AUTO_TEST_CASE(slots_out_of_range_name_the_field_and_the_range) {
  for (std::size_t slots :
       {std::size_t{0}, std::size_t{1}, std::size_t{3}, std::size_t{63},
        std::size_t{65}, std::size_t{1000}, std::size_t{65535},
        std::size_t{65537}, std::size_t{131072}, ~std::size_t{0},
        (~std::size_t{0} >> 1) + 1}) {
    const std::string what = complaint_about({slots, 1});
    BOOST_TEST_INFO(slots << ": " << what);
    BOOST_TEST(contains(what, "slots"));
    BOOST_TEST(contains(what, "from 2 to 65536"));
    BOOST_TEST(contains(what, "power of two"));
  }
}

BOOST_AUTO_TEST_CASE(levels_out_of_range_name_the_field_and_the_range) {
  const std::pair<std::size_t, const char*> limits[] = {
      {2, "63"}, {8, "21"}, {64, "10"}, {256, "7"}, {4096, "5"}, {65536, "3"}};
  for (const auto& [slots, most] : limits) {
    const std::size_t too_many = std::stoul(most) + 1;
    for (std::size_t levels : {std::size_t{0}, too_many, ~std::size_t{0}}) {
      const std::string what = complaint_about({slots, levels});
      BOOST_TEST_INFO(slots << "x" << levels << ": " << what);
      BOOST_TEST(contains(what, "levels"));
      BOOST_TEST(contains(what, "from 1 to"));
      BOOST_TEST(contains(what, most));
    }
    BOOST_TEST(complaint_about({slots, too_many - 1}) == "none");
  }
}

BOOST_AUTO_TEST_CASE(wheels_and_entries_cannot_be_copied_or_moved) {
  static_assert(!std::is_copy_constructible_v<timing_wheel>);
  static_assert(!std::is_copy_assignable_v<timing_wheel>);
  static_assert(!std::is_move_constructible_v<timing_wheel>);
  static_assert(!std::is_copy_constructible_v<timing_wheel_entry>);
  static_assert(!std::is_copy_assignable_v<timing_wheel_entry>);
  static_assert(!std::is_move_constructible_v<timing_wheel_entry>);
  BOOST_TEST(true);
}

BOOST_AUTO_TEST_CASE(an_entry_is_four_words) {
  BOOST_TEST(sizeof(timing_wheel_entry) ==
             2 * sizeof(void*) + 2 * sizeof(tick));
}

BOOST_AUTO_TEST_SUITE_END()

//------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(insert)

BOOST_AUTO_TEST_CASE(links_an_entry_that_is_due_in_the_future) {
  entries e(1);
  timing_wheel wheel({64, 6}, 100);
  BOOST_TEST(!e[0].is_linked());
  BOOST_TEST(wheel.insert(e[0], 101));
  BOOST_TEST(e[0].is_linked());
  BOOST_TEST(e[0].deadline() == 101u);
  BOOST_TEST(!wheel.empty());
  BOOST_TEST(wheel.check() == nullptr);
}

BOOST_AUTO_TEST_CASE(refuses_what_is_not_in_the_future) {
  entries e(1);
  timing_wheel wheel({64, 6}, 100);
  for (tick past : {tick{0}, tick{1}, tick{99}, tick{100}}) {
    BOOST_TEST(!wheel.insert(e[0], past));
    BOOST_TEST(!e[0].is_linked());
    BOOST_TEST(wheel.empty());
  }
  BOOST_TEST(wheel.next_tick() == never);
}

BOOST_AUTO_TEST_CASE(refuses_never) {
  entries e(1);
  timing_wheel wheel({64, 6}, 100);
  BOOST_TEST(!wheel.insert(e[0], never));
  BOOST_TEST(!e[0].is_linked());
  BOOST_TEST(wheel.empty());
}

BOOST_AUTO_TEST_CASE(a_new_entry_has_no_deadline) {
  entry e;
  BOOST_TEST(e.deadline() == never);
}

#if defined(NDEBUG)
BOOST_AUTO_TEST_CASE(of_a_linked_entry_moves_it_in_release_builds) {
  entries e(2);
  recorder r({64, 6});
  r.wheel.insert(e[0], 100);
  r.wheel.insert(e[1], 100);
  BOOST_TEST(r.wheel.insert(e[0], 50));
  BOOST_TEST(r.wheel.check() == nullptr);
  BOOST_TEST(r.wheel.insert(e[1], 200));
  r.advance(300);
  BOOST_TEST(r.at == (ticks{50, 200}), boost::test_tools::per_element());
}
#endif

BOOST_AUTO_TEST_SUITE_END()

//------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(erase)

BOOST_AUTO_TEST_CASE(of_an_entry_that_is_not_linked_does_nothing) {
  entries e(2);
  recorder r({64, 6});
  r.wheel.erase(e[0]);
  r.wheel.insert(e[1], 5);
  r.wheel.erase(e[0]);
  BOOST_TEST(r.wheel.next_tick() == 5u);
  r.wheel.erase(e[1]);
  r.wheel.erase(e[1]);
  BOOST_TEST(r.wheel.empty());
}

BOOST_AUTO_TEST_CASE(of_the_only_entry_frees_its_slot_on_every_level) {
  for (geometry g : shapes) {
    for (std::size_t level = 0; level != g.levels; ++level) {
      entries e(1);
      timing_wheel wheel(g);
      BOOST_TEST_CONTEXT(name_of(g) << " level " << level) {
        wheel.insert(e[0], span_of(g, level) - 1);
        BOOST_TEST(wheel.next_tick() == span_of(g, level) - 1);
        wheel.erase(e[0]);
        BOOST_TEST(!e[0].is_linked());
        BOOST_TEST(wheel.check() == nullptr);
        BOOST_TEST(wheel.empty());
        BOOST_TEST(wheel.next_tick() == never);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(takes_any_of_several_out_of_a_slot) {
  for (std::size_t victim = 0; victim != 3; ++victim) {
    entries e(3);
    recorder r({64, 6});
    for (auto& x : e)
      r.wheel.insert(x, 7);
    r.wheel.erase(e[victim]);
    BOOST_TEST(r.wheel.check() == nullptr);
    BOOST_TEST(e.linked() == 2u);
    r.advance(7);
    ids left{0, 1, 2};
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(victim));
    BOOST_TEST(r.sorted_out() == left, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(of_all_in_a_slot_in_any_order_leaves_the_wheel_empty) {
  ids order{0, 1, 2, 3};
  do {
    entries e(4);
    timing_wheel wheel({512, 1}, 9);
    for (auto& x : e)
      wheel.insert(x, 9 + 512 * 3);
    for (int i : order) {
      BOOST_TEST(!wheel.empty());
      wheel.erase(e[static_cast<std::size_t>(i)]);
      BOOST_TEST(wheel.check() == nullptr);
    }
    BOOST_TEST(wheel.empty());
    BOOST_TEST(wheel.next_tick() == never);
  } while (std::next_permutation(order.begin(), order.end()));
}

BOOST_AUTO_TEST_CASE(leaves_the_neighbouring_slots_alone) {
  entries e(3);
  recorder r({128, 2});
  for (int i = 0; i != 3; ++i)
    r.wheel.insert(e[static_cast<std::size_t>(i)],
                   63 + static_cast<tick>(i)); // both sides of a bitmap word
  r.wheel.erase(e[1]);
  BOOST_TEST(r.wheel.check() == nullptr);
  r.advance(100);
  BOOST_TEST(r.at == (ticks{63, 65}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(lets_the_entry_be_inserted_again_and_elsewhere) {
  entries e(1);
  recorder a({64, 6}), b({2, 1}, 1000);
  a.wheel.insert(e[0], 10);
  a.wheel.erase(e[0]);
  BOOST_TEST(a.wheel.insert(e[0], 20));
  a.wheel.erase(e[0]);
  BOOST_TEST(b.wheel.insert(e[0], 1010));
  a.advance(100);
  BOOST_TEST(a.out.empty());
  b.advance(2000);
  BOOST_TEST(b.at == ticks{1010}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

//------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(move)

BOOST_AUTO_TEST_CASE(to_later_is_a_store_and_comes_out_at_the_new_tick) {
  for (geometry g : shapes) {
    for (std::size_t level = 0; level != g.levels; ++level) {
      const tick old_tick = span_of(g, level) - 1;
      if (old_tick > never / 8)
        continue;
      for (tick delay : {tick{1}, g.slots - 1, tick{g.slots}, old_tick * 3}) {
        entries e(2);
        recorder r(g);
        BOOST_TEST_CONTEXT(name_of(g) << " level " << level << " + " << delay) {
          r.wheel.insert(e[0], old_tick);
          BOOST_TEST(r.wheel.move(e[0], old_tick + delay));
          BOOST_TEST(e[0].deadline() == old_tick + delay);
          // Linked where it was: the wheel still looks there at the old tick.
          BOOST_TEST(r.wheel.next_tick() == old_tick);
          BOOST_TEST(r.wheel.check() == nullptr);
          r.advance(old_tick);
          BOOST_TEST(r.out.empty());
          BOOST_TEST(e[0].is_linked());
          // And found out: from here on it is exact again.
          BOOST_TEST(r.wheel.next_tick() == old_tick + delay);
          r.advance(old_tick + delay);
          BOOST_TEST(r.at == ticks{old_tick + delay},
                     boost::test_tools::per_element());
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(to_later_many_times_costs_one_visit) {
  entries e(1);
  recorder r({256, 4});
  r.wheel.insert(e[0], 100);
  for (tick t = 101; t != 200; ++t)
    BOOST_TEST(r.wheel.move(e[0], t));
  BOOST_TEST(!r.advance(198, 0)); // at the old slot, with nothing done
  BOOST_TEST(r.wheel.now() == 100u);
  BOOST_TEST(r.advance(198, 1)); // one step: linked again further on
  BOOST_TEST(r.advance(199, 1)); // one more: handed out
  BOOST_TEST(r.at == ticks{199}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(to_earlier_comes_out_at_the_new_tick) {
  for (geometry g : shapes) {
    for (std::size_t level = 0; level != g.levels; ++level) {
      const tick old_tick = span_of(g, level) + 1;
      for (tick earlier : {tick{1}, old_tick / 2, old_tick - 1}) {
        if (earlier == 0)
          continue;
        entries e(1);
        recorder r(g);
        BOOST_TEST_CONTEXT(name_of(g) << " " << old_tick << " " << earlier) {
          r.wheel.insert(e[0], old_tick);
          BOOST_TEST(r.wheel.move(e[0], earlier));
          BOOST_TEST(r.wheel.next_tick() == earlier);
          BOOST_TEST(r.wheel.check() == nullptr);
          r.advance(earlier - 1);
          BOOST_TEST(r.out.empty());
          r.advance(never);
          BOOST_TEST(r.at == ticks{earlier}, boost::test_tools::per_element());
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(extended_and_then_shortened_comes_out_once) {
  for (tick last : {tick{50}, tick{99}, tick{100}, tick{101}, tick{5000}}) {
    entries e(1);
    recorder r({64, 6});
    r.wheel.insert(e[0], 100);
    r.wheel.move(e[0], 10000);
    BOOST_TEST(r.wheel.move(e[0], last));
    BOOST_TEST(r.wheel.next_tick() <= last);
    r.advance(last - 1);
    BOOST_TEST(r.out.empty());
    r.advance(20000);
    BOOST_TEST(r.at == ticks{last}, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(of_an_entry_that_is_not_linked_inserts_it) {
  entries e(1);
  recorder r({64, 6}, 10);
  BOOST_TEST(r.wheel.move(e[0], 11));
  BOOST_TEST(e[0].is_linked());
  r.advance(11);
  BOOST_TEST(r.at == ticks{11}, boost::test_tools::per_element());
  BOOST_TEST(!r.wheel.move(e[0], 11));
  BOOST_TEST(!e[0].is_linked());
  BOOST_TEST(!r.wheel.move(e[0], never));
  BOOST_TEST(!e[0].is_linked());
}

BOOST_AUTO_TEST_CASE(to_what_is_not_in_the_future_unlinks) {
  for (tick past : {tick{0}, tick{99}, tick{100}}) {
    entries e(1);
    recorder r({64, 6}, 100);
    r.wheel.insert(e[0], 500);
    BOOST_TEST(!r.wheel.move(e[0], past));
    BOOST_TEST(!e[0].is_linked());
    BOOST_TEST(r.wheel.empty());
    BOOST_TEST(r.wheel.check() == nullptr);
    r.advance(1000);
    BOOST_TEST(r.out.empty());
  }
}

BOOST_AUTO_TEST_CASE(to_never_retires) {
  entries e(1);
  recorder r({64, 6});
  r.wheel.insert(e[0], 100);
  BOOST_TEST(r.wheel.move(e[0], never));
  BOOST_TEST(e[0].is_linked());
  BOOST_TEST(e[0].deadline() == never);
  r.advance(100);
  BOOST_TEST(r.out.empty());
  BOOST_TEST(r.retired == ids{0}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

//------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(retire)

BOOST_AUTO_TEST_CASE(hands_the_entry_over_when_its_slot_comes_round) {
  for (geometry g : shapes) {
    entries e(1);
    recorder r(g);
    r.wheel.insert(e[0], 1000);
    r.wheel.retire(e[0]);
    BOOST_TEST(e[0].is_linked());
    BOOST_TEST(e[0].deadline() == never);
    BOOST_TEST(!r.wheel.empty());
    BOOST_TEST(r.wheel.next_tick() == 1000u);
    BOOST_TEST(r.wheel.check() == nullptr);
    BOOST_TEST(r.advance(1000));
    BOOST_TEST(!e[0].is_linked());
    BOOST_TEST(r.out.empty());
    BOOST_TEST(r.retired == ids{0}, boost::test_tools::per_element());
    BOOST_TEST(r.wheel.empty());
  }
}

BOOST_AUTO_TEST_CASE(can_be_undone_by_a_move) {
  for (tick again : {tick{500}, tick{1000}, tick{1001}, tick{90000}}) {
    entries e(1);
    recorder r({64, 6});
    r.wheel.insert(e[0], 1000);
    r.wheel.retire(e[0]);
    BOOST_TEST(r.wheel.move(e[0], again));
    r.advance(again - 1);
    BOOST_TEST(r.out.empty());
    r.advance(100000);
    BOOST_TEST(r.at == ticks{again}, boost::test_tools::per_element());
    BOOST_TEST(r.retired.empty());
  }
}

BOOST_AUTO_TEST_CASE(of_an_entry_that_is_not_linked_links_nothing) {
  entries e(1);
  timing_wheel wheel({64, 6});
  wheel.retire(e[0]);
  BOOST_TEST(!e[0].is_linked());
  BOOST_TEST(wheel.empty());
}

BOOST_AUTO_TEST_CASE(can_be_followed_by_an_erase) {
  entries e(2);
  recorder r({64, 6});
  r.wheel.insert(e[0], 1000);
  r.wheel.insert(e[1], 1000);
  r.wheel.retire(e[0]);
  r.wheel.erase(e[0]);
  r.advance(1000);
  BOOST_TEST(r.out == ids{1}, boost::test_tools::per_element());
  BOOST_TEST(r.retired.empty());
}

BOOST_AUTO_TEST_SUITE_END()

//------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(next_tick)

BOOST_AUTO_TEST_CASE(is_exact_for_one_entry_at_any_distance) {
  for (geometry g : shapes) {
    if (g.slots == 65536)
      continue; // slow to construct
    for (tick start : starts_of(g)) {
      for (unsigned bit = 0; bit != 63; ++bit) {
        for (tick off : {tick{0}, (tick{1} << bit) / 3, (tick{1} << bit) - 1}) {
          entries e(1);
          timing_wheel wheel(g, start);
          const tick due = start + (tick{1} << bit) + off;
          wheel.insert(e[0], due);
          if (wheel.next_tick() != due)
            BOOST_ERROR(name_of(g) << " from " << start << ": " << due);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(is_the_minimum_of_many) {
  std::mt19937_64 random(1);
  for (geometry g : shapes) {
    entries e(100);
    timing_wheel wheel(g, 5000);
    tick least = never;
    for (auto& x : e) {
      const tick due = 5001 + (random() >> (random() % 60 + 2));
      wheel.insert(x, due);
      least = std::min(least, due);
      BOOST_TEST(wheel.next_tick() == least);
    }
  }
}

BOOST_AUTO_TEST_CASE(is_a_lower_bound_after_an_erase_and_then_exact_again) {
  for (geometry g : shapes) {
    // Both in one slot, or in the same slot a revolution later.
    entries e(2);
    recorder r(g);
    const tick top = span_of(g, g.levels - 1);
    if (top > never / 8)
      continue;
    r.wheel.insert(e[0], top * 2);
    r.wheel.insert(e[1], top * 3);
    r.wheel.erase(e[0]);
    BOOST_TEST_CONTEXT(name_of(g)) {
      BOOST_TEST(r.wheel.next_tick() <= top * 3);
      r.advance(r.wheel.next_tick());
      BOOST_TEST(r.wheel.next_tick() == top * 3);
      BOOST_TEST(follow(r) == 1u);
      BOOST_TEST(r.at == ticks{top * 3}, boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_CASE(is_a_lower_bound_after_a_move_to_earlier) {
  entries e(2);
  recorder r({64, 6});
  r.wheel.insert(e[0], 70);
  r.wheel.insert(e[1], 80);
  r.wheel.move(e[0], 10);
  BOOST_TEST(r.wheel.next_tick() == 10u);
  r.advance(10);
  BOOST_TEST(r.wheel.next_tick() <= 80u);
  BOOST_TEST(follow(r) <= 2u);
  BOOST_TEST(r.at == (ticks{10, 80}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(is_never_when_all_is_out) {
  entries e(3);
  recorder r({8, 3});
  r.wheel.insert(e[0], 3);
  r.wheel.insert(e[1], 300);
  r.wheel.insert(e[2], 30000);
  r.advance(30000);
  BOOST_TEST(r.at == (ticks{3, 300, 30000}), boost::test_tools::per_element());
  BOOST_TEST(r.wheel.next_tick() == never);
}

BOOST_AUTO_TEST_CASE(is_now_while_stopped_at_the_budget) {
  entries e(3);
  recorder r({64, 6});
  for (auto& x : e)
    r.wheel.insert(x, 1000);
  BOOST_TEST(!r.advance(2000, 2));
  BOOST_TEST(r.wheel.next_tick() == r.wheel.now());
  BOOST_TEST(r.advance(2000));
  BOOST_TEST(r.wheel.next_tick() == never);
}

BOOST_AUTO_TEST_CASE(a_quiet_wheel_is_woken_once_for_each_due_tick) {
  // Exact wake-ups: none for cascades, none for revolutions without a round.
  for (geometry g : shapes) {
    entries e(5);
    recorder r(g, 17);
    const ticks due{20, 1017, 60017, 3600017, 86400017};
    for (std::size_t i = 0; i != due.size(); ++i)
      r.wheel.insert(e[i], due[i]);
    std::size_t wakes = 0;
    while (!r.wheel.empty()) {
      ++wakes;
      r.advance(r.wheel.next_tick());
    }
    BOOST_TEST_CONTEXT(name_of(g)) {
      BOOST_TEST(wakes == due.size());
      BOOST_TEST(r.at == due, boost::test_tools::per_element());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

//------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(advance)

BOOST_AUTO_TEST_CASE(hands_out_in_order_of_tick) {
  std::mt19937_64 random(2);
  for (geometry g : shapes) {
    for (tick step : {tick{1000}, tick{100000}, never}) {
      entries e(300);
      recorder r(g, 100);
      ticks due;
      for (auto& x : e) {
        due.push_back(101 + (random() >> (random() % 22 + 42)));
        r.wheel.insert(x, due.back());
      }
      for (tick to = 100; !r.wheel.empty() && to < never;) {
        to = step > never - to ? never : to + step;
        BOOST_TEST(r.advance(to));
        BOOST_TEST(r.wheel.now() == to);
      }
      std::sort(due.begin(), due.end());
      BOOST_TEST(r.at == due); // each once, each on its tick
      ids all = r.sorted_out();
      BOOST_TEST((std::adjacent_find(all.begin(), all.end()) == all.end()));
    }
  }
}

BOOST_AUTO_TEST_CASE(to_now_or_before_changes_nothing) {
  entries e(1);
  recorder r({64, 6}, 100);
  r.wheel.insert(e[0], 101);
  for (tick to : {tick{0}, tick{99}, tick{100}}) {
    BOOST_TEST(r.advance(to));
    BOOST_TEST(r.wheel.now() == 100u);
    BOOST_TEST(r.out.empty());
  }
  BOOST_TEST(r.advance(101));
  BOOST_TEST(r.at == ticks{101}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(of_an_empty_wheel_is_free) {
  recorder r({64, 6});
  BOOST_TEST(r.advance(never - 1, 0));
  BOOST_TEST(r.wheel.now() == never - 1);
  BOOST_TEST(r.advance(never, 0));
  BOOST_TEST(r.wheel.now() == never);
}

BOOST_AUTO_TEST_CASE(takes_any_callable_by_reference) {
  struct counter {
    int count = 0;
    counter() = default;
    counter(const counter&) = delete;
    void operator()(timing_wheel_entry&) { ++count; }
  } count;
  entries e(2);
  timing_wheel wheel({64, 6});
  wheel.insert(e[0], 1);
  wheel.insert(e[1], 2);
  wheel.advance(2, count);
  BOOST_TEST(count.count == 2);
}

BOOST_AUTO_TEST_CASE(stops_at_its_budget_and_goes_on_later) {
  for (geometry g : shapes) {
    for (std::size_t budget : {std::size_t{1}, std::size_t{2}, std::size_t{3},
                               std::size_t{7}, std::size_t{100}}) {
      entries e(40);
      recorder r(g);
      ticks due;
      for (std::size_t i = 0; i != e.size(); ++i) {
        due.push_back(1 + (i % 8) * 37);
        r.wheel.insert(e[i], due.back());
      }
      std::sort(due.begin(), due.end());
      std::size_t calls = 0;
      for (;;) {
        const std::size_t before = r.out.size();
        const bool done = r.advance(1000, budget);
        ++calls;
        BOOST_TEST_REQUIRE(r.out.size() - before <= budget);
        if (done)
          break;
        BOOST_TEST(r.wheel.now() <= 8 * 37u);
        BOOST_TEST(!r.wheel.empty());
        BOOST_TEST(r.wheel.next_tick() == r.wheel.now());
      }
      BOOST_TEST(r.wheel.now() == 1000u);
      BOOST_TEST(r.at == due);
      BOOST_TEST(calls >= e.size() / budget);
      BOOST_TEST(calls <= e.size() * (g.levels + e.size()) / budget + 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(with_a_budget_that_just_suffices_is_done) {
  entries e(4);
  recorder r({512, 1});
  for (auto& x : e)
    r.wheel.insert(x, 10);
  BOOST_TEST(r.advance(20, 4));
  BOOST_TEST(r.wheel.now() == 20u);
  BOOST_TEST(r.out.size() == 4u);
}

BOOST_AUTO_TEST_CASE(with_no_budget_hands_nothing_out) {
  entries e(1);
  recorder r({512, 1});
  r.wheel.insert(e[0], 10);
  BOOST_TEST(r.advance(9, 0));
  BOOST_TEST(r.wheel.now() == 9u);
  BOOST_TEST(!r.advance(20, 0));
  BOOST_TEST(!r.advance(20, 0));
  BOOST_TEST(r.wheel.now() == 10u);
  BOOST_TEST(r.out.empty());
  BOOST_TEST(r.advance(20, 1));
  BOOST_TEST(r.wheel.now() == 20u);
}

BOOST_AUTO_TEST_CASE(the_budget_counts_entries_that_are_linked_again) {
  entries e(10);
  recorder r({512, 1});
  for (auto& x : e) {
    r.wheel.insert(x, 10);
    r.wheel.move(x, 20);
  }
  BOOST_TEST(!r.advance(15, 9));
  BOOST_TEST(r.wheel.now() == 10u);
  BOOST_TEST(r.advance(15, 1));
  BOOST_TEST(r.wheel.now() == 15u);
  BOOST_TEST(r.out.empty());
  BOOST_TEST(e.linked() == 10u);
  r.advance(20);
  BOOST_TEST(r.out.size() == 10u);
}

BOOST_AUTO_TEST_SUITE_END()

//------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(while_stopped)

namespace {

// Stopped half way through six entries that are due at tick 100; a seventh is
// due at 101.
struct stopped {
  entries e{7};
  recorder r{{64, 6}};
  std::vector<entry*> left;

  explicit stopped(std::size_t budget = 3) {
    for (std::size_t i = 0; i != 6; ++i)
      r.wheel.insert(e[i], 100);
    r.wheel.insert(e[6], 101);
    BOOST_TEST(r.advance(64)); // they move down to the first level
    BOOST_TEST(!r.advance(1000, budget));
    BOOST_TEST(r.out.size() == budget);
    BOOST_TEST(r.wheel.now() == 100u);
    for (std::size_t i = 0; i != 6; ++i)
      if (e[i].is_linked())
        left.push_back(&e[i]);
    BOOST_TEST_REQUIRE(left.size() == 6 - budget);
  }

  ids go_on() {
    r.out.clear();
    r.at.clear();
    BOOST_TEST(r.wheel.check() == nullptr);
    BOOST_TEST(r.advance(1000));
    return r.sorted_out();
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(entries_are_still_linked_and_found) {
  stopped s;
  std::size_t found = 0;
  s.r.wheel.for_each([&](timing_wheel_entry&) { ++found; });
  BOOST_TEST(found == 4u);
  BOOST_TEST(!s.r.wheel.empty());
  BOOST_TEST(s.r.wheel.next_tick() == 100u);
  BOOST_TEST(s.go_on().size() == 4u);
  BOOST_TEST(s.r.at == (ticks{100, 100, 100, 101}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(any_entry_can_be_erased) {
  for (std::size_t victim = 0; victim != 3; ++victim) {
    stopped s;
    s.r.wheel.erase(*s.left[victim]);
    const ids out = s.go_on();
    BOOST_TEST(out.size() == 3u);
    BOOST_TEST(std::count(out.begin(), out.end(), s.left[victim]->id) == 0);
  }
}

BOOST_AUTO_TEST_CASE(all_entries_can_be_erased) {
  stopped s;
  for (entry* e : s.left)
    s.r.wheel.erase(*e);
  BOOST_TEST(s.r.wheel.next_tick() == 101u);
  BOOST_TEST(!s.r.wheel.empty());
  s.r.wheel.erase(s.e[6]);
  BOOST_TEST(s.r.wheel.empty());
  BOOST_TEST(s.r.wheel.next_tick() == never);
  BOOST_TEST(s.go_on().empty());
}

BOOST_AUTO_TEST_CASE(the_last_entry_can_be_erased) {
  stopped s(5);
  s.r.wheel.erase(*s.left[0]);
  BOOST_TEST(s.r.wheel.check() == nullptr);
  BOOST_TEST(s.r.wheel.next_tick() == 101u);
  BOOST_TEST(s.go_on() == ids{6}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_entry_can_be_moved_later) {
  for (tick later : {tick{101}, tick{150}, tick{200}, tick{999}}) {
    stopped s;
    BOOST_TEST(s.r.wheel.move(*s.left[1], later));
    BOOST_TEST(s.go_on().size() == 4u);
    BOOST_TEST(s.r.at.front() == 100u);
    BOOST_TEST(s.r.at.back() == later);
  }
}

BOOST_AUTO_TEST_CASE(an_entry_can_be_moved_later_and_back) {
  stopped s;
  BOOST_TEST(s.r.wheel.move(*s.left[1], 500));
  BOOST_TEST(!s.r.wheel.move(*s.left[1], 100)); // due: the caller's to handle
  BOOST_TEST(!s.left[1]->is_linked());
  BOOST_TEST(s.go_on().size() == 3u);
}

BOOST_AUTO_TEST_CASE(an_entry_not_moved_down_yet_can_be_moved) {
  // All of a slot of the second level is at hand, none of it is due.
  entries e(5);
  recorder r({64, 6});
  for (auto& x : e)
    r.wheel.insert(x, 100);
  BOOST_TEST(!r.advance(64, 0));
  BOOST_TEST(r.wheel.now() == 64u);
  BOOST_TEST(r.wheel.move(e[0], 70));
  BOOST_TEST(r.wheel.move(e[1], 65));
  BOOST_TEST(r.wheel.move(e[2], 300));
  BOOST_TEST(!r.wheel.move(e[3], 64));
  BOOST_TEST(r.wheel.check() == nullptr);
  BOOST_TEST(r.wheel.next_tick() == 64u);
  BOOST_TEST(r.advance(1000));
  BOOST_TEST(r.at == (ticks{65, 70, 100, 300}),
             boost::test_tools::per_element());
  BOOST_TEST(r.out == (ids{1, 0, 4, 2}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_entry_can_be_retired) {
  stopped s;
  s.r.wheel.retire(*s.left[0]);
  BOOST_TEST(s.go_on().size() == 3u);
  BOOST_TEST(s.r.retired == ids{s.left[0]->id},
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(entries_can_be_inserted) {
  entry soon(100), late(101), due(102);
  stopped s;
  BOOST_TEST(s.r.wheel.insert(soon, 101));
  BOOST_TEST(s.r.wheel.insert(late, 1000));
  BOOST_TEST(!s.r.wheel.insert(due, 100));
  BOOST_TEST(s.go_on().size() == 6u);
  BOOST_TEST(s.r.at == (ticks{100, 100, 100, 101, 101, 1000}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(an_entry_that_came_out_can_be_inserted_again) {
  stopped s;
  entry& again = s.e[static_cast<std::size_t>(s.r.out[0])];
  BOOST_TEST(s.r.wheel.insert(again, 164)); // the same slot, a revolution on
  BOOST_TEST(s.go_on().size() == 5u);
  BOOST_TEST(s.r.at.back() == 164u);
}

BOOST_AUTO_TEST_CASE(going_on_towards_an_earlier_tick_stays_at_now) {
  stopped s;
  s.r.out.clear();
  BOOST_TEST(s.r.advance(50));
  BOOST_TEST(s.r.out.size() == 3u);
  BOOST_TEST(s.r.wheel.now() == 100u);
  BOOST_TEST(s.r.wheel.next_tick() == 101u);
}

BOOST_AUTO_TEST_CASE(the_wheel_can_be_cleared_or_destroyed) {
  {
    stopped s;
    std::size_t cleared = 0;
    s.r.wheel.clear([&](timing_wheel_entry& e) {
      BOOST_TEST(!e.is_linked());
      ++cleared;
    });
    BOOST_TEST(cleared == 4u);
    BOOST_TEST(s.r.wheel.empty());
    BOOST_TEST(s.r.wheel.check() == nullptr);
    BOOST_TEST(s.go_on().empty());
    BOOST_TEST(s.r.wheel.now() == 1000u);
  }
  entries e(3);
  {
    recorder r({64, 6});
    for (auto& x : e)
      r.wheel.insert(x, 5);
    BOOST_TEST(!r.advance(5, 1));
  }
  BOOST_TEST(e.linked() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

//------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(inside_the_sink)

namespace {

// Five entries due at tick 100, one at 200. What the first to come out does
// is up to the test.
struct in_sink {
  entries e{6};
  recorder r;
  entry* first = nullptr;

  explicit in_sink(geometry g = {64, 6}) : r(g) {
    for (std::size_t i = 0; i != 5; ++i)
      r.wheel.insert(e[i], 100);
    r.wheel.insert(e[5], 200);
  }

  template <typename F> void run(F f) {
    BOOST_TEST(r.wheel.advance(1000, [&](timing_wheel_entry& x) {
      r.record(x);
      if (!first) {
        first = &static_cast<entry&>(x);
        f();
        BOOST_TEST(r.wheel.check() == nullptr);
      }
    }));
    BOOST_TEST(r.wheel.check() == nullptr);
    BOOST_TEST(r.wheel.empty());
    BOOST_TEST(e.linked() == 0u);
  }

  // Those of the five that are still linked.
  std::vector<entry*> others() {
    std::vector<entry*> found;
    for (std::size_t i = 0; i != 5; ++i)
      if (e[i].is_linked())
        found.push_back(&e[i]);
    return found;
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(others_of_the_same_tick_can_be_erased) {
  for (geometry g : shapes) {
    for (std::size_t victim = 0; victim != 4; ++victim) {
      in_sink s(g);
      s.run([&] { s.r.wheel.erase(*s.others()[victim]); });
      BOOST_TEST(s.r.at == (ticks{100, 100, 100, 100, 200}),
                 boost::test_tools::per_element());
    }
    in_sink s(g);
    s.run([&] {
      for (entry* x : s.others())
        s.r.wheel.erase(*x);
    });
    BOOST_TEST(s.r.at == (ticks{100, 200}), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(others_can_be_put_off) {
  in_sink s;
  s.run([&] {
    const auto others = s.others();
    BOOST_TEST(s.r.wheel.move(*others[0], 101));
    BOOST_TEST(s.r.wheel.move(*others[1], 164));
    BOOST_TEST(s.r.wheel.move(*others[2], 1000));
    BOOST_TEST(s.r.wheel.move(*others[3], 200));
  });
  BOOST_TEST(s.r.at == (ticks{100, 101, 164, 200, 200, 1000}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(others_can_be_brought_forward) {
  in_sink s;
  s.run([&] { BOOST_TEST(s.r.wheel.move(s.e[5], 101)); });
  BOOST_TEST(s.r.at == (ticks{100, 100, 100, 100, 100, 101}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(others_can_be_retired) {
  in_sink s;
  s.run([&] {
    for (entry* x : s.others())
      s.r.wheel.retire(*x);
    s.r.wheel.retire(s.e[5]);
  });
  BOOST_TEST(s.r.at == ticks{100}, boost::test_tools::per_element());
  BOOST_TEST(s.r.retired.size() == 5u);
}

BOOST_AUTO_TEST_CASE(the_entry_itself_can_be_inserted_again) {
  for (tick again : {tick{101}, tick{163}, tick{164}, tick{612}, tick{1000}}) {
    for (geometry g : shapes) {
      in_sink s(g);
      s.run([&] { BOOST_TEST(s.r.wheel.insert(*s.first, again)); });
      BOOST_TEST(s.r.out.size() == 7u);
      BOOST_TEST(std::count(s.r.at.begin(), s.r.at.end(), again) == 1);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_due_already_is_refused) {
  in_sink s;
  s.run([&] {
    BOOST_TEST(!s.r.wheel.insert(*s.first, 100));
    BOOST_TEST(!s.r.wheel.move(*s.first, 99));
    BOOST_TEST(!s.r.wheel.move(*s.others()[0], 100));
  });
  BOOST_TEST(s.r.at == (ticks{100, 100, 100, 100, 200}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(new_entries_take_part_in_the_same_advance) {
  entries more(3);
  in_sink s;
  s.run([&] {
    BOOST_TEST(s.r.wheel.insert(more[0], 101));
    BOOST_TEST(s.r.wheel.insert(more[1], 500));
    BOOST_TEST(s.r.wheel.insert(more[2], 1000));
  });
  BOOST_TEST(s.r.at == (ticks{100, 100, 100, 100, 100, 101, 200, 500, 1000}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_entry_can_be_destroyed) {
  std::vector<std::unique_ptr<entry>> owned;
  std::size_t destroyed = 0;
  timing_wheel wheel({64, 6});
  for (int i = 0; i != 10; ++i) {
    owned.push_back(std::make_unique<entry>(i));
    wheel.insert(*owned.back(), 5);
  }
  wheel.advance(10, [&](timing_wheel_entry& e) {
    owned[static_cast<std::size_t>(static_cast<entry&>(e).id)].reset();
    ++destroyed;
  });
  BOOST_TEST(destroyed == 10u);
}

BOOST_AUTO_TEST_CASE(others_can_be_erased_and_destroyed) {
  std::vector<std::unique_ptr<entry>> owned;
  std::size_t calls = 0;
  timing_wheel wheel({64, 6});
  for (int i = 0; i != 10; ++i) {
    owned.push_back(std::make_unique<entry>(i));
    wheel.insert(*owned.back(), 5);
  }
  wheel.advance(10, [&](timing_wheel_entry& e) {
    ++calls;
    // Each takes another one with it.
    for (auto& x : owned) {
      if (x && x.get() != &e && x->is_linked()) {
        wheel.erase(*x);
        x.reset();
        break;
      }
    }
  });
  BOOST_TEST(calls == 5u);
  BOOST_TEST(wheel.empty());
}

BOOST_AUTO_TEST_SUITE_END()

//------------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(the_whole_wheel)

namespace {

// One entry on each level, some in one slot, one retired, one put off.
void populate(timing_wheel& wheel, entries& e) {
  const ticks due{1, 1, 7, 8, 63, 64, 511, 512, 5120};
  for (std::size_t i = 0; i != due.size(); ++i)
    BOOST_TEST_REQUIRE(wheel.insert(e[i], wheel.now() + due[i]));
  wheel.retire(e[4]);
  wheel.move(e[5], wheel.now() + 1000);
}

} // namespace

BOOST_AUTO_TEST_CASE(for_each_visits_each_linked_entry_once) {
  entries e(9);
  timing_wheel wheel({8, 3}, 1001);
  populate(wheel, e);
  wheel.erase(e[2]);
  ids seen;
  wheel.for_each([&](timing_wheel_entry& x) {
    seen.push_back(static_cast<entry&>(x).id);
  });
  std::sort(seen.begin(), seen.end());
  BOOST_TEST(seen == (ids{0, 1, 3, 4, 5, 6, 7, 8}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(clear_hands_over_each_entry_unlinked) {
  entries e(9);
  timing_wheel wheel({8, 3}, 1001);
  populate(wheel, e);
  ids seen;
  wheel.clear([&](timing_wheel_entry& x) {
    BOOST_TEST(!x.is_linked());
    BOOST_TEST(wheel.check() == nullptr);
    seen.push_back(static_cast<entry&>(x).id);
  });
  BOOST_TEST(seen.size() == 9u);
  BOOST_TEST(wheel.empty());
  BOOST_TEST(wheel.next_tick() == never);
  BOOST_TEST(wheel.check() == nullptr);
  BOOST_TEST(wheel.now() == 1001u);
  populate(wheel, e); // and can be used again
  wheel.clear();
  BOOST_TEST(wheel.empty());
  BOOST_TEST(e.linked() == 0u);
}

BOOST_AUTO_TEST_CASE(clear_lets_the_entry_be_destroyed) {
  std::vector<std::unique_ptr<entry>> owned;
  timing_wheel wheel({8, 3});
  for (int i = 0; i != 20; ++i) {
    owned.push_back(std::make_unique<entry>(i));
    wheel.insert(*owned.back(), 1 + static_cast<tick>(i) * 5);
  }
  wheel.clear([&](timing_wheel_entry& e) {
    owned[static_cast<std::size_t>(static_cast<entry&>(e).id)].reset();
  });
  BOOST_TEST(std::count(owned.begin(), owned.end(), nullptr) == 20);
}

BOOST_AUTO_TEST_CASE(destruction_unlinks_what_is_linked) {
  entries e(9);
  {
    timing_wheel wheel({8, 3});
    populate(wheel, e);
    BOOST_TEST(e.linked() == 9u);
  }
  BOOST_TEST(e.linked() == 0u);
}

BOOST_AUTO_TEST_CASE(empty_counts_retired_entries_as_linked) {
  entries e(1);
  recorder r({8, 3});
  BOOST_TEST(r.wheel.empty());
  r.wheel.insert(e[0], 5);
  r.wheel.retire(e[0]);
  BOOST_TEST(!r.wheel.empty());
  r.advance(5);
  BOOST_TEST(r.wheel.empty());
}

BOOST_AUTO_TEST_CASE(links_are_safe_in_every_build) {
  // A link mode that follows NDEBUG would change the layout between a library
  // and its user. Safe links know whether they are linked.
  static_assert(timing_wheel_entry::hooktags::link_mode ==
                boost::intrusive::safe_link);
  entries e(4);
  recorder r({64, 6});
  for (auto& x : e) {
    BOOST_TEST(!x.is_linked());
    r.wheel.insert(x, 10);
    BOOST_TEST(x.is_linked());
  }
  r.wheel.erase(e[0]);
  BOOST_TEST(!e[0].is_linked());
  r.wheel.move(e[1], 0);
  BOOST_TEST(!e[1].is_linked());
  r.advance(10);
  BOOST_TEST(e.linked() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

//------------------------------------------------------------------------------
// Faults that timer software has really had, on the level of the wheel.

BOOST_AUTO_TEST_SUITE(faults)

BOOST_AUTO_TEST_CASE(a1_a_huge_deadline_saturates_to_never) {
  for (geometry g : shapes) {
    for (tick start : {tick{0}, tick{12345}, tick{1} << 63, never - 5}) {
      for (tick back : {tick{1}, tick{2}, tick{3}}) {
        BOOST_TEST_CONTEXT(name_of(g) << " from " << start << " -" << back) {
          entries e(2);
          recorder r(g, start);
          BOOST_TEST(!r.wheel.insert(e[0], never));
          BOOST_TEST(r.wheel.insert(e[1], never - back));
          BOOST_TEST(r.wheel.next_tick() == never - back);
          BOOST_TEST(r.advance(never - back - 1, g.levels)); // no hot loop
          BOOST_TEST(r.out.empty());
          BOOST_TEST(r.advance(never, g.levels));
          BOOST_TEST(r.at == ticks{never - back},
                     boost::test_tools::per_element());
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a1_a_tenth_of_all_time_is_neither_early_nor_late) {
  for (geometry g : shapes)
    for (tick start : {tick{0}, tick{12345}, tick{1} << 62})
      for (tick delay : {never / 2, never / 10, never / 11, tick{1} << 62})
        expect_on_its_tick(g, start, delay);
}

BOOST_AUTO_TEST_CASE(a1_a_huge_period_ends_without_an_overflow) {
  for (geometry g : shapes) {
    entries e(1);
    recorder r(g, 3);
    const tick period = never / 3;
    r.wheel.insert(e[0], 3 + period);
    BOOST_TEST(r.wheel.advance(never, [&](timing_wheel_entry& x) {
      r.record(x);
      const tick now = r.wheel.now();
      BOOST_TEST(r.wheel.insert(x, now + std::min(period, never - now)) ==
                 (now + period > now && now + period != never));
    }));
    BOOST_TEST(r.at == (ticks{3 + period, 3 + 2 * period}),
               boost::test_tools::per_element());
    BOOST_TEST(r.wheel.empty());
  }
}

BOOST_AUTO_TEST_CASE(a2_a_deadline_in_the_past_never_enters_the_wheel) {
  for (geometry g : shapes) {
    for (tick start : {tick{1000}, tick{1} << 32, never - 1, never}) {
      entries e(1);
      recorder r(g, start);
      for (tick past : {tick{0}, tick{1}, start / 2, start - 1, start}) {
        BOOST_TEST(!r.wheel.insert(e[0], past));
        BOOST_TEST(!r.wheel.move(e[0], past));
        BOOST_TEST(!e[0].is_linked());
      }
      BOOST_TEST(r.wheel.next_tick() == never);
      r.advance(never);
      BOOST_TEST(r.out.empty());
    }
  }
}

BOOST_AUTO_TEST_CASE(a3_a_chain_of_more_than_two_revolutions_does_not_drift) {
  for (geometry g : shapes) {
    const tick round = g.slots;
    for (tick period : {tick{1}, tick{3}, round - 1, round, round + 1}) {
      // Tick by tick would be slow for some: late by a few ticks each time.
      for (tick late : {tick{0}, tick{1}, tick{5}, round}) {
        entries e(1);
        recorder r(g, 11);
        r.wheel.insert(e[0], 11 + period);
        tick links = std::min<tick>(2 * round / period + 3, 2000);
        tick expected = 11;
        bool exact = true;
        while (links > 0) {
          r.wheel.advance(r.wheel.next_tick() + late,
                          [&](timing_wheel_entry& x) {
                            expected += period;
                            exact = exact && r.wheel.now() == expected;
                            if (--links > 0)
                              r.wheel.insert(x, r.wheel.now() + period);
                            else
                              links = 0;
                          });
          if (r.wheel.empty())
            break;
        }
        BOOST_TEST_CONTEXT(name_of(g) << " every " << period) {
          BOOST_TEST(exact);
          BOOST_TEST(links == 0u);
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a4_delay_of_whole_revolutions_fires_on_its_tick) {
  for (geometry g : shapes) {
    for (std::size_t level = 0; level != g.levels; ++level) {
      const tick span = span_of(g, level);
      if (span > never / 8)
        continue;
      for (tick start : starts_of(g))
        for (tick k = 1; k <= 4; ++k)
          expect_on_its_tick(g, start, k * span);
    }
  }
}

BOOST_AUTO_TEST_CASE(a5_delays_around_the_span_fire_on_their_tick) {
  for (geometry g : shapes) {
    for (std::size_t level = 0; level != g.levels; ++level) {
      const tick span = span_of(g, level);
      if (span > never / 16)
        continue;
      for (tick start : starts_of(g)) {
        for (tick delay : {span - 1, span, span + 1, 10 * span})
          expect_on_its_tick(g, start, delay);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a6_armed_for_nearly_the_span_while_the_wheel_is_behind) {
  for (geometry g : shapes) {
    for (std::size_t level = 0; level != g.levels; ++level) {
      const tick span = span_of(g, level);
      if (span > never / 8)
        continue;
      for (tick start : starts_of(g)) {
        for (tick behind : {tick{1}, g.slots / 2, span - 1, span, span + 1}) {
          // It is start + behind, but nobody has told the wheel yet.
          entries e(2);
          recorder r(g, start);
          const tick real = start + behind;
          const tick due = real + span - 1;
          r.wheel.insert(e[0], real); // the slot at hand is occupied, too
          r.wheel.insert(e[1], due);
          BOOST_TEST_CONTEXT(name_of(g) << " " << start << " " << behind) {
            r.advance(due - 1);
            BOOST_TEST(r.at == ticks{real}, boost::test_tools::per_element());
            BOOST_TEST(r.wheel.next_tick() == due);
            r.advance(due);
            BOOST_TEST(r.at == (ticks{real, due}),
                       boost::test_tools::per_element());
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a8_a_start_before_a_counter_would_wrap_changes_nothing) {
  for (geometry g : shapes) {
    for (unsigned bit : {8u, 16u, 31u, 32u, 33u, 48u, 62u, 63u}) {
      for (tick before : {tick{1}, tick{2}, tick{500}}) {
        const tick wraps = tick{1} << bit;
        if (before >= wraps)
          continue;
        const tick start = wraps - before;
        for (tick delay :
             {tick{1}, before, before + 1, before + 1000, tick{100000}})
          expect_on_its_tick(g, start, delay);
        // In order across the boundary.
        entries e(5);
        recorder r(g, start);
        const ticks due{wraps - before + 1, wraps, wraps + 1, wraps + 7,
                        wraps + 70000};
        for (std::size_t i = due.size(); i-- > 0;)
          r.wheel.insert(e[i], due[i]);
        r.advance(wraps + 100000);
        ticks expected = due;
        std::sort(expected.begin(), expected.end());
        BOOST_TEST(r.at == expected, boost::test_tools::per_element());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a9_the_next_wake_up_is_never_after_the_true_minimum) {
  for (geometry g : shapes) {
    for (tick base : {tick{1}, tick{1000}, tick{1000000}}) {
      // Far, then near; the nearest's callback cancels the next and arms
      // another, and again.
      entries e(12);
      recorder r(g, 5);
      std::vector<bool> armed(e.size());
      ticks due(e.size());
      const auto arm = [&](std::size_t i, tick t) {
        BOOST_TEST(r.wheel.insert(e[i], t));
        due[i] = t;
        armed[i] = true;
      };
      const auto nearest = [&] {
        std::size_t best = e.size();
        for (std::size_t i = 0; i != e.size(); ++i)
          if (armed[i] && (best == e.size() || due[i] < due[best]))
            best = i;
        return best;
      };
      for (std::size_t i = 0; i != 8; ++i)
        arm(i, 5 + base * (20 - 2 * i));
      std::size_t next_new = 8;
      std::size_t cancelled = 0;
      std::size_t wakes = 0;
      while (nearest() != e.size()) {
        const tick least = due[nearest()];
        const tick next = r.wheel.next_tick();
        BOOST_TEST_REQUIRE(next <= least);
        BOOST_TEST_REQUIRE(++wakes < 1000u);
        r.wheel.advance(next, [&](timing_wheel_entry& x) {
          r.record(x);
          armed[static_cast<std::size_t>(r.out.back())] = false;
          if (next_new != e.size()) {
            if (const std::size_t victim = nearest(); victim != e.size()) {
              r.wheel.erase(e[victim]);
              armed[victim] = false;
              ++cancelled;
            }
            arm(next_new++, r.wheel.now() + base);
          }
          if (const std::size_t least_now = nearest(); least_now != e.size())
            BOOST_TEST(r.wheel.next_tick() <= due[least_now]);
        });
        BOOST_TEST(r.wheel.check() == nullptr);
      }
      BOOST_TEST(cancelled == 4u);
      BOOST_TEST(r.out.size() == e.size() - cancelled);
      BOOST_TEST(r.wheel.empty());
    }
  }
}

BOOST_AUTO_TEST_CASE(a11_exactly_k_ticks_is_neither_early_nor_one_more) {
  for (geometry g : shapes) {
    const tick round = std::min<tick>(g.slots, 512);
    for (tick start : {tick{0}, tick{1}, round / 2, round - 1, round}) {
      // All k at once, tick by tick: at each tick exactly the one due then.
      const tick most = 2 * round + 3;
      entries e(static_cast<int>(most));
      timing_wheel wheel(g, start);
      for (tick k = 1; k <= most; ++k)
        wheel.insert(e[k - 1], start + k);
      bool right = true;
      for (tick k = 1; k <= most; ++k) {
        std::size_t count = 0;
        wheel.advance(start + k, [&](timing_wheel_entry& x) {
          ++count;
          right = right && &x == &e[k - 1];
        });
        right = right && count == 1;
      }
      BOOST_TEST_INFO(name_of(g) << " from " << start);
      BOOST_TEST(right);
      BOOST_TEST(wheel.empty());
    }
  }
}

BOOST_AUTO_TEST_CASE(a12_inserts_beyond_the_end_and_out_of_order) {
  std::mt19937_64 random(12);
  for (geometry g : shapes) {
    const tick span = std::min(span_of(g, g.levels - 1), tick{1} << 40);
    for (tick start : starts_of(g)) {
      entries e(64);
      recorder r(g, start);
      ticks due;
      for (std::size_t i = 0; i != e.size(); ++i) // up to 16 spans away
        due.push_back(start + span / 4 + 1 + i * (span / 4 + 1));
      ticks shuffled = due;
      std::shuffle(shuffled.begin(), shuffled.end(), random);
      for (std::size_t i = 0; i != e.size(); ++i)
        BOOST_TEST_REQUIRE(r.wheel.insert(e[i], shuffled[i]));
      while (!r.wheel.empty()) {
        const std::size_t before = r.out.size();
        const tick next = r.wheel.next_tick();
        r.advance(next);
        BOOST_TEST(r.out.size() == before + 1); // each in its own tick
      }
      BOOST_TEST(r.at == due, boost::test_tools::per_element());
      for (std::size_t i = 0; i != r.out.size(); ++i)
        BOOST_TEST(shuffled[static_cast<std::size_t>(r.out[i])] == r.at[i]);
    }
  }
}

BOOST_AUTO_TEST_CASE(c6_a_jump_costs_by_the_number_of_timers_not_of_ticks) {
  constexpr tick year = tick{1000} * 3600 * 24 * 365; // of milliseconds
  for (geometry g : shapes) {
    // A few timers spread over ten years. The wheel wakes up after a hundred.
    for (const ticks& due :
         {ticks{year * 10}, ticks{1, 1000, 60000, year / 365, year, year + 1},
          ticks{5, 5, 5, year * 3 + 17, year * 3 + 17}, ticks{}}) {
      entries e(static_cast<int>(due.size()));
      recorder r(g, 77);
      for (std::size_t i = 0; i != due.size(); ++i)
        r.wheel.insert(e[i], 77 + due[i]);
      std::size_t steps = 0;
      while (!r.advance(77 + year * 100, 1))
        BOOST_TEST_REQUIRE(++steps < 10000u);
      BOOST_TEST_CONTEXT(name_of(g) << ", " << due.size() << " timers") {
        BOOST_TEST(r.out.size() == due.size());
        if (due.size() == 1)
          BOOST_TEST(steps == 0u); // straight to its tick
        // Once per level, and on the last for each that shares its slot.
        BOOST_TEST(steps <= due.size() * (g.levels - 1 + due.size()));
        BOOST_TEST(r.wheel.now() == 77 + year * 100);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(c6_many_timers_after_hours_fire_once_each) {
  for (geometry g : {geometry{512, 1}, geometry{64, 6}, geometry{256, 4}}) {
    entries e(2000);
    recorder r(g);
    std::mt19937_64 random(6);
    ticks due;
    for (auto& x : e) {
      due.push_back(1 + random() % 60000);
      r.wheel.insert(x, due.back());
    }
    std::size_t steps = 0;
    while (!r.wheel.advance(
        36000000, [&](timing_wheel_entry& x) { r.record(x); }, 1))
      ++steps;
    std::sort(due.begin(), due.end());
    BOOST_TEST(r.at == due);
    // One level of 512 slots has 117 revolutions in a minute: with 4 entries
    // in a slot each is looked at when one of them is due.
    BOOST_TEST(steps <= e.size() * 6);
  }
}

BOOST_AUTO_TEST_SUITE_END()

//------------------------------------------------------------------------------

namespace {

//[use_alone
struct session : asio_wheel::timing_wheel_entry {
  explicit session(std::string n) : name(std::move(n)) {}
  std::string name;
};

std::vector<std::string> closed_for_idleness() {
  session ann("ann"), bob("bob"), eve("eve"); // they outlive the wheel
  asio_wheel::timing_wheel wheel({256, 4});   // a tick is what we say it is

  wheel.insert(ann, 30);
  wheel.insert(bob, 30);
  wheel.insert(eve, 30);

  wheel.move(bob, 90); // a sign of life: nothing but a store
  wheel.erase(eve);    // has said goodbye

  std::vector<std::string> closed;
  while (wheel.next_tick() != asio_wheel::timing_wheel::never) {
    const auto next = wheel.next_tick(); // sleep until then, or longer
    wheel.advance(next, [&](asio_wheel::timing_wheel_entry& e) {
      closed.push_back(static_cast<session&>(e).name);
    });
  }
  return closed; // ann at tick 30, bob at tick 90
}
//]

} // namespace

BOOST_AUTO_TEST_CASE(the_example_of_the_documentation) {
  BOOST_TEST(closed_for_idleness() == (std::vector<std::string>{"ann", "bob"}),
             boost::test_tools::per_element());
}
