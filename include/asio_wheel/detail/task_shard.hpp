//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_TASK_SHARD_HPP
#define ASIO_WHEEL_DETAIL_TASK_SHARD_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/native_executor.hpp>
#include <asio_wheel/detail/pending_op.hpp>
#include <asio_wheel/detail/shard.hpp>
#include <asio_wheel/detail/task.hpp>
#include <asio_wheel/detail/task_pool.hpp>
#include <asio_wheel/detail/wakeup.hpp>
#include <asio_wheel/timing_wheel.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

struct task_counts;

namespace detail {

using task_error_hook =
    std::function<void(const task_handle&, std::exception_ptr)>;

// An operation that waits for what is due: scheduler::async_drain. Completed
// when every shard has let go of it.
class task_drain {
public:
  using queue = pending_op_queue<task_drain>;

  // What a shard keeps of it.
  struct part : boost::intrusive::list_base_hook<> {
    task_drain* whole; // holds a reference
  };
  using part_list = boost::intrusive::list<part>;

  explicit task_drain(std::size_t shards);
  ~task_drain();

  part& of_shard(std::size_t i) noexcept { return parts_[i]; }
  void start(queue::op& op);

  // A shard has nothing left that was due; or never will have, since the
  // context is gone.
  static void done(part& p, bool lost);

  void cancel(queue::link& l);
  void forget(queue::link& l) noexcept;

private:
  friend void intrusive_ptr_add_ref(task_drain* d) noexcept {
    d->references_.fetch_add(1, std::memory_order_relaxed);
  }
  friend void intrusive_ptr_release(task_drain* d) noexcept {
    if (d->references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete d;
  }

  static void finish(queue::op* op, bool lost);

  std::atomic<std::size_t> references_{0};
  std::vector<part> parts_;
  std::mutex mutex_;
  std::size_t left_; // shards
  bool lost_ = false;
  queue waiting_; // the operation, while it waits
};

// The tasks of a scheduler, or a share of them: a wheel with a lock, a queue of
// what is due, and the wait that wakes it.
//
// The way of a task: add() puts it on the wheel and sets the wakeup; wake()
// drains: it takes what is due from the wheel into ready_, and calls one
// function after the other, or, if it has an executor of its own, hands the
// task over, to be called when it arrives there. finish() then lets it go, or
// puts it back on the wheel.
//
// Ground rules:
// - All data is guarded by mutex_, save what is const after construction.
// - User code never runs under the lock: functions are made before it is
//   taken, save those that are copied as bytes, and destroyed after.
// - A count is changed in the same critical section as what it counts.
// - The wakeup is armed while tasks lie ahead or a drain waits, so that these
//   hold run(), and so that a context that goes first reaches lost().
// - What may end the last task is called with a reference to the shard.
class task_shard {
public:
  using duration = task::duration;
  using time_point = task::time_point;
  using task_list =
      boost::intrusive::list<timing_wheel_entry,
                             boost::intrusive::constant_time_size<false>>;

  task_shard(const asio::any_io_executor& ex, std::size_t max_pending,
             std::shared_ptr<const task_error_hook> on_error);
  task_shard(const task_shard&) = delete;
  task_shard& operator=(const task_shard&) = delete;

  const asio::any_io_executor& get_executor() const noexcept {
    return wakeup_.get_executor();
  }
  time_point now() const noexcept { return wakeup_.owner().now(); }
  const time_scale& scale() const noexcept { return wakeup_.owner().scale(); }
  duration tick() const noexcept { return wakeup_.owner().tick(); }

  // Make a task and take it in. When: a time_point, or a periodic_schedule.
  template <typename F, typename When>
  task_handle schedule(const When& when, std::uintptr_t tag, F&& f);

  // The same for n at once: each(make) calls make(time_point, tag, function)
  // for the next one, take(task_handle&&) gets its handle.
  template <typename F, typename Each, typename Take>
  void schedule_many(std::size_t n, Each each, Take take);

  // For handles.
  bool cancel(task& t) noexcept;
  bool reschedule(task& t, time_point expiry);
  time_point expiry(const task& t) noexcept;
  void release(task& t) noexcept;

  // For thunks.
  void arrive(task& t);
  void drop(task& t) noexcept;

  // For the wakeup.
  void wake();
  void lost() noexcept;

