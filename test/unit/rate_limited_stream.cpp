//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/rate_limited_stream.hpp>

#include <asio_wheel/timeout_stream.hpp>

#include <test/manual_context.hpp>
#include <test/memory_stream.hpp>
#include <test/outcome.hpp>
#include <test/tracking_executor.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>

#define BOOST_TEST_MODULE unit_rate_limited_stream
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::rate_limited_stream;
using asio_wheel::rate_limiter;
using boost::system::error_code;
using test::fate;
using test::manual_context;
using test::memory_stream;
using test::outcome;

using stream = rate_limited_stream<memory_stream>;
using bounded = asio_wheel::timeout_stream<memory_stream>;

// The end of a read or write: what became of it, and how many bytes.
struct transfer : outcome {
  using outcome::outcome;
  std::shared_ptr<std::size_t> bytes = std::make_shared<std::size_t>(9999);

  auto handler() const {
    return [h = tracked(), n = bytes](error_code ec, std::size_t m) mutable {
      *n = m;
      h(ec);
    };
  }
};

void run_until(manual_context& c, manual_context::time_point end) {
  c.poll();
  for (;;) {
    const auto next = c.clock.next_deadline();
    if (!next || *next > end)
      break;
    c.clock.advance_to(*next);
    c.poll();
  }
  c.clock.advance_to(end);
  c.poll();
}

// 100 bytes per second, 50 at a time; nothing is there at first.
struct fixture : manual_context {
  std::shared_ptr<rate_limiter> limiter = limit(100, 50);
  stream s{io.get_executor()};
  memory_stream::peer peer = s.next_layer().other_end();
  std::string data = std::string(1000, 'x');
  std::string in = std::string(1000, '-');

  fixture() {
    s.read_limiter(limiter);
    s.write_limiter(limiter);
    limiter->spend(50);
  }

  std::shared_ptr<rate_limiter> limit(double rate, double burst) {
    return std::make_shared<rate_limiter>(io, rate, burst);
  }
};

} // namespace

template class asio_wheel::rate_limited_stream<>;
template class asio_wheel::rate_limited_stream<asio_wheel::timeout_stream<>>;

// ---------------------------------------------------------------------------
// Pace

BOOST_AUTO_TEST_CASE(writes_keep_to_the_rate_to_the_byte) {
  fixture f;
  transfer t;
  f.peer.accept(1000);
  test::quietly(
      [&] { asio::async_write(f.s, asio::buffer(f.data), t.handler()); });
  const auto start = f.now();
  for (int half = 1; half <= 19; ++half) {
    run_until(f, start + half * 500ms);
    BOOST_TEST(f.peer.received().size() == std::size_t(50 * half));
  }
  run_until(f, start + 10s - 1ns);
  BOOST_TEST((t.fate() == fate::waiting));
  f.advance(1ns);
  BOOST_TEST((t.fate() == fate::fired));
  BOOST_TEST(*t.bytes == 1000u);
  BOOST_TEST(f.peer.received() == f.data);
}

BOOST_AUTO_TEST_CASE(reads_keep_to_the_rate_to_the_byte) {
  fixture f;
  transfer t;
  f.peer.feed(f.data);
  test::quietly(
      [&] { asio::async_read(f.s, asio::buffer(f.in), t.handler()); });
  const auto start = f.now();
  run_until(f, start + 10s - 1ns);
  BOOST_TEST((t.fate() == fate::waiting));
  f.advance(1ns);
  BOOST_TEST((t.fate() == fate::fired));
  BOOST_TEST(f.in == f.data);
}

BOOST_AUTO_TEST_CASE(what_is_there_is_used_without_waiting) {
  fixture f;
  transfer r, w;
  f.limiter->reset();
  f.peer.accept(1000);
  f.peer.feed(std::string(30, 'y'));
  f.s.async_write_some(asio::buffer(f.data, 20), w.handler());
  f.s.async_read_some(asio::buffer(f.in), r.handler());
  f.poll();
  BOOST_TEST((w.fate() == fate::fired));
  BOOST_TEST((r.fate() == fate::fired));
  BOOST_TEST(*w.bytes == 20u);
  BOOST_TEST(*r.bytes == 30u);
  BOOST_TEST(f.limiter->available() == 0u);
  BOOST_TEST(f.wheel.stats().scheduled == 0u);
}

