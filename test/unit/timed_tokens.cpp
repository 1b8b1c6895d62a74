//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/cancel_after.hpp>
#include <asio_wheel/deadline.hpp>
#include <asio_wheel/timeout_after.hpp>

#include <test/local_pair.hpp>
#include <test/manual_context.hpp>
#include <test/outcome.hpp>
#include <test/tracking_allocator.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/consign.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <boost/asio/steady_timer.hpp>
#define BOOST_TEST_MODULE unit_timed_tokens
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

// Every token with every function that bounds an operation: one body over an
// operation that is bounded by 5 ms, and its result then.

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::error;
using boost::system::error_code;
using boost::system::system_error;
using test::fate;
using test::manual_context;
using test::outcome;

constexpr auto readable = asio::socket_base::wait_read;

struct timeout_case {
  explicit timeout_case(manual_context&) {}
  template <typename Token> auto operator()(Token&& token) const {
    return asio_wheel::timeout_after(5ms, std::forward<Token>(token));
  }
  static error_code result() { return error::operation_timeout; }
};
struct cancel_case {
  explicit cancel_case(manual_context&) {}
  template <typename Token> auto operator()(Token&& token) const {
    return asio_wheel::cancel_after(5ms, std::forward<Token>(token));
  }
  static error_code result() { return asio::error::operation_aborted; }
};
struct deadline_case {
  explicit deadline_case(manual_context& c) : deadline(c.io, 5ms) {}
  template <typename Token> auto operator()(Token&& token) const {
    return asio_wheel::bind_deadline(deadline, std::forward<Token>(token));
  }
  static error_code result() { return error::deadline_exceeded; }
  asio_wheel::deadline deadline;
};
using cases = std::tuple<timeout_case, cancel_case, deadline_case>;

template <typename Case> struct fixture : manual_context {
  test::local_pair pair{io};
  Case bounded{*this};

  template <typename Token> auto wait(Token&& token) {
    return pair.ours.async_wait(readable, std::forward<Token>(token));
  }

  void say() {
    pair.say("x");
    pair.ours.wait(readable);
    poll();
  }
};

std::exception_ptr result_of_spawn;

void keep(std::exception_ptr e) { result_of_spawn = e; }

