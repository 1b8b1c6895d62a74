//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_ALARM_HPP
#define ASIO_WHEEL_DETAIL_ALARM_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/shard_ptr.hpp>
#include <asio_wheel/detail/wait_op.hpp>
#include <asio_wheel/timing_wheel.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// What a timer is made of: a deadline, the entry that waits for it on its
// shard's wheel, and the waits that are to be completed when it is due.
//
// Ground rules. The user's side (the timer's owner) constructs, moves and
// destroys the alarm and calls its functions, one at a time. The drain's side
// touches it from other threads, while it has waits, under the shard's lock.
// So every member but shard_, on_own_context_, expiry_, slack_shift_ and
// ever_armed_ (which only the user's side writes, the former two under the
// lock, since a drain reads them) is guarded by the shard's lock. What changes
// an alarm is in shard.cpp.
//
// open_ is changed under the lock, by stores alone. The user's side may read it
// without: only that side can open the first wait, so that for it there is none
// once it has read zero, and the drain's side has done with expiry_.
//
// A wait that is *open*, that is, not started and without an outcome, belongs
// to its alarm: as the small wait kept in the alarm itself (always the oldest)
// or as an operation in ops_, those handed to their executors last. A wait
// that has an outcome, or has started, has nothing to do with the alarm any
// more.
class alarm : public timing_wheel_entry {
public:
  using duration = std::chrono::steady_clock::duration;
  using time_point = std::chrono::steady_clock::time_point;

  // on_own_context: the timer's executor is the native one of the shard's
  // context, so that handlers without an executor of their own may be called
  // directly by a drain.
  alarm(shard& s, bool on_own_context) noexcept
      : shard_(&s), on_own_context_(on_own_context) {}

  alarm(alarm&& other) noexcept;
  alarm& operator=(alarm&& other) noexcept;
  ~alarm();

  shard& owner() const noexcept { return *shard_; }

  // What time it is on the shard's clock. What is looked at next mostly lies on
  // two cache lines: both come while the clock is read, which waits for loads
  // but not for prefetches. So it is read before it is known to be the right
  // one.
  time_point now() const noexcept;
  std::size_t open_waits() const noexcept {
    return open_.load(std::memory_order_acquire);
  }
  bool on_own_context() const noexcept { return on_own_context_; }
  void on_own_context(bool value) noexcept { on_own_context_ = value; }
  time_point expiry() const noexcept { return expiry_; }
  // When a wait is due at the latest, but for what the slack allows in
  // fractions of a tick.
  time_point latest() const noexcept;

private:
  friend class shard;

  void open_waits(std::size_t n) noexcept {
    open_.store(static_cast<std::uint32_t>(n), std::memory_order_release);
  }

  // Where an alarm's entry is.
  enum class phase : unsigned char {
    idle,     // no open waits; the entry may still be on the wheel, retired
    on_wheel, // open waits, the entry is on the wheel
    never,    // open waits without end, the entry is in shard::never_
    due,      // open waits to be started, the entry is in shard::due_
    lent      // all open waits handed, the entry is in shard::lent_
  };

  // Ordered so that what arming, cancelling and expiry touch with a small wait
  // comes first.
  shard_ptr shard_;
  time_point expiry_{};
  std::atomic<std::uint32_t> open_{0}; // how many waits
  phase phase_ = phase::idle;
  unsigned char slack_shift_ = 0;
  bool on_own_context_;
  bool ever_armed_ = false;
  small_wait small_;
  wait_op_list ops_;
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_ALARM_HPP
