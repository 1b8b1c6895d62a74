//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//
#include "peers.hpp"

#include <event2/event.h>
#include <event2/event_struct.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <vector>

namespace bench {

namespace {

struct free_base {
  void operator()(event_base* b) const noexcept { event_base_free(b); }
};

std::unique_ptr<event_base, free_base> make_base() {
  struct free_config {
    void operator()(event_config* c) const noexcept { event_config_free(c); }
  };
  const std::unique_ptr<event_config, free_config> config(event_config_new());
  if (!config ||
      event_config_set_flag(config.get(), EVENT_BASE_FLAG_NOLOCK) != 0)
    throw std::bad_alloc();
  std::unique_ptr<event_base, free_base> base(
      event_base_new_with_config(config.get()));
  if (!base)
    throw std::bad_alloc();
  return base;
}

timeval to_timeval(std::chrono::nanoseconds delay) {
  const auto us = std::chrono::ceil<std::chrono::microseconds>(delay).count();
  timeval t;
  t.tv_sec = us / 1'000'000;
  t.tv_usec = us % 1'000'000;
  return t;
}

/// A loop of libevent, and side by side in memory the timers on it.
/**
 * Its clock is the kernel's coarse one, which goes on once per tick of the
 * kernel, and is read anew for each timer.
 */
class event_timers {
public:
  event_timers(const settings&, std::size_t size)
      : base_(make_base()), timers_(size) {
    for (auto& t : timers_)
      evtimer_assign(&t, base_.get(), fire, &fired_);
  }

  event_timers(const event_timers&) = delete;
  event_timers& operator=(const event_timers&) = delete;

  ~event_timers() {
    for (auto& t : timers_)
      event_del(&t);
  }

  std::size_t size() const noexcept { return timers_.size(); }
  void poll() { event_base_loop(base_.get(), EVLOOP_NONBLOCK); }
  std::uint64_t fired() const noexcept { return fired_; }

  std::size_t pending() const noexcept {
    return static_cast<std::size_t>(
        std::count_if(timers_.begin(), timers_.end(), [](const event& t) {
          return event_pending(&t, EV_TIMEOUT, nullptr) != 0;
        }));
  }

  void start(std::size_t i, std::chrono::nanoseconds delay) {
    const auto t = to_timeval(delay);
    add(i, t);
  }

  void cancel(std::size_t i) { failed_ += event_del(&timers_[i]) != 0; }

  void refresh(std::size_t i, std::chrono::nanoseconds delay) {
    start(i, delay);
  }

  void cancel_all() {
    for (std::size_t i = 0; i < size(); ++i)
      cancel(i);
    poll();
  }

  std::string verify() {
    cancel_all();
    if (failed_ != 0)
      return std::to_string(failed_) + " calls have failed";
    return pending() != 0 ? "timers could not be cancelled" : "";
  }

protected:
  event_base* base() noexcept { return base_.get(); }

  void add(std::size_t i, const timeval& t) {
    failed_ += event_add(&timers_[i], &t) != 0;
  }

private:
  static void fire(evutil_socket_t, short, void* fired) {
    ++*static_cast<std::uint64_t*>(fired);
  }

  std::unique_ptr<event_base, free_base> base_;
  std::vector<event> timers_;
  std::uint64_t fired_ = 0, failed_ = 0;
};

/// The same with one delay for all: a queue instead of a heap.
class common_event_timers : public event_timers {
public:
  using event_timers::event_timers;

  void start(std::size_t i, std::chrono::nanoseconds delay) {
    if (delay != delay_) {
      const auto t = to_timeval(delay);
      common_ = event_base_init_common_timeout(base(), &t);
      if (!common_)
        throw std::bad_alloc();
      delay_ = delay;
    }
    add(i, *common_);
  }

  void refresh(std::size_t i, std::chrono::nanoseconds delay) {
    start(i, delay);
  }

private:
  std::chrono::nanoseconds delay_{};
  const timeval* common_ = nullptr;
};

} // namespace

peer_library libevent() {
  return {"libevent",
          event_get_version(),
          {make_peer<event_timers>("libevent", false),
           make_peer<common_event_timers>("libevent, common timeouts", true)}};
}

} // namespace bench
