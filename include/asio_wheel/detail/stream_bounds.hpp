//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_STREAM_BOUNDS_HPP
#define ASIO_WHEEL_DETAIL_STREAM_BOUNDS_HPP

#include <asio_wheel/detail/alarm.hpp>
#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/shard.hpp>
#include <asio_wheel/detail/stream_registry.hpp>
#include <asio_wheel/detail/time_scale.hpp>
#include <asio_wheel/error.hpp>
#include <asio_wheel/stream_timeouts.hpp>
#include <asio_wheel/wheel_timer.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <forward_list>
#include <memory>
#include <optional>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

enum class direction : unsigned char { reading = 0, writing = 1 };

// How many bytes were sent over a TCP socket that its peer has not acknowledged
// yet; empty where there is no telling.
std::optional<std::uint32_t> unsent_bytes(int socket) noexcept;

// The clocks of a bounded stream: what bounds it, what is pending on it, when
// something moved, and what is due next. bounded_stream adds the stream.
//
// One alarm serves all of them. It is set to the first time at which something
// may be due; what an operation does after that is to store when it began, and
// when it ended. When the alarm goes off, the check looks at these times, ends
// what is overdue, and sets the alarm to the next one.
//
// Ground rules. All but the alarm and the drain share belongs to the stream's
// owner, and is used on the stream's executor only. The state lives as long as
// the stream or an operation on it (uses_); an operation counts until its
// handler has returned.
class stream_bounds : public registered_stream {
public:
  using duration = alarm::duration;
  using time_point = alarm::time_point;

  stream_bounds(const stream_bounds&) = delete;
  stream_bounds& operator=(const stream_bounds&) = delete;

  // Settings and queries.
  stream_timeouts timeouts() const;
  void timeouts(const stream_timeouts& t, std::optional<std::uint32_t> unsent);
  void deadline(time_point t);
  time_point deadline() const noexcept {
    return extras_ ? extras_->deadline : time_point::max();
  }
  time_point now() const noexcept { return alarm_.owner().now(); }
  void touch() noexcept { idle_since_ = now(); }
  time_point last(direction d) const noexcept { return side(d).last; }
  std::uint64_t bytes(direction d) const noexcept { return side(d).bytes; }

  // A timer for an idle wait that begins.
  wheel_timer& idle_timer(const asio::any_io_executor& ex);
  void end_idle_waits() noexcept;

  // An operation begins. Returns the error it ends with at once, if any; else
  // it has begun, and ended() or dropped() is to follow.
  error_code begin(direction d, bool connects) noexcept;
  // It was completed by the next layer: returns what to report.
  error_code ended(direction d, const error_code& ec, std::size_t n) noexcept;
  // It was destroyed uncompleted.
  void dropped(direction d) noexcept {
    pending_ &= ~bit(d);
    ending_ &= ~bit(d);
    ended_by(d) = nobody;
  }
  // What blocking calls did.
  void connected() noexcept { restart_clocks(now()); }
  void moved(direction d, std::size_t n) noexcept {
    if (n != 0)
      count(d, n, now());
  }

  // Whether the alarm is not set, or too late for what has just begun.
  bool alarm_too_late(direction d) const noexcept;

  // The user cancels one operation, or all.
  void cancel(direction d, asio::cancellation_type_t type) noexcept;
  void cancel_all() noexcept;
  // The user ends what is pending in another way.
  void user_ends_all() noexcept;

  // For the service, under the registry's lock: a drain has begun.
  void drain(drain_share share) noexcept {
    drain_share_ = share;
    alarm_.owner().hasten(alarm_); // look at the clocks
  }

  asio::cancellation_slot slot(direction d) noexcept {
    return side(d).signal.slot();
  }

protected:
  // How often progress of a pending TCP write is looked for in its timeout.
  static constexpr int looks = 8;

  // What is due first; and when to look at the latest, which may be because of
  // something that is due later and can wait less.
  struct due {
    time_point when = time_point::max();
    error what = error::idle_timeout;
    direction where = direction::reading;
    time_point latest = time_point::max();
    duration slack = duration::zero(); // how long before that

    void consider(time_point t, duration s, error e,
                  direction d = direction::reading) noexcept {
      if (t < when) {
        when = t;
        what = e;
        where = d;
      }
      look(t, s);
    }
    void look(time_point t, duration s) noexcept {
      if (const time_point l = time_scale::add(t, s); l < latest) {
        latest = l;
        slack = s;
      }
    }
  };

