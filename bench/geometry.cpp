//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

//
// The wheel alone, in several geometries: what the default was chosen by.
//
// One million entries of 128 bytes in random order, deadlines 1 to 60 s ahead
// in ticks of 1 ms; nanoseconds of CPU time per entry, median (min-max) of five
// rounds, the geometries in turn. The processor overlaps the cache misses of
// neighbouring operations here; bench/timers has figures without that.
//

#include <asio_wheel/timing_wheel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <random>
#include <vector>

namespace {

using asio_wheel::timing_wheel;
using asio_wheel::timing_wheel_entry;

constexpr std::size_t entries = 1'000'000;
constexpr std::size_t rounds = 5;

struct item : timing_wheel_entry {
  char rest[96];
};
static_assert(sizeof(item) == 128);

double cpu_time() {
  std::timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

// Nanoseconds per entry of f.
template <typename F> double measure(F&& f) {
  const double before = cpu_time();
  f();
  return (cpu_time() - before) / static_cast<double>(entries);
}

struct result {
  timing_wheel::geometry shape;
  std::vector<double> add, lazy, eager, expire;
};

void print(std::vector<double> figures) {
  std::sort(figures.begin(), figures.end());
  std::printf("  %6.1f (%.0f-%.0f)", figures[figures.size() / 2],
              figures.front(), figures.back());
}

} // namespace

int main() {
  std::vector<item> items(entries);
  std::mt19937_64 random(1);
  std::vector<std::size_t> order(entries), other_order(entries);
  std::vector<timing_wheel::tick_type> delay(entries), next_delay(entries);
  for (std::size_t i = 0; i != entries; ++i) {
    order[i] = other_order[i] = i;
    delay[i] = 1000 + random() % 59'000;
    next_delay[i] = 1000 + random() % 59'000;
  }
  std::shuffle(order.begin(), order.end(), random);
  std::shuffle(other_order.begin(), other_order.end(), random);

  std::vector<result> results;
  for (const timing_wheel::geometry g : {timing_wheel::geometry{64, 6},
                                         {256, 4},
                                         {512, 4},
                                         {1024, 3},
                                         {4096, 3},
                                         {16384, 2},
                                         {65536, 2}})
    results.push_back({g, {}, {}, {}, {}});

  for (std::size_t round = 0; round != rounds + 1; ++round) {
    for (result& r : results) {
      timing_wheel wheel(r.shape, 1'000'000);
      const double add = measure([&] {
        for (std::size_t i = 0; i != entries; ++i)
          wheel.insert(items[order[i]], wheel.now() + delay[i]);
      });
      const double lazy = measure([&] {
        for (std::size_t i = 0; i != entries; ++i) {
          item& e = items[other_order[i]];
          wheel.retire(e);
          wheel.move(e, wheel.now() + next_delay[i]);
        }
      });
      const double eager = measure([&] {
        for (std::size_t i = 0; i != entries; ++i) {
          item& e = items[order[i]];
          wheel.erase(e);
          wheel.insert(e, wheel.now() + next_delay[i]);
        }
      });
      std::size_t expired = 0;
      const double expire = measure([&] {
        for (int tick = 0; tick != 60'000; ++tick)
          wheel.advance(wheel.now() + 1,
                        [&](timing_wheel_entry&) { ++expired; });
      });
      if (expired != entries || !wheel.empty()) {
        std::printf("FAILED: %zu of %zu entries expired\n", expired, entries);
        return 1;
      }
      if (round == 0) // to warm up
        continue;
      r.add.push_back(add);
      r.lazy.push_back(lazy);
      r.eager.push_back(eager);
      r.expire.push_back(expire);
    }
  }

  std::printf("geometry   add             cancel + add    erase + insert  "
              "expire          ns\n");
  for (const result& r : results) {
    std::printf("%5zu x %zu", r.shape.slots, r.shape.levels);
    print(r.add);
    print(r.lazy);
    print(r.eager);
    print(r.expire);
    std::printf("\n");
  }
}
