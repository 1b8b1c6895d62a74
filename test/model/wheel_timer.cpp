//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/wheel_timer.hpp>

#define BOOST_TEST_MODULE model_wheel_timer
#include <boost/test/unit_test.hpp>

#include <test/manual_context.hpp>
#include <test/queue_context.hpp>

#include <asio_wheel/error.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/multiple_exceptions.hpp>
#include <boost/asio/strand.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

// Random operations on timers, from outside and from inside handlers, against
// a model that knows of each wait what has to become of it. A failure names
// its seed: ASIO_WHEEL_SEED, ASIO_WHEEL_STEPS and ASIO_WHEEL_RUNS run it again,
// for longer, and more of them.

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::wheel_options;
using asio_wheel::wheel_timer;
using boost::system::error_code;
using test::manual_context;
using test::queue_context;

using duration = wheel_timer::duration;
using time_point = wheel_timer::time_point;

namespace {

enum class state {
  open,     // pending: may fire once it is due, or be cancelled
  aborted,  // has to be called with operation_aborted
  rejected, // has to be called with too_many_pending or wheel_stopped
  done
};

struct thrown {};

class world {
public:
  world(std::uint64_t seed, const wheel_options& options)
      : random_(seed), m_(std::make_unique<manual_context>(options)),
        tick_(options.tick), limit_(options.max_pending),
        single_(options.single_threaded) {
    for (auto& t : timers_)
      t.t.emplace(m_->io);
  }

  void run(std::size_t steps) {
    for (std::size_t i = 0; i != steps && !failed_; ++i) {
      step();
      if (one_in(20))
        settle();
    }
    if (!failed_)
      settle();
    shut_down();
  }

  bool failed() const noexcept { return failed_; }

private:
  struct timer {
    std::optional<wheel_timer> t;
    time_point expiry{};
    unsigned shift = 0;            // of its slack
    std::deque<std::size_t> waits; // open ones, oldest first
  };

  struct wait {
    state s = state::open;
    timer* owner = nullptr; // while open
    std::uint64_t kind = 0;
    std::unique_ptr<asio::cancellation_signal> signal;
  };

  // The two kinds of handlers. Both tell the world when they are called, the
  // one that owns something also when it is destroyed uncalled.
  struct small {
    world* w;
    std::size_t id;
    void operator()(error_code ec) const { w->called(id, ec); }
  };
  struct owning {
    world* w;
    std::size_t id;
    owning(world* x, std::size_t i) noexcept : w(x), id(i) {}
    owning(owning&& o) noexcept : w(std::exchange(o.w, nullptr)), id(o.id) {}
    ~owning() {
      if (w)
        w->dropped(id);
    }
    void operator()(error_code ec) {
      std::exchange(w, nullptr)->called(id, ec);
    }
  };

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

  void fail(const std::string& what) {
    if (!failed_)
      BOOST_ERROR(what);
    failed_ = true;
  }
  void check(bool ok, const char* what) {
    if (!ok)
      fail(what);
  }
  std::string describe(std::size_t id) const {
    const wait& w = waits_[id];
    return "wait " + std::to_string(id) + ", kind " + std::to_string(w.kind) +
           (w.signal ? " with a slot: " : ": ");
  }

  // When a timer's waits have to fire at the latest.
  time_point due(const timer& t) const {
    if (t.expiry == time_point::max() || t.expiry <= time_point())
      return t.expiry;
    const auto grain = static_cast<std::uint64_t>(tick_.count()) << t.shift;
    const auto since =
        static_cast<std::uint64_t>(t.expiry.time_since_epoch().count());
    return time_point(duration(
        static_cast<std::int64_t>((since + grain - 1) / grain * grain)));
  }

  // --- The model of a wait

  void end(std::size_t id, state s) {
    wait& w = waits_[id];
    if (w.owner) {
      auto& q = w.owner->waits;
      q.erase(std::find(q.begin(), q.end(), id));
      w.owner = nullptr;
      --open_;
    }
    w.s = s;
  }
  void abort_all(timer& t) {
    while (!t.waits.empty())
      end(t.waits.front(), state::aborted);
  }

  void called(std::size_t id, error_code ec) {
    wait& w = waits_[id];
    check(!quiet_, "a handler ran inside a function of the timer's");
    switch (w.s) {
    case state::open:
      check(!ec, "an open wait failed");
      check(m_->now() >= w.owner->expiry, "a wait fired early");
      break;
    case state::aborted:
      check(ec == asio::error::operation_aborted,
            "an aborted wait did not say so");
      break;
    case state::rejected:
      check(ec == asio_wheel::error::too_many_pending ||
                ec == asio_wheel::error::wheel_stopped,
            "a refused wait did not say so");
      break;
    case state::done:
      fail("a handler was called twice");
      break;
    }
    end(id, state::done);
    if (w.signal)
      check(!w.signal->slot().has_handler(), "the slot was not cleared");
    if (depth_ >= 3)
      return;
    ++depth_;
    struct at_end {
      int& d;
      ~at_end() { --d; }
    } e{depth_};
    for (auto n = below(3); n != 0; --n)
      operate();
    if (one_in(30))
      m_->io.poll();
    if (one_in(30))
      other_.run_one();
    if (one_in(50))
      throw thrown();
  }

  void dropped(std::size_t id) {
    check(discarding_, "a handler was destroyed uncalled");
    check(waits_[id].s != state::done, "a handler was called and dropped");
    end(id, state::done);
  }

  // --- Operations

  timer& any_timer() { return timers_[below(std::size(timers_))]; }

