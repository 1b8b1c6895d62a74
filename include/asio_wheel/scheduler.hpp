//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_SCHEDULER_HPP
#define ASIO_WHEEL_SCHEDULER_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/task_shard.hpp>
#include <asio_wheel/periodic_options.hpp>
#include <asio_wheel/task_handle.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// How a scheduler is made.
struct scheduler_options {
  /// The most tasks that may be pending; the next one is rejected with
  /// error::too_many_pending. A task that is cancelled makes room at once. With
  /// several shards each takes an equal part, rounded up. Zero: no limit.
  std::size_t max_pending = 0;

  /// Called, where the task ran, with a task that has thrown, and what. Empty:
  /// the exception leaves the context's run(). (What this throws does.)
  std::function<void(const task_handle&, std::exception_ptr)> on_error;
};

/// How many tasks of a scheduler are, or have ended, in which state.
struct task_counts {
  std::size_t pending = 0;
  std::size_t running = 0;
  std::uint64_t done = 0;
  std::uint64_t cancelled = 0;
  std::uint64_t failed = 0;
  std::uint64_t rejected = 0;
};

/// A task for scheduler::schedule_batch.
template <typename F> struct delayed_task {
  std::chrono::steady_clock::duration delay{};
  F function;
  std::uintptr_t tag = 0;
};

template <typename F>
delayed_task(std::chrono::steady_clock::duration, F) -> delayed_task<F>;
template <typename F>
delayed_task(std::chrono::steady_clock::duration, F, std::uintptr_t)
    -> delayed_task<F>;

/// Functions to be called later: masses of them.
/**
 * For orders that are cancelled unless they are paid, timeouts of calls,
 * retries, heartbeats: whatever is to happen at some time unless something else
 * happens first. A task is a function and a time; its task_handle cancels it,
 * moves it, and tells what became of it.
 *
 * A function is called without arguments, or with the handle of its task: @c
 * f() or @c f(const task_handle&); once, on its associated executor
 * (asio::bind_executor), by default the scheduler's. Never inside the function
 * that schedules it. It is destroyed as soon as it has run or will not, except
 * if it is being called: then after that.
 *
 * What a function may do: anything, that is, schedule, cancel and move tasks,
 * itself included (see task_handle), stop or destroy the scheduler, block, run
 * the context.
 *
 * Pending tasks hold run(), as pending waits do.
 *
 * @par Timing
 * A task runs never early, and at most one wheel_options::tick late, plus the
 * time the context needs to get round to it. Tasks of different ticks begin in
 * the order of their ticks; those of one tick in any. With several threads
 * running the executor, tasks run at the same time. After
 * wheel_options::expiry_batch tasks the loop's other work has its turn.
 *
 * @par Thread Safety
 * Distinct objects: safe. Shared objects: safe, but for destruction; under
 * wheel_options::single_threaded on one thread only. With several
 * wheel_options::shards tasks go to the shard of the thread that schedules
 * them, and threads do not wait for each other.
 *
 * @par Complexity
 * Scheduling, cancelling, moving and running a task: constant in the number of
 * tasks. A task takes 80 bytes beyond its function (112 if it repeats), from
 * memory that the scheduler keeps at its peak and uses again: nothing else
 * allocates, but for functions of more than some 400 bytes, and for those with
 * an executor of their own, which allocate as asio::dispatch does.
 *
 * @par Example
 * @snippet order_service.cpp scheduler
 */
class scheduler {
public:
  using executor_type = asio::any_io_executor;
  using clock_type = std::chrono::steady_clock;
  using duration = clock_type::duration;
  using time_point = clock_type::time_point;

  /// A scheduler on the wheel of an executor's context.
  /**
   * @param ex Where tasks run that have no executor of their own: a context's,
   * a pool's, a strand.
   * @throws std::bad_alloc, and what making a steady_timer in the context may
   * throw.
   */
  explicit scheduler(const executor_type& ex,
                     const scheduler_options& options = {});

  /// As above, on a context's executor.
  template <typename ExecutionContext>
  explicit scheduler(
      ExecutionContext& context, const scheduler_options& options = {},
      std::enable_if_t<
          std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
          int> = 0)
      : scheduler(executor_type(context.get_executor()), options) {}

  scheduler(const scheduler&) = delete;
  scheduler& operator=(const scheduler&) = delete;

