//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_SHARD_HPP
#define ASIO_WHEEL_DETAIL_SHARD_HPP

#include <asio_wheel/detail/alarm.hpp>
#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/native_executor.hpp>
#include <asio_wheel/detail/reserved_memory.hpp>
#include <asio_wheel/detail/shard_ptr.hpp>
#include <asio_wheel/detail/time_scale.hpp>
#include <asio_wheel/detail/wait_op.hpp>
#include <asio_wheel/timing_wheel.hpp>
#include <asio_wheel/wheel_options.hpp>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/execution_context.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

struct wheel_stats;

namespace detail {

class clock_state;
class stream_registry;

// A lock that single_threaded turns off. It is free mostly, and held shortly:
// to take it is one atomic exchange, to release it a plain store, where a
// std::mutex has two of the former. Who has to wait spins, and soon sleeps.
class optional_mutex {
public:
  explicit optional_mutex(bool enabled) noexcept : enabled_(enabled) {}
  void lock() noexcept {
    if (enabled_ && locked_.exchange(true, std::memory_order_acquire))
      lock_slowly();
  }
  void unlock() noexcept {
    if (enabled_)
      locked_.store(false, std::memory_order_release);
  }

private:
  void lock_slowly() noexcept;

  std::atomic<bool> locked_{false};
  const bool enabled_;
};

// The executor of the driver: an execution_context has none of its own, and
// one borrowed from a timer would keep that timer's strand, or work, alive.
// Asio's timer calls its handler through it, which is to be in place.
class inline_executor {
public:
  explicit inline_executor(asio::execution_context& c) noexcept
      : context_(&c) {}

  template <typename F> void execute(F&& f) const {
    std::decay_t<F> function(std::forward<F>(f));
    function();
  }

  asio::execution_context& query(asio::execution::context_t) const noexcept {
    return *context_;
  }
  static constexpr asio::execution::blocking_t::always_t
  query(asio::execution::blocking_t) noexcept {
    return {};
  }

  friend bool operator==(inline_executor a, inline_executor b) noexcept {
    return a.context_ == b.context_;
  }
  friend bool operator!=(inline_executor a, inline_executor b) noexcept {
    return !(a == b);
  }

private:
  asio::execution_context* context_;
};

// A wheel with its lock, its ready queues and its driver. Shards share
// nothing.
//
// The way of a wait: arm() or start() put its alarm on the wheel and set the
// driver; the driver wakes drain(), which collect()s due alarms from the wheel
// into due_ and claims their waits one at a time: a claimed wait is started,
// its handler called, or, if it runs on another executor, it is handed over
// and claimed when it arrives there. abort() gives a wait its outcome and puts
// it in finished_, from where a drain calls its handler.
//
// Ground rules:
// - All data is guarded by mutex_, save what is const after construction.
// - User code (handlers, their moves and destructors, allocators, executors)
//   never runs under the lock. Asio's timer and scheduler are called under it;
//   they do not call back in.
// - A count is changed in the same critical section as what it counts.
// - A posted drain and the driver's wait use reserved memory; there is one of
//   each at most (drain_posted_, driver_state_).
class shard {
public:
  using duration = std::chrono::steady_clock::duration;
  using time_point = std::chrono::steady_clock::time_point;

  shard(asio::execution_context& context, const wheel_options& options,
        std::size_t max_pending, std::shared_ptr<stream_registry> streams);
  ~shard();
  shard(const shard&) = delete;
  shard& operator=(const shard&) = delete;

  asio::execution_context& context() const noexcept { return context_; }
  bool single_threaded() const noexcept { return single_threaded_; }
  bool has_manual_clock() const noexcept { return clock_ != nullptr; }
  time_point now() const noexcept;
  duration tick() const noexcept { return scale_.tick(); }
  const time_scale& scale() const noexcept { return scale_; }
  stream_registry& streams() const noexcept { return *streams_; }

  // For alarms: their user's side.
  std::size_t cancel(alarm& a) noexcept;
  std::size_t cancel_one(alarm& a) noexcept;
  std::size_t expires_at(alarm& a, time_point t, duration slack) noexcept;
  std::size_t rearm_at(alarm& a, time_point t, duration slack);
  void adopt(alarm& to, alarm& from) noexcept;
  void remove(alarm& a) noexcept;
  // Destroys the handlers of the open waits uncalled.
  void withdraw(alarm& a) noexcept;

  // From any thread: the open waits are due now; expiry() stays.
  void hasten(alarm& a) noexcept;

  // Start a wait. A wait that is refused (`refused`, or too many pending, or
  // stopped) has its outcome, and its handler is called like any other's; but
  // if there is a `why`, that is set, and the wait is left to the caller. One
  // that is not `limited` does not mind max_pending.
  enum class start_result : unsigned char {
    started, // or refused
    no_room, // small waits only: the alarm has waits already
    left     // refused with a why, or the context is gone
  };
  start_result start(alarm& a, const small_wait& w, outcome* why = nullptr);
  start_result start(alarm& a, wait_op& op, outcome refused = outcome::none,
                     outcome* why = nullptr, bool limited = true);

  // For an operation that was handed to its executor.
  void arrive(wait_op& op);
  void drop(wait_op& op) noexcept;

  // For cancellation slots.
  void link(wait_op::slot_link& l) noexcept;
  void unlink(wait_op::slot_link& l) noexcept;
  void cancel(wait_op::slot_link& l) noexcept;

  // For the service.
  void learn_native(const native_executor& native) noexcept;
  std::size_t pending();
  std::optional<time_point> next_expiry();
  void add_stats(wheel_stats& s);
  std::size_t stop();
  bool stopped();
  void shut_down() noexcept;

  // For a manual clock.
  void time_changed() noexcept;

private:
  friend void intrusive_ptr_add_ref(const shard* s) noexcept;
  friend void intrusive_ptr_release(const shard* s) noexcept;

  using lock_type = std::unique_lock<optional_mutex>;
  using driver_type =
      asio::basic_waitable_timer<std::chrono::steady_clock,
                                 asio::wait_traits<std::chrono::steady_clock>,
                                 inline_executor>;
  using entry_list =
      boost::intrusive::list<timing_wheel_entry,
                             boost::intrusive::constant_time_size<false>>;
  using tick_type = timing_wheel::tick_type;

  class posted_drain;
  class driver_wait;
  class drain_guard;
  struct started;
  struct slab;

  // idle: no wait on it. armed: waits for driver_tick_. recalled: cancelled,
  // its handler is on its way and will look for itself what there is to do.
  enum class driver_state : unsigned char { idle, armed, recalled };

  // Deadlines.
  tick_type current_tick() const noexcept;
  void set_expiry(alarm& a, time_point t, unsigned shift) noexcept;
  bool prepare(tick_type tick);
  void place(alarm& a, tick_type tick, bool due) noexcept;
  void take_off(alarm& a) noexcept;
  void queue_due(alarm& a) noexcept;

  // The driver.
  void set_driver(tick_type tick);
  void recall_driver() noexcept;

  // Waits.
  outcome refusal(bool limited) const noexcept;
  void count_opened(alarm& a) noexcept;
  void close(alarm& a) noexcept;
  void close(alarm& a, wait_op& op) noexcept;
  std::size_t abort_all(alarm& a) noexcept;
  void abort(alarm& a, wait_op& op) noexcept;
  void finish(wait_op& op, outcome o) noexcept;
  void finish(const small_wait& w, outcome o) noexcept;
  std::size_t abandon(alarm& a, wait_op_list& discarded) noexcept;
  static void discard(wait_op_list& ops) noexcept;
  void detach_slot(wait_op& op) noexcept;
  small_op* take_small_op() noexcept;

  // The drain.
  void drain(bool by_driver, bool timed_out);
  void collect();
  bool claim(started& s) noexcept;
  bool anything_ready() const noexcept;
  bool needs_drain() const noexcept;
  void settle();
  [[nodiscard]] bool request_drain() noexcept;
  void post_drain() noexcept;
  void unlock_and_post(lock_type& lock) noexcept;

  // Constant.
  asio::execution_context& context_;
  const std::shared_ptr<clock_state> clock_; // null: steady_clock
  const std::shared_ptr<stream_registry> streams_;
  const time_scale scale_;
  const std::size_t max_pending_; // 0: no limit
  const std::size_t batch_;
  const bool single_threaded_;
  mutable std::atomic<std::size_t> references_{0};

  optional_mutex mutex_;

  // Guarded by mutex_ from here on.
  timing_wheel wheel_;
  entry_list never_;            // alarms with open waits and no end
  entry_list due_;              // alarms with open waits to be started
  entry_list lent_;             // alarms with open waits, all handed
  wait_op_list finished_;       // waits that have an outcome
  bool finished_first_ = false; // whose turn it is, due_'s or finished_'s
  bool more_due_ = false;       // collect() stopped at its budget

  std::size_t open_ = 0;  // waits that are open
  std::size_t ahead_ = 0; // of them, those of alarms on the wheel or in never_

  native_executor native_;
  bool drain_posted_ = false;
  bool draining_ = false; // single_threaded only: a drain is on the stack
  bool stopped_ = false;
  bool shut_down_ = false;

  std::optional<driver_type> driver_;
  driver_state driver_state_ = driver_state::idle;
  tick_type driver_tick_ = timing_wheel::never;

  std::uint64_t next_age_ = 0;
  wait_op_list free_small_ops_;
  slab* slabs_ = nullptr;

  // Statistics.
  std::uint64_t scheduled_ = 0;
  std::uint64_t fired_ = 0;
  std::uint64_t cancelled_ = 0;
  std::uint64_t moved_ = 0;
  std::uint64_t rejected_ = 0;
  std::uint64_t abandoned_ = 0;
  std::uint64_t wakeups_ = 0;
  std::uint64_t spurious_ = 0;
  std::uint64_t peak_open_ = 0;
  duration max_lateness_{0};

  reserved_memory drain_memory_;
  reserved_memory driver_memory_;
};

inline alarm::time_point alarm::now() const noexcept {
  ASIO_WHEEL_PREFETCH(static_cast<const timing_wheel_entry*>(this));
  ASIO_WHEEL_PREFETCH(&small_);
  const time_point t = std::chrono::steady_clock::now();
  return shard_->has_manual_clock() ? shard_->now() : t;
}

inline alarm::time_point alarm::latest() const noexcept {
  return time_scale::add(expiry_,
                         duration(shard_->tick().count() << slack_shift_));
}

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_SHARD_HPP
