//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/cancel_after.hpp>

#include <asio_wheel/error.hpp>
#include <asio_wheel/timeout_after.hpp>
#include <asio_wheel/wheel_timer.hpp>

#include <test/local_pair.hpp>
#include <test/manual_context.hpp>
#include <test/outcome.hpp>
#include <test/queue_context.hpp>
#include <test/tracking_allocator.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#define BOOST_TEST_MODULE unit_cancel_after
#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

// What cancel_after() has in common with timeout_after() is tested there.

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::cancel_after;
using asio_wheel::cancel_at;
using asio_wheel::error;
using asio_wheel::timeout_after;
using asio_wheel::wheel_timer;
using boost::system::error_code;
using test::fate;
using test::manual_context;
using test::outcome;

using duration = std::chrono::steady_clock::duration;
using time_point = std::chrono::steady_clock::time_point;
constexpr auto readable = asio::socket_base::wait_read;

struct fixture : manual_context {
  test::local_pair pair{io};
  test::local_pair::socket& socket = pair.ours;

  explicit fixture(asio_wheel::wheel_options o = asio_wheel::wheel_options())
      : manual_context(std::move(o)) {}
};

void keep_nothing(std::exception_ptr) {}

} // namespace

BOOST_AUTO_TEST_CASE(an_operation_that_takes_too_long_is_cancelled) {
  fixture f;
  outcome after, at;
  f.socket.async_wait(readable, cancel_after(5s, after.tracked()));
  f.socket.async_wait(readable, cancel_at(f.now() + 6s, at.tracked()));
  f.advance(5s - 1ns);
  BOOST_TEST((after.fate() == fate::waiting));
  f.advance(1ns);
  BOOST_TEST((after.fate() == fate::aborted));
  BOOST_TEST((at.fate() == fate::waiting));
  f.advance(1s);
  BOOST_TEST((at.fate() == fate::aborted));
  BOOST_TEST(f.wheel.pending() == 0u);
}

BOOST_AUTO_TEST_CASE(an_operation_in_time_stops_the_clock) {
  fixture f;
  outcome o;
  f.socket.async_wait(readable, cancel_after(5s, o.tracked()));
  f.poll();
  f.pair.say("abc");
  f.socket.wait(readable);
  f.poll();
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST(f.wheel.pending() == 0u);
  f.advance(1h);
}

BOOST_AUTO_TEST_CASE(a_time_that_is_up_already_cancels_on_the_next_turn) {
  for (const duration d : {duration(0), duration(-1s), duration::min()}) {
    fixture f;
    outcome o;
    test::quietly(
        [&] { f.socket.async_wait(readable, cancel_after(d, o.tracked())); });
    f.poll();
    BOOST_TEST((o.fate() == fate::aborted));
  }
}

