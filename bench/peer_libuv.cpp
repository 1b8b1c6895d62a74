//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//
#include "peers.hpp"

#include <uv.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

namespace bench {

namespace {

/// A loop of libuv, and side by side in memory the timers on it.
/**
 * Times are in milliseconds, and count from when the loop last looked at the
 * clock: at the last poll.
 */
class uv_timers {
public:
  uv_timers(const settings&, std::size_t size) : timers_(size) {
    if (uv_loop_init(&loop_) != 0)
      throw std::bad_alloc();
    for (auto& t : timers_) {
      uv_timer_init(&loop_, &t);
      t.data = &fired_;
    }
  }

  uv_timers(const uv_timers&) = delete;
  uv_timers& operator=(const uv_timers&) = delete;

  ~uv_timers() {
    for (auto& t : timers_)
      uv_close(reinterpret_cast<uv_handle_t*>(&t), nullptr);
    uv_run(&loop_, UV_RUN_DEFAULT);
    uv_loop_close(&loop_);
  }

  std::size_t size() const noexcept { return timers_.size(); }
  void poll() { uv_run(&loop_, UV_RUN_NOWAIT); }
  std::uint64_t fired() const noexcept { return fired_; }

  std::size_t pending() const noexcept {
    return static_cast<std::size_t>(
        std::count_if(timers_.begin(), timers_.end(), [](const uv_timer_t& t) {
          return uv_is_active(reinterpret_cast<const uv_handle_t*>(&t)) != 0;
        }));
  }

  void start(std::size_t i, std::chrono::nanoseconds delay) {
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(delay).count();
    failed_ += uv_timer_start(&timers_[i], fire, static_cast<std::uint64_t>(ms),
                              0) != 0;
  }

  void cancel(std::size_t i) { failed_ += uv_timer_stop(&timers_[i]) != 0; }

  // uv_timer_again() would call uv_timer_stop() and this; and a timer that it
  // can be used on goes on by itself when it has fired.
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

private:
  static void fire(uv_timer_t* t) { ++*static_cast<std::uint64_t*>(t->data); }

  uv_loop_t loop_;
  std::vector<uv_timer_t> timers_;
  std::uint64_t fired_ = 0, failed_ = 0;
};

} // namespace

peer_library libuv() {
  return {"libuv", uv_version_string(), {make_peer<uv_timers>("libuv", false)}};
}

} // namespace bench
