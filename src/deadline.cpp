//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/detail/deadline_core.hpp>
#include <asio_wheel/detail/recycling.hpp>
#include <asio_wheel/detail/shard.hpp>
#include <asio_wheel/detail/start_wait.hpp>
#include <asio_wheel/detail/time_scale.hpp>

#include <boost/asio/error.hpp>

#include <exception>
#include <memory>
#include <new>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

namespace {

using core_allocator = recycling_allocator<deadline_core>;

} // namespace

// The handler of the alarm's wait, which a drain calls directly.
class deadline_core::due_check {
public:
  due_check(deadline_core* c, std::uint64_t round) noexcept
      : core_(c), round_(round) {}
  void operator()(const error_code& ec) { core_->due(ec, round_); }

private:
  deadline_core_ptr core_;
  std::uint64_t round_;
};

void intrusive_ptr_add_ref(const deadline_core* c) noexcept {
  c->references_.fetch_add(1, std::memory_order_relaxed);
}

void intrusive_ptr_release(const deadline_core* c) noexcept {
  if (c->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    auto* const core = const_cast<deadline_core*>(c);
    core->~deadline_core();
    core_allocator().deallocate(core, 1);
  }
}

deadline_core_ptr deadline_core::make(shard& s, time_point expiry) {
  void* const memory = core_allocator().allocate(1);
  return deadline_core_ptr(::new (memory) deadline_core(s, expiry));
}

deadline_core::time_point deadline_core::now() const noexcept {
  return alarm_.owner().now();
}

deadline_core::time_point deadline_core::after(duration d) const noexcept {
  return d == duration::max() ? time_point::max() : time_scale::add(now(), d);
}

deadline_core::time_point deadline_core::expiry() const noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return expiry_;
}

deadline_core::duration deadline_core::remaining() const noexcept {
  const time_point t = expiry();
  if (t == time_point::max())
    return duration::max();
  const duration d = time_scale::subtract(t, now());
  return d > duration::zero() ? d : duration::zero();
}

void deadline_core::expires_at(time_point t) {
  const std::lock_guard<std::mutex> lock(mutex_);
  expiry_ = t;
  if (t == time_point::max())
    disarm();
  else if (armed_)
    alarm_.owner().rearm_at(alarm_, t, duration::zero());
  else if (!entries_.empty())
    arm();
}

int deadline_core::refusal_locked() const noexcept {
  if (closed_)
    return by_user;
  return expiry_ <= now() ? by(error::deadline_exceeded) : by_nobody;
}

int deadline_core::refusal() const noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return refusal_locked();
}

int deadline_core::join(deadline_entry& e) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (const int why = refusal_locked(); why != by_nobody)
    return why;
  arm();
  entries_.push_front(e);
  e.waiting_ = true;
  ++count_;
  return by_nobody;
}

void deadline_core::leave(deadline_entry& e) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!e.is_linked())
    return;
  // Either in entries_ or in the list of an end_all(): any list would do.
  entries_.erase(entry_list::s_iterator_to(e));
  if (!e.waiting_)
    return;
  e.waiting_ = false;
  if (--count_ == 0)
    disarm();
}

std::size_t deadline_core::end_all(int why) {
  entry_list ending;
  std::unique_lock<std::mutex> lock(mutex_);
  const time_point expiry = expiry_;
  const std::size_t n = std::exchange(count_, std::size_t{0});
  for (deadline_entry& e : entries_)
    e.waiting_ = false;
  ending.swap(entries_);
  disarm();
  std::exception_ptr failure;
  while (!ending.empty()) {
    deadline_entry& e = ending.front();
    ending.pop_front();
    e.hold();
    lock.unlock();
    try {
      e.ring(why, expiry);
    } catch (...) {
      if (!failure)
        failure = std::current_exception();
    }
    lock.lock();
  }
  lock.unlock();
  if (failure)
    std::rethrow_exception(failure);
  return n;
}

std::size_t deadline_core::pending() const noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return count_;
}

void deadline_core::close() noexcept {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }
  try {
    end_all(by_user);
  } catch (...) {
    // No memory to reach an operation's executor, and a destructor's caller
    // to tell nothing to.
  }
}

void deadline_core::arm() {
  if (armed_ || expiry_ == time_point::max())
    return;
  shard& s = alarm_.owner();
  s.expires_at(alarm_, expiry_, duration::zero());
  start_wait(alarm_, due_check(this, round_ + 1), inline_executor(s.context()));
  ++round_;
  armed_ = true;
}

void deadline_core::disarm() noexcept {
  if (!armed_)
    return;
  armed_ = false;
  ++round_;
  alarm_.owner().withdraw(alarm_);
}

void deadline_core::due(const error_code& ec, std::uint64_t round) {
  int why = by(error::deadline_exceeded);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (round != round_ || !armed_)
      return;
    if (ec == asio::error::operation_aborted) { // wheel_service::stop()
      why = by_user;
    } else if (ec) { // the wheel would not have it: nothing goes on unbounded
      why = ec.value();
    } else if (expiry_ > now()) { // put off while this was on its way
      armed_ = false;
      arm();
      return;
    }
    armed_ = false;
  }
  end_all(why);
}

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel
