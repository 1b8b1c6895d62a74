//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/timeout_stream.hpp>

#define BOOST_TEST_MODULE timeout_stream
#include <boost/test/unit_test.hpp>

#include <test/local_pair.hpp>
#include <test/manual_context.hpp>
#include <test/memory_stream.hpp>

#include <asio_wheel/wheel_timer.hpp>

#include <boost/asio/append.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/write.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::condition;
using asio_wheel::error;
using asio_wheel::error_code;
using asio_wheel::idle_activity;
using asio_wheel::minimum_rate;
using asio_wheel::never;
using asio_wheel::stream_timeouts;
using asio_wheel::timeout_action;
using test::manual_context;
using test::memory_stream;
using tcp = asio::ip::tcp;
using stream = asio_wheel::timeout_stream<memory_stream>;

BOOST_TEST_DONT_PRINT_LOG_VALUE(std::optional<error_code>)

namespace {

const error_code aborted = asio::error::operation_aborted;

// What became of an operation.
struct result {
  std::optional<error_code> ec;
  std::size_t n = 0;
  int calls = 0;

  auto handler() {
    return [this](error_code e, std::size_t m = 0) {
      ec = e;
      n = m;
      ++calls;
    };
  }
  auto wait_handler() {
    return [this](error_code e) {
      ec = e;
      ++calls;
    };
  }
  bool pending() const { return calls == 0; }
};

#define CHECK_RESULT(r, expected)                                              \
  do {                                                                         \
    BOOST_TEST_REQUIRE((r).calls == 1);                                        \
    BOOST_TEST(*(r).ec == error_code(expected));                               \
  } while (false)

// A stream on a manual clock, and its peer.
struct fixture : manual_context {
  stream s{asio::any_io_executor(io.get_executor())};
  memory_stream::peer peer = s.next_layer().other_end();
  std::array<char, 64> data{};

  using manual_context::manual_context;

  void read(result& r) { s.async_read_some(asio::buffer(data), r.handler()); }
  void write(result& r, std::size_t n = 10) {
    s.async_write_some(asio::buffer(data, n), r.handler());
  }
  void set(stream_timeouts t) { s.timeouts(t); }

  static stream_timeouts with_read(stream::duration d) {
    stream_timeouts t;
    t.read = d;
    return t;
  }
  static stream_timeouts with_write(stream::duration d) {
    stream_timeouts t;
    t.write = d;
    return t;
  }
  static stream_timeouts with_idle(stream::duration d) {
    stream_timeouts t;
    t.idle = d;
    return t;
  }
  // How much later than d a timeout of d may be noticed.
  static stream::duration late(stream::duration d) {
    return std::max<stream::duration>(1ms,
                                      std::min<stream::duration>(d / 64, 1s));
  }
};

} // namespace

// ---------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(reading)

BOOST_FIXTURE_TEST_CASE(a_read_without_timeouts_is_the_streams, fixture) {
  result r;
  read(r);
  advance(24h * 365);
  BOOST_TEST(r.pending());
  BOOST_TEST(wheel.pending() == 0u);
  peer.feed("abc");
  poll();
  CHECK_RESULT(r, error_code());
  BOOST_TEST(r.n == 3u);
  BOOST_TEST(std::string(data.data(), 3) == "abc");
}

BOOST_FIXTURE_TEST_CASE(a_read_ends_with_read_timeout_not_early, fixture) {
  set(with_read(10s));
  result r;
  read(r);
  advance(10s - 1ns);
  BOOST_TEST(r.pending());
  advance(1ns + late(10s));
  CHECK_RESULT(r, error::read_timeout);
  BOOST_TEST(r.n == 0u);
  BOOST_TEST((*r.ec == condition::timeout));
  BOOST_TEST((*r.ec == boost::system::errc::timed_out));
}

BOOST_FIXTURE_TEST_CASE(the_read_clock_starts_with_each_read, fixture) {
  set(with_read(10s));
  for (int i = 0; i != 5; ++i) {
    result r;
    read(r);
    advance(9s);
    peer.feed("x");
    poll();
    CHECK_RESULT(r, error_code());
    advance(30s); // no read pending: no clock runs
  }
  result r;
  read(r);
  advance(10s - 1ns);
  BOOST_TEST(r.pending());
  advance(1s);
  CHECK_RESULT(r, error::read_timeout);
}

BOOST_FIXTURE_TEST_CASE(after_a_read_timeout_the_stream_goes_on, fixture) {
  set(with_read(10s));
  result r;
  read(r);
  advance(11s);
  CHECK_RESULT(r, error::read_timeout);
  peer.feed("late");
  result again;
  read(again);
  poll();
  CHECK_RESULT(again, error_code());
  BOOST_TEST(std::string(data.data(), again.n) == "late");
}

BOOST_FIXTURE_TEST_CASE(what_arrives_in_the_instant_of_the_timeout_is_read,
                        fixture) {
  set(with_read(10s));
  result r;
  read(r);
  clock.advance(11s); // both are due before anything runs
  peer.feed("now");
  poll();
  CHECK_RESULT(r, error_code());
  BOOST_TEST(r.n == 3u);
}

BOOST_FIXTURE_TEST_CASE(a_write_timeout_leaves_a_read_alone, fixture) { // E5
  stream_timeouts t;
  t.read = 30s;
  t.write = 10s;
  set(t);
  result r, w;
  read(r);
  write(w);
  advance(11s);
  CHECK_RESULT(w, error::write_timeout);
  BOOST_TEST(r.pending());
  advance(20s);
  CHECK_RESULT(r, error::read_timeout);
}

