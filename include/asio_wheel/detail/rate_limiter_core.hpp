//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_RATE_LIMITER_CORE_HPP
#define ASIO_WHEEL_DETAIL_RATE_LIMITER_CORE_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/pending_op.hpp>
#include <asio_wheel/detail/token_bucket.hpp>
#include <asio_wheel/detail/wakeup.hpp>
#include <asio_wheel/error.hpp>

#include <boost/asio/error.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

template <typename Executor> class rate_limiter_core;

template <typename Executor>
struct pending_request<rate_limiter_core<Executor>> {
  std::uint64_t tokens = 0; // wanted
  error_code result;        // once it has left the line
};

// A bucket and the line before it; kept by the limiter, by what refers to it in
// cancellation slots, and by its wakeup.
//
// Ground rules. Everything is guarded by mutex_, under which the clock is read,
// too, so that time passes in one order. Operations are completed without it.
// Who is in line is given tokens as of the moment at which they had arrived,
// however late the wake-up is: serve(). So the wakeup's lateness costs nobody
// anything, and the bucket does not overflow while somebody waits.
template <typename Executor> class rate_limiter_core {
  using ops = pending_op_queue<rate_limiter_core>;
  using op = typename ops::op;
  using op_list = typename ops::list;
  using lock_type = std::unique_lock<std::mutex>;

public:
  using duration = std::chrono::steady_clock::duration;
  using time_point = std::chrono::steady_clock::time_point;

  rate_limiter_core(const Executor& ex, const token_rate& rate, double burst)
      : wakeup_(*this, ex),
        bucket_(rate, token_bucket::whole_burst(burst), now()) {}

  rate_limiter_core(const rate_limiter_core&) = delete;
  rate_limiter_core& operator=(const rate_limiter_core&) = delete;

  const Executor& get_executor() const noexcept {
    return wakeup_.get_executor();
  }

  bool try_acquire(std::uint64_t n) {
    if (n == 0)
      return true;
    const lock_type lock(mutex_);
    return take_at_once(n);
  }

  template <typename Handler> void acquire(Handler handler, std::uint64_t n) {
    op& o = pending_handler<Handler, Executor, rate_limiter_core>::make(
        std::move(handler), get_executor(), *this);
    o.tokens = n;
    lock_type lock(mutex_);
    if (wakeup_.owner().stopped())
      o.result = error::wheel_stopped;
    else if (n > burst_locked())
      o.result = asio::error::invalid_argument;
    else if (n != 0 && !take_at_once(n))
      return wait(std::move(lock), o);
    ops::release(o);
    lock.unlock();
    complete(o);
  }

  void give_back(std::uint64_t n) {
    change([&] { bucket_.give_back(n); });
  }
  void spend(std::uint64_t n) {
    change([&] { bucket_.spend(n); });
  }
  void reset() {
    change([&] { bucket_.fill(); });
  }
  void rate(const token_rate& r) {
    change([&] { bucket_.rate(r); });
  }
  void burst(double b) {
    const std::int64_t whole = token_bucket::whole_burst(b);
    change([&] { bucket_.burst(whole); });
  }

  // The limiter goes.
  void end() {
    lock_type lock(mutex_);
    ended_ = true;
    op_list left;
    abort_all(left);
    settle(std::move(lock), std::move(left));
  }

  std::size_t cancel() {
    lock_type lock(mutex_);
    const std::size_t n = ops_.size();
    op_list left;
    abort_all(left);
    settle(std::move(lock), std::move(left));
    return n;
  }

  token_rate rate() const {
    const lock_type lock(mutex_);
    return bucket_.rate();
  }
  std::uint64_t burst() const {
    const lock_type lock(mutex_);
    return burst_locked();
  }
  std::uint64_t available() const {
    const lock_type lock(mutex_);
    token_bucket b = bucket_; // those in line are not served here
    b.advance(now());
    return static_cast<std::uint64_t>(std::max<std::int64_t>(b.tokens(), 0));
  }
  std::size_t waiting() const {
    const lock_type lock(mutex_);
    return ops_.size();
  }
  duration time_until(std::uint64_t n) const {
    const lock_type lock(mutex_);
    if (n > burst_locked())
      return duration::max();
    if (n == 0)
      return duration::zero();
    const time_point t = now();
    token_bucket b = bucket_;
    if (ops_.empty())
      b.advance(t);
    const time_point when = b.when(wanted_ + n);
    if (when == time_point::max())
      return duration::max();
    return std::max(time_scale::subtract(when, t), duration::zero());
  }

  // For the wakeup.
  void wake() {
    lock_type lock(mutex_);
    wakeup_.woken();
    settle(std::move(lock), op_list());
  }
  void lost() noexcept {
    std::optional<Executor> executor;
    lock_type lock(mutex_);
    wakeup_.woken();
    op_list all = ops_.take_all();
    wanted_ = 0;
    if (ended_)
      wakeup_.release_executor(executor);
    lock.unlock();
    discard_all(all);
  }

  // For the slots.
  void cancel(typename ops::link& l) {
    lock_type lock(mutex_);
    op* const o = ops_.take(l);
    if (!o)
      return;
    op_list left;
    leave(*o, asio::error::operation_aborted, left);
    settle(std::move(lock), std::move(left));
  }
  void forget(typename ops::link& l) noexcept {
    const lock_type lock(mutex_);
    ops::forget(l);
  }

private:
  friend void intrusive_ptr_add_ref(const rate_limiter_core* c) noexcept {
    c->references_.fetch_add(1, std::memory_order_relaxed);
  }
  friend void intrusive_ptr_release(const rate_limiter_core* c) noexcept {
    if (c->references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete c;
  }

  ~rate_limiter_core() = default;

  time_point now() const noexcept { return wakeup_.owner().now(); }

  std::uint64_t burst_locked() const noexcept {
    return static_cast<std::uint64_t>(bucket_.burst());
  }

  // Nobody is overtaken.
  bool take_at_once(std::uint64_t n) noexcept {
    if (!ops_.empty())
      return false;
    bucket_.advance(now());
    return bucket_.take(n);
  }

  // Stand in line. The wakeup is for the first.
  void wait(lock_type lock, op& o) {
    const bool first = ops_.empty();
    ops_.push_back(o);
    wanted_ += o.tokens;
    if (!first)
      return;
    outcome refused = outcome::abandoned;
    try {
      refused = wakeup_.set(bucket_.when(o.tokens));
    } catch (...) {
      wanted_ -= ops_.take_front().tokens;
      lock.unlock();
      o.discard();
      throw;
    }
    if (refused == outcome::none)
      return;
    wanted_ -= ops_.take_front().tokens;
    lock.unlock();
    if (refused == outcome::stopped)
      o.complete(error::wheel_stopped);
    else
      o.discard();
  }

  // Has been taken out of the line.
  void leave(op& o, const error_code& result, op_list& left) noexcept {
    wanted_ -= o.tokens;
    o.result = result;
    left.push_back(o);
  }
  void abort_all(op_list& left) noexcept {
    while (!ops_.empty())
      leave(ops_.take_front(), asio::error::operation_aborted, left);
  }

  // Give those in line what has arrived by now.
  void serve(op_list& left) noexcept {
    const time_point t = now();
    while (!ops_.empty()) {
      const std::uint64_t n = ops_.front().tokens;
      error_code result;
      if (n > burst_locked()) {
        result = asio::error::invalid_argument;
      } else {
        bucket_.advance(std::min(bucket_.when(n), t));
        if (!bucket_.take(n))
          break;
      }
      leave(ops_.take_front(), result, left);
    }
    bucket_.advance(t);
  }

  // By the old rules up to now, then by new ones.
  template <typename Change> void change(Change how) {
    lock_type lock(mutex_);
    op_list left;
    serve(left);
    how();
    settle(std::move(lock), std::move(left));
  }

  // Look after those in line; then complete those who have left it.
  void settle(lock_type lock, op_list left) {
    std::optional<Executor> executor;
    op_list lost;
    std::exception_ptr failure;
    serve(left);
    if (ops_.empty()) {
      wakeup_.clear();
    } else {
      try {
        const auto why = wakeup_.set(bucket_.when(ops_.front().tokens));
        if (why == outcome::stopped) {
          abort_all(left);
        } else if (why != outcome::none) {
          lost = ops_.take_all();
          wanted_ = 0;
        }
      } catch (...) { // who waits is looked after with the next change
        failure = std::current_exception();
      }
    }
    if (ended_)
      wakeup_.release_executor(executor);
    lock.unlock();
    // From here on the limiter may be gone.
    discard_all(lost);
    while (!left.empty()) {
      op& o = left.front();
      left.pop_front();
      try {
        complete(o);
      } catch (...) { // its executor refused it; that is no reason for others'
        failure = std::current_exception();
      }
    }
    if (failure)
      std::rethrow_exception(failure);
  }

  static void complete(op& o) {
    const error_code result = o.result; // the operation is freed first
    o.complete(result);
  }

  static void discard_all(op_list& lost) noexcept {
    while (!lost.empty()) {
      op& o = lost.front();
      lost.pop_front();
      o.discard();
    }
  }

  mutable std::atomic<std::size_t> references_{0};
  mutable std::mutex mutex_;
  wakeup<rate_limiter_core, Executor> wakeup_;
  token_bucket bucket_;
  ops ops_;
  std::uint64_t wanted_ = 0; // by all in line
  bool ended_ = false;       // the limiter has gone
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_RATE_LIMITER_CORE_HPP