  // total_is_enough: the next layer's operations can be ended by
  // cancellation_type::total. counts_unsent: it is a TCP socket.
  stream_bounds(alarm&& a, bool total_is_enough, bool counts_unsent);
  ~stream_bounds();

  bool pending(direction d) const noexcept { return pending_ & bit(d); }
  bool anything_pending() const noexcept { return pending_ != 0; }
  bool connecting() const noexcept {
    return connecting_ && pending(direction::writing);
  }

  // Whether something is to be noticed with nothing pending.
  bool acts_alone() const noexcept;

  // How much later than at its end a timeout may be noticed.
  duration slack(duration period) const noexcept {
    using std::chrono::seconds;
    return std::max(alarm_.owner().tick(),
                    std::min(period / 64, duration(seconds(1))));
  }
  // When the alarm goes off, at the latest.
  time_point noticed_by() const noexcept {
    return armed_ ? alarm_.latest() : time_point::max();
  }
  // Whether what ends at t is noticed too late.
  bool missed(time_point t, duration period) const noexcept {
    const time_point set = noticed_by();
    return t < set && time_scale::add(t, slack(period)) < set;
  }

  due next_due(time_point t) const noexcept;
  void set_alarm(const due& d);
  // How much of what was written is on its way still, at time t.
  void look_at_unsent(time_point t, std::optional<std::uint32_t> n) noexcept;
  bool wants_unsent() const noexcept {
    return counts_unsent_ && pending(direction::writing) && !connecting_;
  }
  // Do what is due. Returns true if timeout_action is to follow.
  bool expire(const due& d, time_point t) noexcept;
  void end_all(error e) noexcept;
  void withdraw() noexcept;
  void opened() noexcept;
  void closed() noexcept;
  void copy_counts(const stream_bounds& other) noexcept;

  // Where what is done to the alarm comes together.
  alarm alarm_;

  struct side_state {
    time_point started{}; // the pending operation, or its last progress
    time_point last{};    // when bytes moved
    std::uint64_t bytes = 0;
    asio::cancellation_signal signal;
  };

  // Who ended a pending operation: the first decides.
  static constexpr unsigned char nobody = 0;
  static constexpr unsigned char the_user = 255; // else an enum error

  // For what only some streams have.
  struct rate_state {
    std::uint64_t bytes_per_second = 0;
    duration grace{};
    duration credit{};
    time_point charged{};   // the pending time is paid for until here
    std::uint64_t seen = 0; // of the bytes moved
  };
  struct extras {
    duration connect = never;
    time_point deadline = time_point::max();
    bool deadline_noticed = false;
    rate_state rates[2];
    // Idle waits never expire, until they are told. Mostly there is one timer;
    // one whose waits were told, and have not all been started yet, cannot be
    // joined.
    std::forward_list<wheel_timer> idle_timers;
  };

  // How long a pending write over TCP may stand still, if at all.
  duration look_period() const noexcept {
    if (!counts_unsent_)
      return never;
    return counts_for_idle(direction::writing) ? std::min(write_, idle_)
                                               : write_;
  }
  bool counts_for_idle(direction d) const noexcept {
    return (static_cast<unsigned>(idle_counts_) & bit(d)) != 0;
  }

  static unsigned char bit(direction d) noexcept {
    return static_cast<unsigned char>(1u << static_cast<unsigned>(d));
  }
  side_state& side(direction d) noexcept {
    return sides_[static_cast<unsigned>(d)];
  }
  const side_state& side(direction d) const noexcept {
    return sides_[static_cast<unsigned>(d)];
  }
  unsigned char& ended_by(direction d) noexcept {
    return ended_by_[static_cast<unsigned>(d)];
  }
  rate_state& rate(direction d) const noexcept {
    return extras_->rates[static_cast<unsigned>(d)];
  }
  bool runs(direction d) const noexcept { // pending, and not ended by us
    return (pending_ & ~ending_ & bit(d)) != 0;
  }

  error overdue(direction d, time_point t, bool connects) noexcept;
  void count(direction d, std::size_t n, time_point t) noexcept;
  time_point idle_end() const noexcept;
  time_point side_due(direction d, duration& period) const noexcept;
  void end(direction d, error e) noexcept;
  bool idle_waited_for() const noexcept;
  void tell_idle_waits() noexcept;
  extras& need_extras();
  std::uint64_t moved(direction d) const noexcept;
  void charge(direction d, time_point t) noexcept;
  void settle(direction d) noexcept;
  bool rate_kept(direction d, time_point t) noexcept;
  void restart_clocks(time_point t) noexcept;

