//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BENCH_QUEUE_SET_HPP
#define ASIO_WHEEL_BENCH_QUEUE_SET_HPP

#include "libraries.hpp"
#include "plan.hpp"
#include "settings.hpp"

#include <asio_wheel/delay_queue.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <queue>
#include <utility>
#include <vector>

// Queues whose items come out when they are due, with a consumer that waits for
// the first and then takes all there are.

namespace bench {

/// As it is mostly made by hand: a heap, a mutex and one timer.
class hand_made_queue {
  using library_type = asio_timers_on_set_clock;
  using timer = library_type::timer<asio::any_io_executor>;

public:
  explicit hand_made_queue(const settings& s) : library_(io_, s) {}

  void poll() { io_.poll(); }
  void set_on(std::chrono::nanoseconds d) { library_.set_on(d); }
  std::uint64_t popped() const noexcept { return popped_; }

  void push(std::int64_t value, std::chrono::nanoseconds delay) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto t = settable_clock::now() + delay;
    const bool first = items_.empty() || t < items_.top().first;
    items_.emplace(t, value);
    if (first)
      wait();
  }

private:
  using item = std::pair<settable_clock::time_point, std::int64_t>;

  void wait() {
    timer_.expires_at(items_.top().first);
    timer_.async_wait([this](const boost::system::error_code& ec) {
      if (!ec)
        consume();
    });
  }

  void consume() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!items_.empty() && items_.top().first <= settable_clock::now()) {
      const std::int64_t value = items_.top().second;
      items_.pop();
      lock.unlock();
      popped_ += value != 0; // whatever is to be done with it
      lock.lock();
    }
    if (!items_.empty())
      wait();
  }

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_ =
      asio::make_work_guard(io_);
  library_type library_;
  std::mutex mutex_;
  std::priority_queue<item, std::vector<item>, std::greater<item>> items_;
  timer timer_{io_};
  std::uint64_t popped_ = 0;
};

/// Ours.
class wheel_queue {
public:
  explicit wheel_queue(const settings& s) : library_(io_, s) { pop(); }

  void poll() { io_.poll(); }
  void set_on(std::chrono::nanoseconds d) { library_.set_on(d); }
  std::uint64_t popped() const noexcept { return popped_; }

  void push(std::int64_t value, std::chrono::nanoseconds delay) {
    queue_.push(value, delay);
  }

private:
  void pop() {
    queue_.async_pop(
        [this](const boost::system::error_code& ec, std::int64_t value) {
          if (ec)
            return;
          popped_ += value != 0;
          while (const auto next = queue_.try_pop())
            popped_ += *next != 0;
          pop();
        });
  }

  asio::io_context io_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_ =
      asio::make_work_guard(io_);
  wheel_timers_on_set_clock library_;
  asio_wheel::delay_queue<std::int64_t> queue_{io_};
  std::uint64_t popped_ = 0;
};

} // namespace bench

#endif // ASIO_WHEEL_BENCH_QUEUE_SET_HPP
