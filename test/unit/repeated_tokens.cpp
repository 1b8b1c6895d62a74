//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/async_retry.hpp>
#include <asio_wheel/periodic_timer.hpp>

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
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#define BOOST_TEST_MODULE unit_repeated_tokens
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

// Every token with what goes on again and again: one body over a periodic_timer
// that has missed two ticks after 15 ms, and a retry that succeeds at the
// second attempt before that. Then coroutines as attempts.

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::backoff;
using asio_wheel::retry_options;
using boost::system::error_code;
using boost::system::system_error;
using test::fate;
using test::manual_context;
using test::outcome;

struct periodic_case : manual_context {
  asio_wheel::periodic_timer timer{io, 5ms};

  template <typename Token> auto start(Token&& token) {
    return timer.async_wait(std::forward<Token>(token));
  }
};

/// Fails at once, and succeeds at once.
struct retry_case : manual_context {
  asio_wheel::wheel_timer at_once{io};

  template <typename Token> auto start(Token&& token) {
    return asio_wheel::async_retry(
        io.get_executor(),
        [this](std::size_t attempt) {
          return asio::async_initiate<const asio::deferred_t&,
                                      void(error_code)>(
              [this](auto handler, error_code ec) {
                const auto ex =
                    asio::get_associated_executor(handler, io.get_executor());
                at_once.async_wait(asio::bind_executor(
                    ex, [ec, h = std::move(handler)](error_code) mutable {
                      std::move(h)(ec);
                    }));
              },
              asio::deferred,
              attempt == 1 ? error_code(asio::error::connection_refused)
                           : error_code());
        },
        backoff::constant(5ms), std::forward<Token>(token));
  }
};

using cases = std::tuple<periodic_case, retry_case>;
constexpr std::size_t expected = 2;

