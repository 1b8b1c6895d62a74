//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/detail/stream_bounds.hpp>

#if defined(__linux__)
#include <linux/sockios.h>
#include <sys/ioctl.h>
#endif

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

namespace {

constexpr direction directions[] = {direction::reading, direction::writing};

void check_positive(stream_timeouts::duration d, const char* name) {
  if (d <= stream_timeouts::duration::zero())
    throw std::invalid_argument(std::string("asio_wheel: stream_timeouts::") +
                                name +
                                " must be positive; off is asio_wheel::never");
}

void check(const stream_timeouts& t) {
  check_positive(t.read, "read");
  check_positive(t.write, "write");
  check_positive(t.connect, "connect");
  check_positive(t.idle, "idle");
  check_positive(t.read_rate.grace, "read_rate.grace");
  check_positive(t.write_rate.grace, "write_rate.grace");
  if (static_cast<unsigned>(t.idle_counts) - 1 >= 3)
    throw std::invalid_argument(
        "asio_wheel: stream_timeouts::idle_counts is no idle_activity");
  if (static_cast<unsigned>(t.action) >= 3)
    throw std::invalid_argument(
        "asio_wheel: stream_timeouts::action is no timeout_action");
}

} // namespace

std::optional<std::uint32_t> unsent_bytes(int socket) noexcept {
#if defined(__linux__)
  int n = 0;
  if (::ioctl(socket, SIOCOUTQ, &n) == 0 && n >= 0)
    return static_cast<std::uint32_t>(n);
#else
  (void)socket;
#endif
  return {};
}

stream_bounds::stream_bounds(alarm&& a, bool total_is_enough,
                             bool counts_unsent)
    : alarm_(std::move(a)), owned_(true), armed_(false), unsent_known_(false),
      connecting_(false), closed_(false), total_is_enough_(total_is_enough),
      counts_unsent_(counts_unsent) {
  restart_clocks(now());
}

stream_bounds::~stream_bounds() { closed(); }

// ---------------------------------------------------------------------------
// Settings

stream_bounds::extras& stream_bounds::need_extras() {
  if (!extras_)
    extras_ = std::make_unique<extras>();
  return *extras_;
}

stream_timeouts stream_bounds::timeouts() const {
  stream_timeouts t;
  t.read = read_;
  t.write = write_;
  t.idle = idle_;
  t.idle_counts = idle_counts_;
  t.action = action_;
  if (extras_) {
    const auto rate_of = [this](direction d) {
      const rate_state& r = rate(d);
      return r.grace > duration::zero()
                 ? minimum_rate{r.bytes_per_second, r.grace}
                 : minimum_rate{};
    };
    t.connect = extras_->connect;
    t.read_rate = rate_of(direction::reading);
    t.write_rate = rate_of(direction::writing);
  }
  return t;
}

void stream_bounds::timeouts(const stream_timeouts& t,
                             std::optional<std::uint32_t> unsent) {
  check(t);
  if (t.connect != never || t.read_rate.bytes_per_second != 0 ||
      t.write_rate.bytes_per_second != 0)
    need_extras();
  read_ = t.read;
  write_ = t.write;
  idle_ = t.idle;
  idle_counts_ = t.idle_counts;
  action_ = t.action;
  unsent_known_ = unsent.has_value();
  unsent_ = unsent.value_or(0);
  if (extras_) {
    extras_->connect = t.connect;
    for (const direction d : directions) {
      const minimum_rate& r =
          d == direction::reading ? t.read_rate : t.write_rate;
      rate(d).bytes_per_second = r.bytes_per_second;
      rate(d).grace = r.grace;
      rate(d).credit = r.grace;
      rate(d).seen = moved(d);
    }
  }
  owed_ = nobody;
  restart_clocks(now());
}

void stream_bounds::deadline(time_point t) {
  if (t == time_point::max() && !extras_)
    return;
  extras& e = need_extras();
  e.deadline = t;
  e.deadline_noticed = false;
}

// All times count from t.
void stream_bounds::restart_clocks(time_point t) noexcept {
  idle_since_ = t;
  unsent_known_ = false;
  for (const direction d : directions) {
    side(d).started = t;
    if (side(d).bytes == 0)
      side(d).last = t;
    if (extras_)
      rate(d).charged = t;
  }
}

