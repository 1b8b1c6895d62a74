//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/wheel_timer.hpp>

#define BOOST_TEST_MODULE wheel_timer
#include <boost/test/unit_test.hpp>

#include <test/manual_context.hpp>
#include <test/outcome.hpp>
#include <test/queue_context.hpp>
#include <test/tracking_allocator.hpp>
#include <test/tracking_executor.hpp>

#include <asio_wheel/error.hpp>

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <ostream>
#include <thread>
#include <utility>
#include <vector>

// What a wheel_timer promises beyond a steady_timer. test/parity has the rest.

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::manual_clock;
using asio_wheel::wheel_options;
using asio_wheel::wheel_timer;
using test::fate;
using test::manual_context;
using test::outcome;
using test::queue_context;
using test::quietly;

using duration = wheel_timer::duration;
using time_point = wheel_timer::time_point;
using io_executor = asio::io_context::executor_type;
using io_timer = asio_wheel::basic_wheel_timer<io_executor>;

namespace {

// All ways to cancel the only wait of a timer.
enum class way {
  cancel,
  cancel_one,
  expires_at,
  expires_after,
  terminal,
  partial,
  total,
  destruction,
  assignment,
  stop
};

constexpr std::array<way, 10> ways = {
    way::cancel,        way::cancel_one, way::expires_at, way::expires_after,
    way::terminal,      way::partial,    way::total,      way::destruction,
    way::assignment,    way::stop};

std::ostream& operator<<(std::ostream& o, way w) {
  constexpr std::array<const char*, 10> names = {
      "cancel", "cancel_one", "expires_at",  "expires_after", "terminal",
      "partial", "total",     "destruction", "assignment",    "stop"};
  return o << names[static_cast<std::size_t>(w)];
}

// A timer with one wait, whose slot is connected.
struct subject {
  asio::cancellation_signal signal;
  manual_context& m;
  std::optional<wheel_timer> timer;

  explicit subject(manual_context& c, duration d = 10ms)
      : m(c), timer(std::in_place, c.io, d) {}

  template <typename Handler> void wait(Handler&& h) {
    quietly([&] {
      timer->async_wait(asio::bind_cancellation_slot(signal.slot(),
                                                     std::forward<Handler>(h)));
    });
  }

  // Cancels the wait, and checks that it was there to be cancelled.
  void cancel(way w) {
    test::no_upcalls guard;
    BOOST_TEST(timer->pending() == 1u);
    switch (w) {
    case way::cancel:
      BOOST_TEST(timer->cancel() == 1u);
      break;
    case way::cancel_one:
      BOOST_TEST(timer->cancel_one() == 1u);
      break;
    case way::expires_at:
      BOOST_TEST(timer->expires_at(m.now() + 1h) == 1u);
      break;
    case way::expires_after:
      BOOST_TEST(timer->expires_after(1h) == 1u);
      break;
    case way::terminal:
      signal.emit(asio::cancellation_type::terminal);
      break;
    case way::partial:
      signal.emit(asio::cancellation_type::partial);
      break;
    case way::total:
      signal.emit(asio::cancellation_type::total);
      break;
    case way::destruction:
      timer.reset();
      return;
    case way::assignment:
      *timer = wheel_timer(m.io, 1h);
      break;
    case way::stop:
      BOOST_TEST(m.wheel.stop() == 1u);
      break;
    }
    BOOST_TEST(timer->pending() == 0u);
    BOOST_TEST(timer->cancel() == 0u);
    BOOST_TEST(timer->cancel_one() == 0u);
    BOOST_TEST(timer->expires_after(1h) == 0u);
    BOOST_TEST(timer->rearm_after(1h) == 0u);
  }
};

// While one of these lives, another thread is inside the strand.
class busy_strand {
public:
  template <typename Strand>
  busy_strand(manual_context& m, const Strand& strand) {
    std::promise<void> inside;
    asio::post(strand, [&, f = go_on_.get_future().share()] {
      inside.set_value();
      f.wait();
    });
    m.io.restart();
    thread_ = std::thread([&] { m.io.run_one(); });
    inside.get_future().wait();
  }
  ~busy_strand() { release(); }

  void release() {
    if (thread_.joinable()) {
      go_on_.set_value();
      thread_.join();
    }
  }

private:
  std::promise<void> go_on_;
  std::thread thread_;
};

void check_one_cancelled(const manual_context& m) {
  BOOST_TEST(m.wheel.pending() == 0u);
  BOOST_TEST(m.wheel.stats().cancelled == 1u);
  BOOST_TEST(m.wheel.stats().fired == 0u);
}

void check_one_fired(const manual_context& m) {
  BOOST_TEST(m.wheel.pending() == 0u);
  BOOST_TEST(m.wheel.stats().cancelled == 0u);
  BOOST_TEST(m.wheel.stats().fired == 1u);
}

} // namespace

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(cancel_wins_until_the_handler_starts)

BOOST_AUTO_TEST_CASE(armed) {
  for (way w : ways)
    BOOST_TEST_CONTEXT(w) {
      manual_context m;
      subject s(m);
      outcome o;
      s.wait(o.tracked());
      m.advance(9ms);
      s.cancel(w);
      m.advance(10ms);
      BOOST_TEST(o.fate() == fate::aborted);
      check_one_cancelled(m);
    }
}

BOOST_AUTO_TEST_CASE(due_before_the_wheel_has_seen_it) {
  for (way w : ways)
    BOOST_TEST_CONTEXT(w) {
      manual_context m;
      subject s(m);
      outcome o;
      s.wait(o.tracked());
      m.clock.advance(10ms);
      s.cancel(w);
      m.poll();
      BOOST_TEST(o.fate() == fate::aborted);
      check_one_cancelled(m);
    }
}

BOOST_AUTO_TEST_CASE(due_when_it_was_started) {
  for (way w : ways)
    BOOST_TEST_CONTEXT(w) {
      manual_context m;
      subject s(m, 0ms);
      outcome o;
      s.wait(o.tracked());
      s.cancel(w);
      m.poll();
      BOOST_TEST(o.fate() == fate::aborted);
      check_one_cancelled(m);
    }
}

BOOST_AUTO_TEST_CASE(ready_behind_another_in_the_same_batch) {
  // Whichever of the two runs first cancels the other.
  for (way w : ways)
    BOOST_TEST_CONTEXT(w) {
      manual_context m;
      subject a(m), b(m);
      int ran = 0;
      outcome oa([&](auto) {
        if (++ran == 1)
          b.cancel(w);
      });
      outcome ob([&](auto) {
        if (++ran == 1)
          a.cancel(w);
      });
      a.wait(oa.tracked());
      b.wait(ob.tracked());
      m.advance(10ms);
      BOOST_TEST(ran == 2);
      BOOST_TEST(((oa.fate() == fate::fired && ob.fate() == fate::aborted) ||
                  (oa.fate() == fate::aborted && ob.fate() == fate::fired)));
      BOOST_TEST(m.wheel.pending() == 0u);
    }
}

BOOST_AUTO_TEST_CASE(queued_on_a_busy_strand) {
  for (way w : ways)
    BOOST_TEST_CONTEXT(w) {
      manual_context m;
      auto strand = asio::make_strand(m.io);
      subject s(m);
      outcome o([&](auto) { BOOST_TEST(strand.running_in_this_thread()); });
      s.wait(asio::bind_executor(strand, o.tracked()));
      busy_strand busy(m, strand);
      m.clock.advance(10ms);
      m.io.poll();
      BOOST_TEST(o.fate() == fate::waiting);
      s.cancel(w);
      busy.release();
      m.poll();
      BOOST_TEST(o.fate() == fate::aborted);
      check_one_cancelled(m);
    }
}

BOOST_AUTO_TEST_CASE(queued_on_a_strand_of_another_context) {
  for (way w : ways)
    BOOST_TEST_CONTEXT(w) {
      manual_context m;
      queue_context other;
      asio::strand<queue_context::executor_type> strand(other.get_executor());
      subject s(m);
      outcome o([&](auto) { BOOST_TEST(strand.running_in_this_thread()); });
      s.wait(asio::bind_executor(strand, o.tracked()));
      int ran = 0;
      asio::post(strand, [&] { ++ran; });
      m.advance(10ms);
      s.cancel(w);
      m.poll();
      BOOST_TEST(ran == 0);
      other.run();
      BOOST_TEST(ran == 1);
      BOOST_TEST(o.fate() == fate::aborted);
      check_one_cancelled(m);
    }
}

