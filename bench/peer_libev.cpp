//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//
#include "peers.hpp"

#include <ev.h>

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

/// A loop of libev, and side by side in memory the timers on it.
/**
 * Times count from when the loop last looked at the clock: at the last poll.
 */
class ev_timers {
public:
  ev_timers(const settings&, std::size_t size)
      : loop_(ev_loop_new(EVFLAG_NOENV)), timers_(size) {
    if (!loop_)
      throw std::bad_alloc();
    for (auto& t : timers_) {
      ev_timer_init(&t, fire, 0., 0.);
      t.data = &fired_;
    }
  }

  ev_timers(const ev_timers&) = delete;
  ev_timers& operator=(const ev_timers&) = delete;

  ~ev_timers() {
    for (std::size_t i = 0; i < size(); ++i)
      cancel(i);
  }

  std::size_t size() const noexcept { return timers_.size(); }
  void poll() { ev_run(loop_.get(), EVRUN_NOWAIT); }
  std::uint64_t fired() const noexcept { return fired_; }

  std::size_t pending() const noexcept {
    return static_cast<std::size_t>(
        std::count_if(timers_.begin(), timers_.end(),
                      [](const ev_timer& t) { return ev_is_active(&t); }));
  }

  void start(std::size_t i, std::chrono::nanoseconds delay) {
    auto& t = timers_[i];
    if (ev_is_active(&t))
      cancel(i);
    ev_timer_set(&t, seconds(delay), 0.);
    ev_timer_start(loop_.get(), &t);
  }

  void cancel(std::size_t i) { ev_timer_stop(loop_.get(), &timers_[i]); }

  void refresh(std::size_t i, std::chrono::nanoseconds delay) {
    timers_[i].repeat = seconds(delay);
    ev_timer_again(loop_.get(), &timers_[i]);
  }

  void cancel_all() {
    for (std::size_t i = 0; i < size(); ++i)
      cancel(i);
    poll();
  }

  std::string verify() {
    cancel_all();
    return pending() != 0 ? "timers could not be cancelled" : "";
  }

private:
  struct destroy {
    void operator()(struct ev_loop* l) const noexcept { ev_loop_destroy(l); }
  };

  static double seconds(std::chrono::nanoseconds d) {
    return std::chrono::duration<double>(d).count();
  }

  static void fire(struct ev_loop* loop, ev_timer* t, int) {
    ++*static_cast<std::uint64_t*>(t->data);
    if (ev_is_active(t)) // it was refreshed, and would repeat
      ev_timer_stop(loop, t);
  }

  std::unique_ptr<struct ev_loop, destroy> loop_;
  std::vector<ev_timer> timers_;
  std::uint64_t fired_ = 0;
};

} // namespace

peer_library libev() {
  return {"libev",
          std::to_string(ev_version_major()) + "." +
              std::to_string(ev_version_minor()),
          {make_peer<ev_timers>("libev (cached clock)", false)}};
}

} // namespace bench