void stream_bounds::copy_counts(const stream_bounds& other) noexcept {
  for (const direction d : directions) {
    side(d).bytes = other.side(d).bytes;
    side(d).last = other.side(d).last;
  }
  idle_since_ = other.idle_since_;
}

// ---------------------------------------------------------------------------
// Idle waits

wheel_timer& stream_bounds::idle_timer(const asio::any_io_executor& ex) {
  auto& timers = need_extras().idle_timers;
  for (wheel_timer& timer : timers) {
    if (timer.pending() == 0)
      timer.expires_at(time_point::max());
    if (timer.expiry() == time_point::max())
      return timer;
  }
  timers.emplace_front(ex, time_point::max());
  return timers.front();
}

void stream_bounds::tell_idle_waits() noexcept {
  for (wheel_timer& timer : extras_->idle_timers)
    if (timer.expiry() == time_point::max())
      timer.rearm_at(time_point::min());
}

void stream_bounds::end_idle_waits() noexcept {
  if (extras_)
    for (wheel_timer& timer : extras_->idle_timers)
      timer.cancel();
}

bool stream_bounds::idle_waited_for() const noexcept {
  if (extras_)
    for (const wheel_timer& timer : extras_->idle_timers)
      if (timer.expiry() == time_point::max() && timer.pending() != 0)
        return true;
  return false;
}

// ---------------------------------------------------------------------------
// What is due

bool stream_bounds::acts_alone() const noexcept {
  if (closed_)
    return false;
  if (action_ != timeout_action::cancel)
    return true;
  return idle_waited_for();
}

stream_bounds::due stream_bounds::next_due(time_point t) const noexcept {
  due next;
  if (runs(direction::reading))
    next.consider(time_scale::add(side(direction::reading).started, read_),
                  slack(read_), error::read_timeout, direction::reading);
  if (runs(direction::writing)) {
    const time_point started = side(direction::writing).started;
    if (connecting_) {
      const duration period = extras_ ? extras_->connect : never;
      next.consider(time_scale::add(started, period), slack(period),
                    error::connect_timeout, direction::writing);
    } else {
      next.consider(time_scale::add(started, write_), slack(write_),
                    error::write_timeout, direction::writing);
      if (const duration period = look_period(); period != never) {
        const duration step = std::max(period / looks, duration(1));
        const duration passed = time_scale::subtract(t, started);
        next.look(time_scale::add(started, (passed / step + 1) * step),
                  slack(period));
      }
    }
  }
  const bool alone = acts_alone();
  if (pending_ != ending_ || alone) {
    if (!connecting()) {
      const time_point end = idle_end(); // a drain may have shortened it
      next.consider(end, slack(time_scale::subtract(end, idle_since_)),
                    error::idle_timeout);
    }
    if (extras_ && !extras_->deadline_noticed &&
        extras_->deadline != time_point::max())
      next.consider(extras_->deadline,
                    slack(time_scale::subtract(extras_->deadline, t)),
                    error::deadline_exceeded);
  }
  if (extras_)
    for (const direction d : directions)
      if (runs(d) && rate(d).bytes_per_second != 0 &&
          !(connecting() && d == direction::writing))
        next.consider(time_scale::add(rate(d).charged, rate(d).credit),
                      slack(rate(d).grace), error::too_slow, d);
  return next;
}

// Whether something is overdue that ends an operation before it begins. What
// the alarm will notice is left to it: there may be more to be ended.
error stream_bounds::overdue(direction d, time_point t,
                             bool connects) noexcept {
  if (owed_ != nobody)
    return static_cast<error>(std::exchange(owed_, nobody));
  if (extras_ && extras_->deadline <= t)
    return error::deadline_exceeded;
  if (!connects && !closed_ && pending_ == 0 && !acts_alone() &&
      idle_end() <= t) {
    // A drain is not to keep an answer from being sent.
    const bool drained = time_scale::add(idle_since_, idle_) > t;
    idle_since_ = t;
    if (!(drained && d == direction::writing))
      return error::idle_timeout;
  }
  return error{};
}

// Asked of the owner's side only: the alarm's expiry is its own to read.
void stream_bounds::set_alarm(const due& d) {
  alarm_.owner().rearm_at(alarm_, time_scale::add(d.latest, -d.slack), d.slack);
}

