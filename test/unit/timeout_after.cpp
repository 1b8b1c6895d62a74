//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/timeout_after.hpp>

#include <asio_wheel/wheel_timer.hpp>

#include <test/local_pair.hpp>
#include <test/manual_context.hpp>
#include <test/outcome.hpp>
#include <test/queue_context.hpp>
#include <test/tracking_allocator.hpp>
#include <test/tracking_executor.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#define BOOST_TEST_MODULE unit_timeout_after
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

// What the process has taken from operator new.

namespace {
std::atomic<std::size_t> news{0};
}

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++news;
  return std::malloc(size);
}
void* operator new(std::size_t size) {
  if (void* const p = operator new(size, std::nothrow))
    return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::error;
using asio_wheel::timeout_after;
using asio_wheel::timeout_at;
using asio_wheel::wheel_timer;
using boost::system::error_code;
using boost::system::system_error;
using test::fate;
using test::manual_context;
using test::outcome;

using duration = std::chrono::steady_clock::duration;
using time_point = std::chrono::steady_clock::time_point;
constexpr auto readable = asio::socket_base::wait_read;

// A socket on which nothing ever arrives unless somebody says something.
struct fixture : manual_context {
  test::local_pair pair{io};
  test::local_pair::socket& socket = pair.ours;
  std::array<char, 64> room;

  explicit fixture(asio_wheel::wheel_options o = asio_wheel::wheel_options())
      : manual_context(std::move(o)) {}

  asio::mutable_buffer buffer() { return asio::buffer(room); }

  // Say something and have the reactor notice.
  void say(const char* text) {
    pair.say(text);
    pair.ours.wait(readable);
    poll();
  }
};

// What an operation with a number of bytes has come to.
struct result {
  int calls = 0;
  error_code ec;
  std::size_t bytes = 0;

  auto handler() {
    return [this](error_code e, std::size_t n) {
      ++calls;
      ec = e;
      bytes = n;
    };
  }
};

void keep_nothing(std::exception_ptr) {}

error_code code_of(const std::exception_ptr& e) {
  try {
    if (e)
      std::rethrow_exception(e);
  } catch (const system_error& error) {
    return error.code();
  }
  return {};
}

// An operation whose completion, and everything else about it, is up to the
// test. Has no executor to tell of.
template <typename... Signatures> struct manual_operation {
  struct state_base {
    virtual ~state_base() = default;
    asio::cancellation_slot slot;
  };
  template <typename Handler> struct state : state_base {
    explicit state(Handler&& h) : handler(std::move(h)) {}
    Handler handler;
  };

  template <typename Token> auto start(Token&& token) {
    return asio::async_initiate<Token, Signatures...>(
        [this](auto handler) {
          using handler_type = decltype(handler);
          auto slot = asio::get_associated_cancellation_slot(handler);
          auto kept = std::make_shared<handler_type>(std::move(handler));
          drop = [kept]() mutable { kept.reset(); };
          slot.assign([this](asio::cancellation_type_t t) {
            ++emissions;
            last_type = t;
          });
          on_complete(kept);
        },
        token);
  }

  template <typename Kept> void on_complete(const Kept& kept) {
    complete = [kept](error_code ec, int value) {
      if constexpr (sizeof...(Signatures) == 2) {
        if (value)
          (*kept)(ec, value);
        else
          (*kept)(ec);
      } else {
        (void)value;
        (*kept)(ec);
      }
    };
  }

  std::function<void(error_code, int)> complete;
  std::function<void()> drop;
  int emissions = 0;
  asio::cancellation_type_t last_type = asio::cancellation_type::none;
};

// Start a coroutine from the strand it runs on, so that no part of it is left
// to the calling thread.
template <typename Strand, typename Body>
std::future<void> run_on(const Strand& strand, Body body) {
  auto done = std::make_shared<std::promise<void>>();
  auto future = done->get_future();
  asio::post(strand, [strand, body, done] {
    asio::co_spawn(strand, body, [done](std::exception_ptr e) {
      e ? done->set_exception(e) : done->set_value();
    });
  });
  return future;
}

} // namespace

// ---------------------------------------------------------------------------
// Time

BOOST_AUTO_TEST_CASE(an_operation_that_takes_too_long_ends_with_a_timeout) {
  fixture f;
  result r;
  f.socket.async_read_some(f.buffer(), timeout_after(5s, r.handler()));
  f.poll();
  BOOST_TEST(f.wheel.pending() == 1u);
  f.advance(5s - 1ns);
  BOOST_TEST(r.calls == 0);
  f.advance(1ns);
  BOOST_TEST(r.calls == 1);
  BOOST_TEST((r.ec == error::operation_timeout));
  BOOST_TEST((r.ec == asio_wheel::condition::timeout));
  BOOST_TEST(r.bytes == 0u);
  BOOST_TEST(f.wheel.pending() == 0u);
}

BOOST_AUTO_TEST_CASE(
    an_operation_in_time_keeps_its_result_and_stops_the_clock) {
  fixture f;
  result r;
  f.socket.async_read_some(f.buffer(), timeout_after(5s, r.handler()));
  f.advance(4s);
  f.say("abc");
  BOOST_TEST(r.calls == 1);
  BOOST_TEST(!r.ec);
  BOOST_TEST(r.bytes == 3u);
  BOOST_TEST(f.wheel.pending() == 0u);
  f.advance(1h);
  BOOST_TEST(r.calls == 1);
}