  /// As stop(). Tasks that are running go on; handles stay valid.
  ~scheduler();

  executor_type get_executor() const noexcept;

  /// The clock's time, for absolute times.
  time_point now() const noexcept;

  /// Have a function called after a time from now.
  /**
   * @param delay Any value; zero and negative ones are due at once, what does
   * not fit the clock is never (and holds run() all the same).
   * @param f See above; moved, or copied. Not over-aligned.
   * @param tag A name for the task: see task_handle::tag().
   *
   * @returns The task's handle; its state is task_state::rejected, and @c f is
   * destroyed, if the task was not taken: see task_handle::error().
   *
   * @throws std::bad_alloc, and what moving @c f throws. Nothing is scheduled
   * then.
   */
  template <typename F>
  task_handle schedule_after(const duration& delay, F&& f,
                             std::uintptr_t tag = 0);

  /// Have a function called at an absolute time: see schedule_after().
  template <typename F>
  task_handle schedule_at(const time_point& expiry, F&& f,
                          std::uintptr_t tag = 0);

  /// Have a function called again and again.
  /**
   * Until its handle cancels the task (which works inside the function, too:
   * the call goes on, and is the last one), or it throws, or the scheduler is
   * stopped. One call at a time: what is due while the function runs, or waits
   * to be run, is late or missed, as periodic_options say.
   *
   * @param period At least one nanosecond.
   * @param f Called as @c f(), @c f(const task_handle&) or @c f(const
   * task_handle&, std::size_t missed): how many calls were missed, see
   * missed_tick_policy. periodic_options::slack is not used.
   * @throws std::invalid_argument if the period is not positive; else as
   * schedule_after().
   */
  template <typename F>
  task_handle schedule_every(const duration& period, F&& f,
                             const periodic_options& options = {},
                             std::uintptr_t tag = 0);

  /// Schedule many tasks: with one look at the clock, and a lock for each 128.
  /**
   * @param tasks A range of delayed_task<F>, whose functions are moved if it is
   * an rvalue, else copied.
   * @param handles Where to put their handles, in the same order.
   * @throws As schedule_after(), and what the range and the iterator throw.
   * Those of the last 128 may then be scheduled, in part, without a handle.
   */
  template <typename Range, typename OutputIterator>
  OutputIterator schedule_batch(Range&& tasks, OutputIterator handles);

  /// The same without handles. Returns how many were taken.
  template <typename Range> std::size_t schedule_batch(Range&& tasks);

  /// See to it that no task runs any more. There is no way back.
  /**
   * Tasks that are running go on, and do not run again. All others are
   * cancelled; what is scheduled from now on is rejected.
   *
   * @returns The handles of the tasks that were cancelled, in order of expiry.
   */
  std::vector<task_handle> stop();

  /// Wait until everything that is due now has run, or was cancelled.
  /**
   * Also what has begun to run, and the run of a periodic task; not what they
   * schedule. After stop() that is: until nothing runs any more. While another
   * drain waits, this one also waits for what becomes due until that one ends.
   *
   * @par Completion Signature
   * @code void(boost::system::error_code) @endcode
   *
   * @par Errors
   * asio::error::operation_aborted: a cancellation slot.
   *
   * @par Per-Operation Cancellation
   * terminal, partial and total: end the wait.
   *
   * @par Complexity
   * Linear in what is due. Allocates the operation.
   */
  template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code))
                Token = asio::default_completion_token_t<executor_type>>
  auto async_drain(
      Token&& token = asio::default_completion_token_t<executor_type>());

  /// How many tasks are pending.
  std::size_t pending() const;

  /// How many tasks are, or have ended, in which state.
  task_counts counts() const;

  /// Call @c f(task_handle) for each task that is pending now, in no order.
  /**
   * While it is called, tasks may run and end.
   * @par Complexity
   * Linear; allocates a pointer for each task.
   */
  template <typename F> void for_each(F&& f) const {
    for (task_handle& h : pending_tasks())
      f(std::move(h));
  }

private:
  class initiate_async_drain;

  detail::task_shard& shard() const noexcept;
  std::vector<task_handle> pending_tasks() const;
  void start_drain(detail::task_drain& d);

  std::vector<boost::intrusive_ptr<detail::task_shard>> shards_;
};

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#include <asio_wheel/impl/scheduler.hpp>

#endif // ASIO_WHEEL_SCHEDULER_HPP
