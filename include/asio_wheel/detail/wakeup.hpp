//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_WAKEUP_HPP
#define ASIO_WHEEL_DETAIL_WAKEUP_HPP

#include <asio_wheel/detail/alarm.hpp>
#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/native_executor.hpp>
#include <asio_wheel/detail/recycling.hpp>
#include <asio_wheel/detail/shard.hpp>
#include <asio_wheel/detail/wait_op.hpp>
#include <asio_wheel/wheel_timer.hpp>

#include <boost/asio/dispatch.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <optional>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// The one wait of a part that keeps deadlines of its own, a queue of them say,
// and wants to be called when the earliest is due. Allocates nothing.
//
// Target is reference-counted (intrusive_ptr_add_ref and _release), has the
// wakeup as a member, and gets, on Executor and without a lock:
//
//   wake()           as often as it likes to come, and at the time set at the
//                    latest. To call woken() first, under its lock, then to
//                    look at the clock.
//   lost() noexcept  the context is gone: the same, for the last time.
//
// Ground rules: all else is called under the target's lock, which the shard
// never takes. Between set() and wake() or lost() the target is kept alive.
// What is set holds run().
template <typename Target, typename Executor>
class wakeup final : public wait_op {
public:
  using duration = alarm::duration;
  using time_point = alarm::time_point;

  wakeup(Target& target, const Executor& ex)
      : wakeup(target, ex, make_alarm(ex)) {}

  // These two need no lock.
  const Executor& get_executor() const noexcept { return *executor_; }
  shard& owner() const noexcept { return alarm_.owner(); }

  // Have wake() called at t, and not when it was set to before; max(): never.
  // Returns outcome::none, or why that is refused: stopped, or abandoned if the
  // context is gone. Throws bad_alloc, with everything as before.
  outcome set(time_point t);

  // There is nothing to be woken for.
  void clear() noexcept {
    if (state_ == state::armed) {
      owner().cancel(alarm_);
      state_ = state::recalled;
    }
  }

  void woken() noexcept { state_ = state::idle; }

  // Nothing will be set any more, nor get_executor() called. What keeps the
  // target alive from now on, a slot for instance, must not keep a strand
  // alive, which may not outlive its context. To be destroyed without the lock;
  // stays if wake() or lost() is to come first.
  void release_executor(std::optional<Executor>& to) noexcept {
    if (state_ == state::idle && executor_) {
      to.emplace(std::move(*executor_));
      executor_.reset();
    }
  }

private:
  // armed: waits. recalled: cancelled, wake() is on its way and will look for
  // itself what there is to do.
  enum class state : unsigned char { idle, armed, recalled };

  // What is handed to the executor. Destroyed without having been called, it
  // says so.
  class thunk {
  public:
    using allocator_type = recycling_allocator<void>;

    explicit thunk(wakeup* w) noexcept : wakeup_(w) {}
    thunk(thunk&& other) noexcept
        : wakeup_(std::exchange(other.wakeup_, nullptr)) {}
    ~thunk() {
      if (wakeup_) {
        const shard_ptr s(&wakeup_->owner());
        s->drop(*wakeup_);
      }
    }
    allocator_type get_allocator() const noexcept { return {}; }
    void operator()() {
      wakeup* const w = std::exchange(wakeup_, nullptr);
      const shard_ptr s(&w->owner());
      s->arrive(*w);
    }

  private:
    wakeup* wakeup_;
  };

  wakeup(Target& target, const Executor& ex, alarm&& a)
      : wait_op(&wakeup::perform,
                a.on_own_context() ? kind::direct : kind::foreign),
        alarm_(std::move(a)), target_(&target), executor_(ex) {}

  static void perform(wait_op* op, action what, const error_code&) {
    auto* const w = static_cast<wakeup*>(op);
    if (what == action::hand_over) {
      thunk t(w);
      const Executor ex = *w->executor_;
      asio::dispatch(ex, std::move(t));
      return;
    }
    const boost::intrusive_ptr<Target> target(w->target_, false);
    if (what == action::complete)
      target->wake();
    else
      target->lost();
  }

  alarm alarm_;
  Target* const target_;             // referred to while not idle
  std::optional<Executor> executor_; // until it is released
  state state_ = state::idle;
};

template <typename Target, typename Executor>
outcome wakeup<Target, Executor>::set(time_point t) {
  if (state_ == state::armed) {
    owner().rearm_at(alarm_, t, {}); // or it has started, and comes anyway
  } else if (state_ == state::idle) {
    owner().expires_at(alarm_, t, {});
    outcome why = outcome::abandoned;
    if (owner().start(alarm_, *this, outcome::none, &why, false) !=
        shard::start_result::started)
      return why;
    intrusive_ptr_add_ref(target_); // it cannot be called before the unlock
    state_ = state::armed;
  }
  return outcome::none;
}

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_WAKEUP_HPP
