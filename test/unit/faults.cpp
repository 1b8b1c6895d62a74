//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/wheel_timer.hpp>

#include <asio_wheel/run_simulation.hpp>

#include <test/manual_context.hpp>
#include <test/outcome.hpp>
#include <test/queue_context.hpp>
#include <test/tracking_executor.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#define BOOST_TEST_MODULE unit_faults
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

// Faults that timer software has really had, each with the right outcome. The
// rows about the wheel's arithmetic are in unit/timing_wheel, those about
// threads (B6, C1, D4, D7) in stress/threads.

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::manual_clock;
using asio_wheel::wheel_timer;
using boost::system::error_code;
using test::fate;
using test::manual_context;
using test::outcome;

using duration = wheel_timer::duration;
using time_point = wheel_timer::time_point;

} // namespace

BOOST_AUTO_TEST_CASE(a1_huge_delays_are_never) {
  manual_context c({}, manual_clock(time_point(1h)));
  outcome o;
  for (const duration d : {duration::max(), duration::max() - 1ns}) {
    wheel_timer t(c.io);
    t.expires_after(d);
    t.async_wait(o.small());
    c.poll();
    c.advance(24h * 365 * 100);
    BOOST_TEST((o.fate() == fate::waiting));
    t.cancel();
    c.poll();
    BOOST_TEST((o.fate() == fate::aborted));
    o.forget();
  }
  // A tenth of all time is 29 years: on its tick, and not before.
  wheel_timer t(c.io);
  const duration tenth = duration::max() / 10;
  t.expires_after(tenth);
  t.async_wait(o.small());
  c.advance(tenth - 1ns);
  BOOST_TEST((o.fate() == fate::waiting));
  c.advance(1ms);
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(a2_a_negative_delay_completes_on_the_next_turn) {
  manual_context c({}, manual_clock(time_point(1h)));
  for (const duration d : {-1ns, duration(-1h), duration::min(), 0ns}) {
    outcome o;
    wheel_timer t(c.io, d);
    BOOST_TEST((t.remaining() == 0ns));
    test::quietly([&] { t.async_wait(o.tracked()); });
    BOOST_TEST((o.fate() == fate::waiting));
    c.poll();
    BOOST_TEST((o.fate() == fate::fired));
  }
  for (const time_point p : {time_point::min(), time_point(), c.now()}) {
    outcome o;
    wheel_timer t(c.io, p);
    BOOST_TEST((t.remaining() == 0ns));
    test::quietly([&] { t.async_wait(o.tracked()); });
    c.poll();
    BOOST_TEST((o.fate() == fate::fired));
  }
}

BOOST_AUTO_TEST_CASE(a6_armed_for_nearly_the_span_while_the_wheel_is_behind) {
  asio_wheel::wheel_options options;
  options.slots = 8;
  options.levels = 2; // spans 64 ticks
  manual_context c(options);
  outcome o;
  wheel_timer keeps_it_ticking(c.io, 1h);
  keeps_it_ticking.async_wait([](error_code) {});
  c.advance(10ms);
  c.clock.advance(50ms); // and nobody drains
  wheel_timer t(c.io, 63ms);
  t.async_wait(o.small());
  c.poll();
  c.advance(63ms - 1ns);
  BOOST_TEST((o.fate() == fate::waiting));
  c.advance(1ns);
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(a7_a_delay_counts_from_arming_not_from_the_last_tick) {
  manual_context c;
  outcome inside, outside;
  wheel_timer first(c.io, 1ms), second(c.io);
  std::optional<wheel_timer> third;
  first.async_wait([&](error_code) {
    c.clock.advance(500ms); // the handler blocks
    second.expires_after(100ms);
    second.async_wait(inside.small());
  });
  c.advance(1ms);
  c.clock.advance(500ms); // the loop is blocked
  third.emplace(c.io, 100ms);
  third->async_wait(outside.small());
  c.poll();
  BOOST_TEST((inside.fate() == fate::fired)); // 600 ms ago it was to be 100
  c.advance(100ms - 1ns);
  BOOST_TEST((outside.fate() == fate::waiting));
  c.advance(1ns);
  BOOST_TEST((outside.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(a7_inside_a_handler_after_a_block_the_full_delay_passes) {
  manual_context c;
  outcome o;
  wheel_timer first(c.io, 1ms), second(c.io);
  first.async_wait([&](error_code) {
    c.clock.advance(500ms);
    second.expires_after(100ms);
    second.async_wait(o.small());
  });
  c.advance(1ms);
  c.advance(100ms - 1ns);
  BOOST_TEST((o.fate() == fate::waiting));
  c.advance(1ns);
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(a9_a_chain_that_cancels_the_nearest_never_oversleeps) {
  manual_context c;
  int fired = 0;
  wheel_timer far(c.io, 10s), near(c.io, 5ms), next(c.io);
  far.async_wait([&](error_code ec) { fired += !ec; });
  near.async_wait([&](error_code ec) {
    fired += !ec;
    near.cancel();
    next.expires_after(3ms);
    next.async_wait([&](error_code ec2) { fired += !ec2; });
  });
  c.poll();
  BOOST_TEST((c.wheel.next_expiry() <= c.now() + 5ms));
  c.advance(5ms);
  BOOST_TEST(fired == 1);
  BOOST_TEST((c.wheel.next_expiry() <= c.now() + 3ms));
  c.advance(3ms);
  BOOST_TEST(fired == 2);
  c.advance(10s);
  BOOST_TEST(fired == 3);
}

BOOST_AUTO_TEST_CASE(a10_a_tick_that_does_not_divide_the_polling_interval) {
  for (const auto tick : {1us, 7us, 333us, 1009us}) {
    asio_wheel::wheel_options options;
    options.tick = tick;
    manual_context c(options);
    for (int i = 0; i != 50; ++i) {
      outcome o;
      wheel_timer t(c.io, 777us * i);
      t.async_wait(o.small());
      const auto expiry = t.expiry();
      while (o.fate() == fate::waiting) {
        c.advance(250us);
        BOOST_REQUIRE((c.now() < expiry + tick + 250us));
      }
      BOOST_TEST((c.now() >= expiry));
    }
  }
}

BOOST_AUTO_TEST_CASE(a11_exactly_k_ticks_from_mid_tick_and_from_a_boundary) {
  for (const auto offset : {0ns, 1ns, 400'000ns, 999'999ns}) {
    for (int k = 1; k != 5; ++k) {
      manual_context c;
      c.clock.advance(10ms + offset);
      outcome o;
      wheel_timer t(c.io, std::chrono::milliseconds(k));
      t.async_wait(o.small());
      c.advance(std::chrono::milliseconds(k) - 1ns);
      BOOST_TEST((o.fate() == fate::waiting)); // never early
      c.advance(1ns + (offset == 0ns ? 0ns : 1ms - offset));
      BOOST_TEST((o.fate() == fate::fired)); // on a boundary no extra tick
    }
  }
}

BOOST_AUTO_TEST_CASE(
    b1_cancelled_or_destroyed_by_anothers_handler_of_one_batch) {
  for (const bool destroy : {false, true}) {
    manual_context c;
    outcome a, b;
    std::optional<wheel_timer> first(std::in_place, c.io, 5ms);
    std::optional<wheel_timer> second(std::in_place, c.io, 5ms);
    // Whichever comes first ends the other.
    const auto end = [&](std::optional<wheel_timer>& other) {
      if (destroy)
        other.reset();
      else if (other)
        other->cancel();
    };
    first->async_wait([&, h = a.tracked()](error_code ec) mutable {
      if (!ec)
        end(second);
      h(ec);
    });
    second->async_wait([&, h = b.tracked()](error_code ec) mutable {
      if (!ec)
        end(first);
      h(ec);
    });
    c.advance(5ms);
    const bool first_won = a.fate() == fate::fired;
    BOOST_TEST(((first_won ? b : a).fate() == fate::aborted));
    BOOST_TEST(((first_won ? a : b).fate() == fate::fired));
  }
}

BOOST_AUTO_TEST_CASE(b2_rearmed_for_an_hour_while_its_expiry_is_queued) {
  manual_context c;
  outcome old, fresh;
  wheel_timer t(c.io, 1ms);
  t.async_wait(old.tracked());
  c.clock.advance(1ms); // queued, not run
  BOOST_TEST(t.expires_after(1h) == 1u);
  t.async_wait(fresh.tracked());
  c.poll();
  BOOST_TEST((old.fate() == fate::aborted));
  c.advance(1h - 1ns);
  BOOST_TEST((fresh.fate() == fate::waiting));
  c.advance(1ns);
  BOOST_TEST((fresh.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(b3_two_paths_arm_one_timer) {
  manual_context c;
  outcome first, second;
  wheel_timer t(c.io);
  BOOST_TEST(t.expires_after(10ms) == 0u);
  t.async_wait(first.tracked());
  BOOST_TEST(t.expires_after(20ms) == 1u);
  t.async_wait(second.tracked());
  c.poll();
  BOOST_TEST((first.fate() == fate::aborted));
  c.advance(20ms);
  BOOST_TEST((first.fate() == fate::aborted));
  BOOST_TEST((second.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(b4_a_handler_that_rearms_without_delay_lets_a_socket_in) {
  asio::io_context io(1);
  asio::ip::tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
  asio::ip::tcp::socket client(io), server(io);
  client.connect(acceptor.local_endpoint());
  acceptor.accept(server);

  wheel_timer t(io);
  int turns = 0, depth = 0, deepest = 0;
  bool read = false;
  std::function<void(error_code)> turn = [&](error_code) {
    deepest = std::max(deepest, ++depth);
    if (++turns == 3)
      client.send(asio::buffer("x", 1));
    if (!read && turns < 1'000'000) {
      t.expires_after(0ns);
      t.async_wait(std::ref(turn));
    }
    --depth;
  };
  turn({});
  char buffer[1];
  server.async_receive(asio::buffer(buffer),
                       [&](error_code ec, std::size_t) { read = !ec; });
  io.run();
  BOOST_TEST(read);
  BOOST_TEST(deepest == 1);
  BOOST_TEST(turns < 1'000'000);
}

BOOST_AUTO_TEST_CASE(b5_many_waits_cancelled_from_inside_their_callbacks) {
  manual_context c;
  wheel_timer t(c.io, 1ms);
  std::vector<outcome> all;
  for (int i = 0; i != 1000; ++i)
    all.emplace_back([&](error_code) { t.cancel_one(); });
  for (auto& o : all)
    t.async_wait(o.tracked());
  c.advance(1ms);
  for (auto& o : all)
    BOOST_TEST(o.calls() == 1);
  BOOST_TEST(t.pending() == 0u);
}

BOOST_AUTO_TEST_CASE(b7_cancelled_on_the_tick_it_is_due) {
  for (const bool seen : {false, true}) {
    manual_context c;
    outcome o;
    wheel_timer t(c.io, 1ms);
    t.async_wait(o.tracked());
    if (seen)
      c.poll(); // armed the driver
    c.clock.advance(1ms);
    BOOST_TEST(t.cancel() == 1u);
    BOOST_TEST(t.cancel() == 0u);
    c.poll();
    BOOST_TEST((o.fate() == fate::aborted));
  }
}

BOOST_AUTO_TEST_CASE(b8_the_count_is_that_of_the_live_waits) {
  manual_context c;
  outcome o[4];
  {
    wheel_timer t(c.io, 1ms), u(c.io, 1h);
    t.async_wait(o[0].tracked());
    t.async_wait(o[1].tracked());
    u.async_wait(o[2].tracked());
    BOOST_TEST(c.wheel.pending() == 3u);
    c.clock.advance(1ms);
    BOOST_TEST(c.wheel.pending() == 3u); // due, not run
    t.cancel_one();
    BOOST_TEST(c.wheel.pending() == 2u);
    t.cancel();
    BOOST_TEST(c.wheel.pending() == 1u);
  }
  BOOST_TEST(c.wheel.pending() == 0u);
  c.poll();
  BOOST_TEST(c.wheel.pending() == 0u);
  for (int i = 0; i != 3; ++i)
    BOOST_TEST((o[i].fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(b9_extended_then_shortened) {
  manual_context c;
  outcome o;
  wheel_timer t(c.io, 10ms);
  t.async_wait(o.tracked());
  c.poll();
  BOOST_TEST(t.rearm_after(1h) == 1u);
  BOOST_TEST(t.rearm_after(3ms) == 1u);
  BOOST_TEST((c.wheel.next_expiry() <= c.now() + 3ms));
  c.advance(3ms - 1ns);
  BOOST_TEST((o.fate() == fate::waiting));
  c.advance(1ns);
  BOOST_TEST((o.fate() == fate::fired));
  c.advance(2h);
  BOOST_TEST(o.calls() == 1);
}

BOOST_AUTO_TEST_CASE(b10_overwriting_cancels_and_arming_after_stop_is_refused) {
  manual_context c;
  outcome old, late;
  wheel_timer t(c.io, 1ms);
  t.async_wait(old.tracked());
  t = wheel_timer(c.io, 1ms);
  c.poll();
  BOOST_TEST((old.fate() == fate::aborted));
  c.wheel.stop();
  t.async_wait(late.tracked());
  BOOST_TEST((late.fate() == fate::waiting));
  c.poll();
  BOOST_TEST((late.fate() == fate::failed));
  BOOST_TEST((late.ec() == asio_wheel::error::wheel_stopped));
}

BOOST_AUTO_TEST_CASE(c2_one_far_timer_with_the_smallest_tick_wakes_nobody) {
  asio_wheel::wheel_options options;
  options.tick = 1us;
  asio::io_context io(1);
  auto& wheel = asio_wheel::make_wheel(io, options);
  wheel_timer t(io, 1h);
  t.async_wait([](error_code) {});
  BOOST_TEST(io.run_for(50ms) == 0u);
  BOOST_TEST(wheel.stats().wakeups == 0u);
  t.cancel();
  io.run();
  BOOST_TEST(wheel.stats().wakeups == 0u);
}

BOOST_AUTO_TEST_CASE(c3_minutes_hours_days_and_years_fire) {
  for (const duration d :
       {duration(5min), duration(1h), duration(24h), duration(24h * 365)}) {
    manual_context c;
    outcome o;
    wheel_timer t(c.io, d);
    t.async_wait(o.small());
    c.poll();
    c.advance(d - 1ns);
    BOOST_TEST((o.fate() == fate::waiting));
    c.advance(1ns);
    BOOST_TEST((o.fate() == fate::fired));
  }
}

BOOST_AUTO_TEST_CASE(c4_a_storm_of_100000_lets_others_have_their_turn) {
  manual_context c;
  constexpr std::size_t n = 100'000;
  std::vector<wheel_timer> timers;
  timers.reserve(n);
  std::size_t fired = 0, since = 0, longest = 0, others = 0;
  for (std::size_t i = 0; i != n; ++i) {
    timers.emplace_back(c.io, 1ms);
    timers.back().async_wait([&](error_code) {
      ++fired;
      longest = std::max(longest, ++since);
    });
  }
  std::function<void()> other = [&] {
    since = 0;
    ++others;
    if (fired != n)
      asio::post(c.io, std::ref(other));
  };
  asio::post(c.io, std::ref(other));
  c.advance(1ms);
  BOOST_TEST(fired == n);
  BOOST_TEST(longest <= 2 * c.wheel.options().expiry_batch);
  BOOST_TEST(others >= n / (2 * c.wheel.options().expiry_batch));
}

BOOST_AUTO_TEST_CASE(a9_far_waits_armed_in_a_storm_do_not_delay_a_nearer_one) {
  // On the real clock: it is the driver's waking that is at stake.
  for (const std::size_t batch : {1u, 7u, 128u}) {
    asio::io_context io(1);
    asio_wheel::wheel_options options;
    options.expiry_batch = batch;
    asio_wheel::make_wheel(io, options);
    const auto start = std::chrono::steady_clock::now();
    std::vector<wheel_timer> timers;
    timers.reserve(300); // more than two batches
    for (int i = 0; i != 300; ++i) {
      timers.emplace_back(io, start + 20ms);
      timers.back().async_wait([&t = timers.back()](error_code) {
        t.expires_after(1h);
        t.async_wait([](error_code) {});
      });
    }
    bool fired = false;
    wheel_timer near(io, start + 40ms);
    near.async_wait([&](error_code ec) {
      fired = !ec;
      io.stop();
    });
    io.run_for(20s);
    BOOST_TEST(fired);
  }
}

BOOST_AUTO_TEST_CASE(c5_the_wall_clock_does_not_matter) {
  static_assert(wheel_timer::clock_type::is_steady);
  static_assert(
      std::is_same_v<wheel_timer::clock_type, std::chrono::steady_clock>);
}

BOOST_AUTO_TEST_CASE(c6_after_hours_asleep_every_due_timer_fires_once) {
  manual_context c;
  std::vector<outcome> all(1000);
  std::vector<wheel_timer> timers;
  for (std::size_t i = 0; i != all.size(); ++i) {
    timers.emplace_back(c.io, std::chrono::seconds(i * 11));
    timers.back().async_wait(all[i].small());
  }
  c.poll();
  c.advance(4h); // at once
  for (auto& o : all)
    BOOST_TEST(o.calls() == 1);
}

BOOST_AUTO_TEST_CASE(d1_the_context_goes_before_its_timers) {
  outcome waiting, due, small, strand;
  std::optional<wheel_timer> a, b, s, d;
  {
    manual_context c;
    a.emplace(c.io, 1h);
    a->async_wait(waiting.tracked());
    b.emplace(c.io, 1ms);
    b->async_wait(due.tracked());
    s.emplace(c.io, 1h);
    s->async_wait(small.small());
    d.emplace(c.io, 1ms);
    d->async_wait(
        asio::bind_executor(asio::make_strand(c.io), strand.tracked()));
    c.clock.advance(1ms);
  }
  BOOST_TEST((waiting.fate() == fate::dropped));
  BOOST_TEST((due.fate() == fate::dropped));
  BOOST_TEST((strand.fate() == fate::dropped));
  BOOST_TEST(small.calls() == 0);
  BOOST_TEST(a->cancel() == 0u);
}

BOOST_AUTO_TEST_CASE(d2_a_pending_timer_is_destroyed) {
  manual_context c;
  outcome tracked, small;
  {
    wheel_timer t(c.io, 1h), u(c.io, 1h);
    t.async_wait(tracked.tracked());
    u.async_wait(small.small());
  }
  BOOST_TEST((tracked.fate() == fate::waiting));
  BOOST_TEST((small.fate() == fate::waiting));
  c.poll();
  BOOST_TEST((tracked.fate() == fate::aborted));
  BOOST_TEST((small.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(d3_a_handlers_destructor_cancels_and_arms) {
  outcome armed;
  std::size_t destroyed = 0;
  std::optional<wheel_timer> other;
  struct meddler {
    meddler(wheel_timer* c, outcome* a, std::size_t* d)
        : cancelled(c), armed(a), destroyed(d) {}
    meddler(const meddler&) = delete;
    wheel_timer* cancelled;
    outcome* armed;
    std::size_t* destroyed;
    ~meddler() {
      ++*destroyed;
      cancelled->cancel();
      cancelled->expires_after(1ms);
      cancelled->async_wait(armed->tracked());
    }
  };
  {
    manual_context c;
    other.emplace(c.io, 1h);
    wheel_timer t(c.io, 1ms);
    t.async_wait([m = std::make_shared<meddler>(&*other, &armed, &destroyed)](
                     error_code) {});
    c.advance(1ms); // the handler is destroyed after its call
    BOOST_TEST(destroyed == 1u);
    c.advance(1ms);
    BOOST_TEST((armed.fate() == fate::fired));
    // And while the context is being destroyed.
    armed.forget();
    t.expires_after(1h);
    t.async_wait([m = std::make_shared<meddler>(&*other, &armed, &destroyed)](
                     error_code) {});
  }
  BOOST_TEST(destroyed == 2u);
  BOOST_TEST((armed.fate() == fate::dropped));
}

BOOST_AUTO_TEST_CASE(d5_the_executor_captured_at_initiation_and_no_other) {
  manual_context c;
  asio::io_context elsewhere(1);
  outcome own, bound, moved;
  wheel_timer t(c.io, 1ms);
  t.async_wait(asio::bind_executor(elsewhere.get_executor(), bound.tracked()));
  t.async_wait(own.tracked());
  wheel_timer u(std::move(t)); // the waits keep their executors
  t = wheel_timer(elsewhere);
  c.advance(1ms);
  BOOST_TEST((own.fate() == fate::fired));
  BOOST_TEST((bound.fate() == fate::waiting));
  elsewhere.run();
  BOOST_TEST((bound.fate() == fate::fired));

  // A timer assigned over from another context runs its handlers there.
  t.expires_at(time_point::min());
  t.async_wait(moved.tracked());
  c.poll();
  BOOST_TEST((moved.fate() == fate::waiting));
  elsewhere.restart();
  elsewhere.run();
  BOOST_TEST((moved.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(d6_cancel_between_the_steps_of_a_composed_operation) {
  manual_context c;
  wheel_timer t(c.io);
  int steps = 0;
  outcome o;
  const auto two_steps = [&, step = 0](auto& self, error_code ec = {}) mutable {
    steps = ++step;
    if (ec || step == 3)
      return self.complete(ec);
    t.expires_after(10ms);
    t.async_wait(std::move(self));
  };
  auto handler = o.tracked();
  asio::async_compose<decltype(handler), void(error_code)>(two_steps, handler,
                                                           t);
  c.advance(10ms);
  BOOST_TEST(steps == 2);
  BOOST_TEST(t.cancel() == 1u);
  c.poll();
  BOOST_TEST(steps == 3);
  BOOST_TEST((o.fate() == fate::aborted));
}

// Faults that this library has had.

BOOST_AUTO_TEST_CASE(run_is_not_held_after_a_pulled_back_wait_was_cancelled) {
  for (int how = 0; how != 3; ++how) {
    manual_context m;
    test::queue_context other;
    std::optional<wheel_timer> t(std::in_place, m.io, 10ms);
    outcome o;
    t->async_wait(asio::bind_executor(other.get_executor(), o.tracked()));
    m.advance(10ms);
    BOOST_TEST(t->rearm_after(1h) == 1u);
    m.poll();
    if (how == 0)
      BOOST_TEST(t->cancel() == 1u);
    else if (how == 1)
      t.reset();
    else
      BOOST_TEST(m.wheel.stop() == 1u);
    other.run();
    m.poll();
    BOOST_TEST((o.fate() == fate::aborted));
    BOOST_TEST(m.io.stopped());
  }
}

BOOST_AUTO_TEST_CASE(
    a_wait_due_at_once_needs_no_advance_after_a_nearer_timer_went) {
  manual_context m;
  wheel_timer far(m.io, 1000h), t(m.io);
  std::optional<wheel_timer> near(std::in_place, m.io, 5ms);
  outcome o1, o2, o3;
  far.async_wait(o1.small());
  near->async_wait(o2.small());
  near->cancel();
  m.poll();
  near.reset();
  m.advance(25ms);
  t.expires_after(0ms);
  t.async_wait(o3.small());
  m.poll();
  BOOST_TEST((o3.fate() == fate::fired));
  far.cancel();
  m.poll();
}

BOOST_AUTO_TEST_CASE(run_is_not_held_after_a_handler_threw_on_one_thread) {
  asio_wheel::wheel_options op;
  op.single_threaded = true;
  manual_context m(op);
  wheel_timer a(m.io, 1h), b(m.io, 10ms);
  a.async_wait([](auto) { throw 42; });
  b.async_wait([&](auto) { a.cancel(); });
  m.clock.advance(10ms);
  BOOST_CHECK_THROW(m.poll(), int);
  m.poll();
  BOOST_TEST(m.wheel.pending() == 0u);
  BOOST_TEST(m.io.stopped());
}

BOOST_AUTO_TEST_CASE(
    the_simulation_ends_though_a_deadline_lies_in_the_last_tick) {
  for (const auto before : {1ns, 1000ns, 1000000ns}) {
    manual_context m;
    wheel_timer t(m.io);
    t.expires_at(time_point::max() - before);
    outcome o;
    t.async_wait(o.tracked());
    asio_wheel::simulation_options so;
    so.until = time_point::max();
    asio_wheel::run_simulation({m.io}, m.clock, so);
    t.cancel();
    m.poll();
  }
  BOOST_TEST(true);
}