error_code code_of(const std::exception_ptr& e) {
  try {
    if (e)
      std::rethrow_exception(e);
  } catch (const system_error& error) {
    return error.code();
  }
  return {};
}

} // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(callback, Case, cases) {
  fixture<Case> f;
  outcome o, moved_only, in_time;
  f.wait(f.bounded(o.small()));
  f.wait(f.bounded(moved_only.tracked()));
  f.advance(5ms);
  BOOST_TEST((o.ec() == Case::result()));
  BOOST_TEST((moved_only.ec() == Case::result()));

  fixture<Case> g;
  g.wait(g.bounded(in_time.tracked()));
  g.say();
  g.advance(5ms);
  BOOST_TEST((in_time.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(use_future, Case, cases) {
  fixture<Case> f;
  std::future<void> late = f.wait(f.bounded(asio::use_future));
  f.advance(5ms);
  BOOST_TEST((late.wait_for(0s) == std::future_status::ready));
  BOOST_CHECK_EXCEPTION(late.get(), system_error, [](const system_error& e) {
    return e.code() == Case::result();
  });

  fixture<Case> g;
  std::future<void> in_time = g.wait(g.bounded(asio::use_future));
  g.say();
  BOOST_CHECK_NO_THROW(in_time.get());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(use_awaitable, Case, cases) {
  fixture<Case> f;
  error_code plain, tuple, redirected;
  asio::co_spawn(
      f.io,
      [&]() -> asio::awaitable<void> {
        try {
          co_await f.wait(f.bounded(asio::use_awaitable));
        } catch (const system_error& e) {
          plain = e.code();
        }
        std::tie(tuple) =
            co_await f.wait(f.bounded(asio::as_tuple(asio::use_awaitable)));
        co_await f.wait(
            f.bounded(asio::redirect_error(asio::use_awaitable, redirected)));
      },
      keep);
  f.poll();
  for (int i = 0; i != 3; ++i)
    f.advance(5ms);
  BOOST_TEST((plain == Case::result()));
  BOOST_TEST((tuple == Case::result()));
  BOOST_TEST((redirected == Case::result()));
  BOOST_TEST(!result_of_spawn);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(deferred, Case, cases) {
  fixture<Case> f;
  outcome o;
  auto operation = f.wait(f.bounded(asio::deferred));
  f.poll();
  BOOST_TEST(f.wheel.pending() == 0u); // not started
  std::move(operation)(o.tracked());
  f.advance(5ms);
  BOOST_TEST((o.ec() == Case::result()));
}

BOOST_AUTO_TEST_CASE(awaiting_a_deferred_operation) {
  fixture<timeout_case> f;
  asio::co_spawn(
      f.io,
      [&]() -> asio::awaitable<void> {
        co_await f.wait(f.bounded(asio::deferred));
      },
      keep);
  f.poll();
  f.advance(5ms);
  BOOST_TEST((code_of(result_of_spawn) == timeout_case::result()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(detached, Case, cases) {
  fixture<Case> f;
  f.wait(f.bounded(asio::detached));
  BOOST_TEST(f.wheel.pending() == 1u);
  f.advance(5ms);
  BOOST_TEST(f.wheel.pending() == 0u);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bind_executor, Case, cases) {
  fixture<Case> f;
  auto strand = asio::make_strand(f.io);
  for (const bool inside : {true, false}) {
    outcome o;
    bool on_strand = false;
    auto handler = [&, h = o.tracked()](error_code ec) mutable {
      on_strand = strand.running_in_this_thread();
      h(ec);
    };
    if (inside)
      f.wait(f.bounded(asio::bind_executor(strand, std::move(handler))));
    else
      f.wait(asio::bind_executor(strand, f.bounded(std::move(handler))));
    f.advance(5ms);
    BOOST_TEST((o.ec() == Case::result()));
    BOOST_TEST(on_strand);
    if constexpr (std::is_same_v<Case, deadline_case>)
      f.bounded.deadline.expires_after(5ms);
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bind_executor_of_another_context, Case, cases) {
  fixture<Case> f;
  outcome o;
  asio::io_context other;
  f.wait(f.bounded(asio::bind_executor(other.get_executor(), o.tracked())));
  BOOST_TEST(other.poll() == 0u);
  BOOST_TEST(!other.stopped()); // has work
  f.advance(5ms);
  BOOST_TEST((o.fate() == fate::waiting));
  other.run();
  BOOST_TEST((o.ec() == Case::result()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bind_allocator, Case, cases) {
  for (const bool inside : {true, false}) {
    fixture<Case> f;
    outcome o;
    test::allocation_log memory;
    const test::tracking_allocator<void> allocator(memory);
    auto handler = [&, h = o.tracked()](error_code ec) mutable {
      BOOST_TEST(memory.live == 0u); // freed before the call
      h(ec);
    };
    if (inside)
      f.wait(f.bounded(asio::bind_allocator(allocator, std::move(handler))));
    else
      f.wait(asio::bind_allocator(allocator, f.bounded(std::move(handler))));
    BOOST_TEST(memory.live == 2u);
    f.advance(5ms);
    BOOST_TEST((o.ec() == Case::result()));
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bind_cancellation_slot, Case, cases) {
  for (const bool inside : {true, false}) {
    fixture<Case> f;
    asio::cancellation_signal signal;
    outcome cancelled, late;
    auto start = [&](outcome& o) {
      if (inside)
        f.wait(f.bounded(
            asio::bind_cancellation_slot(signal.slot(), o.tracked())));
      else
        f.wait(asio::bind_cancellation_slot(signal.slot(),
                                            f.bounded(o.tracked())));
      f.poll();
    };
    start(cancelled);
    test::quietly([&] { signal.emit(asio::cancellation_type::total); });
    f.poll();
    BOOST_TEST((cancelled.fate() == fate::aborted));
    start(late);
    f.advance(5ms);
    BOOST_TEST((late.ec() == Case::result()));
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(any_completion_handler, Case, cases) {
  fixture<Case> f;
  outcome o, bound;
  asio::any_completion_handler<void(error_code)> handler(o.tracked());
  f.wait(f.bounded(std::move(handler)));
  asio::any_completion_handler<void(error_code)> on_strand(
      asio::bind_executor(asio::make_strand(f.io), bound.tracked()));
  f.wait(f.bounded(std::move(on_strand)));
  // And the bounded handler itself type-erased, by the operation.
  outcome erased;
  auto token = f.bounded(erased.tracked());
  asio::async_initiate<decltype(token), void(error_code)>(
      asio::bind_executor(
          f.io.get_executor(),
          [&](asio::any_completion_handler<void(error_code)> h) {
            f.pair.ours.async_wait(readable, std::move(h));
          }),
      token);
  f.advance(5ms);
  BOOST_TEST((o.ec() == Case::result()));
  BOOST_TEST((bound.ec() == Case::result()));
  BOOST_TEST((erased.ec() == Case::result()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(consign, Case, cases) {
  fixture<Case> f;
  outcome inside, outside;
  auto kept = std::make_shared<int>(1);
  f.wait(f.bounded(asio::consign(inside.tracked(), kept)));
  f.wait(asio::consign(f.bounded(outside.tracked()), kept));
  BOOST_TEST(kept.use_count() == 3);
  f.advance(5ms);
  BOOST_TEST((inside.ec() == Case::result()));
  BOOST_TEST((outside.ec() == Case::result()));
  BOOST_TEST(kept.use_count() == 1);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(all_at_once, Case, cases) {
  fixture<Case> f;
  test::allocation_log memory;
  asio::cancellation_signal signal;
  auto strand = asio::make_strand(f.io);
  error_code ec;
  bool on_strand = false;
  f.wait(asio::bind_executor(
      strand,
      f.bounded(asio::bind_cancellation_slot(
          signal.slot(),
          asio::bind_allocator(test::tracking_allocator<void>(memory),
                               asio::as_tuple([&](std::tuple<error_code> t) {
                                 std::tie(ec) = t;
                                 on_strand = strand.running_in_this_thread();
                               }))))));
  BOOST_TEST(memory.live != 0u);
  f.advance(5ms);
  BOOST_TEST((ec == Case::result()));
  BOOST_TEST(on_strand);
  BOOST_TEST(memory.live == 0u);
}

BOOST_AUTO_TEST_CASE(in_an_awaitable_or) {
  using namespace asio::experimental::awaitable_operators;
  fixture<timeout_case> f;
  std::size_t first = 9;
  asio::steady_timer never(f.io, std::chrono::hours(1));
  asio::co_spawn(
      f.io,
      [&]() -> asio::awaitable<void> {
        asio::awaitable<std::tuple<error_code>> a =
            f.wait(f.bounded(asio::as_tuple(asio::use_awaitable)));
        asio::awaitable<void> b = never.async_wait(asio::use_awaitable);
        std::variant<std::tuple<error_code>, std::monostate> result =
            co_await(std::move(a) || std::move(b));
        first = result.index();
      },
      keep);
  f.poll();
  f.advance(5ms);
  BOOST_TEST(first == 0u);
  BOOST_TEST(f.wheel.pending() == 0u);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_whole_coroutine, Case, cases) {
  fixture<Case> f;
  error_code of_void, of_value;
  asio::co_spawn(
      f.io,
      [&]() -> asio::awaitable<void> { co_await f.wait(asio::use_awaitable); },
      f.bounded([&](std::exception_ptr e) { of_void = code_of(e); }));
  asio::co_spawn(
      f.io,
      [&]() -> asio::awaitable<std::string> {
        co_await f.wait(asio::use_awaitable);
        co_return "x";
      },
      f.bounded(
          [&](std::exception_ptr e, std::string) { of_value = code_of(e); }));
  f.poll();
  f.advance(5ms);
  BOOST_TEST((of_void == Case::result()));
  BOOST_TEST((of_value == Case::result()));
}
