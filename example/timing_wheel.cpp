//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// The wheel alone, without Asio, a clock or a lock: for a simulator, a game
// loop, a cache, wherever time is a number that somebody counts up.

#include <asio_wheel/timing_wheel.hpp>

#include <cstdint>
#include <iostream>

//[use_alone
// Whatever is to wait derives from timing_wheel_entry.
struct lease : asio_wheel::timing_wheel_entry {
  explicit lease(const char* n) : name(n) {}
  const char* name;
};

int main() {
  asio_wheel::timing_wheel wheel({64, 4}); // four levels of 64 slots
  lease a("a"), b("b"), c("c"), d("d");
  wheel.insert(a, 10);
  wheel.insert(b, 20);
  wheel.insert(c, 30);
  wheel.insert(d, 1'000'000);

  wheel.move(a, 25); // renewed: just a store
  wheel.erase(c);    // given back

  auto expired = [&](asio_wheel::timing_wheel_entry& entry) {
    std::cout << wheel.now() << ": " << static_cast<lease&>(entry).name
              << " expires\n";
  };
  for (std::uint64_t tick = 1; tick <= 100; ++tick)
    wheel.advance(tick, expired);

  // A jump costs no more than a step.
  std::cout << "nothing to do before " << wheel.next_tick() << '\n';
  wheel.advance(2'000'000, expired);
  std::cout << "the wheel is " << (wheel.empty() ? "empty" : "not empty")
            << '\n';
}
//]
