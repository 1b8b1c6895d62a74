//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_TASK_HANDLE_HPP
#define ASIO_WHEEL_TASK_HANDLE_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/error.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace detail {
class task;
class task_shard;
void release(task& t) noexcept;
} // namespace detail

/// What has become of a task.
enum class task_state : unsigned char {
  pending,   ///< It will run, or run again.
  running,   ///< Its function is being called.
  done,      ///< Its function has returned.
  cancelled, ///< It will not run (again): cancel(), stop(), or the scheduler or
             ///< its context have gone.
  failed,    ///< Its function has thrown.
  rejected   ///< It was not taken: task_handle::error() says why.
};

/// The name of a state.
const char* to_string(task_state s) noexcept;
std::ostream& operator<<(std::ostream& o, task_state s);

/// A task of a scheduler: a pointer to it, which may outlive everything.
/**
 * Copies refer to the same task. What the task's function captured is freed
 * when it has run or will not; the handle keeps some hundred bytes.
 *
 * A handle without a task (by default, or moved from) has state()
 * task_state::rejected, error() success, and cancels and moves nothing.
 *
 * @par Thread Safety
 * Distinct objects: safe, also if they refer to the same task. Shared objects:
 * unsafe, but for const functions.
 *
 * @par Complexity
 * Constant. Nothing allocates.
 */
class task_handle {
public:
  using clock_type = std::chrono::steady_clock;
  using duration = clock_type::duration;
  using time_point = clock_type::time_point;

  /// A handle without a task.
  task_handle() noexcept = default;
  task_handle(const task_handle& other) noexcept;
  task_handle(task_handle&& other) noexcept
      : task_(std::exchange(other.task_, nullptr)) {}
  task_handle& operator=(task_handle other) noexcept {
    std::swap(task_, other.task_);
    return *this;
  }
  ~task_handle() {
    if (task_)
      detail::release(*task_);
  }

  /// Whether the handle has a task.
  explicit operator bool() const noexcept { return task_ != nullptr; }

  /// See to it that the task does not run.
  /**
   * What its function captured is destroyed before this returns.
   *
   * @returns true once, to one caller, and only if the function will not be
   * called: false if it is running, has run, or was cancelled already. So false
   * inside the task itself; but a periodic task that is running is kept from
   * running again, which is true as well.
   */
  bool cancel() const noexcept;

  /// Have the task run after a time from now instead.
  /**
   * @param delay Any value; zero and negative ones are due at once, what does
   * not fit the clock is never.
   * @returns Whether the task was pending. A periodic one goes on from there.
   * @throws What arming a timer may throw (bad_alloc). The task is then as it
   * was.
   */
  bool reschedule_after(const duration& delay) const;

  /// Have the task run at an absolute time instead.
  bool reschedule_at(const time_point& expiry) const;

  /// What has become of the task.
  task_state state() const noexcept;

  /// Why it was rejected; otherwise success.
  /**
   * @li error::wheel_stopped: after scheduler::stop() or wheel_service::stop().
   * @li error::too_many_pending: scheduler_options::max_pending tasks were.
   * @li asio::error::operation_not_supported: wheel_options::single_threaded,
   * and the function is bound to an executor of another context.
   * @li asio::error::operation_aborted: the context is gone.
   */
  error_code error() const noexcept;

  /// When the task is due or was, as it was given; of a periodic one, next.
  time_point expiry() const noexcept;

  /// How long until expiry(): zero if the task is due or no longer pending,
  /// duration::max() if it is never.
  duration remaining() const noexcept;

  /// What the program has given the task for a name; initially what it was
  /// scheduled with.
  std::uintptr_t tag() const noexcept;
  void tag(std::uintptr_t value) const noexcept;

  friend bool operator==(const task_handle& a, const task_handle& b) noexcept {
    return a.task_ == b.task_;
  }
  friend bool operator!=(const task_handle& a, const task_handle& b) noexcept {
    return !(a == b);
  }
  friend bool operator<(const task_handle& a, const task_handle& b) noexcept {
    return std::less<detail::task*>()(a.task_, b.task_);
  }

private:
  friend struct std::hash<task_handle>;
  friend class detail::task;
  friend class detail::task_shard;

  // Takes over a reference.
  explicit task_handle(detail::task* t) noexcept : task_(t) {}

  detail::task* task_ = nullptr;
};

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

template <> struct std::hash<asio_wheel::task_handle> {
  std::size_t operator()(const asio_wheel::task_handle& h) const noexcept {
    return std::hash<asio_wheel::detail::task*>()(h.task_);
  }
};

#endif // ASIO_WHEEL_TASK_HANDLE_HPP