BOOST_FIXTURE_TEST_CASE(an_empty_read_completes_beside_another, fixture) {
  result empty;
  tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
  asio_wheel::timeout_stream<> client(io);
  client.connect(acceptor.local_endpoint());
  client.timeouts(with_read(10s));
  result pending;
  client.async_read_some(asio::buffer(data), pending.handler());
  client.async_read_some(asio::mutable_buffer(), empty.handler());
  poll();
  CHECK_RESULT(empty, error_code());
  BOOST_TEST(pending.pending());
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(writing)

BOOST_FIXTURE_TEST_CASE(a_write_ends_with_write_timeout_not_early, fixture) {
  set(with_write(10s));
  result w;
  write(w);
  advance(10s - 1ns);
  BOOST_TEST(w.pending());
  advance(1ns + late(10s));
  CHECK_RESULT(w, error::write_timeout);
}

BOOST_FIXTURE_TEST_CASE(a_slow_write_that_moves_never_times_out, fixture) {
  set(with_write(10s));
  std::string all(1000, 'x');
  result w;
  asio::async_write(s, asio::buffer(all), w.handler());
  for (int i = 0; i != 100; ++i) {
    advance(9s);
    peer.accept(10);
    poll();
    BOOST_TEST_REQUIRE(w.pending() == (i != 99));
  }
  CHECK_RESULT(w, error_code());
  BOOST_TEST(w.n == 1000u);
  BOOST_TEST(peer.received() == all);
}

BOOST_FIXTURE_TEST_CASE(a_timed_out_write_can_be_resumed_byte_for_byte,
                        fixture) {
  set(with_write(1s));
  std::string all;
  for (int i = 0; i != 1000; ++i)
    all += static_cast<char>(i);
  std::size_t sent = 0;
  int timeouts = 0;
  while (sent != all.size()) {
    result w;
    s.async_write_some(asio::buffer(all.data() + sent, all.size() - sent),
                       w.handler());
    if (sent % 3 == 0) {
      advance(2s);
      BOOST_TEST_REQUIRE(w.calls == 1);
      if (*w.ec == error::write_timeout) {
        ++timeouts;
        BOOST_TEST(w.n == 0u);
        peer.accept(7);
        continue;
      }
    } else {
      peer.accept(5);
      poll();
    }
    CHECK_RESULT(w, error_code());
    sent += w.n;
  }
  BOOST_TEST(timeouts > 10);
  BOOST_TEST(peer.received() == all);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(idle)

BOOST_FIXTURE_TEST_CASE(idle_ends_what_is_pending, fixture) {
  set(with_idle(60s));
  result r, w;
  read(r);
  write(w);
  advance(60s - 1ns);
  BOOST_TEST((r.pending() && w.pending()));
  advance(1ns + late(60s));
  CHECK_RESULT(r, error::idle_timeout);
  CHECK_RESULT(w, error::idle_timeout);
}

BOOST_FIXTURE_TEST_CASE(bytes_in_either_direction_put_idle_off, fixture) {
  set(with_idle(60s));
  peer.accept(1000);
  result r;
  read(r);
  for (int i = 0; i != 10; ++i) {
    advance(50s);
    result w;
    write(w);
    poll();
    CHECK_RESULT(w, error_code());
    BOOST_TEST_REQUIRE(r.pending());
  }
  advance(62s);
  CHECK_RESULT(r, error::idle_timeout);
}

BOOST_FIXTURE_TEST_CASE(only_the_bytes_that_count_put_idle_off, fixture) {
  for (const auto counts : {idle_activity::received, idle_activity::sent}) {
    stream_timeouts t = with_idle(60s);
    t.idle_counts = counts;
    set(t);
    peer.accept(10);
    advance(50s);
    result w;
    write(w);
    poll();
    CHECK_RESULT(w, error_code());
    result r;
    read(r);
    advance(20s); // 70 s since the start, 20 since the write
    if (counts == idle_activity::received) {
      CHECK_RESULT(r, error::idle_timeout);
    } else {
      BOOST_TEST(r.pending());
      peer.feed("y"); // received: does not count
      poll();
      result r2;
      read(r2);
      advance(42s);
      CHECK_RESULT(r2, error::idle_timeout);
    }
  }
}

BOOST_FIXTURE_TEST_CASE(idle_with_nothing_pending_ends_the_next_operation,
                        fixture) { // E6
  set(with_idle(60s));
  peer.feed("unread");
  advance(61s);
  result r;
  read(r);
  BOOST_TEST(r.pending()); // never from within
  poll();
  CHECK_RESULT(r, error::idle_timeout);
  // Reported once; what has arrived is there.
  result r2;
  read(r2);
  poll();
  CHECK_RESULT(r2, error_code());
  BOOST_TEST(r2.n == 6u);
}

BOOST_FIXTURE_TEST_CASE(an_idle_stream_that_will_not_act_does_not_hold_run,
                        fixture) {
  set(with_idle(60s));
  result r;
  read(r);
  peer.feed("x");
  io.restart();
  io.run(); // returns
  CHECK_RESULT(r, error_code());
  BOOST_TEST(wheel.pending() == 0u);
}

BOOST_FIXTURE_TEST_CASE(an_idle_stream_that_will_close_holds_run_until_then,
                        fixture) {
  stream_timeouts t = with_idle(60s);
  t.action = timeout_action::close;
  set(t);
  BOOST_TEST(wheel.pending() == 1u);
  advance(60s - 1ns);
  BOOST_TEST(!peer.closed());
  advance(2s);
  BOOST_TEST(peer.closed());
  BOOST_TEST(wheel.pending() == 0u); // E3: nothing after close
  io.restart();
  io.run();
  result r;
  read(r);
  poll();
  CHECK_RESULT(r, error::idle_timeout); // it says why
  result r2;
  read(r2);
  poll();
  CHECK_RESULT(r2, asio::error::bad_descriptor);
  BOOST_TEST(wheel.pending() == 0u);
}

BOOST_FIXTURE_TEST_CASE(touch_is_activity, fixture) {
  set(with_idle(60s));
  result r;
  read(r);
  for (int i = 0; i != 5; ++i) {
    advance(50s);
    s.touch();
  }
  BOOST_TEST(r.pending());
  advance(60s - 1ns);
  BOOST_TEST(r.pending());
  advance(2s);
  CHECK_RESULT(r, error::idle_timeout);
}

BOOST_FIXTURE_TEST_CASE(no_bytes_are_no_activity, fixture) { // E2
  set(with_idle(60s));
  advance(50s);
  result r;
  read(r);
  peer.end();
  poll();
  CHECK_RESULT(r, asio::error::eof);
  advance(11s);
  result r2;
  read(r2);
  poll();
  CHECK_RESULT(r2, error::idle_timeout);
}

BOOST_FIXTURE_TEST_CASE(idle_set_late_counts_from_then, fixture) { // E3
  advance(1000s);
  result r;
  read(r);
  advance(1000s);
  set(with_idle(60s));
  set(with_idle(60s)); // twice: one timer
  BOOST_TEST(wheel.pending() == 1u);
  advance(60s - 1ns);
  BOOST_TEST(r.pending());
  advance(2s);
  CHECK_RESULT(r, error::idle_timeout);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(idle_waits)

BOOST_FIXTURE_TEST_CASE(the_owner_is_told_and_nothing_else_happens, fixture) {
  stream_timeouts t = with_idle(60s);
  t.action = timeout_action::close;
  set(t);
  result r, w1, w2;
  read(r);
  s.async_wait_idle(w1.wait_handler());
  s.async_wait_idle(w2.wait_handler());
  advance(61s);
  CHECK_RESULT(w1, error_code());
  CHECK_RESULT(w2, error_code());
  BOOST_TEST(r.pending());
  BOOST_TEST(!peer.closed());
  advance(61s); // nobody waits any more
  CHECK_RESULT(r, error::idle_timeout);
  BOOST_TEST(peer.closed());
}

BOOST_FIXTURE_TEST_CASE(a_ping_each_idle_time, fixture) {
  set(with_idle(60s));
  int pings = 0;
  std::function<void(error_code)> ping = [&](error_code ec) {
    if (!ec) {
      ++pings;
      s.async_wait_idle(ping);
    }
  };
  s.async_wait_idle(ping);
  for (int i = 0; i != 2000; ++i)
    advance(1s);
  BOOST_TEST(pings >= 31);
  BOOST_TEST(pings <= 33);
  s.cancel();
  poll();
  BOOST_TEST(wheel.pending() == 0u);
}

BOOST_FIXTURE_TEST_CASE(a_wait_holds_run_only_if_idle_is_set, fixture) {
  result w;
  s.async_wait_idle(w.wait_handler());
  advance(1h);
  BOOST_TEST(w.pending());
  set(with_idle(60s));
  advance(59s);
  BOOST_TEST(w.pending());
  advance(2s);
  CHECK_RESULT(w, error_code());
}

BOOST_FIXTURE_TEST_CASE(a_wait_is_aborted_by_cancel_close_slot_and_destructor,
                        fixture) {
  set(with_idle(60s));
  result by_cancel, by_slot, by_close, by_destructor;
  s.async_wait_idle(by_cancel.wait_handler());
  s.cancel();
  poll();
  CHECK_RESULT(by_cancel, aborted);

  asio::cancellation_signal signal;
  s.async_wait_idle(
      asio::bind_cancellation_slot(signal.slot(), by_slot.wait_handler()));
  signal.emit(asio::cancellation_type::total);
  poll();
  CHECK_RESULT(by_slot, aborted);

  s.async_wait_idle(by_close.wait_handler());
  s.close();
  poll();
  CHECK_RESULT(by_close, aborted);

  auto other =
      std::make_unique<stream>(asio::any_io_executor(io.get_executor()));
  other->timeouts(with_idle(60s));
  other->async_wait_idle(by_destructor.wait_handler());
  other.reset();
  poll();
  CHECK_RESULT(by_destructor, aborted);
  BOOST_TEST(wheel.pending() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(deadlines)

BOOST_FIXTURE_TEST_CASE(a_deadline_ends_everything_until_it_is_moved, fixture) {
  s.expires_after(30s);
  BOOST_TEST((s.expiry() == now() + 30s));
  result r, w;
  read(r);
  write(w);
  advance(30s - 1ns);
  BOOST_TEST((r.pending() && w.pending()));
  advance(1s);
  CHECK_RESULT(r, error::deadline_exceeded);
  CHECK_RESULT(w, error::deadline_exceeded);
  for (int i = 0; i != 3; ++i) {
    result again;
    read(again);
    poll();
    CHECK_RESULT(again, error::deadline_exceeded);
  }
  peer.feed("x");
  s.expires_never();
  BOOST_TEST((s.expiry() == stream::time_point::max()));
  result after;
  read(after);
  poll();
  CHECK_RESULT(after, error_code());
}

BOOST_FIXTURE_TEST_CASE(a_deadline_that_passes_between_operations, fixture) {
  s.expires_after(30s); // E6
  advance(31s);
  BOOST_TEST(wheel.pending() == 0u);
  result r;
  read(r);
  poll();
  CHECK_RESULT(r, error::deadline_exceeded);
}

BOOST_FIXTURE_TEST_CASE(a_deadline_moved_while_pending_counts, fixture) {
  s.expires_after(30s);
  result r;
  read(r);
  s.expires_after(60s);
  advance(59s);
  BOOST_TEST(r.pending());
  s.expires_after(5s);
  advance(5s - 1ns);
  BOOST_TEST(r.pending());
  advance(1s);
  CHECK_RESULT(r, error::deadline_exceeded);
}

BOOST_FIXTURE_TEST_CASE(any_deadline_is_legal, fixture) { // A1, A2
  for (const auto d :
       {stream::duration::max(), stream::duration::max() - 1ns}) {
    s.expires_after(d);
    result r;
    read(r);
    advance(24h);
    BOOST_TEST(r.pending());
    s.cancel();
    poll();
    CHECK_RESULT(r, aborted);
  }
  for (const auto d : {stream::duration::min(), stream::duration(-1ns),
                       stream::duration::zero()}) {
    s.expires_after(d);
    result r;
    read(r);
    BOOST_TEST(r.pending());
    poll();
    CHECK_RESULT(r, error::deadline_exceeded);
  }
  s.expires_at(stream::time_point::max());
  result r;
  read(r);
  advance(24h);
  BOOST_TEST(r.pending());
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(minimum_rates)

BOOST_FIXTURE_TEST_CASE(a_peer_that_drips_is_too_slow, fixture) {
  stream_timeouts t = with_read(10s);
  t.read_rate = {100, 5s};
  set(t);
  // One byte a second: each is in time, together they are not. Five seconds,
  // and a hundredth for each byte.
  error_code last;
  int bytes = 0;
  for (; bytes != 20; ++bytes) {
    result r;
    read(r);
    advance(1s);
    if (r.pending())
      peer.feed("x");
    poll();
    BOOST_TEST_REQUIRE(r.calls == 1);
    last = *r.ec;
    if (last)
      break;
  }
  BOOST_TEST((last == error::too_slow));
  BOOST_TEST((last != condition::timeout));
  BOOST_TEST(bytes == 5);
}

BOOST_FIXTURE_TEST_CASE(a_peer_at_the_rate_is_kept, fixture) {
  stream_timeouts t;
  t.read_rate = {10, 2s};
  t.write_rate = {10, 2s};
  set(t);
  for (int i = 0; i != 1000; ++i) {
    result r, w;
    read(r);
    write(w, 10);
    advance(1s);
    peer.feed("0123456789");
    peer.accept(10);
    poll();
    CHECK_RESULT(r, error_code());
    CHECK_RESULT(w, error_code());
  }
}

BOOST_FIXTURE_TEST_CASE(a_writes_rate_counts_likewise, fixture) {
  stream_timeouts t;
  t.write_rate = {1000, 3s};
  set(t);
  result w;
  write(w);
  advance(3s - 1ns);
  BOOST_TEST(w.pending());
  advance(200ms);
  CHECK_RESULT(w, error::too_slow);
}

BOOST_FIXTURE_TEST_CASE(time_in_which_nobody_reads_costs_nothing, fixture) {
  stream_timeouts t;
  t.read_rate = {100, 5s};
  set(t);
  for (int i = 0; i != 4; ++i) {
    result r;
    read(r);
    advance(1s);
    peer.feed("x");
    poll();
    CHECK_RESULT(r, error_code());
    advance(1h);
  }
}

BOOST_FIXTURE_TEST_CASE(a_burst_earns_no_more_than_the_grace, fixture) {
  stream_timeouts t;
  t.read_rate = {10, 5s};
  set(t);
  peer.feed(std::string(64, 'x')); // worth 6.4 s
  result r;
  read(r);
  poll();
  CHECK_RESULT(r, error_code());
  result r2;
  read(r2);
  advance(5s - 1ns);
  BOOST_TEST(r2.pending());
  advance(200ms);
  CHECK_RESULT(r2, error::too_slow);
}

BOOST_FIXTURE_TEST_CASE(setting_the_rate_again_fills_the_account, fixture) {
  stream_timeouts t;
  t.read_rate = {10, 5s};
  set(t);
  result r;
  read(r);
  advance(4s);
  set(t);
  advance(4s);
  BOOST_TEST(r.pending());
  advance(1200ms);
  CHECK_RESULT(r, error::too_slow);
  result again; // with a fresh clock
  read(again);
  advance(4s);
  BOOST_TEST(again.pending());
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(settings)

BOOST_FIXTURE_TEST_CASE(they_come_back_as_they_were_given, fixture) {
  stream_timeouts t;
  t.read = 1s;
  t.write = 2s;
  t.connect = 3s;
  t.idle = 4s;
  t.idle_counts = idle_activity::sent;
  t.action = timeout_action::shutdown;
  t.read_rate = {5, 6s};
  t.write_rate = {7, 8s};
  set(t);
  const stream_timeouts u = s.timeouts();
  BOOST_TEST(
      (u.read == 1s && u.write == 2s && u.connect == 3s && u.idle == 4s));
  BOOST_TEST((u.idle_counts == idle_activity::sent));
  BOOST_TEST((u.action == timeout_action::shutdown));
  BOOST_TEST(u.read_rate.bytes_per_second == 5u);
  BOOST_TEST((u.read_rate.grace == 6s));
  BOOST_TEST(u.write_rate.bytes_per_second == 7u);
  BOOST_TEST((u.write_rate.grace == 8s));
  const stream_timeouts fresh =
      stream(asio::any_io_executor(io.get_executor())).timeouts();
  BOOST_TEST((fresh.read == never && fresh.write == never &&
              fresh.connect == never && fresh.idle == never));
}

BOOST_FIXTURE_TEST_CASE(zero_and_negative_ones_are_refused_by_name, fixture) {
  set(with_read(7s));
  const auto refused = [&](auto change, const std::string& name) {
    for (const auto d : {stream::duration::zero(), stream::duration(-1ns),
                         stream::duration::min()}) {
      stream_timeouts t;
      change(t, d);
      BOOST_CHECK_EXCEPTION(s.timeouts(t), std::invalid_argument,
                            [&](const std::invalid_argument& e) {
                              return std::string(e.what()).find("::" + name +
                                                                " ") !=
                                     std::string::npos;
                            });
    }
  };
  refused([](auto& t, auto d) { t.read = d; }, "read");
  refused([](auto& t, auto d) { t.write = d; }, "write");
  refused([](auto& t, auto d) { t.connect = d; }, "connect");
  refused([](auto& t, auto d) { t.idle = d; }, "idle");
  refused([](auto& t, auto d) { t.read_rate.grace = d; }, "read_rate.grace");
  refused([](auto& t, auto d) { t.write_rate.grace = d; }, "write_rate.grace");
  BOOST_TEST((s.timeouts().read == 7s)); // nothing changed
}

BOOST_FIXTURE_TEST_CASE(changed_while_pending_they_count_from_then, fixture) {
  set(with_read(10s)); // E4
  result r, w;
  read(r);
  write(w);
  advance(9s);
  stream_timeouts t;
  t.read = 5s;
  t.write = 7s;
  set(t);
  advance(5s - 1ns);
  BOOST_TEST(r.pending());
  advance(200ms);
  CHECK_RESULT(r, error::read_timeout);
  BOOST_TEST(w.pending());
  advance(2s);
  CHECK_RESULT(w, error::write_timeout);
}

BOOST_FIXTURE_TEST_CASE(turned_off_while_pending_nothing_ends, fixture) {
  set(with_read(10s));
  result r;
  read(r);
  advance(9s);
  set({});
  advance(1h);
  BOOST_TEST(r.pending());
  peer.feed("x");
  poll();
  CHECK_RESULT(r, error_code());
}

BOOST_FIXTURE_TEST_CASE(tiny_and_huge_ones, fixture) { // E7
  for (const auto d : {stream::duration(1ns), stream::duration(1ms),
                       stream::duration(2ms), stream::duration(3500us)}) {
    set(with_read(d));
    result r;
    read(r);
    if (d > 1ns) {
      advance(d - 1ns);
      BOOST_TEST(r.pending());
    }
    advance(2ms);
    CHECK_RESULT(r, error::read_timeout);
  }
  for (const auto d : {never, never - 1ns, never / 2}) {
    set(with_read(d));
    result r;
    read(r);
    advance(24h * 365);
    BOOST_TEST(r.pending());
    s.cancel();
    poll();
  }
}

BOOST_FIXTURE_TEST_CASE(queries_tell_what_moved_and_what_is_armed, fixture) {
  const auto start = now();
  BOOST_TEST((s.last_read() == start && s.last_write() == start));
  BOOST_TEST(!s.next_timeout());
  stream_timeouts t = with_read(10s);
  t.idle = 60s;
  set(t);
  BOOST_TEST(!s.next_timeout()); // nothing pending
  peer.accept(100);
  advance(5s);
  result r, w;
  read(r);
  write(w, 10);
  poll();
  CHECK_RESULT(w, error_code());
  BOOST_TEST_REQUIRE(s.next_timeout().has_value());
  BOOST_TEST((s.next_timeout()->what == error::read_timeout));
  BOOST_TEST((s.next_timeout()->when == start + 15s));
  BOOST_TEST((s.last_write() == start + 5s));
  BOOST_TEST((s.last_read() == start));
  BOOST_TEST(s.bytes_written() == 10u);
  BOOST_TEST(s.bytes_read() == 0u);
  advance(2s);
  peer.feed("abc");
  poll();
  BOOST_TEST((s.last_read() == start + 7s));
  BOOST_TEST(s.bytes_read() == 3u);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(who_comes_first)

BOOST_FIXTURE_TEST_CASE(the_users_cancel_is_operation_aborted, fixture) {
  set(with_read(10s));
  result r;
  read(r);
  s.cancel();
  poll();
  CHECK_RESULT(r, aborted);
  BOOST_TEST(wheel.pending() == 0u);
}

BOOST_FIXTURE_TEST_CASE(cancel_before_the_timeout_in_one_instant, fixture) {
  set(with_read(10s));
  result r;
  read(r);
  clock.advance(11s);
  s.cancel();
  poll();
  CHECK_RESULT(r, aborted);
}

BOOST_FIXTURE_TEST_CASE(cancel_after_the_timeout_changes_nothing, fixture) {
  set(with_read(10s));
  result r;
  bool cancelled = false;
  read(r);
  asio_wheel::wheel_timer later(io, 10s + 500ms);
  later.async_wait([&](error_code) {
    cancelled = true;
    s.cancel();
  });
  advance(11s);
  BOOST_TEST(cancelled);
  CHECK_RESULT(r, error::read_timeout);
}

BOOST_FIXTURE_TEST_CASE(a_users_slot_is_forwarded_and_is_the_users, fixture) {
  using asio::cancellation_type;
  set(with_read(10s));
  for (const auto type :
       {cancellation_type::terminal, cancellation_type::partial,
        cancellation_type::total}) {
    asio::cancellation_signal signal;
    result r;
    s.async_read_some(asio::buffer(data),
                      asio::bind_cancellation_slot(signal.slot(), r.handler()));
    signal.emit(type);
    poll();
    CHECK_RESULT(r, aborted);
    BOOST_TEST(!signal.slot().has_handler());
  }
  // A timeout, with a slot connected.
  asio::cancellation_signal signal;
  result r;
  s.async_read_some(asio::buffer(data),
                    asio::bind_cancellation_slot(signal.slot(), r.handler()));
  advance(11s);
  CHECK_RESULT(r, error::read_timeout);
  BOOST_TEST(!signal.slot().has_handler());
}

// Every two of them in the same instant: the one with the earlier end decides,
// and each end is a legal one.
BOOST_FIXTURE_TEST_CASE(every_timeout_against_every_other, fixture) {
  const std::vector<error> kinds = {error::read_timeout, error::idle_timeout,
                                    error::deadline_exceeded, error::too_slow};
  const auto add = [&](stream_timeouts& t, error e, stream::duration d) {
    switch (e) {
    case error::read_timeout:
      t.read = d;
      break;
    case error::idle_timeout:
      t.idle = d;
      break;
    case error::too_slow:
      t.read_rate = {1, d};
      break;
    default:
      s.expires_after(d);
      break;
    }
  };
  for (const error a : kinds)
    for (const error b : kinds) {
      if (a == b)
        continue;
      for (const auto ahead : {stream::duration(0), stream::duration(1ms)}) {
        stream_timeouts t;
        s.expires_never();
        add(t, a, 10s - ahead);
        add(t, b, 10s);
        set(t);
        result r;
        read(r);
        clock.advance(11s); // both have passed when the check comes
        poll();
        BOOST_TEST_REQUIRE(r.calls == 1);
        if (ahead > 0s)
          BOOST_TEST((*r.ec == error_code(a)));
        else
          BOOST_TEST((*r.ec == error_code(a) || *r.ec == error_code(b)));
        BOOST_TEST(wheel.pending() == 0u);
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(life)

BOOST_FIXTURE_TEST_CASE(destroyed_with_operations_pending, fixture) {
  auto other =
      std::make_unique<stream>(asio::any_io_executor(io.get_executor()));
  stream_timeouts t = with_read(10s);
  t.idle = 5s;
  other->timeouts(t);
  result r, w;
  other->async_read_some(asio::buffer(data), r.handler());
  other->async_write_some(asio::buffer(data), w.handler());
  other.reset();
  BOOST_TEST((r.pending() && w.pending()));
  BOOST_TEST(wheel.pending() == 0u);
  poll();
  CHECK_RESULT(r, aborted);
  CHECK_RESULT(w, aborted);
  advance(1h);
}

BOOST_FIXTURE_TEST_CASE(destroyed_by_its_own_handler, fixture) {
  auto other =
      std::make_unique<stream>(asio::any_io_executor(io.get_executor()));
  other->timeouts(with_read(10s));
  int calls = 0;
  result w;
  other->async_write_some(asio::buffer(data), w.handler());
  other->async_read_some(asio::buffer(data), [&](error_code ec, std::size_t) {
    BOOST_TEST((ec == error::read_timeout));
    ++calls;
    other.reset();
  });
  advance(11s);
  BOOST_TEST(calls == 1);
  CHECK_RESULT(w, aborted);
}

BOOST_AUTO_TEST_CASE(destroyed_with_its_context) { // D1
  auto context = std::make_unique<manual_context>();
  result r;
  auto s = std::make_unique<stream>(
      asio::any_io_executor(context->io.get_executor()));
  s->timeouts(fixture::with_read(10s));
  std::array<char, 8> data;
  s->async_read_some(asio::buffer(data), r.handler());
  s.reset(); // posts the abort
  context.reset();
  BOOST_TEST(r.calls == 0);
}

BOOST_FIXTURE_TEST_CASE(moved_with_operations_pending, fixture) {
  set(with_read(10s));
  result r, w;
  asio::cancellation_signal signal;
  read(r);
  s.async_write_some(asio::buffer(data),
                     asio::bind_cancellation_slot(signal.slot(), w.handler()));
  stream to(std::move(s));
  signal.emit(asio::cancellation_type::terminal);
  poll();
  CHECK_RESULT(w, aborted);
  advance(11s);
  CHECK_RESULT(r, error::read_timeout);
  BOOST_TEST((to.timeouts().read == 10s));
  stream third(asio::any_io_executor(io.get_executor()));
  result gone;
  third.async_read_some(asio::buffer(data), gone.handler());
  third = std::move(to);
  poll();
  CHECK_RESULT(gone, aborted);
  BOOST_TEST((third.timeouts().read == 10s));
  peer.feed("x");
  result again;
  third.async_read_some(asio::buffer(data), again.handler());
  poll();
  CHECK_RESULT(again, error_code());
}

BOOST_FIXTURE_TEST_CASE(closed_with_operations_pending, fixture) {
  stream_timeouts t = with_read(10s);
  t.action = timeout_action::close;
  t.idle = 20s;
  set(t);
  result r;
  read(r);
  s.close();
  BOOST_TEST(peer.closed());
  BOOST_TEST(wheel.pending() == 0u);
  poll();
  CHECK_RESULT(r, aborted);
  result after;
  read(after);
  poll();
  CHECK_RESULT(after, asio::error::bad_descriptor);
  BOOST_TEST(wheel.pending() == 0u);
  BOOST_TEST(wheel.streams() == 0u);
}

BOOST_FIXTURE_TEST_CASE(released, fixture) {
  set(with_read(10s));
  result r;
  read(r);
  memory_stream raw = s.release();
  poll();
  CHECK_RESULT(r, aborted);
  BOOST_TEST(raw.is_open());
  BOOST_TEST(wheel.streams() == 0u);
  peer.feed("x");
  result after;
  raw.async_read_some(asio::buffer(data), after.handler());
  poll();
  CHECK_RESULT(after, error_code());
}

BOOST_FIXTURE_TEST_CASE(a_timeout_that_closes_says_so_to_both_directions,
                        fixture) {
  stream_timeouts t = with_read(10s);
  t.action = timeout_action::close;
  set(t);
  result r, w;
  read(r);
  write(w);
  advance(11s);
  CHECK_RESULT(r, error::read_timeout);
  CHECK_RESULT(w, error::read_timeout);
  BOOST_TEST(peer.closed());
}

BOOST_FIXTURE_TEST_CASE(a_full_wheel_ends_the_operation, fixture,
                        *boost::unit_test::label("limits")) {
  asio_wheel::wheel_options o;
  o.max_pending = 1;
  manual_context full(o);
  asio_wheel::wheel_timer blocker(full.io, 1h);
  blocker.async_wait([](error_code) {});
  stream other{asio::any_io_executor(full.io.get_executor())};
  other.timeouts(with_read(10s));
  result r;
  other.async_read_some(asio::buffer(data), r.handler());
  full.poll();
  CHECK_RESULT(r, error::too_many_pending);
}

BOOST_FIXTURE_TEST_CASE(a_refused_stream_can_be_destroyed_at_once, fixture) {
  asio_wheel::wheel_options o;
  o.max_pending = 1;
  manual_context full(o);
  asio_wheel::wheel_timer blocker(full.io, 1h);
  blocker.async_wait([](error_code) {});
  auto other =
      std::make_unique<stream>(asio::any_io_executor(full.io.get_executor()));
  other->timeouts(with_read(10s));
  result r;
  other->async_read_some(asio::buffer(data), r.handler());
  other.reset();
  full.poll();
  CHECK_RESULT(r, error::too_many_pending);
}

BOOST_FIXTURE_TEST_CASE(after_the_wheels_stop_nothing_begins_unbounded,
                        fixture) {
  set(with_read(10s));
  result before, after;
  read(before);
  wheel.stop();
  advance(1h);
  BOOST_TEST(before.pending());
  peer.feed("x");
  poll();
  CHECK_RESULT(before, error_code());
  advance(1s);
  s.timeouts(with_read(5s));
  read(after);
  poll();
  CHECK_RESULT(after, error::wheel_stopped);
  s.timeouts({}); // bounded by nothing, it goes
  result free;
  read(free);
  peer.feed("x");
  poll();
  CHECK_RESULT(free, error_code());
}

#if defined(NDEBUG)
BOOST_FIXTURE_TEST_CASE(a_second_read_at_once_is_refused, fixture) {
  set(with_read(10s));
  result r, second;
  read(r);
  read(second);
  poll();
  CHECK_RESULT(second, error::operation_in_progress);
  BOOST_TEST(r.pending());
  peer.feed("x");
  poll();
  CHECK_RESULT(r, error_code());
}
#endif

BOOST_FIXTURE_TEST_CASE(steady_state_needs_one_wait, fixture) {
  stream_timeouts t = with_read(10s);
  t.write = 10s;
  t.idle = 60s;
  set(t);
  peer.accept(1'000'000);
  std::size_t loops = 0;
  std::function<void(error_code, std::size_t)> on_read;
  std::function<void(error_code, std::size_t)> on_write = [&](error_code ec,
                                                              std::size_t) {
    BOOST_TEST_REQUIRE(!ec);
    if (++loops != 1000) {
      peer.feed("x");
      s.async_read_some(asio::buffer(data), on_read);
    }
  };
  on_read = [&](error_code ec, std::size_t n) {
    BOOST_TEST_REQUIRE(!ec);
    s.async_write_some(asio::buffer(data, n), on_write);
  };
  peer.feed("x");
  s.async_read_some(asio::buffer(data), on_read);
  poll();
  BOOST_TEST(loops == 1000u);
  // One wait, and nothing done to it until the last handler returned.
  BOOST_TEST(wheel.stats().scheduled == 1u);
  BOOST_TEST(wheel.stats().moved == 0u);
  BOOST_TEST(wheel.pending() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(executors)

BOOST_FIXTURE_TEST_CASE(a_handler_bound_elsewhere_runs_there, fixture) { // D5
  asio::io_context elsewhere;
  set(with_read(10s));
  result r;
  s.async_read_some(asio::buffer(data),
                    asio::bind_executor(elsewhere.get_executor(), r.handler()));
  advance(11s);
  BOOST_TEST(r.pending());
  elsewhere.run(); // there is work on it until then
  CHECK_RESULT(r, error::read_timeout);
}

BOOST_FIXTURE_TEST_CASE(the_context_of_a_handler_is_kept_alive, fixture) {
  asio::io_context elsewhere;
  set(with_read(10s));
  result r;
  s.async_read_some(asio::buffer(data),
                    asio::bind_executor(elsewhere.get_executor(), r.handler()));
  elsewhere.poll();
  BOOST_TEST(!elsewhere.stopped());
  peer.feed("x");
  poll();
  elsewhere.run();
  CHECK_RESULT(r, error_code());
}

BOOST_FIXTURE_TEST_CASE(on_a_strand_of_any_kind, fixture) {
  auto strand = asio::make_strand(io);
  stream on_strand{asio::any_io_executor(strand)};
  on_strand.timeouts(with_read(10s));
  bool inside = false;
  on_strand.async_read_some(asio::buffer(data),
                            [&](error_code ec, std::size_t) {
                              BOOST_TEST((ec == error::read_timeout));
                              inside = strand.running_in_this_thread();
                            });
  advance(11s);
  BOOST_TEST(inside);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(draining)

BOOST_FIXTURE_TEST_CASE(idle_streams_end_evenly_spread, fixture) {
  std::vector<std::unique_ptr<stream>> streams;
  std::vector<result> results(99);
  for (auto& r : results) {
    streams.push_back(
        std::make_unique<stream>(asio::any_io_executor(io.get_executor())));
    streams.back()->async_read_some(asio::buffer(data), r.handler());
  }
  BOOST_TEST(wheel.streams() == 100u); // with the fixture's
  // Bounded by nothing, but an alarm is needed: any timeout gives one.
  for (auto& other : streams)
    other->timeouts(with_idle(1h));
  std::optional<std::size_t> left;
  wheel.async_drain(100s, [&](error_code ec, std::size_t n) {
    BOOST_TEST(!ec);
    left = n;
  });
  for (int i = 1; i <= 101; ++i) {
    advance(1s);
    int ended = 0;
    for (auto& r : results)
      ended += r.calls;
    BOOST_TEST(ended >= i - 3);
    BOOST_TEST(ended <= i);
  }
  for (auto& r : results)
    CHECK_RESULT(r, error::idle_timeout);
  BOOST_TEST_REQUIRE(left.has_value());
  BOOST_TEST(*left == 100u); // ended, and not destroyed or closed
}

BOOST_FIXTURE_TEST_CASE(when_the_time_is_up_it_says_how_many_are_left,
                        fixture) {
  std::optional<std::size_t> left;
  wheel.async_drain(10s, [&](error_code, std::size_t n) { left = n; });
  advance(10s - 1ns);
  BOOST_TEST(!left);
  advance(2ms);
  BOOST_TEST_REQUIRE(left.has_value());
  BOOST_TEST(*left == 1u);
}

BOOST_FIXTURE_TEST_CASE(a_busy_stream_goes_on_until_the_end, fixture) {
  set(with_idle(1h));
  std::optional<std::size_t> left;
  wheel.async_drain(10s, [&](error_code, std::size_t n) { left = n; });
  error_code last;
  int seconds = 0;
  while (!last) {
    result r;
    read(r);
    advance(1s);
    ++seconds;
    if (r.pending()) {
      peer.feed("x");
      poll();
    }
    BOOST_TEST_REQUIRE(r.calls == 1);
    last = *r.ec;
  }
  BOOST_TEST((last == error::idle_timeout));
  BOOST_TEST(seconds >= 10);
  BOOST_TEST(seconds <= 11);
}

BOOST_FIXTURE_TEST_CASE(a_server_at_work_answers_while_draining, fixture) {
  set(with_idle(1h));
  peer.accept(100);
  wheel.async_drain(10s, [](error_code, std::size_t) {});
  advance(6s); // its share of the ten has passed, and it was computing
  result w;
  write(w);
  poll();
  CHECK_RESULT(w, error_code());
  advance(3s);
  result r;
  read(r);
  poll();
  BOOST_TEST(r.pending()); // active 3 s ago
  advance(2s);
  CHECK_RESULT(r, error::idle_timeout);
}

BOOST_FIXTURE_TEST_CASE(without_idle_a_stream_has_half_of_the_drain, fixture) {
  set(with_read(1h));
  std::vector<std::unique_ptr<stream>> others;
  for (int i = 0; i != 9; ++i)
    others.push_back(
        std::make_unique<stream>(asio::any_io_executor(io.get_executor())));
  result r;
  read(r); // of the first of ten
  wheel.async_drain(10s, [](error_code, std::size_t) {});
  advance(5s);
  BOOST_TEST(r.pending());
  advance(1s);
  CHECK_RESULT(r, error::idle_timeout);
}

BOOST_FIXTURE_TEST_CASE(without_streams_it_is_over_on_the_next_turn, fixture) {
  s.close();
  result r;
  std::size_t left = 7;
  wheel.async_drain(1h, [&](error_code ec, std::size_t n) {
    r.ec = ec;
    left = n;
    ++r.calls;
  });
  BOOST_TEST(r.pending());
  poll();
  CHECK_RESULT(r, error_code());
  BOOST_TEST(left == 0u);
}

BOOST_FIXTURE_TEST_CASE(a_drain_can_be_cancelled, fixture) {
  asio::cancellation_signal signal;
  result r;
  wheel.async_drain(1h,
                    asio::bind_cancellation_slot(signal.slot(), r.handler()));
  signal.emit(asio::cancellation_type::terminal);
  poll();
  CHECK_RESULT(r, aborted);
  BOOST_TEST(r.n == 1u);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(sockets)

struct socket_fixture : manual_context {
  tcp::acceptor acceptor{io, {asio::ip::address_v4::loopback(), 0}};
  asio_wheel::timeout_stream<> client{io};
  std::array<char, 64> data{};

  // Real sockets need a moment.
  template <typename Done> void poll_until(Done done) {
    for (int i = 0; i != 100'000 && !done(); ++i)
      poll();
    BOOST_TEST_REQUIRE(done());
  }
};

BOOST_FIXTURE_TEST_CASE(connect_read_write, socket_fixture) {
  stream_timeouts t;
  t.connect = t.read = t.write = 10s;
  client.timeouts(t);
  result c;
  client.async_connect(acceptor.local_endpoint(), c.wait_handler());
  tcp::socket server = acceptor.accept();
  poll_until([&] { return !c.pending(); });
  CHECK_RESULT(c, error_code());
  result r;
  client.async_read_some(asio::buffer(data), r.handler());
  server.send(asio::buffer("hello", 5));
  poll_until([&] { return !r.pending(); });
  CHECK_RESULT(r, error_code());
  BOOST_TEST(r.n == 5u);
  result r2;
  client.async_read_some(asio::buffer(data), r2.handler());
  advance(11s);
  poll_until([&] { return !r2.pending(); });
  CHECK_RESULT(r2, error::read_timeout);
  server.send(asio::buffer("again", 5)); // nothing is lost
  result r3;
  client.async_read_some(asio::buffer(data), r3.handler());
  poll_until([&] { return !r3.pending(); });
  CHECK_RESULT(r3, error_code());
  BOOST_TEST(std::string(data.data(), 5) == "again");
}

BOOST_FIXTURE_TEST_CASE(connect_over_a_sequence, socket_fixture) {
  const std::vector<tcp::endpoint> endpoints = {
      {asio::ip::address_v4::loopback(), 1}, acceptor.local_endpoint()};
  result c;
  tcp::endpoint connected;
  client.async_connect(endpoints, [&](error_code ec, tcp::endpoint e) {
    c.ec = ec;
    ++c.calls;
    connected = e;
  });
  poll_until([&] { return !c.pending(); });
  CHECK_RESULT(c, error_code());
  BOOST_TEST((connected == acceptor.local_endpoint()));
}

// A full backlog drops what comes: nobody answers.
struct unanswered : socket_fixture {
  asio::io_context other;
  tcp::acceptor silent{other};
  std::vector<tcp::socket> fillers;
  tcp::endpoint where;

  unanswered() {
    silent.open(tcp::v4());
    silent.bind({asio::ip::address_v4::loopback(), 0});
    silent.listen(0);
    where = silent.local_endpoint();
    for (int i = 0; i != 4; ++i) {
      fillers.emplace_back(other);
      fillers.back().async_connect(where, [](error_code) {});
      other.poll();
    }
  }
};

BOOST_FIXTURE_TEST_CASE(a_connect_that_nobody_answers_times_out, unanswered) {
  stream_timeouts t;
  t.connect = 10s;
  client.timeouts(t);
  result c;
  client.async_connect(where, c.wait_handler());
  poll();
  BOOST_TEST_REQUIRE(c.pending());
  advance(10s - 1ns);
  BOOST_TEST(c.pending());
  advance(1s);
  poll_until([&] { return !c.pending(); });
  CHECK_RESULT(c, error::connect_timeout);
  BOOST_TEST(!client.is_open());
  BOOST_TEST(wheel.pending() == 0u);
  // And again, to where somebody answers.
  result c2;
  client.async_connect(acceptor.local_endpoint(), c2.wait_handler());
  poll_until([&] { return !c2.pending(); });
  CHECK_RESULT(c2, error_code());
}

BOOST_FIXTURE_TEST_CASE(a_sequence_that_nobody_answers_times_out, unanswered) {
  stream_timeouts t;
  t.connect = 10s;
  client.timeouts(t);
  const std::vector<tcp::endpoint> endpoints = {where, where};
  result c;
  client.async_connect(endpoints, [&](error_code ec, tcp::endpoint) {
    c.ec = ec;
    ++c.calls;
  });
  poll();
  BOOST_TEST_REQUIRE(c.pending());
  advance(11s);
  poll_until([&] { return !c.pending(); });
  CHECK_RESULT(c, error::connect_timeout);
  BOOST_TEST(!client.is_open());
}

BOOST_FIXTURE_TEST_CASE(a_deadline_bounds_a_connect, unanswered) {
  client.expires_after(5s);
  result c;
  client.async_connect(where, c.wait_handler());
  advance(6s);
  poll_until([&] { return !c.pending(); });
  CHECK_RESULT(c, error::deadline_exceeded);
  BOOST_TEST(!client.is_open());
}

BOOST_FIXTURE_TEST_CASE(idle_does_not_end_a_connect, unanswered) {
  stream_timeouts t;
  t.connect = 100s;
  t.idle = 10s;
  client.timeouts(t);
  result c;
  client.async_connect(where, c.wait_handler());
  advance(50s);
  BOOST_TEST(c.pending());
  client.close();
  poll_until([&] { return !c.pending(); });
  CHECK_RESULT(c, aborted);
}

BOOST_FIXTURE_TEST_CASE(shutdown_ends_both_directions, socket_fixture) {
  client.connect(acceptor.local_endpoint());
  tcp::socket server = acceptor.accept();
  stream_timeouts t;
  t.read = 10s;
  t.action = timeout_action::shutdown;
  client.timeouts(t);
  result r;
  client.async_read_some(asio::buffer(data), r.handler());
  advance(11s);
  poll_until([&] { return !r.pending(); });
  CHECK_RESULT(r, error::read_timeout);
  error_code ec;
  BOOST_TEST(server.read_some(asio::buffer(data), ec) == 0u);
  BOOST_TEST((ec == asio::error::eof));
  BOOST_TEST(client.is_open());
}

BOOST_FIXTURE_TEST_CASE(blocking_calls_pass_through_and_count, socket_fixture) {
  client.timeouts(fixture::with_read(1ns));
  client.connect(acceptor.local_endpoint());
  tcp::socket server = acceptor.accept();
  BOOST_TEST(client.write_some(asio::buffer("abc", 3)) == 3u);
  BOOST_TEST(server.read_some(asio::buffer(data)) == 3u);
  server.write_some(asio::buffer("defg", 4));
  BOOST_TEST(client.read_some(asio::buffer(data)) == 4u);
  BOOST_TEST(client.bytes_written() == 3u);
  BOOST_TEST(client.bytes_read() == 4u);
  server.close();
  error_code ec;
  client.read_some(asio::buffer(data), ec);
  BOOST_TEST((ec == asio::error::eof));
  BOOST_CHECK_THROW(client.read_some(asio::buffer(data)),
                    boost::system::system_error);
}

BOOST_FIXTURE_TEST_CASE(operations_on_a_closed_socket, socket_fixture) {
  stream_timeouts t;
  t.read = t.write = t.connect = t.idle = 10s;
  client.timeouts(t);
  result r, w;
  client.async_read_some(asio::buffer(data), r.handler());
  client.async_write_some(asio::buffer(data), w.handler());
  poll();
  CHECK_RESULT(r, asio::error::bad_descriptor);
  CHECK_RESULT(w, asio::error::bad_descriptor);
  BOOST_TEST(wheel.pending() == 0u);
}

BOOST_FIXTURE_TEST_CASE(another_executor_takes_the_stream_over,
                        socket_fixture) {
  using concrete =
      tcp::socket::rebind_executor<asio::io_context::executor_type>::other;
  asio_wheel::timeout_stream<concrete> from(io);
  from.connect(acceptor.local_endpoint());
  tcp::socket server = acceptor.accept();
  from.timeouts(fixture::with_read(10s));
  from.expires_after(7s);
  asio_wheel::timeout_stream<> to(std::move(from));
  BOOST_TEST((to.timeouts().read == 10s));
  BOOST_TEST((to.expiry() == now() + 7s));
  BOOST_TEST(wheel.streams() == 2u);
  result r;
  to.async_read_some(asio::buffer(data), r.handler());
  advance(8s);
  poll_until([&] { return !r.pending(); });
  CHECK_RESULT(r, error::deadline_exceeded);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------

// One alarm serves all clocks, and may go off later than the first of them.
BOOST_AUTO_TEST_SUITE(one_alarm_for_all)

// With a period of 64.1 s, time is looked at each 512 ms: at 64.512 s.
constexpr stream::duration coarse = 64'100ms;

BOOST_FIXTURE_TEST_CASE(a_short_timeout_behind_a_long_one_is_in_time, fixture) {
  stream_timeouts t = with_read(20ms);
  t.idle = coarse;
  set(t);
  result r, w;
  write(w);
  advance(60s);
  s.touch();
  advance(4090ms);
  read(r);
  advance(20ms - 1ns);
  BOOST_TEST(r.pending());
  advance(1ns + late(20ms));
  CHECK_RESULT(r, error::read_timeout);
  BOOST_TEST(w.pending());
}

BOOST_FIXTURE_TEST_CASE(a_write_after_the_deadline_does_not_spare_the_read,
                        fixture) {
  s.expires_after(coarse);
  result r, w;
  read(r);
  advance(coarse + 100ms);
  BOOST_TEST(r.pending()); // not noticed yet
  write(w);
  poll();
  CHECK_RESULT(w, error::deadline_exceeded);
  advance(late(coarse));
  CHECK_RESULT(r, error::deadline_exceeded);
  BOOST_TEST(wheel.pending() == 0u);
}

BOOST_FIXTURE_TEST_CASE(a_read_after_the_deadline_does_not_spare_the_stream,
                        fixture) {
  stream_timeouts t;
  t.action = timeout_action::close;
  set(t);
  s.expires_after(coarse);
  advance(coarse + 100ms);
  result r;
  read(r);
  poll();
  CHECK_RESULT(r, error::deadline_exceeded);
  advance(late(coarse));
  BOOST_TEST(peer.closed());
  BOOST_TEST(wheel.pending() == 0u);
}

BOOST_FIXTURE_TEST_CASE(a_write_after_the_idle_time_does_not_spare_the_read,
                        fixture) {
  set(with_idle(coarse));
  result r, w;
  read(r);
  advance(coarse + 100ms);
  BOOST_TEST(r.pending());
  write(w);
  poll();
  advance(late(coarse));
  CHECK_RESULT(r, error::idle_timeout);
  CHECK_RESULT(w, error::idle_timeout);
}

BOOST_FIXTURE_TEST_CASE(a_read_after_the_idle_time_does_not_spare_the_stream,
                        fixture) {
  stream_timeouts t = with_idle(coarse);
  t.action = timeout_action::shutdown;
  set(t);
  advance(coarse + 100ms);
  BOOST_TEST(!peer.shut_down());
  result r;
  read(r);
  advance(late(coarse));
  CHECK_RESULT(r, error::idle_timeout);
  BOOST_TEST(peer.shut_down());
}

BOOST_FIXTURE_TEST_CASE(bytes_before_idle_is_noticed_are_activity, fixture) {
  set(with_idle(coarse));
  result r, w;
  read(r);
  advance(coarse + 100ms);
  peer.accept(10);
  write(w);
  poll();
  CHECK_RESULT(w, error_code());
  advance(coarse - 1ns);
  BOOST_TEST(r.pending());
  advance(late(coarse) + 1ns);
  CHECK_RESULT(r, error::idle_timeout);
}

BOOST_FIXTURE_TEST_CASE(what_no_longer_acts_holds_run_no_longer, fixture) {
  stream_timeouts t = with_idle(60s);
  t.action = timeout_action::close;
  set(t);
  BOOST_TEST(wheel.pending() == 1u);
  t.action = timeout_action::cancel;
  set(t);
  BOOST_TEST(wheel.pending() == 0u);

  t.idle = never;
  t.action = timeout_action::close;
  set(t);
  s.expires_after(1h);
  BOOST_TEST(wheel.pending() == 1u);
  s.expires_never();
  BOOST_TEST(wheel.pending() == 0u);
}

BOOST_FIXTURE_TEST_CASE(a_write_has_its_own_clock, fixture) { // E5
  stream_timeouts t = with_read(10s);
  t.write = 4s;
  set(t);
  result r;
  read(r);
  advance(9s); // for the read only
  result w;
  write(w);
  advance(1s - 1ns);
  BOOST_TEST(r.pending());
  advance(1ns + late(10s));
  CHECK_RESULT(r, error::read_timeout);
  BOOST_TEST(w.pending());
  advance(4s - 1s - late(10s) - 1ns);
  BOOST_TEST(w.pending());
  advance(1ns + late(4s));
  CHECK_RESULT(w, error::write_timeout);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(more_idle_waits)

// Each waits again from within its handler, as two loops on a stream do.
BOOST_FIXTURE_TEST_CASE(two_that_wait_again_and_again, fixture) {
  set(with_idle(10s));
  int told[2] = {0, 0};
  std::function<void(error_code)> loops[2];
  for (const int i : {0, 1}) {
    loops[i] = [&, i](error_code ec) {
      if (ec)
        return;
      ++told[i];
      s.async_wait_idle(loops[i]);
    };
    s.async_wait_idle(loops[i]);
  }
  for (int n = 1; n <= 5; ++n) {
    advance(10s - 1ns);
    BOOST_TEST(told[0] == n - 1);
    BOOST_TEST(told[1] == n - 1);
    advance(1ns + late(10s));
    BOOST_TEST(told[0] == n);
    BOOST_TEST(told[1] == n);
  }
  s.cancel();
  poll();
  BOOST_TEST(wheel.pending() == 0u);
}

// D1: they keep the stream's state, whose timers they wait on.
BOOST_AUTO_TEST_CASE(destroyed_with_their_context) {
  for (const bool stream_first : {true, false})
    for (const bool due : {true, false}) {
      auto context = std::make_unique<manual_context>();
      auto s = std::make_unique<stream>(
          asio::any_io_executor(context->io.get_executor()));
      s->timeouts(fixture::with_idle(10s));
      result first, second;
      s->async_wait_idle(first.wait_handler());
      s->async_wait_idle(
          [h = second.wait_handler(),
           p = std::make_unique<int>()](error_code ec) mutable { h(ec); });
      if (due)
        context->clock.advance(11s);
      if (stream_first)
        s.reset();
      context.reset();
      s.reset();
      BOOST_TEST(first.pending());
      BOOST_TEST(second.pending());
    }
}

BOOST_FIXTURE_TEST_CASE(a_timeout_that_closes_aborts_them, fixture) {
  stream_timeouts t = with_read(10s);
  t.action = timeout_action::close;
  set(t);
  result r, before, after;
  s.async_wait_idle(before.wait_handler());
  read(r);
  advance(11s);
  CHECK_RESULT(r, error::read_timeout);
  CHECK_RESULT(before, aborted);
  s.async_wait_idle(after.wait_handler()); // on a closed stream
  BOOST_TEST(after.pending());
  poll();
  CHECK_RESULT(after, aborted);
  BOOST_TEST(wheel.pending() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(between_two_turns)

BOOST_FIXTURE_TEST_CASE(what_was_read_before_close_does_not_open_again,
                        fixture) { // E3
  stream_timeouts t = with_idle(10s);
  t.action = timeout_action::close;
  set(t);
  result r;
  read(r);
  peer.feed("abc");
  s.close(); // the read has completed, and not been reported
  poll();
  CHECK_RESULT(r, error_code());
  BOOST_TEST(r.n == 3u);
  BOOST_TEST(wheel.streams() == 0u);
  BOOST_TEST(wheel.pending() == 0u);
  advance(20s);
  result after;
  read(after);
  poll();
  CHECK_RESULT(after, asio::error::bad_descriptor);
}

BOOST_FIXTURE_TEST_CASE(cancelled_between_two_steps_of_a_read, fixture) { // D6
  set(with_read(10s));
  asio::cancellation_signal signal;
  result r;
  asio::async_read(s, asio::buffer(data),
                   asio::bind_cancellation_slot(signal.slot(), r.handler()));
  peer.feed("abc"); // the first step has completed
  signal.emit(asio::cancellation_type::terminal);
  poll();
  CHECK_RESULT(r, aborted);
  BOOST_TEST(r.n == 3u);
  BOOST_TEST(!peer.reading());
  BOOST_TEST(wheel.pending() == 0u);
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(next_layers)

// A stream that is no socket, as one of TLS: says how it is cancelled.
class layer {
public:
  using executor_type = asio::any_io_executor;

  explicit layer(const executor_type& ex) : ex_(ex) {}

  executor_type get_executor() const { return ex_; }
  std::vector<asio::cancellation_type_t>& cancelled() { return *cancelled_; }

  template <typename Buffers, typename Handler>
  void async_read_some(const Buffers&, Handler handler) {
    auto slot = asio::get_associated_cancellation_slot(handler);
    BOOST_TEST_REQUIRE(slot.is_connected());
    slot.assign([ex = ex_, log = cancelled_,
                 h = std::make_shared<Handler>(std::move(handler))](
                    asio::cancellation_type_t type) {
      log->push_back(type);
      if (h.use_count() == 1)
        asio::post(ex, asio::append(std::move(*h), aborted, std::size_t(0)));
    });
  }

private:
  executor_type ex_;
  std::shared_ptr<std::vector<asio::cancellation_type_t>> cancelled_ =
      std::make_shared<std::vector<asio::cancellation_type_t>>();
};

BOOST_FIXTURE_TEST_CASE(one_that_is_no_socket_gets_terminal, fixture) {
  asio_wheel::timeout_stream<layer> on_layer{
      asio::any_io_executor(io.get_executor())};
  const auto log = &on_layer.next_layer().cancelled();
  on_layer.timeouts(with_read(10s));
  result by_timeout, by_user, by_cancel;
  on_layer.async_read_some(asio::buffer(data), by_timeout.handler());
  advance(11s);
  CHECK_RESULT(by_timeout, error::read_timeout);
  BOOST_TEST_REQUIRE(log->size() == 1u);
  BOOST_TEST((log->back() == asio::cancellation_type::terminal));

  // The user's own is passed on as it is.
  asio::cancellation_signal signal;
  on_layer.async_read_some(
      asio::buffer(data),
      asio::bind_cancellation_slot(signal.slot(), by_user.handler()));
  signal.emit(asio::cancellation_type::partial);
  poll();
  CHECK_RESULT(by_user, aborted);
  BOOST_TEST_REQUIRE(log->size() == 2u);
  BOOST_TEST((log->back() == asio::cancellation_type::partial));

  on_layer.async_read_some(asio::buffer(data), by_cancel.handler());
  on_layer.cancel();
  poll();
  CHECK_RESULT(by_cancel, aborted);
  BOOST_TEST_REQUIRE(log->size() == 3u);
  BOOST_TEST((log->back() == asio::cancellation_type::terminal));
}

// Two sockets, ours bounded, in virtual time.
struct pair_fixture : manual_context {
  test::local_pair pair{io};
  asio_wheel::timeout_stream<> s{std::move(pair.ours)};
  std::array<char, 64> data{};
  const std::string much = std::string(64 << 20, 'x');

  template <typename Done> void poll_until(Done done) {
    for (int i = 0; i != 100'000 && !done(); ++i)
      poll();
    BOOST_TEST_REQUIRE(done());
  }

  // Fill the buffers of both, so that a write is pending.
  void fill(result& w) {
    asio::async_write(s, asio::buffer(much), w.handler());
    std::uint64_t before = 0;
    for (int quiet = 0; quiet != 1000; ++quiet) {
      poll();
      if (std::exchange(before, s.bytes_written()) != s.bytes_written())
        quiet = 0;
    }
  }
};

// What was read when the timeout comes is reported, not lost: a socket gets
// cancellation_type::total.
BOOST_FIXTURE_TEST_CASE(ended_after_data_was_read_it_succeeds_with_the_data,
                        pair_fixture) {
  stream_timeouts t;
  t.idle = 10s;
  s.timeouts(t);
  result w, r;
  fill(w);
  pair.say("abc");
  for (int i = 0; i != 100'000 && s.next_layer().available() != 3; ++i) {
  }
  for (int i = 0; i != 9; ++i)
    advance(1s);
  clock.advance(4s); // the check is queued before what follows
  s.async_read_some(asio::buffer(data), r.handler());
  poll_until([&] { return !w.pending() && !r.pending(); });
  CHECK_RESULT(w, error::idle_timeout);
  CHECK_RESULT(r, error_code());
  BOOST_TEST(r.n == 3u);
  BOOST_TEST(std::string(data.data(), 3) == "abc");
}

#if defined(__linux__)
// E1: a peer takes some bytes, too few for the kernel to ask for more.
BOOST_FIXTURE_TEST_CASE(what_the_kernel_sends_is_progress_of_a_write,
                        pair_fixture) {
  stream_timeouts t;
  t.write = 8s;
  s.timeouts(t);
  result w;
  fill(w);
  std::vector<char> some(256 << 10);
  const auto unsent = [&] {
    return asio_wheel::detail::unsent_bytes(s.next_layer().native_handle());
  };
  // Everything that moves without the peer has moved.
  advance(1s);
  for (int i = 0; i != 10; ++i) {
    const auto before = unsent();
    for (int j = 0; j != 1000 && unsent() == before; ++j)
      asio::read(pair.theirs, asio::buffer(some));
    for (int step = 0; step != 7; ++step) // each look, and not to the end
      advance(1s);
    BOOST_TEST_REQUIRE(w.pending());
  }
  advance(8s);
  advance(1s + 200ms); // a look is up to 1/8 late
  poll_until([&] { return !w.pending(); });
  CHECK_RESULT(w, error::write_timeout);
}
#endif

BOOST_AUTO_TEST_SUITE_END()
