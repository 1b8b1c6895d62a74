//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BENCH_LIBRARIES_HPP
#define ASIO_WHEEL_BENCH_LIBRARIES_HPP

#include "settings.hpp"

#include <asio_wheel/manual_clock.hpp>
#include <asio_wheel/wheel_service.hpp>
#include <asio_wheel/wheel_timer.hpp>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/wait_traits.hpp>

#include <chrono>

// The two sides, behind one interface: a class that prepares a context, a
// template that names the timer, whether that has rearm_after(), and for
// virtual time set_on().

namespace bench {

namespace asio = boost::asio;

/// Asio's timer on the clock that steady_timer has.
class asio_timers {
public:
  using clock = std::chrono::steady_clock;
  template <typename Executor>
  using timer =
      asio::basic_waitable_timer<clock, asio::wait_traits<clock>, Executor>;
  static constexpr bool can_rearm = false;

  asio_timers(asio::io_context&, const settings&) {}
};

/// A clock that shows what it was set to.
class settable_clock {
public:
  using duration = std::chrono::steady_clock::duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<settable_clock>;
  static constexpr bool is_steady = true;

  static time_point now() noexcept { return now_; }
  static void set_on(duration d) noexcept { now_ += d; }

private:
  inline static time_point now_;
};

/// Asio's timer on a clock that is set.
/**
 * Asio looks at its timers when its timerfd reports. The traits say that there
 * is no time to wait, so it reports at each poll: a system call to wait and one
 * to set the timerfd anew, as in a loop in which a timer is due at each turn.
 */
class asio_timers_on_set_clock {
public:
  struct no_wait {
    static settable_clock::duration
    to_wait_duration(const settable_clock::duration&) {
      return settable_clock::duration::zero();
    }
    static settable_clock::duration
    to_wait_duration(const settable_clock::time_point&) {
      return settable_clock::duration::zero();
    }
  };
  template <typename Executor>
  using timer = asio::basic_waitable_timer<settable_clock, no_wait, Executor>;
  static constexpr bool can_rearm = false;

  asio_timers_on_set_clock(asio::io_context&, const settings&) {}

  void set_on(settable_clock::duration d) { settable_clock::set_on(d); }
};

/// Our timer.
class wheel_timers {
public:
  template <typename Executor>
  using timer = asio_wheel::basic_wheel_timer<Executor>;
  static constexpr bool can_rearm = true;

  wheel_timers(asio::io_context& io, const settings& s) {
    asio_wheel::make_wheel(io, s.wheel);
  }
};

/// Our timer on a manual clock.
class wheel_timers_on_set_clock {
public:
  template <typename Executor>
  using timer = asio_wheel::basic_wheel_timer<Executor>;
  static constexpr bool can_rearm = true;

  wheel_timers_on_set_clock(asio::io_context& io, const settings& s) {
    auto options = s.wheel;
    options.clock = clock_;
    asio_wheel::make_wheel(io, options);
  }

  void set_on(asio_wheel::manual_clock::duration d) { clock_.advance(d); }

private:
  asio_wheel::manual_clock clock_;
};

} // namespace bench

#endif // ASIO_WHEEL_BENCH_LIBRARIES_HPP