BOOST_AUTO_TEST_CASE(an_error_of_the_operations_own_stays) {
  fixture f;
  result r;
  f.socket.async_read_some(f.buffer(), timeout_after(5s, r.handler()));
  f.poll();
  f.pair.theirs.close();
  f.socket.wait(readable);
  f.poll();
  BOOST_TEST((r.ec == asio::error::eof));
}

BOOST_AUTO_TEST_CASE(at_a_point_in_time) {
  fixture f;
  outcome o;
  f.advance(1h);
  f.socket.async_wait(readable, timeout_at(f.now() + 5s, o.tracked()));
  f.advance(5s - 1ns);
  BOOST_TEST((o.fate() == fate::waiting));
  f.advance(1ns);
  BOOST_TEST((o.ec() == error::operation_timeout));
}

BOOST_AUTO_TEST_CASE(a_time_that_is_up_already_ends_it_on_the_next_turn) {
  for (const duration d : {duration(0), duration(-1s), duration::min()}) {
    fixture f;
    outcome after, at;
    f.advance(1s);
    test::quietly([&] {
      f.socket.async_wait(readable, timeout_after(d, after.tracked()));
      f.socket.async_wait(readable, timeout_at(time_point(d), at.tracked()));
    });
    f.poll();
    BOOST_TEST((after.ec() == error::operation_timeout));
    BOOST_TEST((at.ec() == error::operation_timeout));
  }
}

BOOST_AUTO_TEST_CASE(a_time_that_is_up_spares_what_completes_at_once) {
  fixture f;
  result r;
  f.pair.say("abc");
  f.socket.wait(readable);
  f.socket.async_read_some(f.buffer(), timeout_after(0s, r.handler()));
  f.poll();
  BOOST_TEST(!r.ec);
  BOOST_TEST(r.bytes == 3u);
}