BOOST_AUTO_TEST_CASE(handed_to_another_context) {
  for (way w : ways)
    BOOST_TEST_CONTEXT(w) {
      manual_context m;
      queue_context other;
      subject s(m);
      outcome o;
      s.wait(asio::bind_executor(other.get_executor(), o.tracked()));
      m.advance(10ms);
      BOOST_TEST(other.size() == 1u);
      s.cancel(w);
      m.poll();
      BOOST_TEST(o.fate() == fate::waiting);
      BOOST_TEST(other.size() == 1u);
      other.run();
      BOOST_TEST(o.fate() == fate::aborted);
      check_one_cancelled(m);
      BOOST_TEST(other.work() == 0u);
    }
}

BOOST_AUTO_TEST_CASE(handed_to_a_pool_whose_thread_is_busy) {
  for (way w : ways)
    BOOST_TEST_CONTEXT(w) {
      manual_context m;
      asio::thread_pool pool(1);
      subject s(m);
      std::promise<void> go_on;
      asio::post(pool, [f = go_on.get_future().share()] { f.wait(); });
      outcome o;
      s.wait(asio::bind_executor(pool, o.tracked()));
      m.advance(10ms);
      s.cancel(w);
      m.poll();
      go_on.set_value();
      pool.join();
      m.poll();
      BOOST_TEST(o.fate() == fate::aborted);
      BOOST_TEST((o.thread() != std::this_thread::get_id()));
      check_one_cancelled(m);
    }
}

BOOST_AUTO_TEST_CASE(a_small_handler_without_a_slot) {
  for (way w : {way::cancel, way::cancel_one, way::expires_at,
                way::expires_after, way::destruction, way::assignment,
                way::stop})
    BOOST_TEST_CONTEXT(w) {
      manual_context m;
      subject s(m);
      outcome o;
      s.timer->async_wait(o.small());
      m.clock.advance(10ms);
      s.cancel(w);
      m.poll();
      BOOST_TEST(o.fate() == fate::aborted);
      check_one_cancelled(m);
    }
}

BOOST_AUTO_TEST_CASE(but_not_after_it_has_started) {
  manual_context m;
  wheel_timer t(m.io, 10ms);
  outcome o([&](auto) {
    BOOST_TEST(t.pending() == 0u);
    BOOST_TEST(t.cancel() == 0u);
    BOOST_TEST(t.cancel_one() == 0u);
    BOOST_TEST(t.expires_after(1h) == 0u);
    BOOST_TEST(t.rearm_after(1h) == 0u);
  });
  t.async_wait(o.tracked());
  m.advance(10ms);
  BOOST_TEST(o.fate() == fate::fired);
  check_one_fired(m);
}

BOOST_AUTO_TEST_CASE(what_was_aborted_stays_aborted) {
  // Whoever acted first decides; nobody counts it again.
  manual_context m;
  queue_context other;
  subject s(m);
  outcome o;
  s.wait(asio::bind_executor(other.get_executor(), o.tracked()));
  m.advance(10ms);
  BOOST_TEST(s.timer->cancel() == 1u);
  s.signal.emit(asio::cancellation_type::all);
  BOOST_TEST(s.timer->rearm_after(0ms) == 0u);
  BOOST_TEST(m.wheel.stop() == 0u);
  m.poll();
  other.run();
  BOOST_TEST(o.fate() == fate::aborted);
  check_one_cancelled(m);
}

BOOST_AUTO_TEST_CASE(cancel_one_skips_waits_with_an_outcome) {
  manual_context m;
  asio::cancellation_signal signal;
  queue_context other;
  wheel_timer t(m.io, 10ms);
  std::vector<outcome> o(4);
  t.async_wait(asio::bind_cancellation_slot(
      signal.slot(), asio::bind_executor(other.get_executor(), o[0].tracked())));
  t.async_wait(asio::bind_executor(other.get_executor(), o[1].tracked()));
  t.async_wait(asio::bind_executor(other.get_executor(), o[2].tracked()));
  t.async_wait(asio::bind_executor(other.get_executor(), o[3].tracked()));
  m.advance(10ms);
  BOOST_TEST(t.pending() == 4u);
  signal.emit(asio::cancellation_type::total);
  BOOST_TEST(t.pending() == 3u);
  BOOST_TEST(t.cancel_one() == 1u);
  BOOST_TEST(t.pending() == 2u);
  m.poll();
  other.run();
  BOOST_TEST(o[0].fate() == fate::aborted);
  BOOST_TEST(o[1].fate() == fate::aborted);
  BOOST_TEST(o[2].fate() == fate::fired);
  BOOST_TEST(o[3].fate() == fate::fired);
  BOOST_TEST(t.cancel_one() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(rearm)

BOOST_AUTO_TEST_CASE(moves_the_expiry_and_keeps_the_waits) {
  manual_context m;
  wheel_timer t(m.io, 10ms);
  std::vector<outcome> o(3);
  t.async_wait(o[0].small());
  t.async_wait(o[1].tracked());
  t.async_wait(o[2].small());
  m.advance(5ms);
  BOOST_TEST(quietly([&] { return t.rearm_after(20ms); }) == 3u);
  BOOST_TEST((t.expiry() == m.now() + 20ms));
  BOOST_TEST(t.pending() == 3u);
  m.advance(19ms);
  for (auto& x : o)
    BOOST_TEST(x.fate() == fate::waiting);
  m.advance(1ms);
  for (auto& x : o)
    BOOST_TEST(x.fate() == fate::fired);
  BOOST_TEST(m.wheel.stats().moved == 3u);
  BOOST_TEST(m.wheel.stats().scheduled == 3u);
}

BOOST_AUTO_TEST_CASE(to_an_earlier_time) {
  manual_context m;
  wheel_timer t(m.io, 10h);
  outcome o;
  t.async_wait(o.tracked());
  m.advance(1ms);
  BOOST_TEST(t.rearm_at(m.now() + 5ms) == 1u);
  m.advance(4ms);
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(1ms);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(to_the_past_completes_on_the_next_turn) {
  for (const auto at : {time_point::min(), time_point(), time_point(1ms)}) {
    manual_context m;
    wheel_timer t(m.io, 1h);
    std::vector<outcome> o(2);
    t.async_wait(o[0].small());
    t.async_wait(o[1].tracked());
    m.advance(2ms);
    BOOST_TEST(quietly([&] { return t.rearm_at(at); }) == 2u);
    BOOST_TEST((t.expiry() == at));
    m.poll();
    BOOST_TEST(o[0].fate() == fate::fired);
    BOOST_TEST(o[1].fate() == fate::fired);
  }
}

BOOST_AUTO_TEST_CASE(to_never_and_back) {
  manual_context m;
  wheel_timer t(m.io, 10ms);
  outcome o;
  t.async_wait(o.tracked());
  BOOST_TEST(t.rearm_at(time_point::max()) == 1u);
  m.advance(24h);
  BOOST_TEST(o.fate() == fate::waiting);
  BOOST_TEST((t.remaining() == duration::max()));
  BOOST_TEST(t.rearm_after(3ms) == 1u);
  m.advance(2ms);
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(1ms);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(without_waits_is_expires_after) {
  manual_context m;
  wheel_timer t(m.io);
  BOOST_TEST(t.rearm_after(5ms) == 0u);
  BOOST_TEST((t.expiry() == m.now() + 5ms));
  BOOST_TEST(t.rearm_at(time_point(7ms)) == 0u);
  BOOST_TEST((t.expiry() == time_point(7ms)));
  outcome o;
  t.async_wait(o.tracked());
  m.advance(6ms);
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(1ms);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(pulls_back_a_wait_that_is_due) {
  manual_context m;
  wheel_timer t(m.io, 10ms);
  std::vector<outcome> o(2);
  t.async_wait(o[0].small());
  t.async_wait(o[1].tracked());
  m.clock.advance(10ms);
  BOOST_TEST(t.rearm_after(10ms) == 2u);
  m.poll();
  m.advance(9ms);
  BOOST_TEST(o[0].fate() == fate::waiting);
  BOOST_TEST(o[1].fate() == fate::waiting);
  m.advance(1ms);
  BOOST_TEST(o[0].fate() == fate::fired);
  BOOST_TEST(o[1].fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(pulls_back_a_wait_that_is_ready_in_the_same_batch) {
  manual_context m;
  wheel_timer a(m.io, 10ms), b(m.io, 10ms);
  wheel_timer* second = nullptr;
  outcome oa([&](auto) {
    if (!second) {
      second = &b;
      BOOST_TEST(b.rearm_after(7ms) == 1u);
    }
  });
  outcome ob([&](auto) {
    if (!second) {
      second = &a;
      BOOST_TEST(a.rearm_after(7ms) == 1u);
    }
  });
  a.async_wait(oa.tracked());
  b.async_wait(ob.tracked());
  m.advance(10ms);
  BOOST_TEST(oa.calls() + ob.calls() == 1);
  m.advance(6ms);
  BOOST_TEST(oa.calls() + ob.calls() == 1);
  m.advance(1ms);
  BOOST_TEST(oa.fate() == fate::fired);
  BOOST_TEST(ob.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(pulls_back_a_wait_that_was_handed_over) {
  manual_context m;
  queue_context other;
  wheel_timer t(m.io, 10ms);
  outcome o;
  t.async_wait(asio::bind_executor(other.get_executor(), o.tracked()));
  m.advance(10ms);
  BOOST_TEST(other.size() == 1u);
  BOOST_TEST(t.rearm_after(10ms) == 1u);
  // The function that is on its way finds nothing to do.
  m.poll();
  BOOST_TEST(other.run() == 1u);
  BOOST_TEST(o.fate() == fate::waiting);
  BOOST_TEST(t.pending() == 1u);
  m.advance(9ms);
  BOOST_TEST(other.run() == 0u);
  m.advance(1ms);
  BOOST_TEST(other.run() == 1u);
  BOOST_TEST(o.fate() == fate::fired);
  check_one_fired(m);
}

BOOST_AUTO_TEST_CASE(a_wait_due_again_reuses_what_is_on_its_way) {
  manual_context m;
  queue_context other;
  wheel_timer t(m.io, 10ms);
  outcome o;
  t.async_wait(asio::bind_executor(other.get_executor(), o.tracked()));
  m.advance(10ms);
  for (int i = 0; i != 3; ++i) {
    BOOST_TEST(t.rearm_after(10ms) == 1u);
    m.advance(10ms);
    BOOST_TEST(other.size() == 1u);
  }
  other.run();
  m.poll();
  BOOST_TEST(o.fate() == fate::fired);
  check_one_fired(m);
  BOOST_TEST(m.wheel.stats().moved == 3u);
}

BOOST_AUTO_TEST_CASE(a_wait_cancelled_after_it_was_pulled_back) {
  // With the function still on its way, and without.
  for (bool ran : {false, true}) {
    manual_context m;
    queue_context other;
    wheel_timer t(m.io, 10ms);
    outcome o;
    t.async_wait(asio::bind_executor(other.get_executor(), o.tracked()));
    m.advance(10ms);
    BOOST_TEST(t.rearm_after(10ms) == 1u);
    if (ran)
      other.run();
    BOOST_TEST(t.cancel() == 1u);
    m.poll();
    BOOST_TEST(other.size() == 1u);
    other.run();
    m.poll();
    other.run();
    BOOST_TEST(o.fate() == fate::aborted);
    check_one_cancelled(m);
  }
}

BOOST_AUTO_TEST_CASE(pulls_back_a_wait_on_a_busy_strand) {
  manual_context m;
  auto strand = asio::make_strand(m.io);
  wheel_timer t(strand, 10ms);
  outcome o;
  t.async_wait(o.tracked());
  {
    busy_strand busy(m, strand);
    m.clock.advance(10ms);
    m.io.poll();
    BOOST_TEST(t.rearm_after(10ms) == 1u);
  }
  m.poll();
  m.advance(9ms);
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(1ms);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(leaves_aborted_and_refused_waits_alone) {
  wheel_options options;
  options.max_pending = 3;
  manual_context m(options);
  wheel_timer t(m.io, 10ms);
  std::vector<outcome> o(4);
  for (auto& x : o)
    t.async_wait(x.tracked());
  BOOST_TEST(t.pending() == 3u);
  BOOST_TEST(t.cancel_one() == 1u);
  BOOST_TEST(t.rearm_after(20ms) == 2u);
  m.poll();
  BOOST_TEST(o[0].fate() == fate::aborted);
  BOOST_TEST(o[3].fate() == fate::failed);
  m.advance(20ms);
  BOOST_TEST(o[1].fate() == fate::fired);
  BOOST_TEST(o[2].fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(again_and_again_fires_once_at_the_last) {
  manual_context m;
  wheel_timer t(m.io, 10ms);
  outcome o;
  t.async_wait(o.small());
  for (int i = 0; i != 1000; ++i) {
    BOOST_TEST(t.rearm_after(10ms) == 1u);
    m.advance(9ms);
  }
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(1ms);
  BOOST_TEST(o.fate() == fate::fired);
  BOOST_TEST(m.wheel.stats().moved == 1000u);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(slack)

namespace {

// When a wait of d with a slack fires, seen from the wheel's making.
duration fires_after(duration d, duration slack, duration step = 1ms,
                     time_point start = time_point()) {
  manual_context m({}, manual_clock(start));
  wheel_timer t(m.io);
  t.expires_after(d, slack);
  BOOST_TEST((t.expiry() == start + d));
  outcome o;
  t.async_wait(o.tracked());
  m.poll();
  while (o.fate() == fate::waiting && m.now() - start < 10min)
    m.advance(step);
  BOOST_TEST(o.fate() == fate::fired);
  return m.now() - start;
}

} // namespace

BOOST_AUTO_TEST_CASE(less_than_two_ticks_is_none) {
  for (const auto s : {-1000000000ns, 0ns, 1ns, 999999ns, 1000000ns, 1999999ns})
    BOOST_TEST((fires_after(13ms, s) == 13ms));
}

BOOST_AUTO_TEST_CASE(rounds_up_to_a_power_of_two_of_ticks) {
  BOOST_TEST((fires_after(13ms, 2ms) == 14ms));
  BOOST_TEST((fires_after(13ms, 3999us) == 14ms));
  BOOST_TEST((fires_after(13ms, 4ms) == 16ms));
  BOOST_TEST((fires_after(13ms, 10ms) == 16ms));
  BOOST_TEST((fires_after(17ms, 15ms) == 24ms));
  BOOST_TEST((fires_after(17ms, 16ms) == 32ms));
  BOOST_TEST((fires_after(1ms, 100ms) == 64ms));
}

BOOST_AUTO_TEST_CASE(a_deadline_on_the_grid_is_not_put_off) {
  BOOST_TEST((fires_after(16ms, 10ms) == 16ms));
  BOOST_TEST((fires_after(64ms, 100ms) == 64ms));
}

BOOST_AUTO_TEST_CASE(rounds_once_directly_from_the_deadline) {
  // 15.2 ms is tick 16 and so on the grid of 8 already; 16.2 ms is not.
  BOOST_TEST((fires_after(15200us, 10ms, 100us) == 16ms));
  BOOST_TEST((fires_after(16200us, 10ms, 100us) == 24ms));
}

BOOST_AUTO_TEST_CASE(counts_from_the_wheels_epoch) {
  // An epoch that is no multiple of anything.
  const time_point start(1234567us);
  BOOST_TEST((fires_after(13ms, 10ms, 1ms, start) == 16ms));
  BOOST_TEST((fires_after(13ms, 0ms, 1ms, start) == 13ms));
}

BOOST_AUTO_TEST_CASE(lateness_stays_below_the_slack) {
  for (auto d = 1ms; d <= 100ms; d += 7ms)
    for (auto s = 1ms; s <= 40ms; s += 3ms) {
      const auto fired = fires_after(d, s);
      BOOST_TEST((fired >= d));
      BOOST_TEST((fired - d < s || (s <= 1ms && fired == d)));
    }
}

BOOST_AUTO_TEST_CASE(waits_share_a_slot) {
  manual_context m;
  std::vector<std::unique_ptr<wheel_timer>> timers;
  std::vector<outcome> o(8);
  for (int i = 0; i != 8; ++i) {
    timers.push_back(std::make_unique<wheel_timer>(m.io));
    timers.back()->expires_after((9 + i) * 1ms, 10ms);
    timers.back()->async_wait(o[i].tracked());
  }
  m.advance(15999us);
  for (auto& x : o)
    BOOST_TEST(x.fate() == fate::waiting);
  m.advance(1us);
  for (auto& x : o)
    BOOST_TEST(x.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(of_rearm) {
  manual_context m;
  wheel_timer t(m.io, 5ms);
  outcome o;
  t.async_wait(o.tracked());
  BOOST_TEST(t.rearm_after(13ms, 10ms) == 1u);
  BOOST_TEST((t.expiry() == m.now() + 13ms));
  m.advance(15ms);
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(1ms);
  BOOST_TEST(o.fate() == fate::fired);

  o.forget();
  t.expires_at(time_point(20ms), 10ms);
  t.async_wait(o.tracked());
  BOOST_TEST(t.rearm_at(time_point(20ms)) == 1u);
  m.advance(4ms);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(of_one_expiry_does_not_hold_for_the_next) {
  manual_context m;
  wheel_timer t(m.io);
  t.expires_after(13ms, 10ms);
  t.expires_after(13ms);
  outcome o;
  t.async_wait(o.tracked());
  m.advance(13ms);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(travels_with_the_timer) {
  manual_context m;
  wheel_timer a(m.io);
  a.expires_after(13ms, 10ms);
  wheel_timer b(std::move(a));
  outcome o;
  b.async_wait(o.tracked());
  m.advance(15ms);
  BOOST_TEST(o.fate() == fate::waiting);
  m.advance(1ms);
  BOOST_TEST(o.fate() == fate::fired);
  // What is left is like new.
  a.expires_after(13ms);
  o.forget();
  a.async_wait(o.tracked());
  m.advance(13ms);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(extreme_values_saturate) {
  for (const auto s : {duration::max(), duration::max() - 1ns, duration::min(),
                       duration::max() / 2})
    for (const auto d : {duration::max(), duration::max() / 2, duration(1h)}) {
      manual_context m;
      wheel_timer t(m.io);
      t.expires_after(d, s);
      outcome o;
      t.async_wait(o.tracked());
      m.advance(30min);
      BOOST_TEST(o.fate() == fate::waiting);
      BOOST_TEST(t.cancel() == 1u);
      m.poll();
      BOOST_TEST(o.fate() == fate::aborted);
    }
}

BOOST_AUTO_TEST_CASE(does_not_delay_what_is_past) {
  // A deadline in the past is due; but a slack allows to be late.
  manual_context m;
  m.advance(100ms);
  wheel_timer t(m.io);
  t.expires_after(-1ms, 10ms);
  outcome o;
  t.async_wait(o.tracked());
  m.advance(10ms);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(queries)

BOOST_AUTO_TEST_CASE(pending_counts_what_is_neither_started_nor_cancelled) {
  manual_context m;
  wheel_timer t(m.io, 10ms);
  BOOST_TEST(t.pending() == 0u);
  std::vector<outcome> o;
  std::vector<std::size_t> seen;
  for (int i = 0; i != 3; ++i)
    o.emplace_back([&](auto) { seen.push_back(t.pending()); });
  for (int i = 0; i != 3; ++i) {
    t.async_wait(o[i].tracked());
    BOOST_TEST(t.pending() == i + 1u);
  }
  m.clock.advance(10ms);
  BOOST_TEST(t.pending() == 3u);
  m.poll();
  BOOST_TEST(seen == (std::vector<std::size_t>{2, 1, 0}),
             boost::test_tools::per_element());
  BOOST_TEST(t.pending() == 0u);
}

BOOST_AUTO_TEST_CASE(remaining_is_the_time_to_the_expiry) {
  manual_context m;
  wheel_timer t(m.io, 10ms);
  BOOST_TEST((t.remaining() == 10ms));
  m.advance(3500us);
  BOOST_TEST((t.remaining() == 6500us));
  m.advance(6500us);
  BOOST_TEST((t.remaining() == 0ms));
  m.advance(1h);
  BOOST_TEST((t.remaining() == 0ms));
}

BOOST_AUTO_TEST_CASE(remaining_never_wraps) {
  for (const auto start :
       {time_point::min(), time_point(-1h), time_point(), time_point(1h),
        time_point::max() - 1s}) {
    manual_context m({}, manual_clock(start));
    wheel_timer t(m.io);
    t.expires_at(time_point::min());
    BOOST_TEST((t.remaining() == 0ms));
    t.expires_at(time_point::max());
    BOOST_TEST((t.remaining() == duration::max()));
    t.expires_after(duration::max());
    BOOST_TEST((t.remaining() == duration::max()));
    t.expires_after(duration::min());
    BOOST_TEST((t.remaining() == 0ms));
    t.expires_after(500ms);
    BOOST_TEST((t.remaining() == 500ms));
  }
}

BOOST_AUTO_TEST_CASE(blocking_wait_is_refused_under_a_manual_clock) {
  manual_context m;
  for (const auto d : {0ms, 10ms}) {
    wheel_timer t(m.io, d);
    test::error_code ec;
    t.wait(ec);
    BOOST_TEST(ec == asio::error::operation_not_supported);
    BOOST_CHECK_EXCEPTION(t.wait(), boost::system::system_error,
                          [](const auto& e) {
                            return e.code() ==
                                   asio::error::operation_not_supported;
                          });
  }
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(handlers)

BOOST_AUTO_TEST_CASE(never_run_inside_the_initiation) {
  manual_context m;
  int ran = 0;
  std::vector<outcome> o(4);
  // From within the loop, where a careless timer would.
  asio::post(m.io, [&] {
    ++ran;
    for (int i = 0; i != 4; ++i) {
      wheel_timer t(m.io, i % 2 ? 0ms : -1h);
      quietly([&] {
        if (i < 2)
          t.async_wait(o[i].small());
        else
          t.async_wait(o[i].tracked());
        wheel_timer u(std::move(t));
      });
    }
  });
  m.poll();
  BOOST_TEST(ran == 1);
  for (auto& x : o)
    BOOST_TEST(x.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE(run_on_their_associated_executor_only) {
  manual_context m;
  test::execution_log of_timer, of_handler;
  test::tracking_executor timers(m.io.get_executor(), of_timer);
  test::tracking_executor handlers(m.io.get_executor(), of_handler);
  asio_wheel::basic_wheel_timer<decltype(timers)> t(timers, 10ms);
  wheel_timer any(timers, 10ms);

  outcome own([&](auto) {
    BOOST_TEST(of_handler.running_in_this_thread());
    BOOST_TEST(!of_timer.running_in_this_thread());
  });
  std::vector<outcome> default_;
  for (int i = 0; i != 3; ++i)
    default_.emplace_back([&](auto) {
      BOOST_TEST(of_timer.running_in_this_thread());
      BOOST_TEST(!of_handler.running_in_this_thread());
    });
  t.async_wait(asio::bind_executor(handlers, own.tracked()));
  t.async_wait(default_[0].tracked());
  t.async_wait(default_[1].small());
  any.async_wait(default_[2].tracked());
  m.advance(9ms);
  BOOST_TEST(of_timer.executions == 0u);
  BOOST_TEST(of_handler.executions == 0u);
  m.advance(1ms);
  BOOST_TEST(own.fate() == fate::fired);
  for (auto& x : default_)
    BOOST_TEST(x.fate() == fate::fired);
  BOOST_TEST(of_handler.executions == 1u);

  // And the same when aborted.
  for (auto& x : default_)
    x.forget();
  own.forget();
  t.expires_after(10ms);
  t.async_wait(asio::bind_executor(handlers, own.tracked()));
  t.async_wait(default_[0].tracked());
  t.async_wait(default_[1].small());
  t.cancel();
  m.poll();
  BOOST_TEST(own.fate() == fate::aborted);
  BOOST_TEST(default_[0].fate() == fate::aborted);
  BOOST_TEST(default_[1].fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE(free_their_memory_before_they_are_called) {
  manual_context m;
  queue_context other;
  auto strand = asio::make_strand(m.io);
  test::allocation_log log;
  test::tracking_allocator<void*> allocator(log);
  const auto check = [&](auto) { BOOST_TEST(log.live == 0u); };
  for (int what = 0; what != 3; ++what)
    for (bool abort : {false, true}) {
      wheel_timer t(m.io, 10ms);
      outcome o(check);
      const auto before = log.allocations.load();
      auto h = asio::bind_allocator(allocator, o.tracked());
      switch (what) {
      case 0:
        t.async_wait(std::move(h));
        break;
      case 1:
        t.async_wait(asio::bind_executor(strand, std::move(h)));
        break;
      case 2:
        t.async_wait(asio::bind_executor(other.get_executor(), std::move(h)));
        break;
      }
      BOOST_TEST(log.allocations > before);
      BOOST_TEST(log.live > 0u);
      if (abort)
        t.cancel();
      m.advance(10ms);
      other.run();
      BOOST_TEST(o.fate() == (abort ? fate::aborted : fate::fired));
      BOOST_TEST(log.live == 0u);
    }
}

BOOST_AUTO_TEST_CASE(with_an_allocator_are_freed_by_it_at_shutdown) {
  test::allocation_log log;
  outcome o1, o2;
  {
    manual_context m;
    test::tracking_allocator<char> allocator(log);
    wheel_timer t(m.io, 10ms), u(m.io);
    t.async_wait(asio::bind_allocator(allocator, o1.tracked()));
    u.async_wait(asio::bind_allocator(allocator, o2.tracked()));
    BOOST_TEST(log.live > 0u);
  }
  BOOST_TEST(o1.fate() == fate::dropped);
  BOOST_TEST(o2.fate() == fate::dropped);
  BOOST_TEST(log.live == 0u);
}

BOOST_AUTO_TEST_CASE(the_slot_is_free_when_the_handler_runs) {
  manual_context m;
  queue_context other;
  for (bool elsewhere : {false, true})
    for (bool abort : {false, true}) {
      subject s(m);
      outcome o([&](auto) {
        BOOST_TEST(!s.signal.slot().has_handler());
        // So the next operation can have it.
        s.timer->expires_after(1h);
        s.timer->async_wait(asio::bind_cancellation_slot(
            s.signal.slot(), [](test::error_code ec) {
              BOOST_TEST(ec == asio::error::operation_aborted);
            }));
        BOOST_TEST(s.signal.slot().has_handler());
      });
      if (elsewhere)
        s.wait(asio::bind_executor(other.get_executor(), o.tracked()));
      else
        s.wait(o.tracked());
      if (abort)
        s.timer->cancel();
      m.advance(10ms);
      other.run();
      BOOST_TEST(o.fate() == (abort ? fate::aborted : fate::fired));
      BOOST_TEST(s.timer->pending() == 1u);
      s.signal.emit(asio::cancellation_type::total);
      BOOST_TEST(s.timer->pending() == 0u);
      m.poll();
      other.run();
    }
}

BOOST_AUTO_TEST_CASE(of_thousands_of_waits_on_one_timer_each_run_once) {
  manual_context m;
  wheel_timer t(m.io, 10ms);
  std::vector<outcome> o(3000);
  std::vector<asio::cancellation_signal> signals(1000);
  for (std::size_t i = 0; i != o.size(); ++i)
    if (i % 3 == 0)
      t.async_wait(asio::bind_cancellation_slot(signals[i / 3].slot(),
                                                o[i].tracked()));
    else
      t.async_wait(o[i].small());
  BOOST_TEST(t.pending() == 3000u);
  for (auto& s : signals)
    s.emit(asio::cancellation_type::total);
  BOOST_TEST(t.pending() == 2000u);
  for (int i = 0; i != 500; ++i)
    BOOST_TEST(t.cancel_one() == 1u);
  BOOST_TEST(t.pending() == 1500u);
  m.advance(10ms);
  std::size_t fired = 0;
  for (std::size_t i = 0; i != o.size(); ++i) {
    BOOST_TEST(o[i].fate() == (i % 3 == 0 || i < 750 ? fate::aborted
                                                     : fate::fired));
    fired += o[i].fate() == fate::fired;
  }
  BOOST_TEST(fired == 1500u);
}

BOOST_AUTO_TEST_CASE(of_one_timer_run_in_the_order_of_their_waits) {
  // Not documented, but what a steady_timer does.
  manual_context m;
  wheel_timer t(m.io, 10ms);
  std::vector<int> order;
  for (int i = 0; i != 5; ++i)
    t.async_wait([&, i](auto) { order.push_back(i); });
  m.advance(10ms);
  BOOST_TEST(order == (std::vector<int>{0, 1, 2, 3, 4}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(that_throw_leave_run_and_the_others_still_run) {
  manual_context m;
  for (bool abort : {false, true}) {
    std::vector<std::unique_ptr<wheel_timer>> timers;
    std::vector<outcome> o;
    for (int i = 0; i != 6; ++i)
      o.emplace_back([i](auto) {
        if (i % 3 == 1)
          throw i;
      });
    for (int i = 0; i != 6; ++i) {
      timers.push_back(std::make_unique<wheel_timer>(m.io, 10ms));
      if (i < 3)
        timers.back()->async_wait(o[i].small());
      else
        timers.back()->async_wait(o[i].tracked());
    }
    if (abort)
      for (auto& t : timers)
        t->cancel();
    m.clock.advance(10ms);
    m.io.restart();
    int thrown = 0;
    for (int i = 0; i != 10; ++i)
      try {
        m.io.poll();
        break;
      } catch (int) {
        ++thrown;
      }
    BOOST_TEST(thrown == 2);
    for (auto& x : o)
      BOOST_TEST(x.fate() == (abort ? fate::aborted : fate::fired));
    BOOST_TEST(m.wheel.pending() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(that_throw_on_a_strand_leave_run_too) {
  manual_context m;
  auto strand = asio::make_strand(m.io);
  std::vector<std::unique_ptr<wheel_timer>> timers;
  std::vector<outcome> o;
  for (int i = 0; i != 5; ++i)
    o.emplace_back([i](auto) {
      if (i == 2)
        throw i;
    });
  for (auto& x : o) {
    timers.push_back(std::make_unique<wheel_timer>(m.io, 10ms));
    timers.back()->async_wait(asio::bind_executor(strand, x.tracked()));
  }
  m.clock.advance(10ms);
  m.io.restart();
  BOOST_CHECK_THROW(m.io.poll(), int);
  m.io.poll();
  for (auto& x : o)
    BOOST_TEST(x.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(that_throw_do_not_end_the_wheel) {
  manual_context m;
  wheel_timer t(m.io, 1ms), u(m.io, 2ms);
  outcome o;
  t.async_wait([](auto) { throw 1; });
  u.async_wait(o.tracked());
  m.clock.advance(1ms);
  m.io.restart();
  BOOST_CHECK_THROW(m.io.poll(), int);
  m.advance(1ms);
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(are_destroyed_if_their_executor_refuses_them) {
  manual_context m;
  test::execution_log log;
  test::tracking_executor ex(m.io.get_executor(), log);
  wheel_timer t(m.io, 10ms);
  outcome refused, other, mine;
  t.async_wait(asio::bind_executor(ex, refused.tracked()));
  t.async_wait(asio::bind_executor(ex, other.tracked()));
  t.async_wait(mine.tracked());
  log.refuse = 1;
  m.clock.advance(10ms);
  m.io.restart();
  BOOST_CHECK_THROW(m.io.poll(), test::refused);
  m.poll();
  BOOST_TEST(refused.fate() == fate::dropped);
  BOOST_TEST(other.fate() == fate::fired);
  BOOST_TEST(mine.fate() == fate::fired);
  BOOST_TEST(m.wheel.pending() == 0u);
  BOOST_TEST(t.pending() == 0u);
}

BOOST_AUTO_TEST_CASE(of_another_context_hold_work_on_it) {
  manual_context m;
  queue_context other;
  BOOST_TEST(other.work() == 0u);
  wheel_timer t(m.io, 10ms);
  outcome o;
  t.async_wait(asio::bind_executor(other.get_executor(), o.tracked()));
  BOOST_TEST(other.work() >= 1u);
  m.advance(10ms);
  BOOST_TEST(other.work() >= 1u);
  other.run();
  BOOST_TEST(o.fate() == fate::fired);
  BOOST_TEST(other.work() == 0u);
}

BOOST_AUTO_TEST_CASE(discarded_by_another_context_are_abandoned) {
  manual_context m;
  queue_context other;
  wheel_timer t(m.io, 10ms);
  outcome lost, after;
  t.async_wait(asio::bind_executor(other.get_executor(), lost.tracked()));
  m.advance(10ms);
  other.discard();
  BOOST_TEST(lost.fate() == fate::dropped);
  BOOST_TEST(t.pending() == 0u);
  BOOST_TEST(m.wheel.pending() == 0u);
  BOOST_TEST(m.wheel.stats().abandoned == 1u);
  BOOST_TEST(t.cancel() == 0u);
  t.expires_after(1ms);
  t.async_wait(after.tracked());
  m.advance(1ms);
  BOOST_TEST(after.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(discarded_after_they_were_pulled_back_are_abandoned) {
  // The wait was armed again, but its handler went with the function that was
  // on its way: or it is kept and fires. One of the two, exactly once.
  manual_context m;
  queue_context other;
  wheel_timer t(m.io, 10ms);
  outcome o;
  t.async_wait(asio::bind_executor(other.get_executor(), o.tracked()));
  m.advance(10ms);
  BOOST_TEST(t.rearm_after(10ms) == 1u);
  other.discard();
  m.advance(10ms);
  other.run();
  BOOST_TEST((o.fate() == fate::dropped || o.fate() == fate::fired));
  BOOST_TEST(t.pending() == 0u);
  BOOST_TEST(m.wheel.pending() == 0u);
  BOOST_TEST(t.cancel() == 0u);
  BOOST_TEST(other.work() == 0u);
}

BOOST_AUTO_TEST_CASE(may_poll_the_context_themselves) {
  // Waits that are ready behind a handler that polls are not stuck behind it.
  manual_context m;
  std::vector<std::unique_ptr<wheel_timer>> timers;
  std::vector<outcome> o;
  std::size_t depth = 0, deepest = 0;
  for (int i = 0; i != 20; ++i)
    o.emplace_back([&](auto) {
      deepest = std::max(deepest, ++depth);
      if (depth == 1)
        m.io.poll();
      --depth;
    });
  for (auto& x : o) {
    timers.push_back(std::make_unique<wheel_timer>(m.io, 10ms));
    timers.back()->async_wait(x.small());
  }
  m.advance(10ms);
  for (auto& x : o)
    BOOST_TEST(x.fate() == fate::fired);
  BOOST_TEST(deepest == 2u);
}

BOOST_AUTO_TEST_CASE(with_destructors_that_use_the_timer) {
  manual_context m;
  wheel_timer t(m.io, 10ms);
  outcome inner;
  struct at_end {
    std::function<void()> f;
    explicit at_end(std::function<void()> g) : f(std::move(g)) {}
    at_end(at_end&& other) : f(std::exchange(other.f, nullptr)) {}
    ~at_end() {
      if (f)
        f();
    }
    void operator()(test::error_code) {}
  };
  t.async_wait(at_end([&] {
    t.expires_after(5ms);
    t.async_wait(inner.tracked());
  }));
  m.advance(10ms);
  BOOST_TEST(inner.fate() == fate::waiting);
  m.advance(5ms);
  BOOST_TEST(inner.fate() == fate::fired);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(nothing_runs_after_stop)

namespace {

template <typename Start> void stop_after(int n, const Start& start) {
  manual_context m;
  std::vector<std::unique_ptr<wheel_timer>> timers;
  std::vector<outcome> o;
  int ran = 0;
  for (int i = 0; i != 7; ++i)
    o.emplace_back([&](auto) {
      if (++ran == n)
        m.io.stop();
    });
  start(m, timers, o);
  if (n == 0)
    m.io.stop();
  m.io.poll();
  BOOST_TEST(ran == n);
  m.io.poll();
  m.io.run();
  BOOST_TEST(ran == n);
  m.poll();
  BOOST_TEST(ran == 7);
  for (auto& x : o)
    BOOST_TEST((x.fate() == fate::fired || x.fate() == fate::aborted));
}

} // namespace

BOOST_AUTO_TEST_CASE(among_timers_due_in_one_tick) {
  for (int n = 0; n != 7; ++n)
    BOOST_TEST_CONTEXT(n)
  stop_after(n, [](auto& m, auto& timers, auto& o) {
    for (auto& x : o) {
      timers.push_back(std::make_unique<wheel_timer>(m.io, 10ms));
      timers.back()->async_wait(x.small());
    }
    m.clock.advance(10ms);
  });
}

BOOST_AUTO_TEST_CASE(among_timers_due_in_several_ticks) {
  for (int n = 0; n != 7; ++n)
    BOOST_TEST_CONTEXT(n)
  stop_after(n, [](auto& m, auto& timers, auto& o) {
    for (auto& x : o) {
      timers.push_back(std::make_unique<wheel_timer>(
          m.io, (1 + static_cast<int>(timers.size())) * 1ms));
      timers.back()->async_wait(x.tracked());
    }
    m.clock.advance(10ms);
  });
}

BOOST_AUTO_TEST_CASE(among_waits_of_one_timer) {
  for (int n = 0; n != 7; ++n)
    BOOST_TEST_CONTEXT(n)
  stop_after(n, [](auto& m, auto& timers, auto& o) {
    timers.push_back(std::make_unique<wheel_timer>(m.io, 10ms));
    for (auto& x : o)
      timers.back()->async_wait(x.tracked());
    m.clock.advance(10ms);
  });
}

BOOST_AUTO_TEST_CASE(among_cancelled_waits) {
  for (int n = 0; n != 7; ++n)
    BOOST_TEST_CONTEXT(n)
  stop_after(n, [](auto& m, auto& timers, auto& o) {
    for (auto& x : o) {
      timers.push_back(std::make_unique<wheel_timer>(m.io, 10ms));
      timers.back()->async_wait(x.tracked());
    }
    for (auto& t : timers)
      t->cancel();
  });
}

BOOST_AUTO_TEST_CASE(among_waits_due_at_once) {
  for (int n = 0; n != 7; ++n)
    BOOST_TEST_CONTEXT(n)
  stop_after(n, [](auto& m, auto& timers, auto& o) {
    for (auto& x : o) {
      timers.push_back(std::make_unique<wheel_timer>(m.io));
      timers.back()->async_wait(x.small());
    }
  });
}

BOOST_AUTO_TEST_CASE(among_waits_on_a_strand) {
  for (int n = 0; n != 7; ++n)
    BOOST_TEST_CONTEXT(n)
  stop_after(n, [](auto& m, auto& timers, auto& o) {
    auto strand = asio::make_strand(m.io);
    for (auto& x : o) {
      timers.push_back(std::make_unique<wheel_timer>(strand, 10ms));
      timers.back()->async_wait(x.tracked());
    }
    m.clock.advance(10ms);
  });
}

BOOST_AUTO_TEST_CASE(and_what_was_stopped_can_still_be_cancelled) {
  manual_context m;
  wheel_timer a(m.io, 10ms), b(m.io, 10ms);
  int ran = 0;
  outcome oa([&](auto) {
    if (++ran == 1)
      m.io.stop();
  });
  outcome ob([&](auto) {
    if (++ran == 1)
      m.io.stop();
  });
  a.async_wait(oa.tracked());
  b.async_wait(ob.tracked());
  m.clock.advance(10ms);
  m.io.poll();
  BOOST_TEST(ran == 1);
  BOOST_TEST(a.cancel() + b.cancel() == 1u);
  m.poll();
  BOOST_TEST(ran == 2);
  BOOST_TEST((oa.fate() == fate::aborted || ob.fate() == fate::aborted));
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(moving)

namespace {

// The three kinds of waits, by where the operation lives and who frees it.
enum class kind { small, tracked, on_a_strand, with_a_slot };
constexpr std::array<kind, 4> kinds = {kind::small, kind::tracked,
                                       kind::on_a_strand, kind::with_a_slot};

std::ostream& operator<<(std::ostream& o, kind k) {
  constexpr std::array<const char*, 4> names = {"small", "tracked",
                                                "on_a_strand", "with_a_slot"};
  return o << names[static_cast<std::size_t>(k)];
}

template <typename Timer>
void wait(Timer& t, kind k, const outcome& o,
          asio::cancellation_signal& signal) {
  switch (k) {
  case kind::small:
    t.async_wait(o.small());
    break;
  case kind::tracked:
    t.async_wait(o.tracked());
    break;
  case kind::on_a_strand:
    t.async_wait(
        asio::bind_executor(asio::make_strand(t.get_executor()), o.tracked()));
    break;
  case kind::with_a_slot:
    t.async_wait(asio::bind_cancellation_slot(signal.slot(), o.small()));
    break;
  }
}

// Runs f(state) for a timer that waits and is then moved in each state.
enum class state { armed, due, handed };
constexpr std::array<state, 2> states = {state::armed, state::due};

} // namespace

BOOST_AUTO_TEST_CASE(keeps_a_pending_wait_of_each_kind) {
  for (kind k : kinds)
    for (state s : states)
      BOOST_TEST_CONTEXT(k) {
        manual_context m;
        asio::cancellation_signal signal;
        outcome o;
        auto a = std::make_unique<wheel_timer>(m.io, 10ms);
        wait(*a, k, o, signal);
        if (s == state::due)
          m.clock.advance(10ms);
        auto b = std::make_unique<wheel_timer>(std::move(*a));
        BOOST_TEST(a->pending() == 0u);
        BOOST_TEST(b->pending() == 1u);
        a.reset();
        wheel_timer c(m.io);
        c = std::move(*b);
        b.reset();
        BOOST_TEST(c.pending() == 1u);
        m.advance(s == state::due ? 0ms : 10ms);
        BOOST_TEST(o.fate() == fate::fired);
        check_one_fired(m);
      }
}

BOOST_AUTO_TEST_CASE(cancel_wins_after_it) {
  for (kind k : kinds)
    for (state s : states)
      for (int how = 0; how != 4; ++how)
        BOOST_TEST_CONTEXT(k << " " << how) {
          manual_context m;
          asio::cancellation_signal signal;
          outcome o;
          std::optional<wheel_timer> a(std::in_place, m.io, 10ms);
          wait(*a, k, o, signal);
          if (s == state::due)
            m.clock.advance(10ms);
          std::optional<wheel_timer> b(std::move(*a));
          a.reset();
          if (how == 0)
            BOOST_TEST(b->cancel() == 1u);
          else if (how == 1)
            BOOST_TEST(b->cancel_one() == 1u);
          else if (how == 2)
            BOOST_TEST(b->expires_after(1h) == 1u);
          else
            b.reset();
          m.advance(10ms);
          BOOST_TEST(o.fate() == fate::aborted);
          check_one_cancelled(m);
        }
}

BOOST_AUTO_TEST_CASE(rearm_works_after_it) {
  for (kind k : kinds)
    for (state s : states)
      BOOST_TEST_CONTEXT(k) {
        manual_context m;
        asio::cancellation_signal signal;
        outcome o;
        std::optional<wheel_timer> a(std::in_place, m.io, 10ms);
        wait(*a, k, o, signal);
        if (s == state::due)
          m.clock.advance(10ms);
        wheel_timer b(std::move(*a));
        a.reset();
        BOOST_TEST(b.rearm_after(20ms) == 1u);
        m.advance(19ms);
        BOOST_TEST(o.fate() == fate::waiting);
        m.advance(1ms);
        BOOST_TEST(o.fate() == fate::fired);
      }
}

BOOST_AUTO_TEST_CASE(to_another_type_of_executor_keeps_each_kind) {
  for (kind k : kinds)
    for (state s : states)
      BOOST_TEST_CONTEXT(k) {
        manual_context m;
        asio::cancellation_signal signal;
        outcome mine, o;
        std::optional<io_timer> a(std::in_place, m.io, 10ms);
        wait(*a, k, o, signal);
        if (s == state::due)
          m.clock.advance(10ms);
        wheel_timer b(m.io, 1h);
        b.async_wait(mine.small());
        b = std::move(*a);
        a.reset();
        wheel_timer c(std::move(b));
        m.advance(10ms);
        BOOST_TEST(mine.fate() == fate::aborted);
        BOOST_TEST(o.fate() == fate::fired);
        BOOST_TEST(m.wheel.pending() == 0u);
      }
}

BOOST_AUTO_TEST_CASE(keeps_what_was_handed_over) {
  for (int how = 0; how != 4; ++how) {
    manual_context m;
    queue_context other;
    outcome o;
    std::optional<wheel_timer> a(std::in_place, m.io, 10ms);
    a->async_wait(asio::bind_executor(other.get_executor(), o.tracked()));
    m.advance(10ms);
    std::optional<wheel_timer> b(std::move(*a));
    a.reset();
    BOOST_TEST(b->pending() == 1u);
    if (how == 1)
      BOOST_TEST(b->cancel() == 1u);
    else if (how == 2)
      b.reset();
    else if (how == 3)
      BOOST_TEST(b->rearm_after(10ms) == 1u);
    m.poll();
    other.run();
    m.advance(10ms);
    other.run();
    BOOST_TEST(o.fate() ==
               (how == 1 || how == 2 ? fate::aborted : fate::fired));
    BOOST_TEST(m.wheel.pending() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(keeps_many_waits_of_all_kinds) {
  manual_context m;
  std::vector<outcome> o(40);
  std::vector<asio::cancellation_signal> signals(40);
  wheel_timer a(m.io, 10ms);
  for (std::size_t i = 0; i != o.size(); ++i)
    wait(a, kinds[i % kinds.size()], o[i], signals[i]);
  wheel_timer b(std::move(a));
  BOOST_TEST(b.pending() == 40u);
  wheel_timer c(m.io);
  c = std::move(b);
  BOOST_TEST(c.pending() == 40u);
  BOOST_TEST(c.cancel_one() == 1u);
  m.advance(10ms);
  BOOST_TEST(o[0].fate() == fate::aborted);
  for (std::size_t i = 1; i != o.size(); ++i)
    BOOST_TEST(o[i].fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(keeps_the_cancellation_of_a_single_wait) {
  // A steady_timer loses it.
  for (const auto type :
       {asio::cancellation_type::terminal, asio::cancellation_type::partial,
        asio::cancellation_type::total}) {
    manual_context m;
    asio::cancellation_signal s1, s2;
    outcome o1, o2;
    std::optional<io_timer> a(std::in_place, m.io, 10ms);
    a->async_wait(asio::bind_cancellation_slot(s1.slot(), o1.small()));
    a->async_wait(asio::bind_cancellation_slot(s2.slot(), o2.tracked()));
    std::optional<io_timer> b(std::move(*a));
    a.reset();
    std::optional<wheel_timer> c(std::move(*b));
    b.reset();
    wheel_timer d(m.io);
    d = std::move(*c);
    c.reset();
    s1.emit(type);
    BOOST_TEST(d.pending() == 1u);
    m.poll();
    BOOST_TEST(o1.fate() == fate::aborted);
    BOOST_TEST(o2.fate() == fate::waiting);
    m.clock.advance(10ms);
    s2.emit(type);
    m.poll();
    BOOST_TEST(o2.fate() == fate::aborted);
  }
}

BOOST_AUTO_TEST_CASE(to_itself_changes_nothing) {
  manual_context m;
  outcome o1, o2;
  wheel_timer t(m.io, 10ms);
  t.async_wait(o1.small());
  t.async_wait(o2.tracked());
  wheel_timer& same = t;
  t = std::move(same);
  BOOST_TEST((t.expiry() == time_point(10ms)));
  BOOST_TEST(t.pending() == 2u);
  m.advance(10ms);
  BOOST_TEST(o1.fate() == fate::fired);
  BOOST_TEST(o2.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(between_contexts_cancels_here_and_goes_on_there) {
  for (kind k : kinds) {
    manual_context m1;
    manual_context m2({}, m1.clock);
    asio::cancellation_signal s1, s2;
    outcome mine, theirs, next;
    wheel_timer a(m1.io, 10ms), b(m2.io, 10ms);
    wait(a, k, mine, s1);
    wait(b, k, theirs, s2);
    a = std::move(b);
    BOOST_TEST(m1.wheel.pending() == 0u);
    BOOST_TEST(m2.wheel.pending() == 1u);
    BOOST_TEST((a.get_executor() == m2.io.get_executor()));
    m1.clock.advance(10ms);
    m1.poll();
    BOOST_TEST(mine.fate() == fate::aborted);
    BOOST_TEST(theirs.fate() == fate::waiting);
    m2.poll();
    BOOST_TEST(theirs.fate() == fate::fired);
    // The moved-from timer keeps its executor, like a new one.
    BOOST_TEST((b.get_executor() == m2.io.get_executor()));
    b.expires_after(1ms);
    b.async_wait(next.tracked());
    m1.clock.advance(1ms);
    m2.poll();
    BOOST_TEST(next.fate() == fate::fired);
  }
}

BOOST_AUTO_TEST_CASE(in_a_handler_of_the_same_batch) {
  manual_context m;
  std::optional<wheel_timer> a(std::in_place, m.io, 10ms);
  std::optional<wheel_timer> b(std::in_place, m.io, 10ms);
  std::optional<wheel_timer> home;
  int ran = 0;
  const auto move_other = [&](std::optional<wheel_timer>& other) {
    if (++ran == 1) {
      home.emplace(std::move(*other));
      other.reset();
      BOOST_TEST(home->pending() == 1u);
    }
  };
  outcome oa([&](auto) { move_other(b); });
  outcome ob([&](auto) { move_other(a); });
  a->async_wait(oa.small());
  b->async_wait(ob.small());
  m.advance(10ms);
  BOOST_TEST(oa.fate() == fate::fired);
  BOOST_TEST(ob.fate() == fate::fired);
  BOOST_TEST(home->pending() == 0u);
}

BOOST_AUTO_TEST_CASE(from_its_own_handler) {
  manual_context m;
  std::optional<wheel_timer> a(std::in_place, m.io, 10ms), b;
  outcome second;
  outcome o([&](auto) {
    b.emplace(std::move(*a));
    a.reset();
    BOOST_TEST(b->pending() == 1u);
  });
  a->async_wait(o.small());
  a->async_wait(second.small());
  m.advance(10ms);
  BOOST_TEST(o.fate() == fate::fired);
  BOOST_TEST(second.fate() == fate::fired);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(a_timer_that_outlives_its_context)

BOOST_AUTO_TEST_CASE(can_be_asked_and_destroyed) {
  outcome o1, o2, o3;
  std::optional<wheel_timer> t, due;
  {
    manual_context m;
    t.emplace(m.io, 1h);
    t->async_wait(o1.tracked());
    t->async_wait(o2.tracked());
    due.emplace(m.io);
    due->async_wait(o3.tracked());
    m.clock.advance(1ms);
  }
  BOOST_TEST(o1.fate() == fate::dropped);
  BOOST_TEST(o2.fate() == fate::dropped);
  BOOST_TEST(o3.fate() == fate::dropped);
  BOOST_TEST(t->cancel() == 0u);
  BOOST_TEST(t->cancel_one() == 0u);
  BOOST_TEST(t->pending() == 0u);
  BOOST_TEST((t->expiry() == time_point(1h)));
  BOOST_TEST((due->expiry() == time_point()));
  t.reset();
}

BOOST_AUTO_TEST_CASE(with_a_small_wait) {
  outcome o;
  std::optional<wheel_timer> t;
  {
    manual_context m;
    t.emplace(m.io, 1h);
    t->async_wait(o.small());
  }
  BOOST_TEST(o.fate() == fate::waiting);
  BOOST_TEST(t->cancel() == 0u);
}

BOOST_AUTO_TEST_CASE(can_be_assigned_over) {
  outcome o;
  std::optional<wheel_timer> t;
  {
    manual_context m;
    t.emplace(m.io, 1h);
    t->async_wait(o.tracked());
  }
  manual_context m;
  outcome next;
  wheel_timer live(m.io, 10ms);
  live.async_wait(next.small());
  *t = std::move(live);
  BOOST_TEST((t->expiry() == time_point(10ms)));
  BOOST_TEST(t->pending() == 1u);
  m.advance(10ms);
  BOOST_TEST(next.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(can_be_assigned_from) {
  outcome o, mine;
  std::optional<wheel_timer> t;
  {
    manual_context m;
    t.emplace(m.io, 1h);
    t->async_wait(o.tracked());
  }
  manual_context m;
  wheel_timer live(m.io, 10ms);
  live.async_wait(mine.tracked());
  live = std::move(*t);
  BOOST_TEST((live.expiry() == time_point(1h)));
  BOOST_TEST(live.cancel() == 0u);
  m.poll();
  BOOST_TEST(mine.fate() == fate::aborted);
  t.reset();
  live = wheel_timer(m.io, 1ms);
  outcome again;
  live.async_wait(again.tracked());
  m.advance(1ms);
  BOOST_TEST(again.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE(with_a_wait_handed_elsewhere) {
  // The handler is in another context's queue when its timer's context goes.
  queue_context other;
  outcome o;
  std::optional<wheel_timer> t;
  {
    manual_context m;
    t.emplace(m.io, 10ms);
    t->async_wait(asio::bind_executor(other.get_executor(), o.tracked()));
    m.advance(10ms);
    BOOST_TEST(other.size() == 1u);
  }
  BOOST_TEST(t->cancel() == 0u);
  other.run();
  BOOST_TEST((o.fate() == fate::dropped || o.fate() == fate::fired));
  BOOST_TEST(other.work() == 0u);
}

BOOST_AUTO_TEST_CASE(with_an_aborted_wait_handed_elsewhere) {
  queue_context other;
  outcome o;
  {
    manual_context m;
    wheel_timer t(m.io, 10ms);
    t.async_wait(asio::bind_executor(other.get_executor(), o.tracked()));
    m.advance(10ms);
    t.cancel();
  }
  other.run();
  BOOST_TEST((o.fate() == fate::dropped || o.fate() == fate::aborted));
  BOOST_TEST(other.work() == 0u);
}

BOOST_AUTO_TEST_CASE(does_not_touch_a_signal_that_went_first) {
  outcome o;
  std::optional<wheel_timer> t;
  {
    manual_context m;
    asio::cancellation_signal signal;
    t.emplace(m.io, 1h);
    t->async_wait(asio::bind_cancellation_slot(signal.slot(), o.tracked()));
  }
  BOOST_TEST(o.fate() == fate::dropped);
}

BOOST_AUTO_TEST_CASE(is_not_reached_by_a_signal_that_stayed) {
  asio::cancellation_signal signal;
  outcome o;
  std::optional<wheel_timer> t;
  {
    manual_context m;
    t.emplace(m.io, 1h);
    t->async_wait(asio::bind_cancellation_slot(signal.slot(), o.tracked()));
  }
  BOOST_TEST(o.fate() == fate::dropped);
  signal.emit(asio::cancellation_type::all);
  t.reset();
  signal.emit(asio::cancellation_type::all);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------
BOOST_AUTO_TEST_SUITE(any_time_is_legal)

namespace {

const std::array<time_point, 5> starts = {time_point::min(), time_point(-1h),
                                          time_point(), time_point(1h),
                                          time_point::max() - 24h};

const std::array<wheel_options, 4> shapes = [] {
  std::array<wheel_options, 4> s;
  s[1] = wheel_options::hashed();
  s[2].tick = 1us;
  s[2].slots = 2;
  s[2].levels = 63;
  s[3].tick = 1h;
  s[3].slots = 2;
  s[3].levels = 1;
  return s;
}();

} // namespace

BOOST_AUTO_TEST_CASE(the_past_is_due_on_the_next_turn) {
  for (const auto& shape : shapes)
    for (const auto start : starts) {
      manual_context m(shape, manual_clock(start));
      for (const auto d : {duration::min(), duration::min() + 1ns,
                           duration::min() / 10, duration(-1ns), duration(0)}) {
        wheel_timer t(m.io);
        outcome o1, o2, o3;
        t.expires_after(d);
        quietly([&] { t.async_wait(o1.tracked()); });
        m.poll();
        BOOST_TEST(o1.fate() == fate::fired);
        t.expires_at(time_point(d) < m.now() ? time_point(d) : m.now());
        t.async_wait(o2.small());
        m.poll();
        BOOST_TEST(o2.fate() == fate::fired);
        t.expires_after(duration::max());
        t.async_wait(o3.small());
        BOOST_TEST(t.rearm_after(d) == 1u);
        m.poll();
        BOOST_TEST(o3.fate() == fate::fired);
      }
    }
}

BOOST_AUTO_TEST_CASE(the_far_future_is_never) {
  for (const auto& shape : shapes)
    for (const auto start : starts)
      for (const auto d :
           {duration::max(), duration::max() - 1ns, duration::max() / 10}) {
        manual_context m(shape, manual_clock(start));
        wheel_timer a(m.io, d), b(m.io), c(m.io, 12h);
        b.expires_at(time_point::max());
        outcome oa, ob, oc;
        a.async_wait(oa.tracked());
        b.async_wait(ob.small());
        c.async_wait(oc.small());
        BOOST_TEST(c.rearm_after(d) == 1u);
        for (int i = 0; i != 10; ++i)
          m.advance(1h + 1ms);
        BOOST_TEST(oa.fate() == fate::waiting);
        BOOST_TEST(ob.fate() == fate::waiting);
        BOOST_TEST(oc.fate() == fate::waiting);
        BOOST_TEST(m.wheel.pending() == 3u);
        a.cancel();
        b.cancel();
        c.cancel();
        m.poll();
        BOOST_TEST(oa.fate() == fate::aborted);
        BOOST_TEST(ob.fate() == fate::aborted);
        BOOST_TEST(oc.fate() == fate::aborted);
      }
}

BOOST_AUTO_TEST_CASE(never_stays_never_when_the_clock_ends) {
  manual_context m;
  wheel_timer t(m.io);
  t.expires_at(time_point::max());
  outcome o;
  t.async_wait(o.tracked());
  BOOST_TEST(!m.wheel.next_expiry());
  m.advance(duration::max());
  BOOST_TEST((m.now() == time_point::max()));
  BOOST_TEST(o.fate() == fate::waiting);
  t.cancel();
  m.poll();
  BOOST_TEST(o.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE(near_deadlines_work_from_every_start) {
  for (const auto& shape : shapes)
    for (const auto start : starts) {
      manual_context m(shape, manual_clock(start));
      wheel_timer t(m.io, 2h + 1ns);
      outcome o;
      t.async_wait(o.tracked());
      m.advance(2h);
      BOOST_TEST(o.fate() == fate::waiting);
      m.advance(shape.tick);
      BOOST_TEST(o.fate() == fate::fired);
    }
}

BOOST_AUTO_TEST_SUITE_END()
