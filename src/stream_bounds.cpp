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

wheel_timer& stream_bounds::idle_waiters(const asio::any_io_executor& ex) {
  extras& e = need_extras();
  if (!e.idle_waiters)
    e.idle_waiters.emplace(ex, time_point::max());
  return *e.idle_waiters;
}

// Waits that were told, and have not been started yet, are not to be touched;
// who joins them is told too early, sees that from idle_round(), and waits
// again.
void stream_bounds::idle_wait_begins() {
  wheel_timer& timer = *extras_->idle_waiters;
  if (timer.pending() == 0)
    timer.expires_at(time_point::max());
}

bool stream_bounds::idle_waited_for() const noexcept {
  return extras_ && extras_->idle_waiters &&
         extras_->idle_waiters->expiry() == time_point::max() &&
         extras_->idle_waiters->pending() != 0;
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
                  read_, error::read_timeout, direction::reading);
  if (runs(direction::writing)) {
    const time_point started = side(direction::writing).started;
    if (connecting_) {
      const duration period = extras_ ? extras_->connect : never;
      next.consider(time_scale::add(started, period), period,
                    error::connect_timeout, direction::writing);
    } else {
      duration after = write_;
      if (const duration passed = time_scale::subtract(t, started);
          counts_unsent_ && write_ != never && passed < write_) {
        // The next look.
        const duration step = std::max(write_ / looks, duration(1));
        after = std::min(write_, (passed / step + 1) * step);
      }
      next.consider(time_scale::add(started, after), write_,
                    error::write_timeout, direction::writing);
    }
  }
  const bool alone = acts_alone();
  if (pending_ != ending_ || alone) {
    if (!connecting())
      next.consider(idle_end(), idle_, error::idle_timeout);
    if (extras_ && !extras_->deadline_noticed &&
        extras_->deadline != time_point::max())
      next.consider(extras_->deadline,
                    time_scale::subtract(extras_->deadline, t),
                    error::deadline_exceeded);
  }
  if (extras_)
    for (const direction d : directions)
      if (runs(d) && rate(d).bytes_per_second != 0 &&
          !(connecting() && d == direction::writing))
        next.consider(time_scale::add(rate(d).charged, rate(d).credit),
                      rate(d).grace, error::too_slow, d);
  return next;
}

// Whether something is overdue that ends an operation before it begins.
error stream_bounds::overdue(time_point t, bool connects) noexcept {
  if (owed_ != nobody)
    return static_cast<error>(std::exchange(owed_, nobody));
  if (extras_ && extras_->deadline <= t) {
    extras_->deadline_noticed = true;
    return error::deadline_exceeded;
  }
  if (!connects && !closed_ && idle_end() <= t && !idle_waited_for()) {
    idle_since_ = t;
    return error::idle_timeout;
  }
  return error{};
}

// Asked of the owner's side only: the alarm's expiry is its own to read.
void stream_bounds::set_alarm(const due& d) {
  using std::chrono::seconds;
  const duration slack =
      std::clamp(d.period / 64, duration::zero(), duration(seconds(1)));
  alarm_.owner().rearm_at(alarm_, d.when, slack);
}

void stream_bounds::look_at_unsent(time_point t,
                                   std::optional<std::uint32_t> n) noexcept {
  side_state& s = side(direction::writing);
  if (n && (!unsent_known_ || *n < unsent_))
    s.started = t; // progress; what was before the first look is not known
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
      ++extras_->idle_round;
      extras_->idle_waiters->rearm_at(time_point::min());
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
    if (ended_by(d) == nobody)
      ended_by(d) = the_user;
  if (extras_ && extras_->idle_waiters)
    extras_->idle_waiters->cancel();
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
  alarm_.owner().streams().remove(*this);
}

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel
