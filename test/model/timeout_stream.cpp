//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/timeout_stream.hpp>

#define BOOST_TEST_MODULE model_timeout_stream
#include <boost/test/unit_test.hpp>

#include <test/manual_context.hpp>
#include <test/memory_stream.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

// A million random schedules of what a program, its peer and time can do to a
// timeout_stream, against a model that knows which results are legal when: no
// timeout early, none later than a tick or 1/64 of it, no byte lost or doubled,
// each handler once, nothing left on the wheel.
//
// A failing schedule is cut down to the steps it needs, and printed.
// ASIO_WHEEL_SEED runs it again, ASIO_WHEEL_RUNS says how many.

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::error;
using asio_wheel::error_code;
using asio_wheel::idle_activity;
using asio_wheel::minimum_rate;
using asio_wheel::never;
using asio_wheel::stream_timeouts;
using asio_wheel::timeout_action;
using test::manual_context;
using test::memory_stream;
using stream = asio_wheel::timeout_stream<memory_stream>;
using duration = stream::duration;
using time_point = stream::time_point;

namespace {

// splitmix64: cheap to seed.
class generator {
public:
  explicit generator(std::uint64_t seed) noexcept : state_(seed) {}
  std::uint64_t operator()() noexcept {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) noexcept { return (*this)() % n; }
  bool one_in(std::uint64_t n) noexcept { return below(n) == 0; }
  template <typename T, std::size_t N> T pick(const T (&from)[N]) noexcept {
    return from[below(N)];
  }

private:
  std::uint64_t state_;
};

// A set of errors, by their numbers.
constexpr std::uint32_t bit(error e) noexcept {
  return std::uint32_t(1) << static_cast<unsigned>(e);
}

constexpr std::size_t reading = 0;
constexpr std::size_t writing = 1;

class schedule {
public:
  // Runs those of the steps that are listed.
  schedule(std::uint64_t seed, const std::vector<unsigned char>& steps,
           std::ostream* trace)
      : seed_(seed), random_(seed), trace_(trace), options_(options(random_)),
        m_(options_, asio_wheel::manual_clock(time_point(
                         duration(random_.below(1'000'000'000'000))))),
        lazy_(random_.one_in(4)), tick_(options_.tick) {
    s_.emplace(asio::any_io_executor(m_.io.get_executor()));
    peer_.emplace(s_->next_layer().other_end());
    idle_first_ = idle_last_ = m_.now();
    if (trace_)
      *trace_ << (lazy_ ? "lazy" : "eager") << ", tick " << tick_.count()
              << " ns\n";
    for (const unsigned char i : steps) {
      random_ = generator(seed * 64 + i);
      if (!failed_)
        step(i);
    }
    if (!failed_)
      finish();
  }

  ~schedule() { discarding_ = true; }

  bool failed() const noexcept { return failed_; }
  const std::string& what() const noexcept { return what_; }

  static std::size_t length(std::uint64_t seed) {
    return 10 + generator(~seed).below(21);
  }

private:
  struct expectation {
    error_code ec;
    std::size_t n = 0;
  };

  // A pending read or write.
  struct operation {
    bool pending = false;
    std::optional<expectation> expected; // decided, and not reported yet
    bool refused = false;                // it never began
    bool ended = false;                  // by a timeout, as one of:
    std::uint32_t legal = 0;
    std::unique_ptr<asio::cancellation_signal> signal;
    time_point started{};
    // The account of the minimum rate.
    duration credit{};
    time_point charged{};
  };

  struct idle_wait {
    bool pending = false;
    bool aborted = false; // has to be aborted
    bool maybe_told = false;
  };

  // A handler that must be called.
  template <std::size_t Direction> struct handler {
    schedule* self;
    explicit handler(schedule* s) noexcept : self(s) {}
    handler(handler&& o) noexcept : self(std::exchange(o.self, nullptr)) {}
    ~handler() {
      if (self)
        self->dropped();
    }
    void operator()(error_code ec, std::size_t n) {
      std::exchange(self, nullptr)->completed(Direction, ec, n);
    }
  };
  struct wait_handler {
    schedule* self;
    std::size_t which;
    wait_handler(schedule* s, std::size_t w) noexcept : self(s), which(w) {}
    wait_handler(wait_handler&& o) noexcept
        : self(std::exchange(o.self, nullptr)), which(o.which) {}
    ~wait_handler() {
      if (self)
        self->dropped();
    }
    void operator()(error_code ec) {
      std::exchange(self, nullptr)->waited(which, ec);
    }
  };

  static asio_wheel::wheel_options options(generator& random) {
    asio_wheel::wheel_options o;
    const duration ticks[] = {1ms, 1ms, 10ms, 333us};
    o.tick = random.pick(ticks);
    o.slots = random.one_in(2) ? 4 : 256;
    o.levels = 4;
    return o;
  }

  void fail(const std::string& what) {
    if (!failed_)
      what_ = what;
    failed_ = true;
    say("FAILED: ", what);
  }
  void check(bool ok, const char* what) {
    if (!ok)
      fail(what);
  }
  template <typename... Parts> void say(const Parts&... parts) {
    if (trace_) {
      *trace_ << "  " << (m_.now() - time_point()).count() << " ns: ";
      (*trace_ << ... << parts) << "\n";
    }
  }
  static std::string number(duration d) {
    return d == never ? "never" : std::to_string(d.count()) + " ns";
  }

  void dropped() {
    if (!discarding_)
      fail("a handler was destroyed uncalled");
  }

  // --- What bounds an operation

  duration late(duration period) const {
    return std::max(tick_, std::clamp<duration>(period / 64, 0ns, 1s));
  }
  static time_point sum(time_point t, duration d) {
    return d > 0ns && t > time_point::max() - d ? time_point::max() : t + d;
  }
  duration timeout(std::size_t d) const {
    return d == reading ? t_.read : t_.write;
  }
  const minimum_rate& rate(std::size_t d) const {
    return d == reading ? t_.read_rate : t_.write_rate;
  }
  bool waited_for() const {
    return std::any_of(waits_.begin(), waits_.end(), [](const idle_wait& w) {
      return w.pending && !w.aborted;
    });
  }

  template <typename F> void for_own_bounds(std::size_t d, F f) const {
    const operation& op = ops_[d];
    if (timeout(d) != never)
      f(d == reading ? error::read_timeout : error::write_timeout,
        sum(op.started, timeout(d)), timeout(d));
    if (rate(d).bytes_per_second != 0)
      f(error::too_slow, sum(op.charged, op.credit), rate(d).grace);
  }
  // since: when the idle time began; there may be two answers.
  template <typename F> void for_shared_bounds(time_point since, F f) const {
    if (t_.idle != never)
      f(error::idle_timeout, sum(since, t_.idle), t_.idle);
    if (deadline_ != time_point::max())
      f(error::deadline_exceeded, deadline_, deadline_period_);
  }

  // The errors that an operation may end with now.
  std::uint32_t legal_now(std::size_t d) const {
    std::uint32_t set = 0;
    const auto add = [&](error e, time_point when, duration) {
      if (when <= m_.now())
        set |= bit(e);
    };
    for_own_bounds(d, add);
    for_shared_bounds(idle_first_, add);
    if (waited_for())
      set &= ~bit(error::idle_timeout);
    if (t_.action != timeout_action::cancel && ops_[1 - d].pending)
      for_own_bounds(1 - d, add);
    return set;
  }

  bool acts_alone() const {
    return !closed_ && (t_.action != timeout_action::cancel || waited_for());
  }
  bool anything_pending() const {
    return std::any_of(
        std::begin(ops_), std::end(ops_),
        [](const operation& op) { return op.pending && !op.refused; });
  }

  // Before anything changes: which operations has the stream ended?
  void look() {
    for (const std::size_t d : {reading, writing}) {
      operation& op = ops_[d];
      if (op.pending && !op.expected && !op.ended && !in_stream(d)) {
        op.ended = true;
        op.legal = legal_now(d);
      }
    }
    if (!closed_ && (peer_->closed() || peer_->shut_down())) {
      check(t_.action != timeout_action::cancel, "a timeout acted unasked");
      std::uint32_t cause = 0;
      time_point first = time_point::max();
      const auto consider = [&](error e, time_point when, duration) {
        if (when <= m_.now() && when < first) {
          cause = bit(e);
          first = when;
        }
      };
      if (!waited_for() || t_.idle == never) {
        for_shared_bounds(idle_first_, consider);
      } else {
        if (deadline_ <= m_.now())
          consider(error::deadline_exceeded, deadline_, 0ns);
      }
      if (!anything_pending()) {
        owed_ = cause == bit(error::idle_timeout);
        // Of two causes, one may have been noticed long before.
        unsure_ = deadline_ <= m_.now() && t_.idle != never &&
                  sum(idle_first_, t_.idle) <= m_.now();
        if (owed_)
          idle_restarts();
      }
      for (const std::size_t d : {reading, writing})
        if (ops_[d].pending)
          for_own_bounds(d, consider);
      check(cause != 0, "the stream was ended without a cause");
      closed_ = true;
      for (idle_wait& w : waits_)
        w.aborted = w.pending;
    }
  }
  bool in_stream(std::size_t d) const {
    return d == reading ? peer_->reading() : peer_->writing();
  }

  // Whether a check or what has completed comes first, nobody knows.
  void idle_maybe_noticed(bool unknown) {
    if (t_.idle == never || sum(idle_first_, t_.idle) > m_.now())
      return;
    if (unknown)
      idle_last_ = m_.now();
    for (idle_wait& w : waits_)
      w.maybe_told = w.pending;
  }
  void idle_restarts() {
    if (polling_) // what was noticed may not have been told yet
      idle_maybe_noticed(false);
    idle_first_ = idle_last_ = m_.now();
  }

  void charge(std::size_t d) {
    operation& op = ops_[d];
    op.credit = std::max(op.credit - (m_.now() - op.charged), -rate(d).grace);
    op.charged = m_.now();
  }
  void settle(std::size_t d, std::size_t n) {
    operation& op = ops_[d];
    if (rate(d).bytes_per_second == 0 || n == 0)
      return;
    const double worth = double(n) / double(rate(d).bytes_per_second);
    const double room =
        std::chrono::duration<double>(rate(d).grace - op.credit).count();
    op.credit = worth >= room
                    ? rate(d).grace
                    : op.credit + std::chrono::duration_cast<duration>(
                                      std::chrono::duration<double>(worth));
  }

  // --- What is reported

  void completed(std::size_t d, error_code ec, std::size_t n) {
    look();
    operation& op = ops_[d];
    say(d == reading ? "read: " : "write: ", ec.message(), ", ", n, " bytes");
    if (!op.pending)
      return fail("a handler was called that was not due");
    if (quiet_)
      return fail("a handler was called from within");
    std::unique_ptr<asio::cancellation_signal> signal = std::move(op.signal);
    if (signal && signal->slot().has_handler())
      fail("the slot was not cleared");
    if (rate(d).bytes_per_second != 0)
      charge(d);
    if (op.expected) {
      idle_maybe_noticed(true);
      // Was the account found empty before it completed?
      if (rate(d).bytes_per_second != 0 && op.credit <= 0ns)
        unsure_ = true;
      check(op.expected->ec == ec, "not the expected result");
      check(op.expected->n == n, "not the expected number of bytes");
    } else {
      check(n == 0, "bytes in spite of an error");
      if (ec.category() != asio_wheel::wheel_category())
        fail("an error that nobody caused");
      else
        check((op.legal & bit(static_cast<error>(ec.value()))) != 0,
              "a timeout that had not been reached");
      if (ec == error::idle_timeout)
        idle_restarts();
      if (ec == error::too_slow && rate(d).bytes_per_second != 0)
        op.credit = rate(d).grace;
      if (t_.action != timeout_action::cancel && !changed_)
        check(closed_, "the timeout did not act");
    }
    op.pending = false;
    if (n != 0) {
      count_[d] += n;
      last_[d] = m_.now();
      settle(d, n);
      if ((static_cast<unsigned>(t_.idle_counts) & (1u << d)) != 0)
        idle_restarts();
    }
    if (d == reading)
      for (std::size_t i = 0; i != n; ++i)
        check(data_[i] == static_cast<char>(read_++), "not the next byte");
    then();
  }

  void waited(std::size_t which, error_code ec) {
    look();
    idle_wait& w = waits_[which];
    say("wait: ", ec.message());
    if (!w.pending)
      return fail("a wait's handler was called that was not due");
    if (quiet_)
      return fail("a wait's handler was called from within");
    if (!ec) {
      check(!w.aborted, "an aborted wait succeeded");
      // It may have been told together with one that came before.
      check(w.maybe_told ||
                (t_.idle != never && sum(idle_first_, t_.idle) <= m_.now()),
            "a wait was told too early");
      idle_restarts();
      w.maybe_told = false;
    } else {
      check(ec == asio::error::operation_aborted, "a wait failed");
      check(w.aborted, "a wait was aborted by nobody");
    }
    w = idle_wait();
    then();
  }

  // A handler does something itself.
  void then() {
    if (failed_ || !s_ || depth_ == 2 || !random_.one_in(3))
      return;
    ++depth_;
    act(random_.below(12), true);
    --depth_;
  }

  // --- What is done

  void step(unsigned char) {
    look();
    act(random_.below(24), false);
    if (!lazy_ || random_.one_in(2))
      settle();
  }

  void act(std::uint64_t what, bool inside) {
    look();
    quiet_ = true;
    switch (s_ ? what : 100) {
    case 0:
    case 1:
    case 2:
      begin(reading);
      break;
    case 3:
    case 4:
      begin(writing);
      break;
    case 5:
      if (!random_.one_in(3))
        begin_wait();
      else
        touch();
      break;
    case 6:
    case 7:
      change_timeouts();
      break;
    case 8:
      change_deadline();
      break;
    case 9:
      user_cancels();
      break;
    case 10:
      user_slot();
      break;
    case 11:
      if (random_.one_in(3))
        close();
      else if (random_.one_in(2))
        move();
      else if (random_.one_in(2))
        destroy();
      break;
    case 12:
    case 13:
    case 14:
      feed();
      break;
    case 15:
    case 16:
      accept();
      break;
    case 17:
      if (random_.one_in(4))
        peer_ends();
      else
        feed();
      break;
    default:
      if (!inside)
        advance();
      break;
    }
    quiet_ = false;
  }

  void begin(std::size_t d) {
    operation& op = ops_[d];
    if (op.pending)
      return;
    const time_point now = m_.now();
    const bool others = anything_pending();
    if (idle_first_ != idle_last_) // not known: it does not matter then
      touch();
    if (unsure_)
      set(t_);
    op.expected.reset();
    op.ended = false;
    op.legal = 0;
    op.started = op.charged = now;
    op.signal = random_.one_in(2)
                    ? std::make_unique<asio::cancellation_signal>()
                    : nullptr;
    const std::size_t size = 1 + random_.below(data_.size());
    if (std::exchange(owed_, false)) {
      op.expected = {error::idle_timeout, 0};
    } else if (deadline_ <= now) {
      op.expected = {error::deadline_exceeded, 0};
    } else if (!closed_ && !waited_for() && !others &&
               t_.action == timeout_action::cancel && t_.idle != never &&
               sum(idle_last_, t_.idle) <= now) {
      op.expected = {error::idle_timeout, 0};
      idle_restarts();
    } else if (peer_->closed()) {
      op.expected = {asio::error::bad_descriptor, 0};
    } else if (d == reading) {
      if (peer_->shut_down())
        op.expected = {asio::error::eof, 0};
      else if (incoming_ != 0)
        op.expected = take(incoming_, size);
      else if (eof_)
        op.expected = {asio::error::eof, 0};
    } else {
      if (peer_->shut_down())
        op.expected = {asio::error::broken_pipe, 0};
      else if (room_ != 0)
        op.expected = take(room_, size);
    }
    op.pending = true;
    op.refused = op.expected &&
                 op.expected->ec.category() == asio_wheel::wheel_category();
    size_[d] = size;
    say(d == reading ? "async_read_some, " : "async_write_some, ", size,
        op.signal ? " bytes, with a slot" : " bytes");
    if (d == reading) {
      const asio::mutable_buffer b = asio::buffer(data_, size);
      if (op.signal)
        s_->async_read_some(b, asio::bind_cancellation_slot(
                                   op.signal->slot(), handler<reading>(this)));
      else
        s_->async_read_some(b, handler<reading>(this));
    } else {
      for (std::size_t i = 0; i != size; ++i)
        out_[i] = static_cast<char>(count_[writing] + i);
      const asio::const_buffer b = asio::buffer(out_, size);
      if (op.signal)
        s_->async_write_some(b, asio::bind_cancellation_slot(
                                    op.signal->slot(), handler<writing>(this)));
      else
        s_->async_write_some(b, handler<writing>(this));
    }
  }
  static expectation take(std::size_t& from, std::size_t size) {
    const std::size_t n = std::min(from, size);
    from -= n;
    return {error_code(), n};
  }

  void begin_wait() {
    for (std::size_t i = 0; i != waits_.size(); ++i) {
      if (waits_[i].pending || closed_)
        continue;
      say("async_wait_idle");
      waits_[i].pending = true;
      s_->async_wait_idle(wait_handler(this, i));
      return;
    }
  }

  void touch() {
    say("touch");
    s_->touch();
    idle_restarts();
  }

  duration random_timeout() {
    const duration some[] = {1ns,
                             1ms,
                             2ms,
                             5ms,
                             20ms,
                             50ms,
                             300ms,
                             1s,
                             10s,
                             64s,
                             100s,
                             64ms,
                             1'234'567'891ns,
                             3500us,
                             24h};
    return random_.pick(some) +
           duration(random_.one_in(3) ? random_.below(2'000'000) : 0);
  }
  duration maybe_timeout(unsigned n) {
    return random_.one_in(n) ? random_timeout() : never;
  }

  void change_timeouts() {
    stream_timeouts t;
    t.read = maybe_timeout(2);
    t.write = maybe_timeout(2);
    t.idle = maybe_timeout(2);
    const idle_activity counts[] = {idle_activity::both, idle_activity::sent,
                                    idle_activity::received};
    t.idle_counts = random_.pick(counts);
    if (!lazy_) {
      const timeout_action actions[] = {
          timeout_action::cancel, timeout_action::cancel,
          timeout_action::shutdown, timeout_action::close};
      t.action = random_.pick(actions);
      if (random_.one_in(4))
        t.read_rate = {1 + random_.below(100), random_timeout()};
      if (random_.one_in(4))
        t.write_rate = {1 + random_.below(100), random_timeout()};
    }
    say("timeouts: read ", number(t.read), ", write ", number(t.write),
        ", idle ", number(t.idle), ", action ", static_cast<int>(t.action),
        ", counts ", static_cast<int>(t.idle_counts), ", read_rate ",
        t.read_rate.bytes_per_second, "/", t.read_rate.grace.count(),
        ", write_rate ", t.write_rate.bytes_per_second, "/",
        t.write_rate.grace.count());
    set(t);
  }
  void set(const stream_timeouts& t) {
    s_->timeouts(t);
    idle_restarts(); // before it means another time
    t_ = t;
    owed_ = unsure_ = false;
    changed_ = true;
    changed_at_ = m_.now();
    for (const std::size_t d : {reading, writing}) {
      ops_[d].started = ops_[d].charged = m_.now();
      ops_[d].credit = rate(d).grace;
    }
  }

  void change_deadline() {
    if (random_.one_in(4)) {
      say("expires_never");
      s_->expires_never();
      deadline_ = time_point::max();
    } else {
      const duration d =
          random_.one_in(10) ? -random_timeout() : random_timeout();
      say("expires_after ", d.count(), " ns");
      s_->expires_after(d);
      deadline_ = m_.now() + d;
      deadline_period_ = std::max(d, duration(0));
    }
    check(s_->expiry() == deadline_, "expiry() is another one");
  }

  void expect_aborted(std::size_t d) {
    operation& op = ops_[d];
    if (op.pending && !op.expected && !op.ended)
      op.expected = {asio::error::operation_aborted, 0};
  }
  void expect_all_aborted() {
    expect_aborted(reading);
    expect_aborted(writing);
    for (idle_wait& w : waits_)
      w.aborted = w.pending;
  }

  void user_cancels() {
    say("cancel");
    expect_all_aborted();
    s_->cancel();
  }
  bool any_wait() const {
    return std::any_of(waits_.begin(), waits_.end(),
                       [](const idle_wait& w) { return w.pending; });
  }
  void user_slot() {
    const std::size_t d = random_.below(2);
    operation& op = ops_[d];
    if (!op.pending || !op.signal)
      return;
    const asio::cancellation_type types[] = {asio::cancellation_type::terminal,
                                             asio::cancellation_type::partial,
                                             asio::cancellation_type::total};
    say(d == reading ? "slot of the read" : "slot of the write");
    expect_aborted(d);
    op.signal->emit(random_.pick(types));
  }

  void close() {
    say("close");
    expect_all_aborted();
    closed_ = true;
    s_->close();
    check(peer_->closed(), "not closed");
  }

  void move() {
    say("move");
    if (random_.one_in(2)) {
      stream to(std::move(*s_));
      s_.emplace(std::move(to));
    } else {
      stream to(asio::any_io_executor(m_.io.get_executor()));
      to = std::move(*s_);
      *s_ = std::move(to);
    }
  }

  void destroy() {
    say("destroy");
    expect_all_aborted();
    closed_ = true;
    s_.reset();
  }

  void feed() {
    if (eof_ || peer_->closed() || peer_->shut_down())
      return;
    const std::size_t n = random_.below(20);
    say("feed ", n);
    std::string bytes(n, '\0');
    for (char& c : bytes)
      c = static_cast<char>(fed_++);
    incoming_ += n;
    operation& op = ops_[reading];
    if (n != 0 && op.pending && !op.expected && !op.ended)
      op.expected = take(incoming_, size_[reading]);
    peer_->feed(bytes);
  }

  void accept() {
    if (peer_->closed() || peer_->shut_down())
      return;
    const std::size_t n = random_.below(20);
    say("accept ", n);
    room_ += n;
    operation& op = ops_[writing];
    if (n != 0 && op.pending && !op.expected && !op.ended)
      op.expected = take(room_, size_[writing]);
    peer_->accept(n);
  }

  void peer_ends() {
    if (peer_->closed() || peer_->shut_down())
      return;
    say("end");
    eof_ = true;
    operation& op = ops_[reading];
    if (op.pending && !op.expected && !op.ended)
      op.expected = {asio::error::eof, 0};
    peer_->end();
  }

  // Time goes on, mostly to where something may be wrong.
  void advance() {
    time_point to[16];
    std::size_t n = 0;
    const auto add = [&](error, time_point when, duration period) {
      const duration off[] = {-1ns,  0ns,          1ns,
                              tick_, late(period), late(period) - 1ns};
      if (when < time_point::max() - 1h)
        to[n++] = when + random_.pick(off);
    };
    for (const std::size_t d : {reading, writing})
      for_own_bounds(d, add);
    for_shared_bounds(idle_last_, add);
    duration by = random_timeout() / (1 + random_.below(3));
    if (n != 0 && !random_.one_in(4))
      by = std::max<duration>(to[random_.below(n)] - m_.now(), 0ns);
    say("advance ", by.count(), " ns");
    m_.clock.advance(by);
  }

