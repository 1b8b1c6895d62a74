//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/rate_limiter.hpp>

#include <asio_wheel/rate_limited_stream.hpp>

#include <test/manual_context.hpp>
#include <test/memory_stream.hpp>
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

#define BOOST_TEST_MODULE unit_rate_limiter_tokens
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

// Every token with every asynchronous function: one body over the limiter and
// both directions of a stream. Each starts what gets its token after 5 ms.

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using boost::system::error_code;
using boost::system::system_error;
using test::fate;
using test::manual_context;
using test::outcome;

using stream = asio_wheel::rate_limited_stream<test::memory_stream>;

struct fixture : manual_context {
  std::shared_ptr<asio_wheel::rate_limiter> limiter =
      std::make_shared<asio_wheel::rate_limiter>(io, 200, 1);
  stream s{io.get_executor()};
  std::string data = "x";

  fixture() {
    limiter->spend(1);
    s.read_limiter(limiter);
    s.write_limiter(limiter);
    s.next_layer().other_end().feed("y");
    s.next_layer().other_end().accept(1);
  }
};

struct acquire : fixture {
  using signature = void(error_code);
  static constexpr bool cancelled_is_aborted = true;
  template <typename Token> auto start(Token&& token) {
    return limiter->async_acquire(1, std::forward<Token>(token));
  }
};
struct read : fixture {
  using signature = void(error_code, std::size_t);
  static constexpr bool cancelled_is_aborted = false; // nothing is lost
  template <typename Token> auto start(Token&& token) {
    return s.async_read_some(asio::buffer(data), std::forward<Token>(token));
  }
};
struct write : fixture {
  using signature = void(error_code, std::size_t);
  static constexpr bool cancelled_is_aborted = true;
  template <typename Token> auto start(Token&& token) {
    return s.async_write_some(asio::buffer(std::as_const(data)),
                              std::forward<Token>(token));
  }
};
using cases = std::tuple<acquire, read, write>;

// Of either signature; moves only.
template <typename F> struct handler {
  F f;
  std::unique_ptr<int> moves_only;
  void operator()(error_code ec) { f(ec); }
  void operator()(error_code ec, std::size_t n) {
    BOOST_TEST(n == (ec ? 0u : 1u));
    f(ec);
  }
};
template <typename F> handler<F> make(F f) { return {std::move(f), nullptr}; }

std::exception_ptr result_of_spawn;

