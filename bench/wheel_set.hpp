//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BENCH_WHEEL_SET_HPP
#define ASIO_WHEEL_BENCH_WHEEL_SET_HPP

#include "settings.hpp"

#include <asio_wheel/timing_wheel.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

/// The wheel alone, and side by side in memory the entries in it.
/**
 * A bare wheel has no clock, no loop and no handlers: time is where the wheel
 * is, poll() does nothing, and when an entry is due, a count goes up. So its
 * figures stand beside those of other bare wheels, and are what the timers'
 * could at best be.
 */
class wheel_set {
public:
  static constexpr std::chrono::nanoseconds tick = std::chrono::milliseconds(1);

  wheel_set(const settings& s, std::size_t size)
      : entries_(size), wheel_({s.wheel.slots, s.wheel.levels}) {
    for (auto& e : entries_)
      e.fired = &fired_;
  }

  std::size_t size() const noexcept { return entries_.size(); }
  void poll() noexcept {}

  /// @param d A multiple of the tick.
  void set_on(std::chrono::nanoseconds d) {
    wheel_.advance(wheel_.now() + static_cast<std::uint64_t>(d / tick),
                   [](asio_wheel::timing_wheel_entry& e) {
                     ++*static_cast<entry&>(e).fired;
                   });
  }

  std::uint64_t fired() const noexcept { return fired_; }

  std::size_t pending() const noexcept {
    return static_cast<std::size_t>(
        std::count_if(entries_.begin(), entries_.end(),
                      [](const entry& e) { return e.is_linked(); }));
  }

  void start(std::size_t i, std::chrono::nanoseconds delay) {
    wheel_.erase(entries_[i]);
    refused_ += !wheel_.insert(entries_[i], due(delay));
  }

  // Not retire(): what was cancelled is to be gone, as with the others.
  void cancel(std::size_t i) { wheel_.erase(entries_[i]); }

  void refresh(std::size_t i, std::chrono::nanoseconds delay) {
    refused_ += !wheel_.move(entries_[i], due(delay));
  }

  void cancel_all() {
    for (std::size_t i = 0; i < size(); ++i)
      cancel(i);
  }

  std::string verify() {
    if (refused_ != 0)
      return std::to_string(refused_) + " entries were not taken";
    if (const char* wrong = wheel_.check())
      return std::string("not true: ") + wrong;
    cancel_all();
    return wheel_.empty() ? "" : "something was left in the wheel";
  }

private:
  struct entry : asio_wheel::timing_wheel_entry {
    std::uint64_t* fired = nullptr;
  };

  /// The first tick that is not before the time.
  std::uint64_t due(std::chrono::nanoseconds delay) const noexcept {
    constexpr auto almost_a_tick = tick - std::chrono::nanoseconds(1);
    return wheel_.now() +
           static_cast<std::uint64_t>((delay + almost_a_tick) / tick);
  }

  std::uint64_t fired_ = 0, refused_ = 0;
  std::vector<entry> entries_;
  asio_wheel::timing_wheel wheel_;
};

/// The same, whose every poll comes a second after the one before.
class wheel_set_in_leaps : public wheel_set {
public:
  using wheel_set::wheel_set;

  void poll() { set_on(std::chrono::seconds(1)); }
};

} // namespace bench

#endif // ASIO_WHEEL_BENCH_WHEEL_SET_HPP