void stream_bounds::look_at_unsent(time_point t,
                                   std::optional<std::uint32_t> n) noexcept {
  side_state& s = side(direction::writing);
  if (n && (!unsent_known_ || *n < unsent_)) {
    // Progress; what was before the first look is not known.
    s.started = t;
    if (counts_for_idle(direction::writing))
      idle_since_ = t;
  }
  unsent_known_ = n.has_value();
  unsent_ = n.value_or(0);
}

std::uint64_t stream_bounds::moved(direction d) const noexcept {
  const std::uint64_t n = side(d).bytes;
  return d == direction::writing && unsent_known_ && unsent_ <= n ? n - unsent_
                                                                  : n;
}

void stream_bounds::charge(direction d, time_point t) noexcept {
  rate_state& r = rate(d);
  if (r.bytes_per_second == 0 || !pending(d))
    return;
  r.credit = duration(std::max<duration::rep>(
      (r.credit - time_scale::subtract(t, r.charged)).count(),
      -r.grace.count()));
  r.charged = t;
}

// Put what the bytes moved are worth on the account of a direction.
void stream_bounds::settle(direction d) noexcept {
  rate_state& r = rate(d);
  if (r.bytes_per_second == 0)
    return;
  const std::uint64_t total = moved(d);
  if (total > r.seen) {
    const double worth = double(total - r.seen) / double(r.bytes_per_second);
    const double room =
        std::chrono::duration<double>(r.grace - r.credit).count();
    r.credit = worth >= room
                   ? r.grace
                   : r.credit + std::chrono::duration_cast<duration>(
                                    std::chrono::duration<double>(worth));
    r.seen = total;
  }
}

// Whether there is something left on it.
bool stream_bounds::rate_kept(direction d, time_point t) noexcept {
  charge(d, t);
  settle(d);
  return rate(d).credit > duration::zero();
}

void stream_bounds::end(direction d, error e) noexcept {
  if (!runs(d))
    return;
  ending_ |= bit(d);
  if (ended_by(d) == nobody)
    ended_by(d) = static_cast<unsigned char>(e);
  const bool connects = connecting() && d == direction::writing;
  const bool total = total_is_enough_ && !connects;
  side(d).signal.emit(total ? asio::cancellation_type::total
                            : asio::cancellation_type::terminal);
}

void stream_bounds::end_all(error e) noexcept {
  for (const direction d : directions)
    end(d, e);
}

bool stream_bounds::expire(const due& d, time_point t) noexcept {
  switch (d.what) {
  case error::too_slow:
    if (rate_kept(d.where, t))
      return false;
    rate(d.where).credit = rate(d.where).grace; // for the next operation
    [[fallthrough]];
  case error::read_timeout:
  case error::write_timeout:
  case error::connect_timeout:
    end(d.where, d.what);
    break;
  case error::idle_timeout:
    idle_since_ = t;
    if (idle_waited_for()) {
      tell_idle_waits();
      return false;
    }
    if (pending_ == 0)
      owed_ = static_cast<unsigned char>(d.what);
    end_all(d.what);
    break;
  default: // deadline_exceeded
    extras_->deadline_noticed = true;
    end_all(d.what);
    break;
  }
  // With an action, the other direction ends for the same reason.
  if (action_ != timeout_action::cancel)
    end_all(d.what);
  return true;
}

// ---------------------------------------------------------------------------
// The user's side

void stream_bounds::cancel(direction d,
                           asio::cancellation_type_t type) noexcept {
  if (!owned_ || !pending(d))
    return;
  if (ended_by(d) == nobody)
    ended_by(d) = the_user;
  side(d).signal.emit(type);
}

void stream_bounds::cancel_all() noexcept {
  for (const direction d : directions)
    cancel(d, total_is_enough_ && !connecting()
                  ? asio::cancellation_type::total
                  : asio::cancellation_type::terminal);
  user_ends_all();
}

void stream_bounds::user_ends_all() noexcept {
  for (const direction d : directions)
    if (pending(d) && ended_by(d) == nobody)
      ended_by(d) = the_user;
  end_idle_waits();
}

// Nobody waits for the check any more.
void stream_bounds::withdraw() noexcept {
  if (armed_) {
    armed_ = false;
    alarm_.owner().withdraw(alarm_);
  }
}

void stream_bounds::opened() noexcept {
  closed_ = false;
  alarm_.owner().streams().add(*this, drain_share_);
}

void stream_bounds::closed() noexcept {
  if (closed_)
    return;
  closed_ = true;
  end_idle_waits(); // nobody would tell them any more
  alarm_.owner().streams().remove(*this);
}

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel
