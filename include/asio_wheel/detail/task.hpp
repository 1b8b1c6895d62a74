//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_TASK_HPP
#define ASIO_WHEEL_DETAIL_TASK_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/executor_work.hpp>
#include <asio_wheel/detail/periodic_schedule.hpp>
#include <asio_wheel/detail/wait_op.hpp>
#include <asio_wheel/task_handle.hpp>
#include <asio_wheel/timing_wheel.hpp>

#include <boost/asio/associated_executor.hpp>
#include <boost/asio/dispatch.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

class task_shard;

// A task of a scheduler, without its function, which follows it in memory.
//
// Ground rules: its shard's lock guards all but the reference count, the tag
// and perform_; the state may be read without. A task is in exactly one place
// while it is pending. The shard has one reference as long as the task may
// run, or is linked; each handle has one, and a thunk on its way to the task's
// own executor.
class task : public timing_wheel_entry {
public:
  using duration = std::chrono::steady_clock::duration;
  using time_point = std::chrono::steady_clock::time_point;

  task(const task&) = delete;
  task& operator=(const task&) = delete;

  task_shard& owner() const noexcept { return *shard_; }
  task_state state() const noexcept {
    return state_.load(std::memory_order_acquire);
  }
  outcome rejection() const noexcept { return rejection_; }
  std::uintptr_t tag() const noexcept {
    return tag_.load(std::memory_order_relaxed);
  }
  void tag(std::uintptr_t t) noexcept {
    tag_.store(t, std::memory_order_relaxed);
  }
  void add_reference() noexcept {
    references_.fetch_add(1, std::memory_order_relaxed);
  }
  // One more.
  task_handle handle() noexcept {
    add_reference();
    return task_handle(this);
  }

protected:
  enum class action : unsigned char {
    run,       // call the function
    hand_over, // to the function's own executor, which will make it arrive
    destroy    // the function; the task stays
  };
  using perform_type = void (*)(task*, action, std::size_t missed);

  // Two references: the shard's and a handle's.
  task(task_shard& s, time_point expiry, perform_type perform, bool foreign,
       std::uintptr_t tag, bool periodic = false) noexcept
      : shard_(&s), foreign_(foreign), periodic_(periodic), perform_(perform),
        expiry_(expiry), tag_(tag) {}
  ~task() = default;

private:
  friend class task_shard;

  enum class place : unsigned char {
    nowhere, // not pending
    wheel,
    never, // in task_shard::never_
    ready, // due: in ready_
    lent   // due, and a thunk is on its way: in lent_
  };

  // User code: not under a lock.
  void run(std::size_t missed) { perform_(this, action::run, missed); }
  void hand_over() { perform_(this, action::hand_over, 0); }
  void destroy() noexcept { perform_(this, action::destroy, 0); }

  // Ordered so that what cancelling touches is on one cache line, mostly.
  task_shard* shard_;
  std::atomic<std::uint32_t> references_{2};
  std::atomic<task_state> state_{task_state::pending};
  place place_ = place::nowhere;
  outcome rejection_ = outcome::none;
  bool foreign_;
  bool periodic_;
  bool handed_ = false;    // a thunk is on its way
  bool last_run_ = false;  // periodic: cancelled while it runs
  bool round_ = false;     // see task_shard::outstanding_
  std::uint16_t size_ = 0; // in the pool; 0: of operator new
  const perform_type perform_;
  time_point expiry_;
  std::atomic<std::uintptr_t> tag_;
};

// A task that repeats, with its period.
class periodic_task : public task {
protected:
  periodic_task(task_shard& s, const periodic_schedule& schedule,
                perform_type perform, bool foreign, std::uintptr_t tag) noexcept
      : task(s, schedule.next(), perform, foreign, tag, true),
        schedule_(schedule) {}

private:
  friend class task_shard;

  periodic_schedule schedule_; // while it runs: whose thread that is
};

// For a thunk on its way to a task's own executor.
void arrive(task& t);
void drop(task& t) noexcept;

class task_thunk {
public:
  using allocator_type = recycling_allocator<void>;

  explicit task_thunk(task* t) noexcept : task_(t) {}
  task_thunk(task_thunk&& other) noexcept
      : task_(std::exchange(other.task_, nullptr)) {}
  ~task_thunk() {
    if (task_)
      drop(*task_);
  }
  allocator_type get_allocator() const noexcept { return {}; }
  void operator()() { arrive(*std::exchange(task_, nullptr)); }

private:
  task* task_;
};

// What is called, and where: by the drain itself, or on an executor of the
// function's own, which has work meanwhile.
template <typename F, bool Foreign = has_own_executor<F>> struct task_function {
  F f;

  template <typename G>
  explicit task_function(G&& function) : f(std::forward<G>(function)) {}
  void hand_over(task*) {}
};

template <typename F> struct task_function<F, true> {
  F f;
  executor_work<asio::associated_executor_t<F>> work;

  template <typename G>
  explicit task_function(G&& function)
      : f(std::forward<G>(function)), work(asio::get_associated_executor(f)) {}
  void hand_over(task* t) {
    task_thunk thunk(t);
    const auto ex = work.get_executor(); // the task may end meanwhile
    asio::dispatch(ex, std::move(thunk));
  }
};

// A task with its function. Base: task or periodic_task. Never destroyed as a
// whole: the function goes when it will not run again, the rest when the last
// handle does.
template <typename F, typename Base> class task_object final : public Base {
  using function = task_function<F>;

public:
  static constexpr bool foreign = has_own_executor<F>;

  template <typename When, typename G>
  task_object(task_shard& s, const When& when, std::uintptr_t tag, G&& f)
      : Base(s, when, &task_object::perform, foreign, tag) {
    ::new (static_cast<void*>(room_)) function(std::forward<G>(f));
  }

  // The context that the function is bound to, if it says so.
  const asio::execution_context* bound_to() noexcept {
    if constexpr (foreign)
      return context_if_known(asio::get_associated_executor(stored().f));
    else
      return nullptr;
  }

private:
  using typename Base::action;

  static void perform(task* t, action what, std::size_t missed) {
    function& f = static_cast<task_object*>(t)->stored();
    switch (what) {
    case action::run:
      if constexpr (std::is_invocable_v<F&, const task_handle&, std::size_t>)
        f.f(t->handle(), missed);
      else if constexpr (std::is_invocable_v<F&, const task_handle&>)
        f.f(t->handle());
      else
        f.f();
      break;
    case action::hand_over:
      f.hand_over(t);
      break;
    case action::destroy:
      f.~function();
      break;
    }
  }

  function& stored() noexcept {
    return *std::launder(reinterpret_cast<function*>(room_));
  }

  static_assert(alignof(function) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__,
                "a task's function must not be over-aligned");
  alignas(function) unsigned char room_[sizeof(function)];
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_TASK_HPP