template <typename Case> struct fixture : Case {
  /// To the end of the operation.
  void finish() {
    this->poll();
    this->advance(15ms);
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

/// A handler for an outcome and a count.
auto handler_of(const outcome& o, std::size_t& n) {
  return [&n, h = o.tracked()](error_code ec, std::size_t k) mutable {
    n = k;
    h(ec);
  };
}

} // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(callback, Case, cases) {
  fixture<Case> f;
  outcome o;
  std::size_t n = 0;
  test::quietly([&] { f.start(handler_of(o, n)); }); // move-only
  f.finish();
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST(n == expected);

  fixture<Case> g;
  const auto copyable = [&n](error_code, std::size_t k) { n = 10 + k; };
  g.start(copyable);
  g.finish();
  BOOST_TEST(n == 10 + expected);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(use_future, Case, cases) {
  fixture<Case> f;
  std::future<std::size_t> result = f.start(asio::use_future);
  f.finish();
  BOOST_REQUIRE((result.wait_for(0s) == std::future_status::ready));
  BOOST_TEST(result.get() == expected);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(use_awaitable, Case, cases) {
  fixture<Case> f;
  std::size_t n = 0;
  asio::co_spawn(
      f.io,
      [&]() -> asio::awaitable<void> {
        n = co_await f.start(asio::use_awaitable);
      },
      keep);
  f.finish();
  BOOST_TEST(n == expected);
  BOOST_TEST(!result_of_spawn);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(use_awaitable_cancelled, Case, cases) {
  fixture<Case> f;
  asio::cancellation_signal signal;
  asio::co_spawn(
      f.io,
      [&]() -> asio::awaitable<void> { co_await f.start(asio::use_awaitable); },
      asio::bind_cancellation_slot(signal.slot(), keep));
  f.poll();
  signal.emit(asio::cancellation_type::terminal);
  f.poll();
  BOOST_TEST((code_of(result_of_spawn) == asio::error::operation_aborted));
  BOOST_TEST(f.wheel.pending() == 0u);
  result_of_spawn = nullptr;
}

BOOST_AUTO_TEST_CASE_TEMPLATE(as_tuple_and_redirect_error, Case, cases) {
  fixture<Case> f, g;
  error_code tuple = asio::error::eof, redirected = asio::error::eof;
  std::size_t n = 0, m = 0;
  asio::co_spawn(
      f.io,
      [&]() -> asio::awaitable<void> {
        std::tie(tuple, n) =
            co_await f.start(asio::as_tuple(asio::use_awaitable));
      },
      keep);
  asio::co_spawn(
      g.io,
      [&]() -> asio::awaitable<void> {
        m = co_await g.start(
            asio::redirect_error(asio::use_awaitable, redirected));
      },
      keep);
  f.finish();
  g.finish();
  BOOST_TEST(!tuple);
  BOOST_TEST(!redirected);
  BOOST_TEST(n == expected);
  BOOST_TEST(m == expected);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(deferred, Case, cases) {
  fixture<Case> f;
  outcome o;
  std::size_t n = 0;
  auto operation = f.start(asio::deferred);
  f.poll();
  BOOST_TEST(f.wheel.pending() == 0u); // not started
  std::move(operation)(handler_of(o, n));
  f.finish();
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST(n == expected);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(awaiting_a_deferred_operation, Case, cases) {
  fixture<Case> f;
  std::size_t n = 0;
  asio::co_spawn(
      f.io,
      [&]() -> asio::awaitable<void> { n = co_await f.start(asio::deferred); },
      keep);
  f.finish();
  BOOST_TEST(n == expected);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(detached, Case, cases) {
  fixture<Case> f;
  f.start(asio::detached);
  f.poll();
  BOOST_TEST(f.wheel.pending() == 1u);
  f.finish();
  BOOST_TEST(f.wheel.pending() == 0u);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bind_executor_to_a_strand, Case, cases) {
  fixture<Case> f;
  outcome o;
  auto strand = asio::make_strand(f.io);
  bool on_strand = false;
  f.start(asio::bind_executor(
      strand, [&, h = o.tracked()](error_code ec, std::size_t n) mutable {
        on_strand = strand.running_in_this_thread();
        BOOST_TEST(n == expected);
        h(ec);
      }));
  f.finish();
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST(on_strand);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bind_executor_to_another_context, Case, cases) {
  fixture<Case> f;
  outcome o;
  std::size_t n = 0;
  asio::io_context other;
  f.start(asio::bind_executor(other.get_executor(), handler_of(o, n)));
  for (int i = 0; i != 4 && o.fate() == fate::waiting; ++i) {
    BOOST_TEST(!other.stopped()); // has work
    f.finish();
    other.poll();
  }
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST(other.stopped());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bind_allocator, Case, cases) {
  fixture<Case> f;
  outcome o;
  test::allocation_log memory;
  f.start(asio::bind_allocator(
      test::tracking_allocator<void>(memory),
      [&, h = o.tracked()](error_code ec, std::size_t) mutable {
        BOOST_TEST(memory.live == 0u); // freed before the call
        h(ec);
      }));
  BOOST_TEST(memory.live == 1u);
  f.finish();
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST(memory.live == 0u);
  BOOST_TEST(memory.allocations == 1u);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bind_cancellation_slot, Case, cases) {
  for (const auto type :
       {asio::cancellation_type::terminal, asio::cancellation_type::partial,
        asio::cancellation_type::total}) {
    fixture<Case> f;
    asio::cancellation_signal signal;
    outcome o;
    std::size_t n = 9;
    f.start(asio::bind_cancellation_slot(signal.slot(), handler_of(o, n)));
    f.poll();
    signal.emit(type);
    BOOST_TEST((o.fate() == fate::waiting)); // never from within
    f.poll();
    BOOST_TEST((o.fate() == fate::aborted));
    BOOST_TEST(n < expected); // nothing missed; one attempt
    signal.emit(type);        // reaches nothing
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(any_completion_handler, Case, cases) {
  using handler = asio::any_completion_handler<void(error_code, std::size_t)>;
  fixture<Case> f, g;
  outcome o, bound;
  std::size_t n = 0, m = 0;
  f.start(handler(handler_of(o, n)));
  g.start(handler(
      asio::bind_executor(asio::make_strand(g.io), handler_of(bound, m))));
  f.finish();
  g.finish();
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST((bound.fate() == fate::fired));
  BOOST_TEST(n == expected);
  BOOST_TEST(m == expected);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(in_an_awaitable_or, Case, cases) {
  using namespace asio::experimental::awaitable_operators;
  fixture<Case> f;
  asio_wheel::wheel_timer sooner(f.io, 2ms);
  std::size_t first = 9;
  asio::co_spawn(
      f.io,
      [&]() -> asio::awaitable<void> {
        asio::awaitable<std::size_t> a = f.start(asio::use_awaitable);
        asio::awaitable<void> b = sooner.async_wait(asio::use_awaitable);
        std::variant<std::size_t, std::monostate> result =
            co_await(std::move(a) || std::move(b));
        first = result.index();
      },
      keep);
  f.poll();
  f.advance(2ms);
  BOOST_TEST(first == 1u);
  BOOST_TEST(f.wheel.pending() == 0u); // the other was cancelled
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bounded_by_timeout_after, Case, cases) {
  fixture<Case> f;
  outcome o;
  std::size_t n = 0;
  f.start(asio_wheel::timeout_after(3ms, handler_of(o, n)));
  f.poll();
  f.advance(3ms);
  BOOST_TEST((o.ec() == asio_wheel::error::operation_timeout));
}

BOOST_AUTO_TEST_CASE(default_tokens_of_a_periodic_timer) {
  manual_context c;
  using executor =
      asio::use_awaitable_t<>::executor_with_default<asio::any_io_executor>;
  asio_wheel::basic_periodic_timer<executor> timer(
      executor(c.io.get_executor()), 5ms);
  std::size_t ticks = 0;
  asio::co_spawn(
      c.io,
      [&]() -> asio::awaitable<void> {
        while (ticks != 3) {
          co_await timer.async_wait();
          ++ticks;
        }
      },
      keep);
  c.poll();
  for (int i = 0; i != 3; ++i)
    c.advance(5ms);
  BOOST_TEST(ticks == 3u);
}

BOOST_AUTO_TEST_CASE(concrete_executors_of_a_periodic_timer) {
  manual_context c;
  outcome o, p;
  std::size_t n = 9, m = 9;
  asio_wheel::basic_periodic_timer<asio::io_context::executor_type> plain(c.io,
                                                                          5ms);
  asio_wheel::basic_periodic_timer<
      asio::strand<asio::io_context::executor_type>>
      stranded(asio::make_strand(c.io), 5ms);
  plain.async_wait(handler_of(o, n));
  stranded.async_wait(handler_of(p, m));
  c.advance(5ms);
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST((p.fate() == fate::fired));
  BOOST_TEST(n + m == 0u);
}

// ---------------------------------------------------------------------------
// Coroutines as attempts

namespace {

struct coroutines : manual_context {
  std::size_t begun = 0;

  /// Fails twice, after 10 ms.
  asio::awaitable<std::string> request() {
    const std::size_t n = ++begun;
    asio_wheel::wheel_timer timer(io, 10ms);
    co_await timer.async_wait(asio::use_awaitable);
    if (n < 3)
      throw system_error(asio::error::connection_reset);
    co_return "reply";
  }

  auto attempt() {
    return [this] { return asio::co_spawn(io, request(), asio::deferred); };
  }

  void run_until_ms(int end) {
    poll();
    for (int i = 0; i != end; ++i)
      advance(1ms);
  }
};

} // namespace

BOOST_AUTO_TEST_CASE(a_coroutine_is_made_anew_for_each_attempt) {
  coroutines c;
  std::size_t attempts = 0;
  std::string reply;
  // co_spawn tells its executor.
  asio_wheel::async_retry(
      c.attempt(), backoff::constant(5ms),
      [&](std::exception_ptr e, std::size_t n, std::string r) {
        BOOST_TEST(!e);
        attempts = n;
        reply = std::move(r);
      });
  c.run_until_ms(39);
  BOOST_TEST(attempts == 0u);
  c.advance(1ms);
  BOOST_TEST(attempts == 3u);
  BOOST_TEST(reply == "reply");
}

BOOST_AUTO_TEST_CASE(a_coroutine_in_a_coroutine) {
  coroutines c;
  std::size_t attempts = 0;
  std::string reply;
  std::exception_ptr error;
  asio::co_spawn(
      c.io,
      [&]() -> asio::awaitable<void> {
        std::tie(attempts, reply) = co_await asio_wheel::async_retry(
            c.attempt(), backoff::constant(5ms),
            {.max_attempts = 9, .time_limit = 1s, .attempt_timeout = 1s},
            asio::use_awaitable);
        c.begun = 0;
        std::tie(error, attempts, reply) = co_await asio_wheel::async_retry(
            c.attempt(), backoff::constant(5ms), {.max_attempts = 2},
            asio::as_tuple(asio::use_awaitable));
      },
      keep);
  c.run_until_ms(41);
  BOOST_TEST(attempts == 3u);
  BOOST_TEST(reply == "reply");
  c.run_until_ms(25);
  BOOST_TEST((code_of(error) == asio::error::connection_reset));
  BOOST_TEST(attempts == 2u);
  BOOST_TEST(!result_of_spawn);
}

BOOST_AUTO_TEST_CASE(a_coroutine_that_hangs_is_cut_and_cancelled) {
  manual_context c;
  std::size_t begun = 0;
  asio::cancellation_signal signal;
  std::exception_ptr error;
  std::size_t attempts = 0;
  asio_wheel::async_retry(
      [&] {
        return asio::co_spawn(
            c.io,
            [&]() -> asio::awaitable<void> {
              ++begun;
              asio_wheel::wheel_timer timer(c.io, 1h);
              co_await timer.async_wait(asio::use_awaitable);
            },
            asio::deferred);
      },
      backoff::constant(0ms), {.attempt_timeout = 10ms},
      asio::bind_cancellation_slot(signal.slot(),
                                   [&](std::exception_ptr e, std::size_t n) {
                                     error = e;
                                     attempts = n;
                                   }));
  c.poll();
  c.advance(10ms);
  c.advance(10ms);
  BOOST_TEST(begun == 3u);
  signal.emit(asio::cancellation_type::terminal);
  c.poll();
  BOOST_TEST((code_of(error) == asio::error::operation_aborted));
  BOOST_TEST(attempts == 3u);
  BOOST_TEST(c.wheel.pending() == 0u);
}

BOOST_AUTO_TEST_CASE(an_attempt_may_be_bounded_by_itself) {
  manual_context c;
  asio_wheel::wheel_timer timer(c.io, 1h);
  error_code error;
  std::size_t attempts = 0;
  asio_wheel::async_retry(
      [&] {
        return timer.async_wait(
            asio_wheel::timeout_after(10ms, asio::deferred));
      },
      backoff::constant(5ms), {.max_attempts = 2},
      [&](error_code ec, std::size_t n) {
        error = ec;
        attempts = n;
      });
  c.poll();
  for (int i = 0; i != 25; ++i)
    c.advance(1ms);
  BOOST_TEST((error == asio_wheel::error::operation_timeout));
  BOOST_TEST(attempts == 2u);
}
