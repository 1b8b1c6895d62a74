//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/deadline.hpp>

#include <asio_wheel/timeout_after.hpp>
#include <asio_wheel/wheel_timer.hpp>

#include <test/local_pair.hpp>
#include <test/manual_context.hpp>
#include <test/outcome.hpp>
#include <test/queue_context.hpp>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/consign.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#define BOOST_TEST_MODULE unit_deadline
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
#include <tuple>
#include <type_traits>
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
using asio_wheel::bind_deadline;
using asio_wheel::deadline;
using asio_wheel::deadline_ref;
using asio_wheel::error;
using asio_wheel::get_associated_deadline;
using asio_wheel::timeout_after;
using asio_wheel::wheel_timer;
using boost::system::error_code;
using boost::system::system_error;
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

  template <typename Token> auto wait(Token&& token) {
    return socket.async_wait(readable, std::forward<Token>(token));
  }

  void say() {
    pair.say("x");
    socket.wait(readable);
    poll();
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

// A composed operation that calls step(n, self) at each step, and ends with the
// first error.
template <typename Executor, typename Step, typename Token>
auto in_steps(const Executor& ex, Step step, Token&& token) {
  return asio::async_compose<Token, void(error_code)>(
      [step, n = 0](auto& self, error_code ec = {}) mutable {
        if (ec || !step(n++, self))
          self.complete(ec);
      },
      token, ex);
}

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
// The object

BOOST_AUTO_TEST_CASE(it_tells_when_it_passes_and_how_long_until_then) {
  manual_context c;
  deadline never(c.io);
  BOOST_TEST((never.expiry() == time_point::max()));
  BOOST_TEST((never.remaining() == duration::max()));
  BOOST_TEST(!never.expired());

  deadline d(c.io, 5s);
  BOOST_TEST((d.expiry() == c.now() + 5s));
  BOOST_TEST((d.remaining() == 5s));
  c.advance(2s);
  BOOST_TEST((d.remaining() == 3s));
  BOOST_TEST((d.ref().remaining() == 3s));
  BOOST_TEST(!d.expired());
  c.advance(3s);
  BOOST_TEST(d.expired());
  BOOST_TEST((d.remaining() == duration::zero()));
  c.advance(1h);
  BOOST_TEST((d.remaining() == duration::zero()));
  d.expires_at(c.now() + 7s);
  BOOST_TEST((d.remaining() == 7s));
  BOOST_TEST((d.ref() != never.ref()));
  d.expires_never();
  BOOST_TEST((d.remaining() == duration::max()));
  deadline at(c.io.get_executor(), c.now() + 1s);
  BOOST_TEST((at.remaining() == 1s));
  BOOST_TEST((at.get_executor() == c.io.get_executor()));
}

BOOST_AUTO_TEST_CASE(any_duration_is_legal) {
  manual_context c;
  c.advance(1s);
  for (const duration d :
       {duration::min(), duration(-1), duration(0), duration(1),
        duration::max() - duration(1), duration::max()}) {
    deadline x(c.io, d);
    BOOST_TEST(x.expired() == (d <= duration(0)));
    x.expires_at(time_point(d));
    BOOST_TEST((x.remaining() >= duration::zero()));
  }
}

BOOST_AUTO_TEST_CASE(it_does_not_hold_up_run_without_operations) {
  fixture f;
  deadline d(f.io, 5s);
  BOOST_TEST(f.io.run() == 0u);
  outcome o;
  f.wait(bind_deadline(d, o.tracked()));
  BOOST_TEST(d.pending() == 1u);
  BOOST_TEST(f.wheel.pending() == 1u);
  f.say();
  BOOST_TEST((o.fate() == fate::fired));
  BOOST_TEST(d.pending() == 0u);
  BOOST_TEST(f.wheel.pending() == 0u);
  f.io.restart();
  f.io.run();
}

BOOST_AUTO_TEST_CASE(it_can_be_moved_with_what_is_pending) {
  fixture f;
  outcome o, p;
  deadline a(f.io, 5s);
  f.wait(bind_deadline(a, o.tracked()));
  deadline b(std::move(a));
  BOOST_TEST(b.pending() == 1u);
  deadline other(f.io, 5s);
  f.wait(bind_deadline(other, p.tracked()));
  other = std::move(b); // aborts p, adopts o
  f.poll();
  BOOST_TEST((p.fate() == fate::aborted));
  f.advance(5s);
  BOOST_TEST((o.ec() == error::deadline_exceeded));
  a = deadline(f.io, 1s);
  BOOST_TEST((a.remaining() == 1s));
}

// ---------------------------------------------------------------------------
// Operations under it

BOOST_AUTO_TEST_CASE(it_ends_all_operations_under_it) {
  fixture f;
  outcome o[3], other;
  deadline d(f.io, 5s);
  f.advance(1s);
  for (outcome& x : o)
    f.wait(bind_deadline(d, x.tracked()));
  f.wait(other.tracked());
  BOOST_TEST(d.pending() == 3u);
  BOOST_TEST(f.wheel.pending() == 1u); // one wait for all
  f.advance(4s - 1ns);
  for (outcome& x : o)
    BOOST_TEST((x.fate() == fate::waiting));
  f.advance(1ns);
  for (outcome& x : o)
    BOOST_TEST((x.ec() == error::deadline_exceeded));
  BOOST_TEST((o[0].ec() == asio_wheel::condition::timeout));
  BOOST_TEST((other.fate() == fate::waiting));
  BOOST_TEST(d.pending() == 0u);
  BOOST_TEST(f.wheel.pending() == 0u);
}

BOOST_AUTO_TEST_CASE(an_operation_after_it_has_passed_is_not_even_started) {
  manual_context c;
  outcome o;
  deadline d(c.io, 5s);
  c.advance(5s);
  bool started = false;
  auto start = [&](auto&& token) {
    asio::async_initiate<decltype(token), void(error_code)>(
        asio::bind_executor(c.io.get_executor(), [&](auto) { started = true; }),
        token);
  };
  test::quietly([&] { start(bind_deadline(d, o.tracked())); });
  c.poll();
  BOOST_TEST((o.ec() == error::deadline_exceeded));
  BOOST_TEST(!started);
}

BOOST_AUTO_TEST_CASE(
    the_refusal_runs_on_the_handlers_executor_with_its_results) {
  fixture f;
  test::queue_context other;
  deadline d(f.io, 0s);
  error_code ec;
  std::size_t bytes = 9;
  std::array<char, 4> room;
  f.socket.async_read_some(
      asio::buffer(room),
      bind_deadline(d, asio::bind_executor(other.get_executor(),
                                           [&](error_code e, std::size_t n) {
                                             ec = e;
                                             bytes = n;
                                           })));
  f.poll();
  BOOST_TEST(!ec);
  other.run();
  BOOST_TEST((ec == error::deadline_exceeded));
  BOOST_TEST(bytes == 0u);
}

BOOST_AUTO_TEST_CASE(without_results_to_make_up_it_is_started_and_cancelled) {
  struct no_default {
    explicit no_default(int) {}
  };
  manual_context c;
  deadline d(c.io, 0s);
  error_code ec;
  bool started = false;
  auto start = [&](auto&& token) {
    asio::async_initiate<decltype(token), void(error_code, no_default)>(
        asio::bind_executor(
            c.io.get_executor(),
            [&](auto h) {
              started = true;
              auto slot = asio::get_associated_cancellation_slot(h);
              auto kept = std::make_shared<decltype(h)>(std::move(h));
              slot.assign([&c, kept](asio::cancellation_type_t) {
                asio::post(c.io, [kept] {
                  (*kept)(asio::error::operation_aborted, no_default(1));
                });
              });
            }),
        token);
  };
  start(bind_deadline(d, [&](error_code e, no_default) { ec = e; }));
  BOOST_TEST(started);
  c.poll();
  BOOST_TEST((ec == error::deadline_exceeded));
}

BOOST_AUTO_TEST_CASE(it_can_be_moved_while_operations_are_pending) {
  fixture f;
  outcome o;
  deadline d(f.io, 5s);
  f.wait(bind_deadline(d, o.tracked()));
  d.expires_after(10s); // later
  f.advance(9s);
  BOOST_TEST((o.fate() == fate::waiting));
  d.expires_never();
  BOOST_TEST(f.wheel.pending() == 0u);
  f.advance(1h);
  BOOST_TEST((o.fate() == fate::waiting));
  d.expires_after(10s); // a time again
  d.expires_after(2s);  // earlier
  f.advance(2s - 1ns);
  BOOST_TEST((o.fate() == fate::waiting));
  f.advance(1ns);
  BOOST_TEST((o.ec() == error::deadline_exceeded));
}

BOOST_AUTO_TEST_CASE(moved_to_the_past_it_ends_them_on_the_next_turn) {
  fixture f;
  outcome o;
  deadline d(f.io, 5s);
  f.wait(bind_deadline(d, o.tracked()));
  f.poll();
  test::quietly([&] { d.expires_at(time_point::min()); });
  f.poll();
  BOOST_TEST((o.ec() == error::deadline_exceeded));
}

BOOST_AUTO_TEST_CASE(put_off_when_it_is_due_already_it_waits_on) {
  fixture f;
  outcome o;
  deadline d(f.io, 5s);
  f.wait(bind_deadline(d, o.tracked()));
  f.clock.advance(5s); // due, not run
  d.expires_after(1s);
  f.poll();
  BOOST_TEST((o.fate() == fate::waiting));
  f.advance(1s);
  BOOST_TEST((o.ec() == error::deadline_exceeded));
}

BOOST_AUTO_TEST_CASE(it_may_be_used_again_after_it_has_passed) {
  fixture f;
  outcome o, p;
  deadline d(f.io, 5s);
  f.wait(bind_deadline(d, o.tracked()));
  f.advance(5s);
  d.expires_after(5s);
  f.wait(bind_deadline(d, p.tracked()));
  f.advance(5s - 1ns);
  BOOST_TEST((p.fate() == fate::waiting));
  f.advance(1ns);
  BOOST_TEST((p.ec() == error::deadline_exceeded));
}

BOOST_AUTO_TEST_CASE(cancel_ends_them_as_a_cancel) {
  fixture f;
  outcome o, p, next;
  deadline d(f.io, 5s);
  f.wait(bind_deadline(d, o.tracked()));
  f.wait(bind_deadline(d, p.tracked()));
  f.poll();
  BOOST_TEST(test::quietly([&] { return d.cancel(); }) == 2u);
  BOOST_TEST(d.cancel() == 0u);
  BOOST_TEST(f.wheel.pending() == 0u);
  f.poll();
  BOOST_TEST((o.fate() == fate::aborted));
  BOOST_TEST((p.fate() == fate::aborted));
  f.wait(bind_deadline(d, next.tracked()));
  f.advance(5s);
  BOOST_TEST((next.ec() == error::deadline_exceeded));
}

BOOST_AUTO_TEST_CASE(destruction_ends_them_as_a_cancel) {
  fixture f;
  outcome o;
  std::optional<deadline> d(std::in_place, f.io, 5s);
  f.wait(bind_deadline(*d, o.tracked()));
  f.poll();
  const deadline_ref ref = d->ref();
  test::quietly([&] { d.reset(); });
  f.poll();
  BOOST_TEST((o.fate() == fate::aborted));
  BOOST_TEST(f.wheel.pending() == 0u);
  BOOST_TEST((ref.remaining() == 5s)); // as it was

  outcome late; // its last word
  f.wait(bind_deadline(ref, late.tracked()));
  f.poll();
  BOOST_TEST((late.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(a_handler_may_destroy_it) {
  fixture f;
  std::optional<deadline> d(std::in_place, f.io, 5s);
  outcome o([&](error_code) { d.reset(); }), p;
  f.wait(bind_deadline(*d, o.tracked()));
  f.wait(bind_deadline(*d, p.tracked()));
  f.advance(5s);
  BOOST_TEST((o.ec() == error::deadline_exceeded));
  BOOST_TEST((p.ec() == error::deadline_exceeded));
}

BOOST_AUTO_TEST_CASE(the_users_cancel_stays_a_cancel) {
  fixture f;
  asio::cancellation_signal signal;
  outcome by_slot, by_socket;
  deadline d(f.io, 5s);
  f.wait(bind_deadline(
      d, asio::bind_cancellation_slot(signal.slot(), by_slot.tracked())));
  f.poll();
  signal.emit(asio::cancellation_type::total);
  f.poll();
  BOOST_TEST((by_slot.fate() == fate::aborted));
  f.wait(bind_deadline(d, by_socket.tracked()));
  f.poll();
  f.socket.cancel();
  f.clock.advance(5s);
  f.poll();
  BOOST_TEST((by_socket.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(without_a_token_and_through_the_pipe) {
  fixture f;
  outcome o, p;
  deadline d(f.io, 5s);
  f.wait(bind_deadline(d)(o.tracked()));
  f.wait(asio::deferred) | bind_deadline(d) | p.tracked();
  f.advance(5s);
  BOOST_TEST((o.ec() == error::deadline_exceeded));
  BOOST_TEST((p.ec() == error::deadline_exceeded));
}

BOOST_AUTO_TEST_CASE(a_ref_to_none_is_no_bound) {
  fixture f;
  outcome o;
  deadline_ref none;
  BOOST_TEST(!none);
  BOOST_TEST((none.expiry() == time_point::max()));
  BOOST_TEST((none.remaining() == duration::max()));
  BOOST_TEST(!none.expired());
  f.wait(bind_deadline(none, o.tracked()));
  f.advance(1h);
  BOOST_TEST((o.fate() == fate::waiting));
}

// ---------------------------------------------------------------------------
// With timeouts

BOOST_AUTO_TEST_CASE(of_timeout_and_deadline_the_first_is_reported) {
  for (const bool inside : {true, false}) {
    for (const duration timeout : {duration(3s), duration(5s), duration(7s)}) {
      fixture f;
      outcome o;
      deadline d(f.io, 5s);
      if (inside)
        f.wait(bind_deadline(d, timeout_after(timeout, o.tracked())));
      else
        f.wait(timeout_after(timeout, bind_deadline(d, o.tracked())));
      f.advance(3s);
      if (timeout == 3s) {
        BOOST_TEST((o.ec() == error::operation_timeout));
        continue;
      }
      f.advance(2s - 1ns);
      BOOST_TEST((o.fate() == fate::waiting));
      f.advance(1ns);
      if (!inside || timeout != 5s)
        BOOST_TEST((o.ec() == error::deadline_exceeded));
      else // the timeout does not know of the deadline: whichever acts first
        BOOST_TEST((o.ec() == asio_wheel::condition::timeout));
    }
  }
}

// ---------------------------------------------------------------------------
// Inheritance

BOOST_AUTO_TEST_CASE(handlers_without_a_deadline_have_none) {
  auto handler = [](error_code) {};
  using handler_type = decltype(handler);
  static_assert(std::is_same_v<asio_wheel::associated_deadline_t<handler_type>,
                               deadline_ref>);
  static_assert(
      std::is_same_v<asio_wheel::associated_deadline_t<handler_type, int>,
                     int>);
  BOOST_TEST(!get_associated_deadline(handler));
  BOOST_TEST(get_associated_deadline(handler, 7) == 7);
  BOOST_TEST(!get_associated_deadline(std::ref(handler)));
}

BOOST_AUTO_TEST_CASE(a_handler_of_the_programs_own_may_have_one) {
  struct handler {
    using deadline_type = deadline_ref;
    deadline_ref d;
    deadline_ref get_deadline() const noexcept { return d; }
    error_code* to;
    void operator()(error_code ec) { *to = ec; }
  };
  fixture f;
  deadline d(f.io, 5s);
  error_code ec;
  const handler h{d.ref(), &ec};
  BOOST_TEST((get_associated_deadline(h) == d.ref()));
  BOOST_TEST((get_associated_deadline(h, deadline_ref()) == d.ref()));
  // And Asio's adapters hand it on.
  BOOST_TEST((get_associated_deadline(
                  asio::bind_executor(f.io.get_executor(), h)) == d.ref()));
  f.wait(timeout_after(7s, asio::bind_executor(f.io.get_executor(), h)));
  f.advance(5s);
  BOOST_TEST((ec == error::deadline_exceeded));
}

BOOST_AUTO_TEST_CASE(what_a_composed_operation_starts_inherits_it) {
  fixture f;
  outcome o;
  deadline d(f.io, 5s);
  std::vector<duration> remaining;
  in_steps(
      f.io.get_executor(),
      [&](int n, auto& self) {
        remaining.push_back(get_associated_deadline(self).remaining());
        if (n == 3)
          return false;
        wheel_timer timer(f.io, 1s);
        auto t = std::make_shared<wheel_timer>(std::move(timer));
        t->async_wait(timeout_after(10s, asio::consign(std::move(self), t)));
        return true;
      },
      bind_deadline(d, o.tracked()));
  for (int i = 0; i != 3; ++i)
    f.advance(1s);
  BOOST_TEST((o.fate() == fate::fired));
  const std::vector<duration> expected{5s, 4s, 3s, 2s};
  BOOST_TEST((remaining == expected));
}

BOOST_AUTO_TEST_CASE(a_nested_timeout_reports_what_came_first) {
  for (const duration timeout : {duration(3s), duration(5s), duration(7s)}) {
    fixture f;
    outcome o;
    deadline d(f.io, 5s);
    in_steps(
        f.io.get_executor(),
        [&](int n, auto& self) {
          if (n)
            return false;
          f.wait(timeout_after(timeout, std::move(self)));
          return true;
        },
        bind_deadline(d, o.tracked()));
    BOOST_TEST(d.pending() == 2u);
    f.advance(timeout == 3s ? 3s : 5s);
    BOOST_TEST((o.ec() == (timeout == 3s ? error::operation_timeout
                                         : error::deadline_exceeded)));
    BOOST_TEST(d.pending() == 0u);
    BOOST_TEST(f.wheel.pending() == 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_nested_timeout_reports_the_deadline_by_itself) {
  // Seen by the composed operation, not only by who started that.
  fixture f;
  outcome o;
  error_code inner;
  deadline d(f.io, 5s);
  auto token = bind_deadline(d, o.tracked());
  asio::async_compose<decltype(token), void(error_code)>(
      [&, n = 0](auto& self, error_code ec = {}) mutable {
        if (n++ == 0)
          return f.wait(timeout_after(7s, std::move(self)));
        inner = ec;
        self.complete({}); // forgives
      },
      token, f.io);
  f.advance(5s);
  BOOST_TEST((inner == error::deadline_exceeded));
  BOOST_TEST((o.fate() == fate::fired));
}

BOOST_AUTO_TEST_CASE(a_deadline_put_off_counts_for_nested_timeouts_too) {
  fixture f;
  outcome o;
  deadline d(f.io, 5s);
  in_steps(
      f.io.get_executor(),
      [&](int n, auto& self) {
        if (n)
          return false;
        f.wait(timeout_after(7s, std::move(self)));
        return true;
      },
      bind_deadline(d, o.tracked()));
  d.expires_after(10s);
  f.advance(7s);
  BOOST_TEST((o.ec() == error::operation_timeout));
}

BOOST_AUTO_TEST_CASE(a_deadline_between_two_steps_ends_the_next) {
  // The second step starts when the deadline has passed already.
  fixture f;
  outcome o;
  deadline d(f.io, 5s);
  int steps = 0;
  in_steps(
      f.io.get_executor(),
      [&](int n, auto& self) {
        ++steps;
        if (n == 0) {
          asio::post(f.io, [&f, self = std::move(self)]() mutable {
            f.clock.advance(5s);
            self();
          });
          return true;
        }
        f.wait(timeout_after(7s, std::move(self)));
        return true;
      },
      bind_deadline(d, o.tracked()));
  f.poll();
  BOOST_TEST(steps == 2);
  BOOST_TEST((o.ec() == error::deadline_exceeded));
}

BOOST_AUTO_TEST_CASE(asios_own_composed_operations_are_bounded) {
  fixture f;
  std::array<char, 64> room;
  error_code ec;
  std::size_t bytes = 0;
  deadline d(f.io, 5s);
  asio::async_read(f.socket, asio::buffer(room),
                   bind_deadline(d, [&](error_code e, std::size_t n) {
                     ec = e;
                     bytes = n;
                   }));
  f.say();
  f.advance(5s);
  BOOST_TEST((ec == error::deadline_exceeded));
  BOOST_TEST(bytes == 1u);
}

BOOST_AUTO_TEST_CASE(of_nested_deadlines_the_innermost_is_inherited) {
  fixture f;
  outcome o;
  deadline outer(f.io, 3s), inner(f.io, 5s);
  in_steps(
      f.io.get_executor(),
      [&](int n, auto& self) {
        if (n)
          return false;
        auto check = [&](auto& s) {
          BOOST_TEST((get_associated_deadline(s) == outer.ref()));
        };
        check(self);
        in_steps(
            f.io.get_executor(),
            [&](int m, auto& self2) {
              if (m)
                return false;
              BOOST_TEST((get_associated_deadline(self2) == inner.ref()));
              f.wait(std::move(self2));
              return true;
            },
            bind_deadline(inner, std::move(self)));
        return true;
      },
      bind_deadline(outer, o.tracked()));
  f.advance(3s); // the outer one ends it all the same
  BOOST_TEST((o.ec() == error::deadline_exceeded));
}

// ---------------------------------------------------------------------------
// Coroutines

BOOST_AUTO_TEST_CASE(a_coroutine_as_a_whole) {
  fixture f;
  std::exception_ptr failure;
  deadline d(f.io, 5s);
  auto body = [&]() -> asio::awaitable<void> {
    wheel_timer timer(f.io);
    for (;;) {
      timer.expires_after(2s);
      co_await timer.async_wait(asio::use_awaitable);
    }
  };
  asio::co_spawn(f.io, body(),
                 bind_deadline(d, [&](std::exception_ptr e) { failure = e; }));
  f.poll();
  f.advance(2s);
  f.advance(2s);
  BOOST_TEST(!failure);
  f.advance(1s);
  BOOST_TEST((code_of(failure) == error::deadline_exceeded));
}

BOOST_AUTO_TEST_CASE(a_coroutine_is_not_started_after_it_has_passed) {
  manual_context c;
  std::exception_ptr failure;
  int value = 9;
  bool started = false;
  deadline d(c.io, 0s);
  auto body = [&]() -> asio::awaitable<int> {
    started = true;
    co_return 7;
  };
  asio::co_spawn(c.io, body(),
                 bind_deadline(d, [&](std::exception_ptr e, int v) {
                   failure = e;
                   value = v;
                 }));
  c.poll();
  BOOST_TEST(!started);
  BOOST_TEST((code_of(failure) == error::deadline_exceeded));
  BOOST_TEST(value == 0);
}

BOOST_AUTO_TEST_CASE(a_coroutine_that_is_handed_the_deadline) {
  fixture f;
  error_code first, second, third;
  auto request = [&](deadline& d) -> asio::awaitable<void> {
    std::tie(first) = co_await f.wait(timeout_after(
        2s, bind_deadline(d, asio::as_tuple(asio::use_awaitable))));
    BOOST_TEST((d.remaining() == 3s));
    std::tie(second) = co_await f.wait(timeout_after(
        4s, bind_deadline(d, asio::as_tuple(asio::use_awaitable))));
    std::tie(third) =
        co_await f.wait(bind_deadline(d, asio::as_tuple(asio::use_awaitable)));
  };
  deadline d(f.io, 5s);
  asio::co_spawn(f.io, request(d), keep_nothing);
  f.poll();
  f.advance(2s);
  f.advance(3s);
  BOOST_TEST((first == error::operation_timeout));
  BOOST_TEST((second == error::deadline_exceeded));
  BOOST_TEST((third == error::deadline_exceeded));
}

// ---------------------------------------------------------------------------
// Executors and memory

BOOST_AUTO_TEST_CASE(each_operation_is_cancelled_on_its_own_executor) {
  manual_context c;
  test::queue_context there;
  deadline d(c.io, 5s);
  outcome o;
  bool emitted = false;
  auto token = bind_deadline(d, o.tracked());
  asio::async_initiate<decltype(token), void(error_code)>(
      asio::bind_executor(there.get_executor(),
                          [&](auto h) {
                            auto slot =
                                asio::get_associated_cancellation_slot(h);
                            auto kept =
                                std::make_shared<decltype(h)>(std::move(h));
                            slot.assign([&, kept](asio::cancellation_type_t) {
                              emitted = true;
                              asio::post(there.get_executor(), [kept] {
                                (*kept)(asio::error::operation_aborted);
                              });
                            });
                          }),
      token);
  c.advance(5s);
  BOOST_TEST(!emitted);
  there.run();
  BOOST_TEST(emitted);
  BOOST_TEST((o.ec() == error::deadline_exceeded));
}

BOOST_AUTO_TEST_CASE(nothing_is_allocated_once_warm) {
  fixture f;
  std::size_t before = 0;
  int calls = 0;
  auto count = [&calls](error_code) { ++calls; };
  for (int i = 0; i != 20; ++i) {
    if (i == 10)
      before = news;
    deadline d(f.io, 5s);
    f.socket.async_wait(asio::socket_base::wait_write, bind_deadline(d, count));
    f.wait(bind_deadline(d, count));
    f.wait(bind_deadline(d, timeout_after(9s, count)));
    f.poll();
    f.advance(5s);
  }
  BOOST_TEST(news == before);
  BOOST_TEST(calls == 60);
}

BOOST_AUTO_TEST_CASE(the_context_goes_first) {
  outcome o;
  std::optional<deadline> d;
  {
    fixture f;
    d.emplace(f.io, 5s);
    f.wait(bind_deadline(*d, o.tracked()));
    f.clock.advance(5s);
  }
  BOOST_TEST((o.fate() == fate::dropped));
  BOOST_TEST(d->pending() == 0u);
  BOOST_TEST(d->cancel() == 0u);
  d->expires_after(1s);
}

BOOST_AUTO_TEST_CASE(a_wheel_that_does_not_take_it_ends_the_operations) {
  fixture f;
  outcome before, after;
  deadline d(f.io, 5s);
  f.wait(bind_deadline(d, before.tracked()));
  f.poll();
  f.wheel.stop();
  f.poll();
  BOOST_TEST((before.fate() == fate::aborted));
  f.wait(bind_deadline(d, after.tracked()));
  f.poll();
  BOOST_TEST((after.ec() == error::wheel_stopped));
}

BOOST_AUTO_TEST_CASE(operations_on_many_strands_under_one_deadline) {
  asio::thread_pool pool(3);
  asio_wheel::wheel_options options;
  options.tick = 100us;
  asio_wheel::make_wheel(pool, options);
  std::vector<std::unique_ptr<test::local_pair>> pairs;
  for (int i = 0; i != 4; ++i)
    pairs.push_back(
        std::make_unique<test::local_pair>(asio::make_strand(pool), pool));
  for (int round = 0; round != 40; ++round) {
    deadline d(pool, 300us);
    std::vector<std::future<void>> ends;
    std::atomic<int> expected{0};
    for (auto& pair : pairs) {
      auto body = [&pair, &d, &expected]() -> asio::awaitable<void> {
        const auto [ec] = co_await pair->ours.async_wait(
            readable,
            timeout_after(
                400us, bind_deadline(d, asio::as_tuple(asio::use_awaitable))));
        if (ec == asio_wheel::condition::timeout ||
            ec == asio::error::operation_aborted)
          ++expected;
      };
      ends.push_back(run_on(pair->ours.get_executor(), body));
    }
    if (round % 2)
      d.expires_after(200us);
    if (round % 4 == 3)
      d.cancel();
    for (auto& end : ends)
      end.get();
    BOOST_TEST(expected == 4);
  }
  pool.join();
}
