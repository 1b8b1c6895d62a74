//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/delay_queue.hpp>

#define BOOST_TEST_MODULE unit_delay_queue_tokens
#include <boost/test/unit_test.hpp>

#include <test/manual_context.hpp>
#include <test/outcome.hpp>
#include <test/tracking_allocator.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <tuple>
#include <utility>

// Every token with async_pop and async_push. Values are move-only.

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::delay_key;
using boost::system::error_code;
using boost::system::system_error;
using test::fate;
using test::outcome;

using value = std::unique_ptr<int>;
using value_queue = asio_wheel::delay_queue<value>;

value make(int i) { return std::make_unique<int>(i); }

asio_wheel::delay_queue_options room_for_one() {
  asio_wheel::delay_queue_options o;
  o.capacity = 1;
  return o;
}

struct fixture : test::manual_context {
  value_queue queue{io, room_for_one()};

  // A pop that waits is served by this.
  void feed(int i) {
    queue.push(make(i), 0s);
    poll();
  }
  // A push that waits is served by this.
  void make_room() {
    clock.advance(1h);
    queue.try_pop();
    poll();
  }
};

void keep(std::exception_ptr e) {
  if (e)
    std::rethrow_exception(e);
}

} // namespace

BOOST_AUTO_TEST_CASE(callback) {
  fixture f;
  outcome popped, pushed;
  int got = 0;
  f.queue.async_pop([&, h = popped.tracked()](error_code ec, value v) mutable {
    got = *v;
    h(ec);
  });
  f.feed(1);
  BOOST_TEST((popped.fate() == fate::fired));
  BOOST_TEST(got == 1);
  f.queue.push(make(2), 1s);
  f.queue.async_push(
      make(3), 1s,
      [h = pushed.tracked()](error_code ec, delay_key) mutable { h(ec); });
  f.make_room();
  BOOST_TEST((pushed.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(use_future) {
  fixture f;
  std::future<value> popped = f.queue.async_pop(asio::use_future);
  f.feed(1);
  BOOST_REQUIRE((popped.wait_for(0s) == std::future_status::ready));
  BOOST_TEST(*popped.get() == 1);
  f.queue.push(make(2), 1s);
  std::future<delay_key> pushed =
      f.queue.async_push(make(3), 2h, asio::use_future);
  f.make_room();
  BOOST_REQUIRE((pushed.wait_for(0s) == std::future_status::ready));
  BOOST_TEST(f.queue.contains(pushed.get()));
  std::future<value> none = f.queue.async_pop(asio::use_future);
  f.queue.close();
  f.queue.clear();
  f.poll();
  BOOST_CHECK_EXCEPTION(none.get(), system_error, [](const system_error& e) {
    return e.code() == asio::error::eof;
  });
}

BOOST_AUTO_TEST_CASE(use_awaitable_and_as_tuple) {
  fixture f;
  int sum = 0;
  error_code end;
  asio::co_spawn(
      f.io,
      [&]() -> asio::awaitable<void> {
        for (int i = 0; i != 10; ++i)
          co_await f.queue.async_push(make(i), 1s, asio::use_awaitable);
        f.queue.close();
      },
      keep);
  asio::co_spawn(
      f.io,
      [&]() -> asio::awaitable<void> {
        value first = co_await f.queue.async_pop(asio::use_awaitable);
        sum += *first;
        for (;;) {
          auto [ec, v] =
              co_await f.queue.async_pop(asio::as_tuple(asio::use_awaitable));
          if (ec) {
            end = ec;
            break;
          }
          sum += *v;
        }
      },
      keep);
  for (int i = 0; i != 12; ++i)
    f.advance(1s);
  BOOST_TEST(sum == 45);
  BOOST_TEST((end == asio::error::eof));
}

BOOST_AUTO_TEST_CASE(deferred) {
  fixture f;
  outcome popped, pushed;
  auto pop = f.queue.async_pop(asio::deferred);
  auto push = f.queue.async_push(make(3), 1s, asio::deferred);
  f.queue.push(make(1), 0s);
  f.poll();
  BOOST_TEST(f.queue.size() == 1u); // neither has started
  std::move(push)(
      [h = pushed.tracked()](error_code ec, delay_key) mutable { h(ec); });
  std::move(pop)(
      [h = popped.tracked()](error_code ec, value) mutable { h(ec); });
  f.poll();
  BOOST_TEST((popped.fate() == fate::fired));
  BOOST_TEST((pushed.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(detached) {
  fixture f;
  f.queue.async_push(make(1), 0s, asio::detached);
  f.queue.async_pop(asio::detached);
  f.poll();
  BOOST_TEST(f.queue.empty());
  BOOST_TEST(f.wheel.pending() == 0u);
}

BOOST_AUTO_TEST_CASE(bind_executor_to_a_strand) {
  fixture f;
  auto strand = asio::make_strand(f.io);
  int on_strand = 0;
  f.queue.async_pop(asio::bind_executor(strand, [&](error_code, value) {
    on_strand += strand.running_in_this_thread();
  }));
  f.feed(1);
  f.queue.push(make(2), 1s);
  f.queue.async_push(make(3), 1s,
                     asio::bind_executor(strand, [&](error_code, delay_key) {
                       on_strand += strand.running_in_this_thread();
                     }));
  f.make_room();
  BOOST_TEST(on_strand == 2);
}

BOOST_AUTO_TEST_CASE(bind_executor_to_another_context) {
  fixture f;
  asio::io_context other;
  int got = 0;
  f.queue.async_pop(asio::bind_executor(
      other.get_executor(), [&](error_code, value v) { got = *v; }));
  BOOST_TEST(other.poll() == 0u);
  BOOST_TEST(!other.stopped()); // has work
  f.feed(1);
  BOOST_TEST(got == 0);
  other.run();
  BOOST_TEST(got == 1);
}

BOOST_AUTO_TEST_CASE(bind_allocator) {
  fixture f;
  test::allocation_log memory;
  int calls = 0;
  const test::tracking_allocator<void> allocator(memory);
  f.queue.async_pop(asio::bind_allocator(allocator, [&](error_code, value) {
    BOOST_TEST(memory.live == 0u); // freed before the call
    ++calls;
  }));
  BOOST_TEST(memory.live == 1u);
  f.feed(1);
  f.queue.push(make(2), 1s);
  f.queue.async_push(
      make(3), 1s, asio::bind_allocator(allocator, [&](error_code, delay_key) {
        BOOST_TEST(memory.live == 0u);
        ++calls;
      }));
  BOOST_TEST(memory.live == 1u);
  f.make_room();
  BOOST_TEST(calls == 2);
  BOOST_TEST(memory.live == 0u);
}

BOOST_AUTO_TEST_CASE(bind_cancellation_slot) {
  fixture f;
  asio::cancellation_signal pop_signal, push_signal;
  std::future<value> popped = f.queue.async_pop(
      asio::bind_cancellation_slot(pop_signal.slot(), asio::use_future));
  pop_signal.emit(asio::cancellation_type::total);
  f.queue.push(make(1), 1h);
  std::future<delay_key> pushed = f.queue.async_push(
      make(2), 1h,
      asio::bind_cancellation_slot(push_signal.slot(), asio::use_future));
  push_signal.emit(asio::cancellation_type::partial);
  f.poll();
  const auto aborted = [](const system_error& e) {
    return e.code() == asio::error::operation_aborted;
  };
  BOOST_CHECK_EXCEPTION(popped.get(), system_error, aborted);
  BOOST_CHECK_EXCEPTION(pushed.get(), system_error, aborted);
  BOOST_TEST(f.queue.size() == 1u);
}

BOOST_AUTO_TEST_CASE(any_completion_handler) {
  fixture f;
  int got = 0;
  bool pushed = false;
  asio::any_completion_handler<void(error_code, value)> pop =
      [&, owned = make(0)](error_code, value v) { got = *v; };
  f.queue.async_pop(std::move(pop));
  f.feed(1);
  f.queue.push(make(2), 1s);
  asio::any_completion_handler<void(error_code, delay_key)> push =
      [&, owned = make(0)](error_code ec, delay_key) { pushed = !ec; };
  f.queue.async_push(make(3), 1s, std::move(push));
  f.make_room();
  BOOST_TEST(got == 1);
  BOOST_TEST(pushed);
}

BOOST_AUTO_TEST_CASE(default_tokens_and_concrete_executors) {
  test::manual_context c;
  using executor = asio::use_awaitable_t<>::executor_with_default<
      asio::io_context::executor_type>;
  asio_wheel::delay_queue<value, executor> queue(executor(c.io.get_executor()));
  int got = 0;
  asio::co_spawn(
      c.io,
      [&]() -> asio::awaitable<void> {
        co_await queue.async_push(make(5), 1s);
        co_await queue.async_push_at(make(6), c.now());
        got = *co_await queue.async_pop();
      },
      keep);
  c.poll();
  BOOST_TEST(got == 6);
}