  duration read_ = never;
  duration write_ = never;
  duration idle_ = never;
  std::unique_ptr<extras> extras_;
  side_state sides_[2];
  time_point idle_since_;
  std::uint32_t unsent_ = 0; // at the last look, if unsent_known_
  drain_share drain_share_ = 0;
  std::uint16_t uses_ = 0;    // operations that have not returned
  unsigned char pending_ = 0; // bits of directions
  unsigned char ending_ = 0;  // of them, those that we have cancelled
  unsigned char ended_by_[2] = {nobody, nobody};
  unsigned char owed_ = nobody; // an error for the next operation
  idle_activity idle_counts_ = idle_activity::both;
  timeout_action action_ = timeout_action::cancel;
  bool owned_ : 1;        // the timeout_stream still is there
  bool armed_ : 1;        // a wait is open on the alarm
  bool unsent_known_ : 1; // of the pending write
  bool connecting_ : 1;   // the pending write is a connect
  bool closed_ : 1;       // by close() or by timeout_action
  const bool total_is_enough_ : 1;
  const bool counts_unsent_ : 1;
};

// ---------------------------------------------------------------------------
// The way of every operation

inline stream_bounds::time_point
stream_bounds::side_due(direction d, duration& period) const noexcept {
  const side_state& s = side(d);
  if (d == direction::reading) {
    period = read_;
  } else if (connecting_) {
    period = extras_ ? extras_->connect : never;
  } else {
    // A look at what is unsent, and not only the end.
    period = look_period();
    if (period != never)
      return time_scale::add(s.started, period / looks);
    period = write_;
  }
  return time_scale::add(s.started, period);
}

inline stream_bounds::time_point stream_bounds::idle_end() const noexcept {
  const time_point t = time_scale::add(idle_since_, idle_);
  if (!alarm_.owner().streams().draining())
    return t;
  const time_point end = alarm_.owner().streams().idle_end(
      *this, drain_share_, idle_ == never, idle_since_);
  return end < t ? end : t;
}

inline error_code stream_bounds::begin(direction d, bool connects) noexcept {
  if (pending(d)) {
    ASIO_WHEEL_ASSERT(!"two reads, or two writes, at once on a timeout_stream");
    return error::operation_in_progress;
  }
  const time_point t = now();
  if (owed_ != nobody || extras_ || idle_end() <= t)
    if (const error e = overdue(d, t, connects); e != error{})
      return e;
  if (d == direction::writing) {
    connecting_ = connects;
    unsent_known_ = false;
  }
  side(d).started = t;
  if (extras_)
    rate(d).charged = t;
  pending_ |= bit(d);
  ++uses_;
  return {};
}

inline bool stream_bounds::alarm_too_late(direction d) const noexcept {
  if (extras_)
    return next_due(side(d).started).latest < noticed_by();
  duration period;
  const time_point end = side_due(d, period);
  // Once set, the alarm is early enough for the idle time: that only moves on.
  return missed(end, period) || (!armed_ && idle_end() != time_point::max());
}

inline void stream_bounds::count(direction d, std::size_t n,
                                 time_point t) noexcept {
  side(d).bytes += n;
  side(d).last = t;
  if (closed_ && ended_by(d) == nobody) // begun since
    opened();
  if (counts_for_idle(d))
    idle_since_ = t;
}

inline error_code stream_bounds::ended(direction d, const error_code& ec,
                                       std::size_t n) noexcept {
  const bool connects = connecting_ && d == direction::writing;
  if (n != 0 || extras_ || connects) {
    const time_point t = now();
    if (extras_)
      charge(d, t);
    if (n != 0)
      count(d, n, t);
    if (extras_ && !(counts_unsent_ && d == direction::writing))
      settle(d);
    if (connects && !ec)
      restart_clocks(t);
  }
  pending_ &= ~bit(d);
  ending_ &= ~bit(d);
  const unsigned char by = std::exchange(ended_by(d), nobody);
  if (by == nobody || by == the_user || ec != asio::error::operation_aborted)
    return ec;
  return static_cast<error>(by);
}

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_STREAM_BOUNDS_HPP