  // --- What has to be so when nothing is left to run

  void settle() {
    idle_maybe_noticed(lazy_ && (anything_pending() || any_wait()));
    changed_ = false;
    polling_ = true;
    m_.poll();
    polling_ = false;
    for (idle_wait& w : waits_)
      w.maybe_told = false;
    settled();
  }

  void settled() {
    if (failed_)
      return;
    look();
    for (const std::size_t d : {reading, writing}) {
      const operation& op = ops_[d];
      if (!op.pending)
        continue;
      if (op.expected || op.ended)
        return fail("an operation has an outcome and did not complete");
      const auto over = [&](error, time_point when, duration period) {
        if (sum(when, late(period)) <= m_.now())
          fail("an operation is overdue");
      };
      for_own_bounds(d, over);
      if (!waited_for())
        for_shared_bounds(idle_last_, over);
      else if (sum(deadline_, late(deadline_period_)) <= m_.now())
        fail("an operation is beyond the deadline");
    }
    std::size_t waits = 0;
    for (const idle_wait& w : waits_) {
      if (!w.pending)
        continue;
      ++waits;
      if (w.aborted)
        return fail("a wait has an outcome and did not complete");
      if (!closed_ && sum(sum(idle_last_, t_.idle), late(t_.idle)) <= m_.now())
        return fail("a wait is overdue");
    }
    const bool pending = anything_pending();
    if (!s_) {
      check(!pending && waits == 0, "an operation survived its stream");
      check(m_.wheel.pending() == 0, "a wait survived its stream");
      return;
    }
    if (!pending && acts_alone()) {
      const auto over = [&](error e, time_point when, duration period) {
        if (sum(when, late(period)) <= m_.now() &&
            !(e == error::idle_timeout && waited_for()) &&
            !(e == error::deadline_exceeded && when <= changed_at_) &&
            t_.action != timeout_action::cancel)
          fail("the stream should have been ended");
      };
      for_shared_bounds(idle_last_, over);
    }
    const bool clock = t_.idle != never || deadline_ != time_point::max();
    if (!pending && waits == 0 && !(acts_alone() && clock))
      check(m_.wheel.pending() == 0, "a wait for nothing");
    check(m_.wheel.pending() <= waits + 1, "too many waits");
    check(s_->bytes_read() == count_[reading], "bytes_read()");
    check(s_->bytes_written() == count_[writing], "bytes_written()");
    for (const std::size_t d : {reading, writing})
      if (count_[d] != 0)
        check((d == reading ? s_->last_read() : s_->last_write()) == last_[d],
              "last_read(), last_write()");
    check_next();
  }

  void check_next() {
    time_point first = time_point::max();
    const auto consider = [&](error, time_point when, duration) {
      first = std::min(first, when);
    };
    for (const std::size_t d : {reading, writing})
      if (ops_[d].pending)
        for_own_bounds(d, consider);
    if (anything_pending() || acts_alone()) {
      if (t_.idle != never)
        consider(error::idle_timeout, sum(idle_first_, t_.idle), {});
      // One that was noticed is no more.
      if (deadline_ > m_.now())
        consider(error::deadline_exceeded, deadline_, {});
    }
    const auto next = s_->next_timeout();
    const time_point when = next ? next->when : time_point::max();
    if (idle_first_ == idle_last_ && deadline_ > m_.now() && when != first)
      fail("next_timeout() is " + number(when - m_.now()) + " away, not " +
           number(first - m_.now()));
  }