  duration any_delay() {
    switch (below(10)) {
    case 0:
      return 0ms;
    case 1:
      return -1ms;
    case 2:
      return duration::max();
    case 3:
      return duration(below(100'000'000'000));
    case 4:
      return 1ms * (1 << below(20));
    default:
      return duration(below(20'000'000));
    }
  }

  duration any_slack(unsigned& shift) {
    shift = 0;
    if (!one_in(4))
      return 0ms;
    const duration s(below(50'000'000));
    for (auto r = s / tick_; r > 1; r /= 2)
      ++shift;
    return s;
  }

  static time_point add(time_point t, duration d) {
    return d > time_point::max() - t ? time_point::max() : t + d;
  }

  void start(timer& t) {
    const std::size_t id = waits_.size();
    wait& w = waits_.emplace_back();
    if (stopped_ || (limit_ != 0 && open_ >= limit_)) {
      w.s = state::rejected;
    } else {
      w.owner = &t;
      t.waits.push_back(id);
      ++open_;
    }
    if (one_in(3))
      w.signal = std::make_unique<asio::cancellation_signal>();
    const auto go = [&](auto&& h) {
      if (w.signal)
        t.t->async_wait(asio::bind_cancellation_slot(
            w.signal->slot(), std::forward<decltype(h)>(h)));
      else
        t.t->async_wait(std::forward<decltype(h)>(h));
    };
    w.kind = below(single_ ? 4 : discards_ ? 5 : 6);
    switch (w.kind) {
    case 0:
      return go(small{this, id});
    case 1:
      return go(owning(this, id));
    case 2:
      return go(asio::bind_executor(*strand_, owning(this, id)));
    case 3:
      return go(asio::bind_executor(*any_strand_, small{this, id}));
    case 4:
      return go(asio::bind_executor(other_.get_executor(), owning(this, id)));
    case 5:
      return go(asio::bind_executor(other_strand_, owning(this, id)));
    }
  }

  void set(timer& t, duration d) { t.expiry = add(m_->now(), d); }

  // Something that may be done anywhere, handlers included.
  void operate() {
    quiet_ = true;
    timer& t = any_timer();
    const std::size_t n = t.waits.size();
    switch (below(14)) {
    case 0:
      abort_all(t);
      check(t.t->cancel() == n, "cancel() miscounted");
      break;
    case 1:
      if (n != 0)
        end(t.waits.front(), state::aborted);
      check(t.t->cancel_one() == (n != 0 ? 1u : 0u), "cancel_one() miscounted");
      break;
    case 2:
    case 3: {
      abort_all(t);
      const duration d = any_delay();
      set(t, d);
      const duration s = any_slack(t.shift);
      check(t.t->expires_after(d, s) == n, "expires_after() miscounted");
      break;
    }
    case 4:
    case 5: {
      const duration d = any_delay();
      set(t, d);
      const duration s = any_slack(t.shift);
      check(t.t->rearm_after(d, s) == n, "rearm_after() miscounted");
      break;
    }
    case 6: {
      timer& from = any_timer();
      if (&from == &t)
        break;
      abort_all(t);
      t.waits.swap(from.waits);
      for (std::size_t id : t.waits)
        waits_[id].owner = &t;
      t.expiry = std::exchange(from.expiry, time_point());
      t.shift = std::exchange(from.shift, 0u);
      if (one_in(2)) {
        *t.t = std::move(*from.t);
      } else {
        t.t.reset();
        t.t.emplace(std::move(*from.t));
      }
      break;
    }
    case 7:
      abort_all(t);
      t.t.reset();
      t.t.emplace(m_->io);
      t.expiry = time_point();
      t.shift = 0;
      break;
    case 8:
      if (!waits_.empty()) {
        const std::size_t id =
            waits_.size() - 1 - below(std::min<std::size_t>(waits_.size(), 30));
        wait& w = waits_[id];
        if (w.signal) {
          if (w.s == state::open)
            end(id, state::aborted);
          w.signal->emit(asio::cancellation_type::total);
        }
      }
      break;
    case 9:
      if (one_in(100))
        m_->io.stop();
      break;
    default:
      start(t);
      break;
    }
    quiet_ = false;
    check(t.t->pending() == t.waits.size(), "pending() miscounted");
    check(t.t->expiry() == t.expiry, "expiry() is another");
    check(m_->wheel.pending() == open_, "the wheel's pending() miscounted");
  }

  template <typename F> static bool guarded(F&& f) {
    try {
      return f() != 0;
    } catch (const thrown&) {
    } catch (const asio::multiple_exceptions&) {
    }
    return true;
  }

  void step() {
    m_->io.restart();
    switch (below(12)) {
    case 0:
      m_->clock.advance(duration(below(3'000'000)));
      break;
    case 1:
      m_->clock.advance(1ms * (1 << below(20)));
      break;
    case 2:
      guarded([&] { return m_->io.poll(); });
      break;
    case 3:
    case 4:
      guarded([&] { return m_->io.poll_one(); });
      break;
    case 5:
      guarded([&] { return other_.run_one(); });
      break;
    case 6:
      if (discards_ && one_in(20)) {
        discarding_ = true;
        other_.discard();
        discarding_ = false;
      }
      break;
    case 7:
      if (!stopped_ && one_in(3000)) {
        const std::size_t n = open_;
        for (timer& t : timers_)
          abort_all(t);
        stopped_ = true;
        check(m_->wheel.stop() == n, "stop() miscounted");
      }
      break;
    default:
      operate();
      break;
    }
  }

  // Run all there is to run; then everything has to be as the model has it.
  void settle() {
    depth_ += 10; // handlers do nothing but report
    for (bool ran = true; ran;) {
      m_->io.restart();
      ran = guarded([&] { return m_->io.poll(); });
      ran = guarded([&] { return other_.run(); }) || ran;
    }
    depth_ -= 10;
    std::size_t sum = 0;
    const auto next = m_->clock.next_deadline();
    for (timer& t : timers_) {
      sum += t.waits.size();
      if (t.waits.empty())
        continue;
      if (due(t) <= m_->now())
        fail(describe(t.waits.front()) + "due, but did not fire");
      check(next ? *next <= due(t) : due(t) == time_point::max(),
            "next_deadline() is later than a deadline");
    }
    check(sum == open_, "the model itself miscounted");
    check(m_->wheel.pending() == open_, "the wheel's pending() miscounted");
    for (; settled_ != waits_.size(); ++settled_)
      if (waits_[settled_].s == state::open)
        break;
      else if (waits_[settled_].s != state::done)
        return fail(describe(settled_) + "has an outcome and did not complete");
    for (std::size_t i = settled_; i != waits_.size(); ++i)
      if (waits_[i].s != state::open && waits_[i].s != state::done)
        return fail(describe(i) + "has an outcome and did not complete");
    check(m_->io.stopped() == (open_ == 0),
          open_ == 0 ? "run() is held by nothing" : "run() is not held");
  }

  void shut_down() {
    if (one_in(2)) { // the timers first
      for (timer& t : timers_) {
        abort_all(t);
        t.t.reset();
      }
      if (one_in(2))
        while (guarded([&] {
          m_->io.restart();
          depth_ = 10;
          return m_->io.poll() + other_.run();
        })) {
        }
    }
    discarding_ = true;
    strand_.reset();
    any_strand_.reset();
    m_.reset();
    other_.discard();
    for (timer& t : timers_)
      if (t.t)
        check(t.t->cancel() == 0, "a timer's waits survived its context");
  }

  std::mt19937_64 random_;
  queue_context other_;
  std::unique_ptr<manual_context> m_;
  const duration tick_;
  const std::size_t limit_;
  const bool single_;
  // A strand whose turn is discarded is stuck for good: either, or.
  const bool discards_ = one_in(2);
  // Optional, since a strand must not outlive its context.
  std::optional<asio::strand<asio::io_context::executor_type>> strand_{
      std::in_place, m_->io.get_executor()};
  std::optional<asio::strand<asio::any_io_executor>> any_strand_{
      std::in_place, asio::any_io_executor(m_->io.get_executor())};
  asio::strand<queue_context::executor_type> other_strand_{
      other_.get_executor()};
  timer timers_[8];
  std::deque<wait> waits_;
  std::size_t open_ = 0;
  std::size_t settled_ = 0; // waits before this one are done
  int depth_ = 0;
  bool quiet_ = false;
  bool discarding_ = false;
  bool stopped_ = false;
  bool failed_ = false;
};

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* const s = std::getenv(name);
  return s ? std::strtoull(s, nullptr, 10) : otherwise;
}

void run(const wheel_options& options) {
  const auto steps = number_from("ASIO_WHEEL_STEPS", 3000);
  const auto first = number_from("ASIO_WHEEL_SEED", std::random_device()());
  const auto runs = number_from("ASIO_WHEEL_RUNS", 20);
  for (std::uint64_t seed = first; seed != first + runs; ++seed)
    BOOST_TEST_CONTEXT("ASIO_WHEEL_SEED=" << seed) {
      world w(seed, options);
      w.run(steps);
      if (w.failed())
        return;
    }
}

} // namespace

BOOST_AUTO_TEST_CASE(a_hierarchical_wheel_does_as_the_model) { run({}); }

BOOST_AUTO_TEST_CASE(a_small_hashed_wheel_does_as_the_model) {
  wheel_options o;
  o.slots = 4;
  o.levels = 1;
  run(o);
}

BOOST_AUTO_TEST_CASE(small_batches_and_a_limit_do_as_the_model) {
  wheel_options o;
  o.slots = 2;
  o.levels = 8;
  o.expiry_batch = 2;
  o.max_pending = 20;
  run(o);
}

BOOST_AUTO_TEST_CASE(a_wheel_of_one_thread_does_as_the_model) {
  wheel_options o;
  o.single_threaded = true;
  o.expiry_batch = 3;
  run(o);
}
