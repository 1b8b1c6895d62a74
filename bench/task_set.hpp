//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BENCH_TASK_SET_HPP
#define ASIO_WHEEL_BENCH_TASK_SET_HPP

#include "libraries.hpp"
#include "plan.hpp"
#include "settings.hpp"

#include <asio_wheel/scheduler.hpp>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

// Delayed tasks, made the usual way and ours, behind one interface. A task is a
// lambda that holds a pointer, and counts.

namespace bench {

/// A context, and who counts what ran on it.
template <typename Library> class task_context {
public:
  explicit task_context(const settings& s) : library_(io_, s) {}

  asio::io_context& context() noexcept { return io_; }
  void poll() { io_.poll(); }
  void set_on(std::chrono::nanoseconds d) { library_.set_on(d); }
  std::uint64_t ran() const noexcept { return ran_; }

protected:
  struct counting {
    std::uint64_t* ran;
    void operator()() const noexcept { ++*ran; }
  };

  counting function() noexcept { return {&ran_}; }

  /// Returns what did not go as it must; empty if all did.
  std::string verify(std::uint64_t started, std::uint64_t cancelled) const {
    if (ran_ + cancelled == started)
      return {};
    return std::to_string(started) + " tasks were scheduled and " +
           std::to_string(cancelled) + " cancelled, but " +
           std::to_string(ran_) + " ran";
  }

private:
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_ =
      asio::make_work_guard(io_);
  Library library_;
  std::uint64_t ran_ = 0;
};

/// A timer on the heap for each task, which its handler asks how it ended.
template <typename Library> class timer_tasks : public task_context<Library> {
public:
  using timer = typename Library::template timer<asio::any_io_executor>;

  timer_tasks(const settings& s, std::size_t size)
      : task_context<Library>(s), tasks_(size) {}

  std::size_t size() const noexcept { return tasks_.size(); }

  void start(std::size_t i, std::chrono::nanoseconds delay) {
    tasks_[i] = std::make_unique<timer>(this->context(), delay);
    tasks_[i]->async_wait(
        [f = this->function()](const boost::system::error_code& ec) {
          if (!ec)
            f();
        });
    ++started_;
  }
  void cancel(std::size_t i) { cancelled_ += tasks_[i]->cancel(); }
  void start_all(const plan& p) {
    for (const auto& step : p.steps())
      start(step.index, step.delay());
  }
  void cancel_all() {
    for (auto& t : tasks_)
      if (t)
        cancelled_ += t->cancel();
    this->poll();
    for (auto& t : tasks_)
      t.reset();
  }
  std::string verify() {
    cancel_all();
    return task_context<Library>::verify(started_, cancelled_);
  }

private:
  std::vector<std::unique_ptr<timer>> tasks_;
  std::uint64_t started_ = 0, cancelled_ = 0;
};

/// Tasks of a scheduler.
template <typename Library>
class scheduler_tasks : public task_context<Library> {
public:
  scheduler_tasks(const settings& s, std::size_t size)
      : task_context<Library>(s), scheduler_(this->context()), tasks_(size) {}

  std::size_t size() const noexcept { return tasks_.size(); }

  void start(std::size_t i, std::chrono::nanoseconds delay) {
    tasks_[i] = scheduler_.schedule_after(delay, this->function());
    ++started_;
  }
  void cancel(std::size_t i) { cancelled_ += tasks_[i].cancel(); }
  void start_all(const plan& p) {
    for (const auto& step : p.steps())
      start(step.index, step.delay());
  }
  void cancel_all() {
    for (auto& t : tasks_)
      cancelled_ += t.cancel();
    this->poll();
    for (auto& t : tasks_)
      t = {};
  }
  std::string verify() {
    cancel_all();
    const auto counts = scheduler_.counts();
    if (counts.pending != 0 || counts.failed != 0 || counts.rejected != 0)
      return "the scheduler's counts are wrong";
    return task_context<Library>::verify(started_, cancelled_);
  }

protected:
  asio_wheel::scheduler scheduler_;
  std::vector<asio_wheel::task_handle> tasks_;
  std::uint64_t started_ = 0, cancelled_ = 0;
};

/// The same, scheduled in one batch that is put together while the time runs.
template <typename Library>
class batched_tasks : public scheduler_tasks<Library> {
public:
  batched_tasks(const settings& s, std::size_t size)
      : scheduler_tasks<Library>(s, size) {
    batch_.reserve(at_once);
  }

  void start_all(const plan& p) {
    auto next = this->tasks_.begin();
    const auto flush = [&] {
      this->started_ += batch_.size();
      next = this->scheduler_.schedule_batch(std::move(batch_), next);
      batch_.clear();
    };
    for (const auto& step : p.steps()) {
      batch_.push_back({step.delay(), this->function(), 0});
      if (batch_.size() == at_once)
        flush();
    }
    flush();
  }

private:
  static constexpr std::size_t at_once = 1024;
  std::vector<
      asio_wheel::delayed_task<typename task_context<Library>::counting>>
      batch_;
};

} // namespace bench

#endif // ASIO_WHEEL_BENCH_TASK_SET_HPP