  void finish() {
    random_ = generator(seed_ ^ 0x5555);
    depth_ = 2; // handlers do no more
    settle();
    if (failed_)
      return;
    if (s_) {
      look();
      if (random_.one_in(2)) {
        say("all time passes");
        m_.clock.advance(48h);
        settle();
        if (failed_)
          return;
      }
      look();
      destroy();
      settle();
    }
    check(peer_->received().size() == count_[writing], "bytes are missing");
    for (std::size_t i = 0; i != peer_->received().size(); ++i)
      check(peer_->received()[i] == static_cast<char>(i), "not what was sent");
    check(read_ + incoming_ == fed_ || peer_->shut_down(),
          "bytes that were fed are missing");
    const asio_wheel::wheel_stats stats = m_.wheel.stats();
    check(stats.scheduled == stats.fired + stats.cancelled,
          "the statistics do not add up");
    check(stats.rejected == 0 && stats.abandoned == 0, "rejected, abandoned");
    check(m_.wheel.streams() == 0, "a stream is left");
    check(m_.io.stopped(), "run() is held by nothing");
  }

  const std::uint64_t seed_;
  generator random_;
  std::ostream* trace_;
  const asio_wheel::wheel_options options_;
  manual_context m_;
  std::optional<stream> s_;
  std::optional<memory_stream::peer> peer_;
  const bool lazy_; // several things may happen before anything runs
  const duration tick_;

  // The model.
  stream_timeouts t_;
  time_point deadline_ = time_point::max();
  duration deadline_period_{};
  time_point idle_first_, idle_last_; // when the idle time began, between
  operation ops_[2];
  std::array<idle_wait, 2> waits_;
  bool owed_ = false;
  bool unsure_ = false; // whether so, or how much is on an account
  bool closed_ = false;
  bool changed_ = false; // the settings, while handlers ran
  time_point changed_at_{};
  std::size_t incoming_ = 0, room_ = 0;
  bool eof_ = false;
  std::size_t size_[2] = {};
  std::uint64_t count_[2] = {};
  time_point last_[2];
  std::uint64_t fed_ = 0, read_ = 0;

  std::array<char, 16> data_{}, out_{};
  int depth_ = 0;
  bool polling_ = false;
  bool quiet_ = false;
  bool discarding_ = false;
  bool failed_ = false;
  std::string what_;
};

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* const s = std::getenv(name);
  return s ? std::strtoull(s, nullptr, 10) : otherwise;
}

// Of a failing schedule, the steps that it needs.
std::vector<unsigned char> minimise(std::uint64_t seed,
                                    std::vector<unsigned char> steps) {
  for (std::size_t i = steps.size(); i-- != 0;) {
    std::vector<unsigned char> fewer = steps;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    if (schedule(seed, fewer, nullptr).failed())
      steps = std::move(fewer);
  }
  return steps;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_million_schedules_do_as_the_model) {
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  const auto first = number_from("ASIO_WHEEL_SEED", std::random_device()());
  const auto runs = number_from("ASIO_WHEEL_RUNS", 1'000'000);
  std::uint64_t done = 0;
  std::size_t steps_done = 0;
  for (; done != runs; ++done) {
    const std::uint64_t seed = first + done;
    std::vector<unsigned char> steps(schedule::length(seed));
    std::iota(steps.begin(), steps.end(), static_cast<unsigned char>(0));
    steps_done += steps.size();
    if (schedule(seed, steps, nullptr).failed()) {
      std::ostringstream trace;
      trace << "ASIO_WHEEL_SEED=" << seed << ", cut down: ";
      schedule again(seed, minimise(seed, steps), &trace);
      BOOST_ERROR(trace.str());
      return;
    }
    // Unoptimised, or under a sanitizer, as many as there is time for.
    if (done % 1000 == 0 && clock::now() - start > 50s)
      break;
  }
  BOOST_TEST_MESSAGE("ASIO_WHEEL_SEED=" << first << ": " << done
                                        << " schedules, " << steps_done
                                        << " steps");
  BOOST_TEST(done >= std::min<std::uint64_t>(runs, 1000));
}
