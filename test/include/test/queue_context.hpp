//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_TEST_QUEUE_CONTEXT_HPP
#define ASIO_WHEEL_TEST_QUEUE_CONTEXT_HPP

#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/context.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/execution_context.hpp>

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>

namespace test {

/// An execution context of nobody's library: what its executors are given
/// waits until the test runs it, one by one. With it a handler can be held in
/// the state "handed over, not started".
class queue_context : public boost::asio::execution_context {
public:
  class executor_type;

  queue_context() = default;
  ~queue_context() {
    shutdown();
    discard();
    destroy();
  }

  executor_type get_executor() noexcept;

  /// How many functions wait to be run.
  std::size_t size() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return queue_.size();
  }

  /// How many executors there are that track work.
  std::size_t work() const noexcept { return work_; }

  std::size_t run_one() {
    std::unique_ptr<function> f;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (queue_.empty())
        return 0;
      f = std::move(queue_.front());
      queue_.pop_front();
    }
    f->call();
    return 1;
  }

  std::size_t run() {
    std::size_t n = 0;
    while (run_one())
      ++n;
    return n;
  }

  /// Destroy all functions without running them.
  void discard() {
    std::deque<std::unique_ptr<function>> doomed;
    std::lock_guard<std::mutex> lock(mutex_);
    doomed.swap(queue_);
  }

private:
  struct function {
    virtual ~function() = default;
    virtual void call() = 0;
  };

  template <typename F> struct holder final : function {
    explicit holder(F&& x) : f(std::move(x)) {}
    void call() override { std::move(f)(); }
    F f;
  };

  mutable std::mutex mutex_;
  std::deque<std::unique_ptr<function>> queue_;
  std::atomic<std::size_t> work_{0};
};

class queue_context::executor_type {
public:
  executor_type(const executor_type& other) noexcept
      : context_(other.context_), tracked_(other.tracked_) {
    add();
  }
  // Asio relies on a move taking the work along: its executor_work_guard does
  // not destroy what it moved from.
  executor_type(executor_type&& other) noexcept
      : context_(other.context_),
        tracked_(std::exchange(other.tracked_, false)) {}
  executor_type& operator=(executor_type other) noexcept {
    std::swap(context_, other.context_);
    std::swap(tracked_, other.tracked_);
    return *this;
  }
  ~executor_type() {
    if (tracked_)
      --context_->work_;
  }

  queue_context& query(boost::asio::execution::context_t) const noexcept {
    return *context_;
  }
  static constexpr boost::asio::execution::blocking_t
  query(boost::asio::execution::blocking_t) noexcept {
    return boost::asio::execution::blocking.never;
  }
  executor_type
  require(boost::asio::execution::outstanding_work_t::tracked_t) const noexcept {
    return {*context_, true};
  }
  executor_type require(
      boost::asio::execution::outstanding_work_t::untracked_t) const noexcept {
    return {*context_, false};
  }

  template <typename F> void execute(F&& f) const {
    using stored = std::decay_t<F>;
    auto p = std::make_unique<holder<stored>>(stored(std::forward<F>(f)));
    std::lock_guard<std::mutex> lock(context_->mutex_);
    context_->queue_.push_back(std::move(p));
  }

  friend bool operator==(const executor_type& a,
                         const executor_type& b) noexcept {
    return a.context_ == b.context_ && a.tracked_ == b.tracked_;
  }
  friend bool operator!=(const executor_type& a,
                         const executor_type& b) noexcept {
    return !(a == b);
  }

private:
  friend class queue_context;
  executor_type(queue_context& c, bool tracked) noexcept
      : context_(&c), tracked_(tracked) {
    add();
  }

  void add() noexcept {
    if (tracked_)
      ++context_->work_;
  }

  queue_context* context_;
  bool tracked_;
};

inline queue_context::executor_type queue_context::get_executor() noexcept {
  return {*this, false};
}

} // namespace test

#endif // ASIO_WHEEL_TEST_QUEUE_CONTEXT_HPP
