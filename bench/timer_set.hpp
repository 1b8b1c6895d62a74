//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BENCH_TIMER_SET_HPP
#define ASIO_WHEEL_BENCH_TIMER_SET_HPP

#include "libraries.hpp"
#include "settings.hpp"
#include "tally.hpp"

#include <asio_wheel/watchdog.hpp>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bench {

/// A context, and side by side in memory the timers on it.
template <typename Library, typename Executor, typename Handlers>
class timer_set {
public:
  using timer_type = typename Library::template timer<Executor>;

  timer_set(const settings& s, std::size_t size) : library_(io_, s) {
    timers_.reserve(size);
    for (std::size_t i = 0; i < size; ++i)
      timers_.emplace_back(io_.get_executor());
  }

  std::size_t size() const noexcept { return timers_.size(); }
  asio::io_context& context() noexcept { return io_; }
  void poll() { io_.poll(); }
  void set_on(std::chrono::nanoseconds d) { library_.set_on(d); }

  /// How many waits have ended because their time had come.
  std::uint64_t fired() const noexcept { return handlers_.counts().fired; }

  /// How many waits have not ended; call poll() before, to end those that were
  /// cancelled.
  std::size_t pending() const noexcept {
    const auto& c = handlers_.counts();
    return static_cast<std::size_t>(started_ - c.fired - c.aborted);
  }

  /// Abort what is pending on a timer, and wait for a new expiry.
  void start(std::size_t i, std::chrono::nanoseconds delay) {
    auto& t = timers_[i];
    cancelled_ += t.expires_after(delay);
    t.async_wait(handlers_.make());
    ++started_;
  }

  void cancel(std::size_t i) { cancelled_ += timers_[i].cancel(); }

  /// Put a pending wait off.
  void refresh(std::size_t i, std::chrono::nanoseconds delay) {
    if constexpr (Library::can_rearm) {
      moved_ += timers_[i].rearm_after(delay);
      ++to_move_;
    } else {
      start(i, delay);
    }
  }

  void cancel_all() {
    for (std::size_t i = 0; i < size(); ++i)
      cancel(i);
    poll();
  }

  /// Cancel what is left and see that each wait has ended once, and how.
  std::string verify() {
    cancel_all();
    const auto& c = handlers_.counts();
    if (c.other != 0)
      return std::to_string(c.other) + " handlers got an unknown error";
    if (c.aborted != cancelled_)
      return std::to_string(cancelled_) + " waits were cancelled, but " +
             std::to_string(c.aborted) + " handlers were told so";
    if (c.aborted + c.fired != started_)
      return std::to_string(started_) + " waits were started, but " +
             std::to_string(c.aborted + c.fired) + " handlers ran";
    if (moved_ != to_move_)
      return std::to_string(to_move_) + " waits were to be moved, but " +
             std::to_string(moved_) + " were";
    return {};
  }

private:
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_ =
      asio::make_work_guard(io_);
  Library library_;
  Handlers handlers_;
  std::vector<timer_type> timers_;
  std::uint64_t started_ = 0, cancelled_ = 0, to_move_ = 0, moved_ = 0;
};

/// A context and the watchdogs on it.
template <typename Library, typename Executor> class watchdog_set {
public:
  using watchdog_type = asio_wheel::basic_watchdog<Executor>;

  watchdog_set(const settings& s, std::size_t size)
      : library_(io_, s), dogs_(size) {}

  /// Construct one, and wait for it.
  void start(std::size_t i, std::chrono::nanoseconds period,
             std::chrono::nanoseconds slack) {
    dogs_[i].emplace(io_.get_executor(), period, slack);
    dogs_[i]->async_wait(handlers_.make());
  }

  std::size_t size() const noexcept { return dogs_.size(); }
  void poll() { io_.poll(); }
  void set_on(std::chrono::nanoseconds d) { library_.set_on(d); }

  void kick(std::size_t i) noexcept { dogs_[i]->kick(); }

  void kick_all() {
    for (auto& d : dogs_)
      d->kick();
    poll();
  }

  /// Cancel all and see that none had gone off.
  std::string verify() {
    std::size_t cancelled = 0;
    for (auto& d : dogs_)
      cancelled += d->cancel();
    poll();
    const auto& c = handlers_.counts();
    if (cancelled != size() || c.aborted != size() || c.fired != 0 ||
        c.other != 0)
      return std::to_string(size()) + " watchdogs were kicked in time, but " +
             std::to_string(cancelled) + " could be cancelled, " +
             std::to_string(c.aborted) + " handlers were told so and " +
             std::to_string(c.fired + c.other) + " were told something else";
    return {};
  }

private:
  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_ =
      asio::make_work_guard(io_);
  Library library_;
  pointer_handlers handlers_;
  // They cannot be moved, so that a vector can only hold places for them.
  std::vector<std::optional<watchdog_type>> dogs_;
};

} // namespace bench

#endif // ASIO_WHEEL_BENCH_TIMER_SET_HPP
