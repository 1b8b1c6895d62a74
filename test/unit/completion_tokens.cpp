//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/wheel_timer.hpp>

#include <asio_wheel/watchdog.hpp>

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

#define BOOST_TEST_MODULE unit_completion_tokens
#include <boost/test/unit_test.hpp>

#include <chrono>
#include <future>
#include <memory>
#include <tuple>
#include <type_traits>
#include <variant>

// Every token with every asynchronous function: one body over something to
// wait for, a wheel_timer or a watchdog that is due after 5 ms.

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using boost::system::error_code;
using boost::system::system_error;
using test::fate;
using test::manual_context;
using test::outcome;

struct timer_case {
  template <typename Executor = asio::any_io_executor>
  using type = asio_wheel::basic_wheel_timer<Executor>;
};
struct watchdog_case {
  template <typename Executor = asio::any_io_executor>
  using type = asio_wheel::basic_watchdog<Executor>;
};
using cases = std::tuple<timer_case, watchdog_case>;

template <typename Case> struct fixture : manual_context {
  typename Case::template type<> waitable{io, 5ms};
};

std::exception_ptr result_of_spawn;

void keep(std::exception_ptr e) {
  result_of_spawn = e;
}

bool is_aborted(const std::exception_ptr& e) {
  try {
    if (e)
      std::rethrow_exception(e);
  } catch (const system_error& error) {
    return error.code() == asio::error::operation_aborted;
  }
  return false;
}

} // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(callback, Case, cases) {
  fixture<Case> f;
  outcome o, moved_only;
  f.waitable.async_wait(o.small());
  f.waitable.async_wait(moved_only.tracked());
  f.advance(5ms);
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST((moved_only.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(use_future, Case, cases) {
  fixture<Case> f;
  std::future<void> fires = f.waitable.async_wait(asio::use_future);
  f.advance(5ms);
  BOOST_TEST((fires.wait_for(0s) == std::future_status::ready));
  BOOST_CHECK_NO_THROW(fires.get());

  fixture<Case> g;
  std::future<void> aborted = g.waitable.async_wait(asio::use_future);
  g.waitable.cancel();
  g.poll();
  BOOST_CHECK_EXCEPTION(aborted.get(), system_error,
                        [](const system_error& e) {
                          return e.code() == asio::error::operation_aborted;
                        });
}

BOOST_AUTO_TEST_CASE_TEMPLATE(use_awaitable, Case, cases) {
  fixture<Case> f;
  bool done = false;
  asio::co_spawn(
      f.io,
      [&]() -> asio::awaitable<void> {
        co_await f.waitable.async_wait(asio::use_awaitable);
        done = true;
      },
      keep);
  f.poll();
  BOOST_TEST(!done);
  f.advance(5ms);
  BOOST_TEST(done);

  fixture<Case> g;
  asio::co_spawn(
      g.io,
      [&]() -> asio::awaitable<void> {
        co_await g.waitable.async_wait(asio::use_awaitable);
      },
      keep);
  g.poll();
  g.waitable.cancel();
  g.poll();
  BOOST_TEST(is_aborted(result_of_spawn));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(use_awaitable_redirecting_the_error, Case,
                              cases) {
  fixture<Case> f;
  error_code ec;
  bool done = false;
  asio::co_spawn(
      f.io,
      [&]() -> asio::awaitable<void> {
        co_await f.waitable.async_wait(
            asio::redirect_error(asio::use_awaitable, ec));
        done = true;
      },
      keep);
  f.poll();
  f.waitable.cancel();
  f.poll();
  BOOST_TEST(done);
  BOOST_TEST((ec == asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(as_tuple, Case, cases) {
  fixture<Case> f;
  error_code ec = asio::error::eof;
  asio::co_spawn(
      f.io,
      [&]() -> asio::awaitable<void> {
        std::tie(ec) =
            co_await f.waitable.async_wait(asio::as_tuple(asio::use_awaitable));
      },
      keep);
  f.poll();
  f.advance(5ms);
  BOOST_TEST(!ec);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(deferred, Case, cases) {
  fixture<Case> f;
  outcome o;
  auto operation = f.waitable.async_wait(asio::deferred);
  f.poll();
  BOOST_TEST(f.wheel.pending() == 0u); // not started
  std::move(operation)(o.tracked());
  f.advance(5ms);
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(detached, Case, cases) {
  fixture<Case> f;
  f.waitable.async_wait(asio::detached);
  BOOST_TEST(f.wheel.pending() == 1u);
  f.advance(5ms);
  BOOST_TEST(f.wheel.pending() == 0u);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bind_executor_to_a_strand, Case, cases) {
  fixture<Case> f;
  outcome o;
  auto strand = asio::make_strand(f.io);
  bool on_strand = false;
  f.waitable.async_wait(
      asio::bind_executor(strand, [&, h = o.tracked()](error_code ec) mutable {
        on_strand = strand.running_in_this_thread();
        h(ec);
      }));
  f.advance(5ms);
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST(on_strand);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bind_executor_to_another_context, Case, cases) {
  fixture<Case> f;
  outcome o;
  asio::io_context other;
  f.waitable.async_wait(asio::bind_executor(other.get_executor(), o.tracked()));
  BOOST_TEST(other.poll() == 0u);
  BOOST_TEST(!other.stopped()); // has work
  f.advance(5ms);
  BOOST_TEST((o.fate() == fate::waiting));
  other.run();
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bind_allocator, Case, cases) {
  fixture<Case> f;
  outcome o;
  test::allocation_log memory;
  f.waitable.async_wait(asio::bind_allocator(
      test::tracking_allocator<void>(memory),
      [&, h = o.tracked()](error_code ec) mutable {
        BOOST_TEST(memory.live == 0u); // freed before the call
        h(ec);
      }));
  BOOST_TEST(memory.live == 1u);
  f.advance(5ms);
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST(memory.live == 0u);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bind_cancellation_slot, Case, cases) {
  for (const auto type :
       {asio::cancellation_type::terminal, asio::cancellation_type::partial,
        asio::cancellation_type::total}) {
    fixture<Case> f;
    asio::cancellation_signal signal;
    outcome cancelled, other;
    f.waitable.async_wait(
        asio::bind_cancellation_slot(signal.slot(), cancelled.tracked()));
    f.waitable.async_wait(other.tracked());
    signal.emit(asio::cancellation_type::none);
    f.poll();
    BOOST_TEST((cancelled.fate() == fate::waiting));
    signal.emit(type);
    BOOST_TEST((cancelled.fate() == fate::waiting)); // never from within
    f.poll();
    BOOST_TEST((cancelled.fate() == fate::aborted));
    BOOST_TEST((other.fate() == fate::waiting));
    f.advance(5ms);
    BOOST_TEST((other.fate() == fate::fired));
    signal.emit(type); // reaches nothing
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(any_completion_handler, Case, cases) {
  fixture<Case> f;
  outcome o, bound;
  asio::any_completion_handler<void(error_code)> handler(o.tracked());
  f.waitable.async_wait(std::move(handler));
  asio::any_completion_handler<void(error_code)> on_strand(
      asio::bind_executor(asio::make_strand(f.io), bound.tracked()));
  f.waitable.async_wait(std::move(on_strand));
  f.advance(5ms);
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST((bound.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(in_an_awaitable_or, Case, cases) {
  using namespace asio::experimental::awaitable_operators;
  fixture<Case> f;
  asio_wheel::wheel_timer sooner(f.io, 2ms);
  std::size_t first = 9;
  asio::co_spawn(
      f.io,
      [&]() -> asio::awaitable<void> {
        asio::awaitable<void> a = f.waitable.async_wait(asio::use_awaitable);
        asio::awaitable<void> b = sooner.async_wait(asio::use_awaitable);
        std::variant<std::monostate, std::monostate> result =
            co_await (std::move(a) || std::move(b));
        first = result.index();
      },
      keep);
  f.poll();
  f.advance(2ms);
  BOOST_TEST(first == 1u);
  BOOST_TEST(f.wheel.pending() == 0u); // the other was cancelled
}

BOOST_AUTO_TEST_CASE_TEMPLATE(default_tokens, Case, cases) {
  manual_context c;
  using executor = asio::use_awaitable_t<>::executor_with_default<
      asio::any_io_executor>;
  typename Case::template type<executor> waitable(executor(c.io.get_executor()),
                                                  5ms);
  bool done = false;
  asio::co_spawn(
      c.io,
      [&]() -> asio::awaitable<void> {
        co_await waitable.async_wait();
        done = true;
      },
      keep);
  c.poll();
  c.advance(5ms);
  BOOST_TEST(done);
}

BOOST_AUTO_TEST_CASE(as_default_on_a_timer) {
  manual_context c;
  auto timer =
      asio::use_awaitable.as_default_on(asio_wheel::wheel_timer(c.io, 5ms));
  bool done = false;
  asio::co_spawn(
      c.io,
      [&]() -> asio::awaitable<void> {
        co_await timer.async_wait();
        done = true;
      },
      keep);
  c.poll();
  c.advance(5ms);
  BOOST_TEST(done);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(concrete_executors, Case, cases) {
  manual_context c;
  outcome o, p;
  typename Case::template type<asio::io_context::executor_type> plain(c.io,
                                                                      5ms);
  typename Case::template type<asio::strand<asio::io_context::executor_type>>
      stranded(asio::make_strand(c.io), 5ms);
  plain.async_wait(o.tracked());
  stranded.async_wait(p.tracked());
  c.advance(5ms);
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST((p.fate() == fate::fired));
}