  // For the scheduler.
  std::size_t pending();
  void add_counts(task_counts& c);
  void add_pending(std::vector<task_handle>& handles);
  void stop(std::vector<task_handle>& stopped);
  void close();
  void drain(task_drain::part& p);

private:
  friend void intrusive_ptr_add_ref(task_shard* s) noexcept {
    s->references_.fetch_add(1, std::memory_order_relaxed);
  }
  friend void intrusive_ptr_release(task_shard* s) noexcept {
    if (s->references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete s;
  }

  task_shard(const asio::any_io_executor& ex, std::size_t max_pending,
             std::shared_ptr<const task_error_hook> on_error,
             const wheel_options& options);

  using lock_type = std::unique_lock<optional_mutex>;
  using tick_type = timing_wheel::tick_type;
  using place = task::place;

  class posted_drain;

  // A task that is being made: undone if it is not taken in. User code: not
  // under the lock, but for functions that are copied as bytes.
  class newborn {
  public:
    newborn(task_shard& s, std::size_t size);
    ~newborn();
    newborn(const newborn&) = delete;
    newborn& operator=(const newborn&) = delete;

    void allocate(); // under the lock
    template <typename Object, typename When, typename F>
    void make(const When& when, std::uintptr_t tag, F&& f);

  private:
    friend class task_shard;
    task_shard& shard_;
    const std::size_t size_;
    void* memory_ = nullptr;
    task* task_ = nullptr; // made, and its function is to be destroyed
    outcome refused_ = outcome::none; // for a reason of its own
  };

  template <typename F, typename When>
  using object_for =
      task_object<F, std::conditional_t<std::is_same_v<When, time_point>, task,
                                        periodic_task>>;
  template <typename Object, typename F>
  static constexpr bool made_under_lock =
      std::is_trivially_copyable_v<F> && !Object::foreign &&
      sizeof(Object) <= task_pool::largest;

  // Tasks in and out of their places.
  task_handle take_in(newborn& n);
  void free_memory(void* p, std::size_t size) noexcept;
  void free(task& t) noexcept;
  void unreference(task& t) noexcept;
  outcome prepare(tick_type tick);
  void put(task& t, tick_type tick) noexcept;
  void take_off(task& t) noexcept;
  void make_ready(task& t) noexcept;
  void no_longer_due(task& t) noexcept { --outstanding_[t.round_]; }
  void erase_later(task& t) noexcept;
  void erase_cancelled() noexcept;

  // The drain.
  void drain(lock_type& lock);
  void collect(std::size_t budget);
  void run(task& t, lock_type& lock);
  bool needs_wakeup() const noexcept {
    return ahead_ != 0 || !draining_.empty();
  }
  outcome settle();
  void unlock_and_post(lock_type& lock);
  void end(lock_type& lock, outcome why, std::vector<task_handle>* stopped);
  static void finish(task_drain::part_list& drains, bool lost);

  // Constant.
  const std::size_t max_pending_; // 0: no limit
  const std::size_t batch_;
  const bool single_threaded_;
  const native_executor native_;
  const std::shared_ptr<const task_error_hook> on_error_;
  std::atomic<std::size_t> references_{0};

  optional_mutex mutex_;

  // Guarded by mutex_ from here on.
  wakeup<task_shard, asio::any_io_executor> wakeup_;
  timing_wheel wheel_;
  task_list never_; // tasks that are never due
  task_list ready_; // tasks to be run
  task_list lent_;  // due tasks that are on their way to their executors
  bool armed_ = false;
  tick_type armed_tick_ = timing_wheel::never;
  bool more_due_ = false; // collect() stopped at its budget
  bool drain_posted_ = false;
  bool closed_ = false; // the scheduler has gone
  outcome refused_ =
      outcome::none; // if not none: why no task is taken in any more

  // Cancelled tasks that are still linked. To unlink one means to wait for its
  // neighbours: they are sent for when it is cancelled, and waited for when
  // the next few have been.
  std::array<task*, 16> erasing_{};
  std::size_t erased_ = 0;

  task_pool pool_;
  std::size_t tasks_ = 0; // that have memory
  std::size_t pending_ = 0;
  std::size_t ahead_ = 0; // of them, those on the wheel or in never_
  std::size_t running_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t cancelled_ = 0;
  std::uint64_t failed_ = 0;
  std::uint64_t rejected_ = 0;

  // How many tasks are due or run, in two rounds: a drain waits for those of
  // the last round, while new ones are of this. Drains that are asked for
  // meanwhile wait for the next change of rounds.
  std::array<std::size_t, 2> outstanding_{};
  bool round_ = false;
  task_drain::part_list draining_, drain_next_;
};

template <typename Object, typename When, typename F>
void task_shard::newborn::make(const When& when, std::uintptr_t tag, F&& f) {
  auto* const t = ::new (memory_) Object(shard_, when, tag, std::forward<F>(f));
  t->size_ = static_cast<std::uint16_t>(
      size_ <= task_pool::largest ? size_ : std::size_t{0});
  task_ = t;
  if (Object::foreign && shard_.single_threaded_) {
    const auto* const context = t->bound_to();
    if (context && context != &shard_.wakeup_.owner().context()) {
      ASIO_WHEEL_ASSERT(!"a task of a single_threaded wheel is bound to "
                         "another context");
      refused_ = outcome::not_supported;
    }
  }
}

template <typename F, typename When>
task_handle task_shard::schedule(const When& when, std::uintptr_t tag, F&& f) {
  using function = std::decay_t<F>;
  using object = object_for<function, When>;
  newborn n(*this, sizeof(object));
  lock_type lock(mutex_);
  n.allocate();
  if constexpr (!made_under_lock<object, function>)
    lock.unlock();
  n.make<object>(when, tag, std::forward<F>(f));
  if constexpr (!made_under_lock<object, function>)
    lock.lock();
  task_handle h = take_in(n);
  unlock_and_post(lock);
  return h;
}

template <typename F, typename Each, typename Take>
void task_shard::schedule_many(std::size_t n, Each each, Take take) {
  using object = object_for<F, time_point>;
  constexpr std::size_t at_once = 128; // so that others have their turn
  std::array<std::optional<newborn>, at_once> made;
  std::array<task_handle, at_once> handles;
  while (n != 0) {
    const std::size_t count = std::min(n, at_once);
    lock_type lock(mutex_);
    for (std::size_t i = 0; i != count; ++i)
      made[i].emplace(*this, sizeof(object)).allocate();
    lock.unlock();
    for (std::size_t i = 0; i != count; ++i)
      each([&](time_point when, std::uintptr_t tag, auto&& f) {
        made[i]->template make<object>(when, tag, std::forward<decltype(f)>(f));
      });
    lock.lock();
    for (std::size_t i = 0; i != count; ++i)
      handles[i] = take_in(*made[i]);
    unlock_and_post(lock);
    for (std::size_t i = 0; i != count; ++i) {
      made[i].reset();
      take(std::move(handles[i]));
    }
    n -= count;
  }
}

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_TASK_SHARD_HPP
