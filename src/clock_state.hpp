//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_SRC_CLOCK_STATE_HPP
#define ASIO_WHEEL_SRC_CLOCK_STATE_HPP

#include <asio_wheel/manual_clock.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

class shard;

// What the copies of a manual_clock share.
//
// Ground rules: shards_ is guarded by mutex_, which is taken before a shard's
// lock, never while one is held. random_ has a mutex of its own, because a
// drain shuffles under its shard's lock.
class clock_state {
public:
  using duration = manual_clock::duration;
  using time_point = manual_clock::time_point;

  explicit clock_state(time_point start) noexcept
      : now_(start.time_since_epoch().count()) {}

  time_point now() const noexcept {
    return time_point(duration(now_.load(std::memory_order_acquire)));
  }

  void add(shard& s);
  void remove(shard& s) noexcept;
  void set(time_point t);
  // f(shard&) for each shard on this clock, under mutex_.
  template <typename F> void for_each(F&& f) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (shard* s : shards_)
      f(*s);
  }

  void add_hold() noexcept { ++holds_; }
  void remove_hold() noexcept { --holds_; }
  bool held() const noexcept { return holds_ != 0; }

  // With a seed a drain takes the whole of a tick and shuffles it.
  void seed(std::optional<std::uint64_t> s) {
    const std::lock_guard<std::mutex> lock(random_mutex_);
    shuffles_ = s.has_value();
    if (s)
      random_.seed(*s);
  }
  bool shuffles() const noexcept { return shuffles_; }
  template <typename T> void shuffle(std::vector<T>& v) {
    const std::lock_guard<std::mutex> lock(random_mutex_);
    // Not std::shuffle: the same seed is to give the same order everywhere.
    for (std::size_t i = v.size(); i > 1; --i)
      std::swap(v[i - 1], v[static_cast<std::size_t>(random_() % i)]);
  }

private:
  std::mutex mutex_;
  std::vector<shard*> shards_;
  std::atomic<duration::rep> now_;
  std::atomic<std::size_t> holds_{0};
  std::mutex random_mutex_;
  std::atomic<bool> shuffles_{false};
  std::mt19937_64 random_;
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_SRC_CLOCK_STATE_HPP