BOOST_AUTO_TEST_CASE(for_ever_takes_no_timer) {
  asio::io_context io;
  test::local_pair pair(io);
  outcome after, at;
  pair.ours.async_wait(readable,
                       timeout_after(duration::max(), after.tracked()));
  pair.ours.async_wait(readable, timeout_at(time_point::max(), at.tracked()));
  BOOST_TEST(!asio::has_service<asio_wheel::wheel_service>(io));
  io.poll();
  pair.ours.cancel();
  io.poll();
  BOOST_TEST((after.fate() == fate::aborted));
  BOOST_TEST((at.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(almost_for_ever_never_comes) {
  fixture f;
  outcome o;
  f.advance(1s);
  f.socket.async_wait(
      readable, timeout_after(duration::max() - duration(1), o.tracked()));
  f.advance(24h * 365 * 100);
  BOOST_TEST((o.fate() == fate::waiting));
}

BOOST_AUTO_TEST_CASE(a_deferred_operation_is_timed_from_its_initiation) {
  fixture f;
  outcome o;
  auto operation =
      f.socket.async_wait(readable, timeout_after(5s, asio::deferred));
  f.advance(1h);
  BOOST_TEST(f.wheel.pending() == 0u);
  std::move(operation)(o.tracked());
  f.advance(5s - 1ns);
  BOOST_TEST((o.fate() == fate::waiting));
  f.advance(1ns);
  BOOST_TEST((o.ec() == error::operation_timeout));
}

// ---------------------------------------------------------------------------
// Who was first

BOOST_AUTO_TEST_CASE(somebody_elses_cancel_stays_a_cancel) {
  fixture f;
  outcome o;
  f.socket.async_wait(readable, timeout_after(5s, o.tracked()));
  f.poll();
  f.socket.cancel();
  f.clock.advance(5s); // due before the handler could run
  f.poll();
  BOOST_TEST((o.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(the_users_slot_is_forwarded) {
  fixture f;
  asio::cancellation_signal signal;
  outcome o;
  f.socket.async_wait(
      readable, timeout_after(5s, asio::bind_cancellation_slot(signal.slot(),
                                                               o.tracked())));
  f.poll();
  test::quietly([&] { signal.emit(asio::cancellation_type::total); });
  f.poll();
  BOOST_TEST((o.fate() == fate::aborted));
  BOOST_TEST(f.wheel.pending() == 0u);
  BOOST_TEST(!signal.slot().has_handler());
  signal.emit(asio::cancellation_type::terminal); // reaches nothing
}

BOOST_AUTO_TEST_CASE(a_slot_bound_outside_does_not_take_the_timeouts_place) {
  fixture f;
  asio::cancellation_signal signal;
  outcome timed_out, cancelled;
  f.socket.async_wait(
      readable, asio::bind_cancellation_slot(
                    signal.slot(), timeout_after(5s, timed_out.tracked())));
  f.advance(5s);
  BOOST_TEST((timed_out.ec() == error::operation_timeout));
  f.socket.async_wait(
      readable, asio::bind_cancellation_slot(
                    signal.slot(), timeout_after(5s, cancelled.tracked())));
  f.poll();
  signal.emit(asio::cancellation_type::total);
  f.poll();
  BOOST_TEST((cancelled.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(the_users_cancel_counts_if_it_was_first_and_not_if_not) {
  manual_context c;
  asio::cancellation_signal signal;
  for (const bool user_first : {true, false}) {
    manual_operation<void(error_code)> op;
    outcome o;
    op.start(timeout_after(
        5s, asio::bind_executor(
                c.io.get_executor(),
                asio::bind_cancellation_slot(signal.slot(), o.tracked()))));
    if (user_first)
      signal.emit(asio::cancellation_type::partial);
    c.advance(5s);
    if (!user_first)
      signal.emit(asio::cancellation_type::partial);
    BOOST_TEST(op.emissions == 2);
    BOOST_TEST((o.fate() == fate::waiting));
    asio::post(c.io, [&] { op.complete(asio::error::operation_aborted, 0); });
    c.poll();
    if (user_first)
      BOOST_TEST((o.fate() == fate::aborted));
    else
      BOOST_TEST((o.ec() == error::operation_timeout));
  }
}

BOOST_AUTO_TEST_CASE(an_emission_of_nothing_is_none) {
  fixture f;
  asio::cancellation_signal signal;
  outcome o;
  f.socket.async_wait(
      readable, timeout_after(5s, asio::bind_cancellation_slot(signal.slot(),
                                                               o.tracked())));
  f.poll();
  signal.emit(asio::cancellation_type::none);
  f.advance(5s);
  BOOST_TEST((o.ec() == error::operation_timeout));
}

BOOST_AUTO_TEST_CASE(success_after_the_timeout_is_success) {
  manual_context c;
  manual_operation<void(error_code)> op;
  outcome o;
  op.start(
      timeout_after(5s, asio::bind_executor(c.io.get_executor(), o.tracked())));
  c.advance(5s);
  BOOST_TEST(op.emissions == 1);
  BOOST_TEST((op.last_type == asio::cancellation_type::terminal));
  asio::post(c.io, [&] { op.complete({}, 0); });
  c.poll();
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(the_type_of_cancellation_can_be_chosen) {
  manual_context c;
  manual_operation<void(error_code)> op;
  outcome o;
  op.start(timeout_after(5s,
                         asio::bind_executor(c.io.get_executor(), o.tracked()),
                         asio::cancellation_type::total));
  c.advance(5s);
  BOOST_TEST((op.last_type == asio::cancellation_type::total));
  op.drop();
}

BOOST_AUTO_TEST_CASE(timeouts_nest) {
  for (const bool outer_first : {true, false}) {
    fixture f;
    outcome o;
    f.socket.async_wait(
        readable,
        timeout_after(outer_first ? 3s : 7s, timeout_after(5s, o.tracked())));
    BOOST_TEST(f.wheel.pending() == 2u);
    const duration first = outer_first ? 3s : 5s;
    f.advance(first - 1ns);
    BOOST_TEST((o.fate() == fate::waiting));
    f.advance(1ns);
    BOOST_TEST((o.ec() == error::operation_timeout));
    BOOST_TEST(f.wheel.pending() == 0u);
  }
}

// ---------------------------------------------------------------------------
// Where things run

BOOST_AUTO_TEST_CASE(the_clock_stops_when_the_operation_completes) {
  // The handler's executor is busy: the timeout passes before its turn.
  for (const bool cancelled : {true, false}) {
    fixture f;
    test::queue_context busy;
    outcome o;
    f.socket.async_wait(
        readable, timeout_after(5s, asio::bind_executor(busy.get_executor(),
                                                        o.tracked())));
    BOOST_TEST(busy.work() >= 1u);
    f.poll();
    if (cancelled) {
      f.socket.cancel();
      f.poll();
    } else {
      f.say("abc");
    }
    BOOST_TEST(f.wheel.pending() == 0u);
    f.advance(1h);
    BOOST_TEST((o.fate() == fate::waiting));
    BOOST_TEST(busy.run() == 1u);
    BOOST_TEST((o.fate() == (cancelled ? fate::aborted : fate::fired)));
    BOOST_TEST(busy.work() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_busy_strand_of_the_same_context_likewise) {
  fixture f;
  auto strand = asio::make_strand(f.io);
  outcome o;
  bool on_strand = false;
  f.socket.async_wait(
      readable,
      timeout_after(5s, asio::bind_executor(strand, [&, h = o.tracked()](
                                                        error_code ec) mutable {
                      on_strand = strand.running_in_this_thread();
                      h(ec);
                    })));
  f.poll();
  f.socket.cancel();
  asio::post(strand, [&] {
    f.io.poll(); // completes, but its handler is behind us
    f.clock.advance(1h);
    f.io.poll();
  });
  f.poll();
  BOOST_TEST((o.fate() == fate::aborted));
  BOOST_TEST(on_strand);
}

BOOST_AUTO_TEST_CASE(an_executor_bound_outside_is_the_handlers_only) {
  fixture f;
  test::execution_log of_io, of_handler;
  auto ex = test::tracking_executor(f.io.get_executor(), of_io);
  asio::basic_stream_socket<asio::ip::tcp, decltype(ex)> socket(
      ex, asio::ip::tcp::v4(), f.socket.release());
  f.socket.open(asio::ip::tcp::v4());
  outcome o;
  bool where = false;
  socket.async_wait(
      readable,
      asio::bind_executor(
          test::tracking_executor(f.io.get_executor(), of_handler),
          timeout_after(5s, [&, h = o.tracked()](error_code ec) mutable {
            where = of_handler.running_in_this_thread();
            h(ec);
          })));
  const auto before = of_io.executions.load();
  f.advance(5s);
  BOOST_TEST((o.ec() == error::operation_timeout));
  BOOST_TEST(where);
  BOOST_TEST(of_io.executions > before); // the timeout, and the completion
}

BOOST_AUTO_TEST_CASE(the_timeout_acts_on_the_io_objects_executor) {
  fixture f;
  test::execution_log log;
  auto ex = test::tracking_executor(f.io.get_executor(), log);
  outcome o;
  bool emitted_there = false;
  std::function<void()> complete;
  auto initiation = [&](auto h) {
    auto slot = asio::get_associated_cancellation_slot(h);
    auto kept = std::make_shared<decltype(h)>(std::move(h));
    complete = [kept] { (*kept)(asio::error::operation_aborted); };
    slot.assign([&](asio::cancellation_type_t) {
      emitted_there = log.running_in_this_thread();
      asio::post(f.io, std::exchange(complete, nullptr));
    });
  };
  auto token = timeout_after(5s, o.tracked());
  asio::async_initiate<decltype(token), void(error_code)>(
      asio::bind_executor(ex, initiation), token);
  f.advance(5s);
  BOOST_TEST(emitted_there);
  BOOST_TEST((o.ec() == error::operation_timeout));
}

BOOST_AUTO_TEST_CASE(the_users_cancel_is_dispatched_to_the_io_object) {
  fixture f;
  test::queue_context other;
  asio::cancellation_signal signal;
  outcome o;
  f.socket.async_wait(
      readable, timeout_after(5s, asio::bind_cancellation_slot(
                                      signal.slot(),
                                      asio::bind_executor(other.get_executor(),
                                                          o.tracked()))));
  f.poll();
  signal.emit(asio::cancellation_type::terminal);
  BOOST_TEST(other.size() == 0u);
  f.poll();
  BOOST_TEST(other.run() == 1u);
  BOOST_TEST((o.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(the_users_cancel_may_cross_the_completion) {
  fixture f;
  test::queue_context other;
  asio::cancellation_signal signal;
  outcome before, after;
  auto start = [&](outcome& o) {
    f.socket.async_wait(
        readable,
        timeout_after(
            5s, asio::bind_cancellation_slot(
                    signal.slot(),
                    asio::bind_executor(other.get_executor(), o.tracked()))));
    f.poll();
  };
  start(before);
  f.pair.say("abc");
  f.socket.wait(readable);
  signal.emit(asio::cancellation_type::terminal); // both are on their way
  f.poll();
  other.run();
  BOOST_TEST((before.fate() == fate::fired || before.fate() == fate::aborted));

  start(after);
  f.poll(); // completed, to be called by other
  signal.emit(asio::cancellation_type::terminal);
  f.poll();
  other.run();
  BOOST_TEST((after.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(a_strand_over_any_executor) {
  fixture f;
  outcome o;
  auto strand = asio::make_strand(f.io.get_executor());
  asio::ip::tcp::socket socket(strand, asio::ip::tcp::v4(), f.socket.release());
  f.socket.open(asio::ip::tcp::v4());
  bool on_strand = false;
  socket.async_wait(
      readable, timeout_after(5s, [&, h = o.tracked()](error_code ec) mutable {
        on_strand = strand.running_in_this_thread();
        h(ec);
      }));
  f.advance(5s);
  BOOST_TEST((o.ec() == error::operation_timeout));
  BOOST_TEST(on_strand);
}

BOOST_AUTO_TEST_CASE(without_any_executor_the_wheel_is_the_system_contexts) {
  manual_operation<void(error_code)> op;
  std::promise<error_code> promise;
  op.start(timeout_after(1ms, [&](error_code ec) { promise.set_value(ec); }));
  auto& wheel = asio_wheel::use_wheel(
      asio::query(asio::system_executor(), asio::execution::context));
  while (wheel.stats().fired == 0)
    std::this_thread::yield();
  op.complete(asio::error::operation_aborted, 0);
  const error_code ec = promise.get_future().get();
  BOOST_TEST((ec == error::operation_timeout ||
              ec == asio::error::operation_aborted)); // not emitted yet
}

BOOST_AUTO_TEST_CASE(a_type_erased_handler_without_an_executor) {
  fixture f;
  outcome o, p;
  asio::any_completion_handler<void(error_code)> handler(o.tracked());
  f.socket.async_wait(readable, timeout_after(5s, std::move(handler)));
  f.advance(5s);
  BOOST_TEST((o.ec() == error::operation_timeout));

  manual_operation<void(error_code)> op; // nor has the operation one
  asio::any_completion_handler<void(error_code)> bound(
      asio::bind_executor(f.io.get_executor(), p.tracked()));
  op.start(timeout_after(5s, std::move(bound)));
  f.advance(5s);
  BOOST_TEST(op.emissions == 1);
  asio::post(f.io, [&] { op.complete(asio::error::operation_aborted, 0); });
  f.poll();
  BOOST_TEST((p.ec() == error::operation_timeout));
}

// ---------------------------------------------------------------------------
// Life and memory

BOOST_AUTO_TEST_CASE(the_memory_is_the_handlers_and_freed_before_the_call) {
  fixture f;
  test::allocation_log memory;
  outcome o;
  f.socket.async_wait(
      readable,
      timeout_after(
          5s, asio::bind_allocator(test::tracking_allocator<void>(memory),
                                   [&, h = o.tracked()](error_code ec) mutable {
                                     BOOST_TEST(memory.live == 0u);
                                     h(ec);
                                   })));
  BOOST_TEST(memory.live == 2u); // the operation, and our state
  f.advance(5s);
  BOOST_TEST((o.ec() == error::operation_timeout));
  BOOST_TEST(memory.live == 0u);
}

BOOST_AUTO_TEST_CASE(nothing_is_allocated_once_warm) {
  fixture f;
  asio::any_io_executor strand(asio::make_strand(f.io));
  asio::ip::tcp::socket stranded(strand, asio::ip::tcp::v4(),
                                 test::local_pair(f.io).ours.release());
  int calls = 0;
  auto count = [&calls](error_code) { ++calls; };
  std::size_t before = 0;
  for (int i = 0; i != 20; ++i) {
    if (i == 10)
      before = news;
    // In time, too late, and on a strand.
    f.socket.async_wait(asio::socket_base::wait_write,
                        timeout_after(5s, count));
    f.socket.async_wait(readable, timeout_after(5s, count));
    f.poll();
    f.advance(5s);
    stranded.async_wait(asio::socket_base::wait_write,
                        timeout_after(5s, count));
    f.poll();
  }
  BOOST_TEST(news == before);
  BOOST_TEST(calls == 60);
}

BOOST_AUTO_TEST_CASE(the_context_goes_first) {
  outcome on_io, on_queue;
  asio::cancellation_signal signal;
  test::queue_context other;
  {
    fixture f;
    f.socket.async_wait(readable,
                        timeout_after(5s, asio::bind_cancellation_slot(
                                              signal.slot(), on_io.tracked())));
    f.socket.async_wait(
        readable, timeout_after(5s, asio::bind_executor(other.get_executor(),
                                                        on_queue.tracked())));
    f.clock.advance(5s);
  }
  BOOST_TEST((on_io.fate() == fate::dropped));
  BOOST_TEST((on_queue.fate() == fate::dropped));
  signal.emit(asio::cancellation_type::terminal); // reaches nothing
  BOOST_TEST(other.work() == 0u);
}

BOOST_AUTO_TEST_CASE(a_signal_that_goes_before_the_operation) {
  fixture f;
  outcome o;
  {
    asio::cancellation_signal signal;
    f.socket.async_wait(
        readable, timeout_after(5s, asio::bind_cancellation_slot(signal.slot(),
                                                                 o.tracked())));
  }
  f.advance(4s);
  BOOST_TEST((o.fate() == fate::waiting));
  // The slot of the handler dangles, as with any operation; it is not touched,
  // since it has said goodbye.
  f.advance(1s);
  BOOST_TEST((o.ec() == error::operation_timeout));
}

BOOST_AUTO_TEST_CASE(a_handler_dropped_by_the_operation_ends_the_wait) {
  manual_context c;
  manual_operation<void(error_code)> op;
  outcome o;
  op.start(
      timeout_after(5s, asio::bind_executor(c.io.get_executor(), o.tracked())));
  BOOST_TEST(c.wheel.pending() == 1u);
  op.complete = nullptr;
  op.drop();
  BOOST_TEST((o.fate() == fate::dropped));
  BOOST_TEST(c.wheel.pending() == 0u);
}

BOOST_AUTO_TEST_CASE(an_initiation_that_throws_leaves_nothing_behind) {
  manual_context c;
  outcome o;
  test::allocation_log memory;
  auto start = [&](auto&& token) {
    asio::async_initiate<decltype(token), void(error_code)>(
        [](auto) { throw std::runtime_error("no"); }, token);
  };
  BOOST_CHECK_THROW(
      start(timeout_after(
          5s, asio::bind_allocator(
                  test::tracking_allocator<void>(memory),
                  asio::bind_executor(c.io.get_executor(), o.tracked())))),
      std::runtime_error);
  BOOST_TEST((o.fate() == fate::dropped));
  BOOST_TEST(c.wheel.pending() == 0u);
  BOOST_TEST(memory.live == 0u);
}

BOOST_AUTO_TEST_CASE(an_operation_that_completes_within_its_initiation) {
  // The handler is not called from there.
  manual_context c;
  outcome o;
  auto start = [&](auto&& token) {
    asio::async_initiate<decltype(token), void(error_code)>(
        [](auto h) { std::move(h)(error_code()); }, token);
  };
  test::quietly([&] {
    start(timeout_after(5s,
                        asio::bind_executor(c.io.get_executor(), o.tracked())));
  });
  c.poll();
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(
    a_handler_may_start_the_next_operation_and_destroy_the_socket) {
  fixture f;
  outcome o;
  auto socket = std::make_unique<asio::ip::tcp::socket>(std::move(f.socket));
  outcome next([&](error_code) { socket.reset(); });
  outcome first([&](error_code) {
    socket->async_wait(readable, timeout_after(5s, next.tracked()));
  });
  socket->async_wait(readable, timeout_after(5s, first.tracked()));
  f.advance(5s);
  f.advance(5s);
  BOOST_TEST((first.ec() == error::operation_timeout));
  BOOST_TEST((next.ec() == error::operation_timeout));
  BOOST_TEST(!socket);
}

// ---------------------------------------------------------------------------
// The wheel's refusals

BOOST_AUTO_TEST_CASE(a_full_wheel_ends_the_operation) {
  asio_wheel::wheel_options options;
  options.max_pending = 1;
  fixture f(options);
  outcome first, second;
  f.socket.async_wait(readable, timeout_after(5s, first.tracked()));
  f.socket.async_wait(readable, timeout_after(5s, second.tracked()));
  f.poll();
  BOOST_TEST((first.fate() == fate::waiting));
  BOOST_TEST((second.ec() == error::too_many_pending));
  f.advance(5s);
  BOOST_TEST((first.ec() == error::operation_timeout));
}

BOOST_AUTO_TEST_CASE(a_refused_wait_may_find_the_operation_completed) {
  asio_wheel::wheel_options options;
  fixture f(options);
  outcome o;
  f.wheel.stop();
  f.pair.say("abc");
  f.socket.wait(readable);
  f.socket.async_wait(readable, timeout_after(5s, o.tracked()));
  f.poll();
  BOOST_TEST((o.fate() == fate::fired || o.ec() == error::wheel_stopped));
}

BOOST_AUTO_TEST_CASE(a_stopped_wheel_aborts_the_operation) {
  fixture f;
  outcome before, after;
  f.socket.async_wait(readable, timeout_after(5s, before.tracked()));
  f.poll();
  f.wheel.stop();
  f.socket.async_wait(readable, timeout_after(5s, after.tracked()));
  f.poll();
  BOOST_TEST((before.fate() == fate::aborted));
  BOOST_TEST((after.ec() == error::wheel_stopped));
}

BOOST_AUTO_TEST_CASE(a_stopped_wheel_and_a_completion_at_once) {
  // The aborted wait is on its way while the operation completes.
  fixture f;
  outcome o;
  f.socket.async_wait(readable, timeout_after(5s, o.tracked()));
  f.poll();
  f.socket.cancel();
  f.wheel.stop();
  f.poll();
  BOOST_TEST((o.fate() == fate::aborted));
}

// ---------------------------------------------------------------------------
// Signatures

BOOST_AUTO_TEST_CASE(several_signatures) {
  struct handler {
    std::vector<int>* values;
    void operator()(error_code ec) { values->push_back(ec ? -1 : 0); }
    void operator()(error_code ec, int v) { values->push_back(ec ? -2 : v); }
  };
  manual_context c;
  std::vector<int> values;
  for (const int value : {0, 7}) {
    manual_operation<void(error_code), void(error_code, int)> op;
    op.start(timeout_after(
        5s, asio::bind_executor(c.io.get_executor(), handler{&values})));
    op.complete({}, value);
    c.poll();
    manual_operation<void(error_code), void(error_code, int)> late;
    late.start(timeout_after(
        5s, asio::bind_executor(c.io.get_executor(), handler{&values})));
    c.advance(5s);
    late.complete(asio::error::operation_aborted, value);
    c.poll();
  }
  BOOST_TEST(values == (std::vector<int>{0, -1, 7, -2}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_move_only_result) {
  manual_context c;
  std::unique_ptr<int> got;
  auto start = [&](auto&& token) {
    asio::async_initiate<decltype(token),
                         void(error_code, std::unique_ptr<int>)>(
        [&](auto h) {
          asio::post(c.io, [h = std::move(h)]() mutable {
            std::move(h)(error_code(), std::make_unique<int>(7));
          });
        },
        token);
  };
  test::queue_context other;
  start(timeout_after(
      5s, asio::bind_executor(other.get_executor(),
                              [&](error_code, std::unique_ptr<int> p) {
                                got = std::move(p);
                              })));
  c.poll();
  other.run();
  BOOST_TEST((got && *got == 7));
}

BOOST_AUTO_TEST_CASE(an_error_of_another_type_than_the_signatures) {
  // As asio::async_compose allows: self.complete(asio::error::eof).
  fixture f;
  outcome o;
  auto token = timeout_after(5s, o.tracked());
  asio::async_compose<decltype(token), void(error_code)>(
      [&, started = false](auto& self) mutable {
        if (std::exchange(started, true))
          return self.complete(asio::error::operation_aborted);
        asio::post(f.io, std::move(self));
      },
      token, f.io);
  f.poll();
  BOOST_TEST((o.fate() == fate::aborted));
}

// ---------------------------------------------------------------------------
// Composed operations

BOOST_AUTO_TEST_CASE(a_composed_read_is_bounded_as_a_whole) {
  fixture f;
  result r;
  asio::async_read(f.socket, f.buffer(), timeout_after(5s, r.handler()));
  f.advance(3s);
  f.say("abc");
  f.advance(2s);
  BOOST_TEST(r.calls == 1);
  BOOST_TEST((r.ec == error::operation_timeout));
  BOOST_TEST(r.bytes == 3u);
}

BOOST_AUTO_TEST_CASE(a_timeout_between_two_steps_ends_the_next) {
  // Data is there and the time is up in the same turn.
  fixture f;
  result r;
  asio::async_read(f.socket, f.buffer(), timeout_after(5s, r.handler()));
  f.poll();
  f.pair.say("abc");
  f.socket.wait(readable);
  f.clock.advance(5s);
  f.poll();
  BOOST_TEST(r.calls == 1);
  BOOST_TEST((r.ec == error::operation_timeout));
}

BOOST_AUTO_TEST_CASE(a_range_connect) {
  fixture f;
  error_code ec = asio::error::eof;
  asio::ip::tcp::acceptor acceptor(f.io, {asio::ip::address_v4::loopback(), 0});
  asio::ip::tcp::socket socket(f.io);
  const std::vector<asio::ip::tcp::endpoint> endpoints{
      acceptor.local_endpoint()};
  asio::async_connect(
      socket, endpoints,
      timeout_after(5s,
                    [&](error_code e, asio::ip::tcp::endpoint) { ec = e; }));
  while (ec == asio::error::eof)
    f.poll();
  BOOST_TEST(!ec);
}

BOOST_AUTO_TEST_CASE(an_operation_of_the_wheels_own) {
  manual_context c;
  outcome o;
  wheel_timer timer(c.io, 1h);
  timer.async_wait(timeout_after(5s, o.tracked()));
  c.advance(5s);
  BOOST_TEST((o.ec() == error::operation_timeout));
  BOOST_TEST(c.wheel.pending() == 0u);
}

// ---------------------------------------------------------------------------
// Partial forms

BOOST_AUTO_TEST_CASE(without_a_token_it_takes_one_later) {
  fixture f;
  outcome o, p, q;
  f.socket.async_wait(readable, timeout_after(5s)(o.tracked()));
  f.socket.async_wait(readable, timeout_at(f.now() + 5s)(p.tracked()));
  auto operation = f.socket.async_wait(
      readable, timeout_after(5s, asio::cancellation_type::total));
  std::move(operation)(q.tracked());
  f.advance(5s);
  BOOST_TEST((o.ec() == error::operation_timeout));
  BOOST_TEST((p.ec() == error::operation_timeout));
  BOOST_TEST((q.ec() == error::operation_timeout));
}

BOOST_AUTO_TEST_CASE(through_the_pipe) {
  fixture f;
  outcome o, p, q;
  auto wait = f.socket.async_wait(readable, asio::deferred);
  wait | timeout_after(5s, o.tracked());
  (wait | timeout_after(5s))(p.tracked());
  wait | timeout_after(5s) | timeout_at(f.now() + 2s) | q.tracked();
  f.advance(2s);
  BOOST_TEST((q.ec() == error::operation_timeout));
  BOOST_TEST((o.fate() == fate::waiting));
  f.advance(3s);
  BOOST_TEST((o.ec() == error::operation_timeout));
  BOOST_TEST((p.ec() == error::operation_timeout));
}

BOOST_AUTO_TEST_CASE(awaiting_what_came_through_the_pipe) {
  fixture f;
  error_code first, second;
  using socket_type = asio::deferred_t::as_default_on_t<asio::ip::tcp::socket>;
  socket_type socket(std::move(f.socket));
  auto body = [&]() -> asio::awaitable<void> {
    try {
      co_await(socket.async_wait(readable) | timeout_after(5s));
    } catch (const system_error& e) {
      first = e.code();
    }
    try {
      co_await socket.async_wait(readable, timeout_after(5s));
    } catch (const system_error& e) {
      second = e.code();
    }
  };
  asio::co_spawn(f.io, body(), keep_nothing);
  f.poll();
  f.advance(5s);
  f.advance(5s);
  BOOST_TEST((first == error::operation_timeout));
  BOOST_TEST((second == error::operation_timeout));
}

// ---------------------------------------------------------------------------
// Coroutines

BOOST_AUTO_TEST_CASE(a_coroutine_as_a_whole) {
  fixture f;
  std::exception_ptr failure;
  int steps = 0;
  auto body = [&]() -> asio::awaitable<int> {
    wheel_timer timer(f.io);
    for (;;) {
      timer.expires_after(2s);
      co_await timer.async_wait(asio::use_awaitable);
      ++steps;
    }
    co_return 1;
  };
  asio::co_spawn(
      f.io, body(),
      timeout_after(5s, [&](std::exception_ptr e, int) { failure = e; }));
  f.poll();
  f.advance(2s);
  f.advance(2s);
  BOOST_TEST(!failure);
  f.advance(1s);
  BOOST_TEST(steps == 2);
  BOOST_TEST((code_of(failure) == error::operation_timeout));
  BOOST_TEST(f.wheel.pending() == 0u);
}

BOOST_AUTO_TEST_CASE(a_coroutine_in_time_and_one_that_fails_by_itself) {
  manual_context c;
  std::exception_ptr in_time = std::make_exception_ptr(1), failed;
  int value = 0;
  asio::co_spawn(
      c.io, []() -> asio::awaitable<int> { co_return 7; },
      timeout_after(5s, [&](std::exception_ptr e, int v) {
        in_time = e;
        value = v;
      }));
  asio::co_spawn(
      c.io,
      []() -> asio::awaitable<void> {
        throw std::runtime_error("own");
        co_return;
      },
      timeout_after(5s, [&](std::exception_ptr e) { failed = e; }));
  c.poll();
  BOOST_TEST(!in_time);
  BOOST_TEST(value == 7);
  BOOST_CHECK_THROW(std::rethrow_exception(failed), std::runtime_error);
}

BOOST_AUTO_TEST_CASE(a_coroutine_of_coroutines) {
  manual_context c;
  error_code inner;
  bool outer_done = false;
  wheel_timer timer(c.io, 1h);
  auto body = [&]() -> asio::awaitable<void> {
    co_await timer.async_wait(asio::use_awaitable);
  };
  auto outer = [&]() -> asio::awaitable<void> {
    try {
      co_await asio::co_spawn(c.io, body(),
                              timeout_after(5s, asio::use_awaitable));
    } catch (const system_error& e) {
      inner = e.code();
    }
    outer_done = true;
  };
  asio::co_spawn(c.io, outer(), keep_nothing);
  c.poll();
  c.advance(5s);
  BOOST_TEST(outer_done);
  BOOST_TEST((inner == error::operation_timeout));
}

BOOST_AUTO_TEST_CASE(cancelling_the_awaiting_coroutine_is_a_cancel) {
  fixture f;
  asio::cancellation_signal signal;
  error_code ec;
  auto body = [&]() -> asio::awaitable<void> {
    std::tie(ec) = co_await f.socket.async_wait(
        readable, timeout_after(5s, asio::as_tuple(asio::use_awaitable)));
  };
  asio::co_spawn(f.io, body(),
                 asio::bind_cancellation_slot(signal.slot(), keep_nothing));
  f.poll();
  signal.emit(asio::cancellation_type::terminal);
  f.poll();
  BOOST_TEST((ec == asio::error::operation_aborted));
}

// ---------------------------------------------------------------------------
// Threads

BOOST_AUTO_TEST_CASE(completions_race_with_timeouts_on_strands) {
  // Each socket on a strand of a pool; the time is up about when data comes.
  asio::thread_pool pool(3);
  asio_wheel::wheel_options options;
  options.tick = 100us;
  asio_wheel::make_wheel(pool, options);
  constexpr int sessions = 8, rounds = 60;
  std::atomic<int> data{0}, timeouts{0}, others{0};
  std::vector<std::unique_ptr<test::local_pair>> pairs;
  std::vector<std::future<void>> done;
  for (int i = 0; i != sessions; ++i) {
    auto strand = asio::make_strand(pool);
    pairs.push_back(std::make_unique<test::local_pair>(strand, pool));
    auto& pair = *pairs.back();
    auto session = [&pair, &data, &timeouts, &others,
                    i]() -> asio::awaitable<void> {
      std::array<char, 1> room;
      wheel_timer timer(pair.ours.get_executor());
      for (int round = 0; round != rounds; ++round) {
        const auto pause = std::chrono::microseconds((i + round) % 7 * 100);
        timer.expires_after(pause);
        timer.async_wait([&pair](error_code) { pair.say("x"); });
        auto [ec, n] = co_await pair.ours.async_read_some(
            asio::buffer(room),
            timeout_after(300us, asio::as_tuple(asio::use_awaitable)));
        if (!ec)
          ++data;
        else if (ec == error::operation_timeout)
          ++timeouts;
        else
          ++others;
        if (ec) // what was said meanwhile
          co_await asio::async_read(pair.ours, asio::buffer(room),
                                    timeout_after(10s, asio::use_awaitable));
      }
    };
    done.push_back(run_on(strand, session));
  }
  for (auto& d : done)
    d.get();
  pool.join();
  BOOST_TEST(data + timeouts == sessions * rounds);
  BOOST_TEST(others == 0);
}

BOOST_AUTO_TEST_CASE(the_handler_on_another_threads_strand) {
  asio::io_context io;
  asio::thread_pool pool(2);
  auto guard = asio::make_work_guard(io);
  std::thread runs_io([&] { io.run(); });
  constexpr int rounds = 100;
  auto strand = asio::make_strand(pool);
  asio::cancellation_signal signal;
  test::local_pair pair(io);
  std::atomic<int> ended{0};
  auto session = [&]() -> asio::awaitable<void> {
    for (int i = 0; i != rounds; ++i) {
      // Cancelled by its time, or by the user from the strand.
      asio::post(strand, [&] { signal.emit(asio::cancellation_type::total); });
      auto [ec] = co_await pair.ours.async_wait(
          readable,
          timeout_after(i % 3 * 1ms, asio::bind_cancellation_slot(
                                         signal.slot(),
                                         asio::as_tuple(asio::use_awaitable))));
      if (ec == error::operation_timeout ||
          ec == asio::error::operation_aborted)
        ++ended;
      if (i % 3 == 0)
        signal.emit(asio::cancellation_type::total); // reaches nothing
    }
  };
  run_on(strand, session).get();
  pool.join();
  BOOST_TEST(ended == rounds);
  guard.reset();
  runs_io.join();
}