void keep(std::exception_ptr e) { result_of_spawn = e; }

} // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(callback, Case, cases) {
  Case f;
  outcome o;
  test::quietly([&] { f.start(make(o.tracked())); });
  f.poll();
  f.advance(5ms - 1ns);
  BOOST_TEST((o.fate() == fate::waiting));
  f.advance(1ns);
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(use_future, Case, cases) {
  Case f;
  auto future = f.start(asio::use_future);
  f.poll();
  f.advance(5ms);
  BOOST_TEST((future.wait_for(0s) == std::future_status::ready));
  BOOST_CHECK_NO_THROW(future.get());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(use_awaitable, Case, cases) {
  Case f;
  bool done = false;
  asio::co_spawn(
      f.io,
      [&]() -> asio::awaitable<void> {
        co_await f.start(asio::use_awaitable);
        done = true;
      },
      keep);
  f.poll();
  BOOST_TEST(!done);
  f.advance(5ms);
  BOOST_TEST(done);
}

BOOST_AUTO_TEST_CASE(use_awaitable_throws) {
  acquire f;
  asio::co_spawn(
      f.io,
      [&]() -> asio::awaitable<void> { co_await f.start(asio::use_awaitable); },
      keep);
  f.poll();
  f.limiter->cancel();
  f.poll();
  BOOST_CHECK_EXCEPTION(std::rethrow_exception(result_of_spawn), system_error,
                        [](const system_error& e) {
                          return e.code() == asio::error::operation_aborted;
                        });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(as_tuple, Case, cases) {
  Case f;
  error_code ec = asio::error::eof;
  asio::co_spawn(
      f.io,
      [&]() -> asio::awaitable<void> {
        ec = std::get<0>(co_await f.start(asio::as_tuple(asio::use_awaitable)));
      },
      keep);
  f.poll();
  f.advance(5ms);
  BOOST_TEST(!ec);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(redirect_error, Case, cases) {
  Case f;
  error_code ec = asio::error::eof;
  asio::co_spawn(
      f.io,
      [&]() -> asio::awaitable<void> {
        co_await f.start(asio::redirect_error(asio::use_awaitable, ec));
      },
      keep);
  f.poll();
  f.advance(5ms);
  BOOST_TEST(!ec);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(deferred, Case, cases) {
  Case f;
  outcome o;
  auto operation = f.start(asio::deferred);
  f.poll();
  BOOST_TEST(f.limiter->waiting() == 0u); // not started
  std::move(operation)(make(o.tracked()));
  f.poll();
  f.advance(5ms);
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(detached, Case, cases) {
  Case f;
  f.start(asio::detached);
  f.poll();
  BOOST_TEST(f.limiter->waiting() == 1u);
  f.advance(5ms);
  BOOST_TEST(f.limiter->waiting() == 0u);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bind_executor_to_a_strand, Case, cases) {
  Case f;
  outcome o;
  auto strand = asio::make_strand(f.io);
  bool on_strand = false;
  f.start(asio::bind_executor(strand,
                              make([&, h = o.tracked()](error_code ec) mutable {
                                on_strand = strand.running_in_this_thread();
                                h(ec);
                              })));
  f.poll();
  f.advance(5ms);
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST(on_strand);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bind_executor_to_another_context, Case, cases) {
  Case f;
  outcome o;
  asio::io_context other;
  f.start(asio::bind_executor(other.get_executor(), make(o.tracked())));
  BOOST_TEST(other.poll() == 0u);
  BOOST_TEST(!other.stopped()); // has work
  f.poll();
  f.advance(5ms);
  BOOST_TEST((o.fate() == fate::waiting));
  other.run();
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bind_allocator, Case, cases) {
  Case f;
  outcome o;
  test::allocation_log memory;
  f.start(asio::bind_allocator(
      test::tracking_allocator<void>(memory),
      make([&, h = o.tracked()](error_code ec) mutable {
        BOOST_TEST(memory.live == 0u); // freed before the call
        h(ec);
      })));
  f.poll();
  BOOST_TEST(memory.live == 1u);
  f.advance(5ms);
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST(memory.live == 0u);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bind_cancellation_slot, Case, cases) {
  for (const auto type :
       {asio::cancellation_type::terminal, asio::cancellation_type::partial,
        asio::cancellation_type::total}) {
    Case f;
    asio::cancellation_signal signal;
    outcome o;
    f.start(asio::bind_cancellation_slot(signal.slot(), make(o.tracked())));
    f.poll();
    signal.emit(asio::cancellation_type::none);
    f.poll();
    BOOST_TEST((o.fate() == fate::waiting));
    signal.emit(type);
    BOOST_TEST((o.fate() == fate::waiting)); // never from within
    f.poll();
    BOOST_TEST((o.fate() ==
                (Case::cancelled_is_aborted ? fate::aborted : fate::fired)));
    BOOST_TEST(f.limiter->waiting() == 0u);
    signal.emit(type); // reaches nothing
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(any_completion_handler, Case, cases) {
  Case f, g;
  outcome o, bound;
  using any = asio::any_completion_handler<typename Case::signature>;
  f.start(any(make(o.tracked())));
  g.start(
      any(asio::bind_executor(asio::make_strand(g.io), make(bound.tracked()))));
  f.poll();
  f.advance(5ms);
  g.poll();
  g.advance(5ms);
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST((bound.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(in_an_awaitable_or, Case, cases) {
  using namespace asio::experimental::awaitable_operators;
  Case f;
  asio_wheel::wheel_timer sooner(f.io, 2ms);
  std::size_t first = 9;
  asio::co_spawn(
      f.io,
      [&]() -> asio::awaitable<void> {
        const auto result = co_await(f.start(asio::use_awaitable) ||
                                     sooner.async_wait(asio::use_awaitable));
        first = result.index();
      },
      keep);
  f.poll();
  f.advance(2ms);
  BOOST_TEST(first == 1u);
  BOOST_TEST(f.limiter->waiting() == 0u); // the other was cancelled
}

BOOST_AUTO_TEST_CASE(default_tokens) {
  manual_context c;
  using executor =
      asio::use_awaitable_t<>::executor_with_default<asio::any_io_executor>;
  asio_wheel::basic_rate_limiter<executor> limiter(
      executor(c.io.get_executor()), 200, 1);
  bool done = false;
  asio::co_spawn(
      c.io,
      [&]() -> asio::awaitable<void> {
        co_await limiter.async_acquire(1);
        co_await limiter.async_acquire(1);
        done = true;
      },
      keep);
  c.poll();
  BOOST_TEST(!done);
  c.advance(5ms);
  BOOST_TEST(done);
}