BOOST_AUTO_TEST_CASE(not_more_than_the_burst_at_a_time) {
  fixture f;
  transfer r, w;
  f.limiter->reset();
  f.peer.accept(1000);
  f.peer.feed(f.data);
  f.s.async_write_some(asio::buffer(f.data), w.handler());
  f.poll();
  BOOST_TEST(*w.bytes == 50u);
  f.limiter->reset();
  f.s.async_read_some(asio::buffer(f.in), r.handler());
  f.poll();
  BOOST_TEST(*r.bytes == 50u);
}

BOOST_AUTO_TEST_CASE(buffer_sequences_are_cut_where_the_burst_ends) {
  using asio_wheel::detail::buffers_prefix;
  std::string a = "abc", b, c = "defgh";
  const std::array<asio::const_buffer, 3> all{asio::buffer(a), asio::buffer(b),
                                              asio::buffer(c)};
  const auto text = [](const auto& buffers) {
    std::string s(asio::buffer_size(buffers), ' ');
    asio::buffer_copy(asio::buffer(s), buffers);
    return s;
  };
  for (std::size_t n = 0; n != 12; ++n) {
    const buffers_prefix<asio::const_buffer> first(all, n);
    BOOST_TEST(text(first) == (a + c).substr(0, n));
  }
  const std::vector<asio::const_buffer> many(100, asio::buffer(a));
  const buffers_prefix<asio::const_buffer> first(many, 1000);
  BOOST_TEST(asio::buffer_size(first) == 16 * a.size());
}

BOOST_AUTO_TEST_CASE(what_the_next_layer_did_not_take_is_given_back) {
  fixture f;
  transfer t;
  f.limiter->reset();
  f.s.async_write_some(asio::buffer(f.data), t.handler());
  f.poll();
  BOOST_TEST(f.limiter->available() == 0u);
  f.peer.accept(10);
  f.poll();
  BOOST_TEST(*t.bytes == 10u);
  BOOST_TEST(f.limiter->available() == 40u);
}

BOOST_AUTO_TEST_CASE(a_read_that_waits_for_bytes_takes_nothing_from_others) {
  fixture f;
  transfer idle, t;
  stream other(f.io.get_executor());
  auto peer = other.next_layer().other_end();
  other.write_limiter(f.limiter);
  f.limiter->reset();
  f.s.async_read_some(asio::buffer(f.in), idle.handler());
  f.poll();
  BOOST_TEST(f.limiter->available() == 50u);
  peer.accept(50);
  other.async_write_some(asio::buffer(f.data), t.handler());
  f.poll();
  BOOST_TEST(*t.bytes == 50u);
  BOOST_TEST((idle.fate() == fate::waiting));
}

BOOST_AUTO_TEST_CASE(many_streams_share_one_rate_fairly) {
  manual_context c;
  const auto all = std::make_shared<rate_limiter>(c.io, 10'000, 100);
  all->spend(100);
  std::vector<std::unique_ptr<stream>> streams;
  std::vector<memory_stream::peer> peers;
  const std::string data(1'000'000, 'x');
  for (int i = 0; i != 10; ++i) {
    streams.push_back(std::make_unique<stream>(c.io.get_executor()));
    peers.push_back(streams.back()->next_layer().other_end());
    streams.back()->write_limiter(all);
    peers.back().accept(data.size());
    asio::async_write(*streams.back(), asio::buffer(data),
                      [](error_code, std::size_t) {});
  }
  run_until(c, c.now() + 60s);
  std::size_t sum = 0;
  for (const auto& p : peers) {
    BOOST_TEST(p.received().size() == 60'000u);
    sum += p.received().size();
  }
  BOOST_TEST(sum + all->available() == 600'000u);
}

BOOST_AUTO_TEST_CASE(two_layers_one_for_each_and_one_for_all) {
  manual_context c;
  using both = rate_limited_stream<stream>;
  const auto all = std::make_shared<rate_limiter>(c.io, 1000, 100);
  all->spend(100);
  const std::string data(1'000'000, 'x');
  std::vector<std::unique_ptr<both>> streams;
  std::vector<memory_stream::peer> peers;
  for (const double rate : {100.0, 100.0, 5000.0}) {
    streams.push_back(std::make_unique<both>(c.io.get_executor()));
    both& s = *streams.back();
    peers.push_back(s.next_layer().next_layer().other_end());
    peers.back().accept(data.size());
    s.next_layer().write_limiter(all);
    s.write_limiter(std::make_shared<rate_limiter>(c.io, rate, 100));
    s.write_limiter()->spend(100);
    asio::async_write(s, asio::buffer(data), [](error_code, std::size_t) {});
  }
  run_until(c, c.now() + 100s);
  // The slow ones have what they may, the quick one has what is left.
  BOOST_TEST(peers[0].received().size() <= 10'000u);
  BOOST_TEST(peers[0].received().size() >= 9'900u);
  BOOST_TEST(peers[1].received().size() >= 9'900u);
  BOOST_TEST(peers[2].received().size() >= 79'700u);
  BOOST_TEST(peers[2].received().size() <= 80'200u);
}

BOOST_AUTO_TEST_CASE(without_a_limiter_it_is_as_the_next_layer) {
  manual_context c;
  stream s(c.io.get_executor());
  auto peer = s.next_layer().other_end();
  std::string data(1000, 'x'), in(1000, '-');
  transfer r, w;
  BOOST_TEST(!s.read_limiter());
  peer.accept(700);
  peer.feed(data);
  s.async_write_some(asio::buffer(data), w.handler());
  s.async_read_some(asio::buffer(in), r.handler());
  c.poll();
  BOOST_TEST(*w.bytes == 700u);
  BOOST_TEST(*r.bytes == 1000u);
}

BOOST_AUTO_TEST_CASE(the_end_and_errors_cost_nothing) {
  fixture f;
  transfer eof, closed;
  f.peer.end();
  f.s.async_read_some(asio::buffer(f.in), eof.handler());
  f.poll();
  BOOST_TEST((eof.ec() == asio::error::eof));
  BOOST_TEST(*eof.bytes == 0u);
  f.limiter->reset();
  error_code ec;
  f.s.close(ec);
  f.s.async_write_some(asio::buffer(f.data), closed.handler());
  f.poll();
  BOOST_TEST((closed.ec() == asio::error::bad_descriptor));
  BOOST_TEST(f.limiter->available() == 50u);
}

BOOST_AUTO_TEST_CASE(a_limiter_counts_from_the_next_operation_on) {
  fixture f;
  transfer t;
  f.peer.accept(1000);
  f.s.async_write_some(asio::buffer(f.data), t.handler());
  f.s.write_limiter(nullptr);
  f.poll();
  BOOST_TEST((t.fate() == fate::waiting));
  BOOST_TEST(f.limiter->waiting() == 1u);
  f.advance(500ms);
  BOOST_TEST(*t.bytes == 50u);
  f.s.async_write_some(asio::buffer(f.data), t.handler());
  f.poll();
  BOOST_TEST(*t.bytes == 950u);
}

BOOST_AUTO_TEST_CASE(a_smaller_burst_meets_a_write_in_line) {
  fixture f;
  transfer t;
  f.peer.accept(1000);
  f.s.async_write_some(asio::buffer(f.data), t.handler());
  f.limiter->burst(10);
  run_until(f, f.now() + 100ms);
  BOOST_TEST((t.fate() == fate::fired));
  BOOST_TEST(*t.bytes == 10u);
}

BOOST_AUTO_TEST_CASE(a_smaller_burst_meets_a_read_in_line) {
  fixture f;
  transfer t;
  f.peer.feed(f.data);
  f.s.async_read_some(asio::buffer(f.in), t.handler());
  f.poll();
  f.limiter->burst(10);
  f.poll();
  BOOST_TEST((t.fate() == fate::fired));
  BOOST_TEST(*t.bytes == 50u);
  BOOST_TEST((f.limiter->time_until() == 510ms)); // is paid nevertheless
}

// ---------------------------------------------------------------------------
// Over a timeout_stream

BOOST_AUTO_TEST_CASE(waiting_for_tokens_is_no_read_or_write_timeout) {
  manual_context c;
  const auto slow = std::make_shared<rate_limiter>(c.io, 1, 10);
  slow->spend(10);
  rate_limited_stream<bounded> s(c.io.get_executor());
  auto peer = s.next_layer().next_layer().other_end();
  asio_wheel::stream_timeouts timeouts;
  timeouts.read = timeouts.write = 1s;
  s.next_layer().timeouts(timeouts);
  s.read_limiter(slow);
  s.write_limiter(slow);
  std::string data(10, 'x'), in(10, '-');
  transfer w, r;
  peer.accept(10);
  peer.feed(data);
  s.async_write_some(asio::buffer(data), w.handler());
  run_until(c, c.now() + 10s);
  BOOST_TEST((w.fate() == fate::fired)); // after ten seconds
  BOOST_TEST(*w.bytes == 10u);
  s.async_read_some(asio::buffer(in), r.handler());
  run_until(c, c.now() + 10s - 1ns);
  BOOST_TEST((r.fate() == fate::waiting));
  c.advance(1ns);
  BOOST_TEST((r.fate() == fate::fired));
  BOOST_TEST(*r.bytes == 10u);
}

BOOST_AUTO_TEST_CASE(a_peer_that_stalls_is_one_and_costs_no_tokens) {
  manual_context c;
  const auto limiter = std::make_shared<rate_limiter>(c.io, 1, 10);
  rate_limited_stream<bounded> s(c.io.get_executor());
  asio_wheel::stream_timeouts timeouts;
  timeouts.read = timeouts.write = 1s;
  s.next_layer().timeouts(timeouts);
  s.read_limiter(limiter);
  s.write_limiter(limiter);
  std::string data(10, 'x');
  transfer w, r;
  s.async_write_some(asio::buffer(std::as_const(data)), w.handler());
  s.async_read_some(asio::buffer(data), r.handler());
  run_until(c, c.now() + 2s);
  BOOST_TEST((w.ec() == asio_wheel::error::write_timeout));
  BOOST_TEST((r.ec() == asio_wheel::error::read_timeout));
  BOOST_TEST(limiter->available() == 10u);
}

// ---------------------------------------------------------------------------
// Cancellation

BOOST_AUTO_TEST_CASE(a_write_in_line_leaves_it) {
  fixture f;
  asio::cancellation_signal signal;
  transfer t;
  f.peer.accept(1000);
  f.s.async_write_some(asio::buffer(f.data), asio::bind_cancellation_slot(
                                                 signal.slot(), t.handler()));
  f.advance(300ms);
  test::quietly([&] { signal.emit(asio::cancellation_type::total); });
  f.poll();
  BOOST_TEST((t.fate() == fate::aborted));
  BOOST_TEST(*t.bytes == 0u);
  BOOST_TEST(f.limiter->available() == 30u);
  BOOST_TEST(f.peer.received().empty());
  signal.emit(asio::cancellation_type::total); // reaches nothing
}

BOOST_AUTO_TEST_CASE(a_write_under_way_gives_its_tokens_back) {
  fixture f;
  asio::cancellation_signal signal;
  transfer t;
  f.limiter->reset();
  f.s.async_write_some(asio::buffer(f.data), asio::bind_cancellation_slot(
                                                 signal.slot(), t.handler()));
  f.poll();
  BOOST_TEST(f.peer.writing());
  signal.emit(asio::cancellation_type::total);
  f.poll();
  BOOST_TEST(f.peer.cancelled() == 1);
  BOOST_TEST((t.fate() == fate::aborted));
  BOOST_TEST(f.limiter->available() == 50u);
}

BOOST_AUTO_TEST_CASE(d6_a_write_that_was_given_tokens_but_did_not_start) {
  fixture f;
  asio::cancellation_signal signal;
  transfer t;
  f.peer.accept(1000);
  f.s.async_write_some(asio::buffer(f.data), asio::bind_cancellation_slot(
                                                 signal.slot(), t.handler()));
  f.clock.advance(500ms);
  while (f.limiter->waiting() != 0)
    f.io.poll_one();
  signal.emit(asio::cancellation_type::total);
  f.poll();
  BOOST_TEST((t.fate() == fate::aborted));
  BOOST_TEST(f.peer.received().empty());
  BOOST_TEST(f.limiter->available() == 50u);
}

BOOST_AUTO_TEST_CASE(a_read_under_way_is_aborted_and_costs_nothing) {
  fixture f;
  asio::cancellation_signal signal;
  transfer t;
  f.limiter->reset();
  f.s.async_read_some(asio::buffer(f.in),
                      asio::bind_cancellation_slot(signal.slot(), t.handler()));
  f.poll();
  signal.emit(asio::cancellation_type::total);
  f.poll();
  BOOST_TEST((t.fate() == fate::aborted));
  BOOST_TEST(f.limiter->available() == 50u);
  // No byte is lost.
  transfer next;
  f.peer.feed("abc");
  f.s.async_read_some(asio::buffer(f.in), next.handler());
  f.poll();
  BOOST_TEST(*next.bytes == 3u);
}

BOOST_AUTO_TEST_CASE(a_read_in_line_has_its_bytes_and_is_paid_later) {
  fixture f;
  asio::cancellation_signal signal;
  transfer t;
  f.peer.feed("abcdefghij");
  f.s.async_read_some(asio::buffer(f.in),
                      asio::bind_cancellation_slot(signal.slot(), t.handler()));
  f.poll();
  BOOST_TEST(f.limiter->waiting() == 1u);
  signal.emit(asio::cancellation_type::total);
  f.poll();
  BOOST_TEST((t.fate() == fate::fired));
  BOOST_TEST(*t.bytes == 10u);
  BOOST_TEST(f.in.substr(0, 10) == "abcdefghij");
  BOOST_TEST((f.limiter->time_until() == 110ms));
}

BOOST_AUTO_TEST_CASE(d6_a_read_cancelled_between_bytes_and_tokens) {
  fixture f;
  asio::cancellation_signal signal;
  transfer t;
  f.s.async_read_some(asio::buffer(f.in),
                      asio::bind_cancellation_slot(signal.slot(), t.handler()));
  f.poll();
  f.peer.feed("abc"); // done, and on its way
  signal.emit(asio::cancellation_type::total);
  f.poll();
  BOOST_TEST((t.fate() == fate::fired));
  BOOST_TEST(*t.bytes == 3u);
  BOOST_TEST(f.limiter->waiting() == 0u);
  BOOST_TEST((f.limiter->time_until() == 40ms));
}

BOOST_AUTO_TEST_CASE(cancel_and_close_reach_every_phase) {
  for (const bool close : {false, true}) {
    fixture f;
    stream other(f.io.get_executor());
    transfer w, r, under_way, reading;
    const auto end = [close](stream& s) {
      error_code ec;
      if (close)
        s.close(ec);
      else
        s.cancel();
    };
    f.peer.accept(1000);
    f.peer.feed("abc");
    f.s.async_write_some(asio::buffer(f.data), w.handler());
    f.s.async_read_some(asio::buffer(f.in), r.handler());
    other.async_write_some(asio::buffer(f.data), under_way.handler());
    other.async_read_some(asio::buffer(f.in), reading.handler());
    f.poll();
    BOOST_TEST(f.limiter->waiting() == 2u);
    test::quietly([&] {
      end(f.s);
      end(other);
    });
    f.poll();
    BOOST_TEST((w.fate() == fate::aborted));
    BOOST_TEST((r.fate() == fate::fired));
    BOOST_TEST((under_way.fate() == fate::aborted));
    BOOST_TEST((reading.fate() == fate::aborted));
    BOOST_TEST(f.peer.closed() == close);
  }
}

BOOST_AUTO_TEST_CASE(a_cancelled_limiter_aborts_writes_and_lets_reads_end) {
  fixture f;
  transfer w, r;
  f.peer.feed("abc");
  f.s.async_write_some(asio::buffer(f.data), w.handler());
  f.s.async_read_some(asio::buffer(f.in), r.handler());
  f.poll();
  BOOST_TEST(f.limiter->cancel() == 2u);
  f.poll();
  BOOST_TEST((w.fate() == fate::aborted));
  BOOST_TEST((r.fate() == fate::fired));
  BOOST_TEST(*r.bytes == 3u);
}

// ---------------------------------------------------------------------------
// The end

BOOST_AUTO_TEST_CASE(a_stopped_wheel_refuses_what_would_have_to_wait) {
  fixture f;
  transfer w, r;
  f.wheel.stop();
  f.peer.accept(1000);
  f.peer.feed("abc");
  f.s.async_write_some(asio::buffer(f.data), w.handler());
  f.s.async_read_some(asio::buffer(f.in), r.handler());
  f.poll();
  BOOST_TEST((w.ec() == asio_wheel::error::wheel_stopped));
  BOOST_TEST(*w.bytes == 0u);
  BOOST_TEST((r.ec() == asio_wheel::error::wheel_stopped));
  BOOST_TEST(*r.bytes == 3u); // has been read
}

BOOST_AUTO_TEST_CASE(destruction_ends_operations_in_every_phase) {
  fixture f;
  transfer w, r, under_way, reading;
  std::optional<stream> s(std::move(f.s));
  std::optional<stream> other(f.io.get_executor());
  f.peer.feed("abc");
  s->async_write_some(asio::buffer(f.data), w.handler());
  s->async_read_some(asio::buffer(f.in), r.handler());
  other->async_write_some(asio::buffer(f.data), under_way.handler());
  other->async_read_some(asio::buffer(f.in), reading.handler());
  f.poll();
  test::quietly([&] {
    s.reset();
    other.reset();
  });
  BOOST_TEST(f.peer.closed());
  f.poll();
  BOOST_TEST((w.fate() == fate::aborted));
  BOOST_TEST((r.fate() == fate::fired)); // had read
  BOOST_TEST(*r.bytes == 3u);
  BOOST_TEST((under_way.fate() == fate::aborted));
  BOOST_TEST((reading.fate() == fate::aborted));
  BOOST_TEST(f.limiter->waiting() == 0u);
}

BOOST_AUTO_TEST_CASE(destruction_when_the_tokens_were_given) {
  fixture f;
  transfer t;
  std::optional<stream> s(std::move(f.s));
  s->async_write_some(asio::buffer(f.data), t.handler());
  f.clock.advance(500ms);
  while (f.limiter->waiting() != 0)
    f.io.poll_one();
  s.reset();
  f.poll();
  BOOST_TEST((t.fate() == fate::aborted));
  BOOST_TEST(f.limiter->available() == 50u);
}

BOOST_AUTO_TEST_CASE(the_context_goes_first) {
  transfer w, r;
  std::optional<stream> s;
  asio::cancellation_signal signal;
  std::string data(1000, 'x'), in(1000, '-');
  std::shared_ptr<rate_limiter> limiter;
  {
    fixture f;
    limiter = f.limiter;
    f.peer.feed("abc");
    s.emplace(std::move(f.s));
    s->async_write_some(asio::buffer(data), asio::bind_cancellation_slot(
                                                signal.slot(), w.handler()));
    s->async_read_some(asio::buffer(in), r.handler());
    f.poll();
  }
  BOOST_TEST((w.fate() == fate::dropped));
  BOOST_TEST((r.fate() == fate::dropped));
  signal.emit(asio::cancellation_type::total);
}

BOOST_AUTO_TEST_CASE(a_pending_operation_survives_a_move) {
  fixture f;
  transfer w, r;
  f.peer.accept(1000);
  f.s.async_write_some(asio::buffer(f.data, 10), w.handler());
  f.s.async_read_some(asio::buffer(f.in), r.handler());
  stream s(std::move(f.s));
  f.peer.feed("abcdefghij");
  run_until(f, f.now() + 200ms);
  BOOST_TEST((w.fate() == fate::fired));
  BOOST_TEST((r.fate() == fate::fired));
  // Assignment ends what was there.
  transfer gone;
  stream other(f.io.get_executor());
  other.async_read_some(asio::buffer(f.in), gone.handler());
  other = std::move(s);
  f.poll();
  BOOST_TEST((gone.fate() == fate::aborted));
  BOOST_TEST((other.read_limiter() == f.limiter));
}

// ---------------------------------------------------------------------------
// From within handlers, executors, misuse

BOOST_AUTO_TEST_CASE(a_handler_may_start_the_next_and_destroy_the_stream) {
  fixture f;
  std::optional<stream> s(std::move(f.s));
  f.peer.accept(1000);
  transfer last;
  transfer next([&](error_code) {
    s->async_write_some(asio::buffer(f.data), last.handler());
    s.reset();
  });
  transfer first([&](error_code) {
    s->async_write_some(asio::buffer(f.data), next.handler());
  });
  s->async_write_some(asio::buffer(f.data), first.handler());
  run_until(f, f.now() + 1s);
  BOOST_TEST((first.fate() == fate::fired));
  BOOST_TEST((next.fate() == fate::fired));
  BOOST_TEST((last.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(d5_steps_run_on_the_streams_executor_the_handler_on_its) {
  manual_context c;
  asio::io_context other;
  test::execution_log log;
  const auto limiter = std::make_shared<rate_limiter>(c.io, 100, 50);
  limiter->spend(50);
  stream s(test::tracking_executor(c.io.get_executor(), log));
  s.write_limiter(limiter);
  s.next_layer().other_end().accept(1000);
  transfer t;
  const std::string data(50, 'x');
  s.async_write_some(asio::buffer(data),
                     asio::bind_executor(other.get_executor(), t.handler()));
  c.poll();
  const std::size_t before = log.executions;
  c.advance(500ms);
  BOOST_TEST(log.executions > before);
  BOOST_TEST((t.fate() == fate::waiting));
  BOOST_TEST(!other.stopped());
  BOOST_TEST(other.run() == 1u);
  BOOST_TEST((t.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(it_holds_run_while_it_waits_for_tokens) {
  fixture f;
  transfer t;
  f.peer.accept(1000);
  f.s.async_write_some(asio::buffer(f.data), t.handler());
  f.poll();
  BOOST_TEST(!f.io.stopped());
  f.advance(500ms);
  BOOST_TEST((t.fate() == fate::fired));
  BOOST_TEST(f.io.stopped());
}

BOOST_AUTO_TEST_CASE(streams_of_several_threads_share_a_limiter) {
  manual_context c;
  const auto all = std::make_shared<rate_limiter>(c.io, 1e6, 100);
  const std::string data(5000, 'x');
  std::vector<std::unique_ptr<stream>> streams;
  std::vector<memory_stream::peer> peers;
  std::atomic<int> open{0};
  for (int i = 0; i != 6; ++i) {
    streams.push_back(std::make_unique<stream>(asio::make_strand(c.io)));
    stream& s = *streams.back();
    peers.push_back(s.next_layer().other_end());
    peers.back().accept(data.size());
    s.write_limiter(all);
    ++open;
    asio::dispatch(s.get_executor(), [&] {
      asio::async_write(s, asio::buffer(data),
                        [&](error_code ec, std::size_t) { open -= !ec; });
    });
  }
  const auto start = c.now();
  std::vector<std::thread> threads;
  for (int i = 0; i != 3; ++i)
    threads.emplace_back([&] { c.io.run(); });
  while (open != 0) {
    c.clock.advance(100us);
    std::this_thread::yield();
  }
  for (auto& t : threads)
    t.join();
  BOOST_TEST((c.now() - start >= 29'900us));
  for (const auto& p : peers)
    BOOST_TEST(p.received() == data);
}

#if defined(NDEBUG)
BOOST_AUTO_TEST_CASE(a_second_operation_of_a_kind_is_refused) {
  fixture f;
  transfer first, second;
  f.s.async_read_some(asio::buffer(f.in), first.handler());
  f.s.async_read_some(asio::buffer(f.in), second.handler());
  f.poll();
  BOOST_TEST((second.ec() == asio_wheel::error::operation_in_progress));
  BOOST_TEST((first.fate() == fate::waiting));
}
#endif

BOOST_AUTO_TEST_CASE(layers_and_executors_are_those_of_the_next_layer) {
  asio::io_context io;
  rate_limited_stream<asio_wheel::timeout_stream<>> s(io);
  BOOST_TEST((&s.lowest_layer() == &s.next_layer().lowest_layer()));
  BOOST_TEST((s.get_executor() == io.get_executor()));
  using strand = asio::strand<asio::io_context::executor_type>;
  using rebound = rate_limited_stream<
      asio_wheel::timeout_stream<>>::rebind_executor<strand>::other;
  rebound r(asio::make_strand(io));
  static_assert(std::is_same_v<rebound::executor_type, strand>);
  static_assert(std::is_nothrow_move_constructible_v<rebound>);
}