BOOST_AUTO_TEST_CASE(for_ever_takes_no_timer) {
  asio::io_context io;
  test::local_pair pair(io);
  outcome after, at;
  pair.ours.async_wait(readable,
                       cancel_after(duration::max(), after.tracked()));
  pair.ours.async_wait(readable, cancel_at(time_point::max(), at.tracked()));
  BOOST_TEST(!asio::has_service<asio_wheel::wheel_service>(io));
  pair.ours.cancel();
  io.poll();
  BOOST_TEST((after.fate() == fate::aborted));
  BOOST_TEST((at.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(the_users_slot_is_forwarded) {
  fixture f;
  asio::cancellation_signal signal;
  outcome o;
  f.socket.async_wait(
      readable, cancel_after(5s, asio::bind_cancellation_slot(signal.slot(),
                                                              o.tracked())));
  f.poll();
  signal.emit(asio::cancellation_type::partial);
  f.poll();
  BOOST_TEST((o.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(the_type_of_cancellation_can_be_chosen) {
  manual_context c;
  std::vector<asio::cancellation_type_t> types;
  auto initiation = [&](auto h) {
    auto slot = asio::get_associated_cancellation_slot(h);
    auto kept = std::make_shared<decltype(h)>(std::move(h));
    slot.assign([&types, kept, &c](asio::cancellation_type_t t) {
      types.push_back(t);
      asio::post(c.io, [kept] { (*kept)(); });
    });
  };
  int calls = 0;
  auto start = [&](auto&& token) {
    asio::async_initiate<decltype(token), void()>(
        asio::bind_executor(c.io.get_executor(), initiation), token);
  };
  auto count = [&] { ++calls; };
  start(cancel_after(1s, count));
  start(cancel_after(2s, count, asio::cancellation_type::partial));
  start(cancel_after(3s, asio::cancellation_type::total)(count));
  start(cancel_at(time_point(4s), count, asio::cancellation_type::all));
  start(cancel_at(time_point(5s), asio::cancellation_type::total)(count));
  for (int i = 0; i != 5; ++i)
    c.advance(1s);
  const std::vector<asio::cancellation_type_t> expected{
      asio::cancellation_type::terminal, asio::cancellation_type::partial,
      asio::cancellation_type::total, asio::cancellation_type::all,
      asio::cancellation_type::total};
  BOOST_TEST((types == expected));
  BOOST_TEST(calls == 5);
}

BOOST_AUTO_TEST_CASE(adapters_that_change_the_signature_may_be_outside) {
  fixture f;
  error_code tuple, redirected;
  auto body = [&]() -> asio::awaitable<void> {
    std::tie(tuple) = co_await f.socket.async_wait(
        readable, asio::as_tuple(cancel_after(5s, asio::use_awaitable)));
    co_await f.socket.async_wait(
        readable, asio::redirect_error(cancel_after(5s, asio::use_awaitable),
                                       redirected));
  };
  asio::co_spawn(f.io, body(), keep_nothing);
  f.poll();
  f.advance(5s);
  f.advance(5s);
  BOOST_TEST((tuple == asio::error::operation_aborted));
  BOOST_TEST((redirected == asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE(nested_with_a_timeout_the_first_one_counts) {
  fixture f;
  outcome cancelled, timed_out;
  f.socket.async_wait(readable,
                      timeout_after(7s, cancel_after(5s, cancelled.tracked())));
  f.socket.async_wait(readable,
                      cancel_after(7s, timeout_after(5s, timed_out.tracked())));
  f.advance(5s);
  BOOST_TEST((cancelled.fate() == fate::aborted));
  BOOST_TEST((timed_out.ec() == error::operation_timeout));
}

BOOST_AUTO_TEST_CASE(the_clock_stops_when_the_operation_completes) {
  // Known by its result: a signal that arrives too late for the handler.
  fixture f;
  test::queue_context busy;
  outcome o;
  f.socket.async_wait(
      readable,
      cancel_after(5s, asio::bind_executor(busy.get_executor(), o.tracked())));
  f.poll();
  f.pair.say("abc");
  f.socket.wait(readable);
  f.poll();
  BOOST_TEST(f.wheel.pending() == 0u);
  f.advance(1h);
  busy.run();
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(the_memory_is_the_handlers_and_freed_before_the_call) {
  fixture f;
  test::allocation_log memory;
  outcome o;
  f.socket.async_wait(
      readable,
      cancel_after(
          5s, asio::bind_allocator(test::tracking_allocator<void>(memory),
                                   [&, h = o.tracked()](error_code ec) mutable {
                                     BOOST_TEST(memory.live == 0u);
                                     h(ec);
                                   })));
  BOOST_TEST(memory.live == 2u);
  f.advance(5s);
  BOOST_TEST((o.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(a_wheel_that_does_not_take_it_cancels_at_once) {
  fixture f;
  outcome before, after;
  f.socket.async_wait(readable, cancel_after(5s, before.tracked()));
  f.wheel.stop();
  f.socket.async_wait(readable, cancel_after(5s, after.tracked()));
  f.poll();
  BOOST_TEST((before.fate() == fate::aborted));
  BOOST_TEST((after.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(an_initiation_that_throws_leaves_nothing_behind) {
  manual_context c;
  outcome o;
  auto start = [&](auto&& token) {
    asio::async_initiate<decltype(token), void(error_code)>(
        [](auto) { throw std::runtime_error("no"); }, token);
  };
  BOOST_CHECK_THROW(
      start(cancel_after(
          5s, asio::bind_executor(c.io.get_executor(), o.tracked()))),
      std::runtime_error);
  BOOST_TEST((o.fate() == fate::dropped));
  BOOST_TEST(c.wheel.pending() == 0u);
}

BOOST_AUTO_TEST_CASE(the_context_goes_first) {
  outcome o;
  {
    fixture f;
    f.socket.async_wait(readable, cancel_after(5s, o.tracked()));
    f.clock.advance(5s);
  }
  BOOST_TEST((o.fate() == fate::dropped));
}

BOOST_AUTO_TEST_CASE(through_the_pipe) {
  fixture f;
  outcome o, p;
  auto wait = f.socket.async_wait(readable, asio::deferred);
  wait | cancel_after(5s, o.tracked());
  wait | cancel_after(9s) | cancel_at(f.now() + 5s) | p.tracked();
  f.advance(5s);
  BOOST_TEST((o.fate() == fate::aborted));
  BOOST_TEST((p.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(a_composed_read_keeps_what_it_has_read) {
  fixture f;
  std::array<char, 64> room;
  error_code ec;
  std::size_t bytes = 0;
  asio::async_read(f.socket, asio::buffer(room),
                   cancel_after(5s, [&](error_code e, std::size_t n) {
                     ec = e;
                     bytes = n;
                   }));
  f.pair.say("abc");
  f.socket.wait(readable);
  f.poll();
  f.advance(5s);
  BOOST_TEST((ec == asio::error::operation_aborted));
  BOOST_TEST(bytes == 3u);
}

// What does not listen to a terminal cancellation, and what does; listed in
// timeout_after()'s documentation.

BOOST_AUTO_TEST_CASE(a_resolver_does_not_listen) {
  asio::io_context io;
  asio::ip::tcp::resolver resolver(io);
  error_code ec = asio::error::would_block;
  resolver.async_resolve(
      "127.0.0.1", "80", asio::ip::tcp::resolver::numeric_host,
      timeout_after(0s, [&](error_code e, auto) { ec = e; }));
  io.run();
  BOOST_TEST(!ec);
}

BOOST_AUTO_TEST_CASE(signal_sets_timers_acceptors_and_connects_listen) {
  fixture f;
  outcome accepted;
  error_code signalled, waited;
  asio::signal_set signals(f.io, SIGUSR1);
  signals.async_wait(
      timeout_after(5s, [&](error_code e, int) { signalled = e; }));
  wheel_timer timer(f.io, 1h);
  timer.async_wait(timeout_after(5s, [&](error_code e) { waited = e; }));
  asio::ip::tcp::acceptor acceptor(f.io, {asio::ip::address_v4::loopback(), 0});
  asio::ip::tcp::socket peer(f.io);
  acceptor.async_accept(peer, timeout_after(5s, accepted.tracked()));
  f.advance(5s);
  BOOST_TEST((signalled == error::operation_timeout));
  BOOST_TEST((waited == error::operation_timeout));
  BOOST_TEST((accepted.ec() == error::operation_timeout));
}

BOOST_AUTO_TEST_CASE(a_coroutine_that_disabled_cancellation_does_not_listen) {
  manual_context c;
  bool ended = false;
  std::exception_ptr failure;
  auto body = [&]() -> asio::awaitable<void> {
    co_await asio::this_coro::reset_cancellation_state(
        asio::disable_cancellation());
    wheel_timer timer(c.io, 9s);
    co_await timer.async_wait(asio::use_awaitable);
  };
  asio::co_spawn(c.io, body(), timeout_after(5s, [&](std::exception_ptr e) {
                   failure = e;
                   ended = true;
                 }));
  c.poll();
  c.advance(5s);
  BOOST_TEST(!ended);
  c.advance(4s);
  BOOST_TEST(ended);
  BOOST_TEST(!failure);
}

BOOST_AUTO_TEST_CASE(completions_race_with_cancellations_on_a_strand) {
  asio::thread_pool pool(2);
  asio_wheel::wheel_options options;
  options.tick = 100us;
  asio_wheel::make_wheel(pool, options);
  auto strand = asio::make_strand(pool);
  int fired = 0, aborted = 0;
  std::promise<void> done;
  auto session = [&]() -> asio::awaitable<void> {
    wheel_timer timer(strand);
    for (int i = 0; i != 300; ++i) {
      timer.expires_after(std::chrono::microseconds(i % 3 * 100));
      auto [ec] = co_await timer.async_wait(
          cancel_after(100us, asio::as_tuple(asio::use_awaitable)));
      ++(ec ? aborted : fired);
    }
  };
  asio::post(strand, [&] {
    asio::co_spawn(strand, session,
                   [&](std::exception_ptr) { done.set_value(); });
  });
  done.get_future().get();
  pool.join();
  BOOST_TEST(fired + aborted == 300);
}
