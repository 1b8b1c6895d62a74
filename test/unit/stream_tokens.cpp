//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/timeout_stream.hpp>

#include <test/failing_new.hpp>
#include <test/local_pair.hpp>
#include <test/manual_context.hpp>
#include <test/memory_stream.hpp>
#include <test/tracking_allocator.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#define BOOST_TEST_MODULE unit_stream_tokens
#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// Every token with every asynchronous function of a timeout_stream, and with
// wheel_service::async_drain(); and what they allocate.

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::error_code;
using asio_wheel::stream_timeouts;
using boost::system::system_error;
using test::allocations;
using test::local_pair;
using test::manual_context;
using test::memory_stream;
using tcp = asio::ip::tcp;

// One of each: start(token) begins an operation that complete() lets succeed;
// start_pending(token) one that does not complete by itself.

struct on_memory : manual_context {
  asio_wheel::timeout_stream<memory_stream> s{
      asio::any_io_executor(io.get_executor())};
  memory_stream::peer peer = s.next_layer().other_end();
  std::array<char, 3> data{};

  on_memory() {
    stream_timeouts t;
    t.read = t.write = t.idle = 5ms;
    s.timeouts(t);
  }
  template <typename Done> void poll_until(Done) { poll(); }
};

struct read_case : on_memory {
  using signature = void(error_code, std::size_t);
  template <typename Token> auto start(Token&& token) {
    return s.async_read_some(asio::buffer(data), std::forward<Token>(token));
  }
  template <typename Token> auto start_pending(Token&& token) {
    return start(std::forward<Token>(token));
  }
  void complete() { peer.feed("abc"); }
};

struct write_case : on_memory {
  using signature = void(error_code, std::size_t);
  template <typename Token> auto start(Token&& token) {
    return s.async_write_some(asio::buffer(data), std::forward<Token>(token));
  }
  template <typename Token> auto start_pending(Token&& token) {
    return start(std::forward<Token>(token));
  }
  void complete() { peer.accept(10); }
};

struct wait_idle_case : on_memory {
  using signature = void(error_code);
  template <typename Token> auto start(Token&& token) {
    return s.async_wait_idle(std::forward<Token>(token));
  }
  template <typename Token> auto start_pending(Token&& token) {
    return start(std::forward<Token>(token));
  }
  void complete() { clock.advance(6ms); }
};

struct drain_case : on_memory {
  using signature = void(error_code, std::size_t);
  template <typename Token> auto start(Token&& token) {
    return wheel.async_drain(5ms, std::forward<Token>(token));
  }
  template <typename Token> auto start_pending(Token&& token) {
    return start(std::forward<Token>(token));
  }
  void complete() { clock.advance(6ms); }
};

struct on_sockets : manual_context {
  tcp::acceptor acceptor{io, {asio::ip::address_v4::loopback(), 0}};
  asio_wheel::timeout_stream<> s{io};
  // A full backlog drops what comes: nobody answers.
  asio::io_context other;
  tcp::acceptor silent{other};
  std::vector<tcp::socket> fillers;

  on_sockets() {
    stream_timeouts t;
    t.connect = 5ms;
    s.timeouts(t);
    silent.open(tcp::v4());
    silent.bind({asio::ip::address_v4::loopback(), 0});
    silent.listen(0);
    for (int i = 0; i != 4; ++i) {
      fillers.emplace_back(other);
      fillers.back().async_connect(silent.local_endpoint(), [](error_code) {});
      other.poll();
    }
  }
  void complete() {}
  // Real sockets need a moment.
  template <typename Done> void poll_until(Done done) {
    for (int i = 0; i != 100'000 && !done(); ++i)
      poll();
  }
};

struct connect_case : on_sockets {
  using signature = void(error_code);
  template <typename Token> auto start(Token&& token) {
    return s.async_connect(acceptor.local_endpoint(),
                           std::forward<Token>(token));
  }
  template <typename Token> auto start_pending(Token&& token) {
    return s.async_connect(silent.local_endpoint(), std::forward<Token>(token));
  }
};

struct connect_sequence_case : on_sockets {
  using signature = void(error_code, tcp::endpoint);
  using endpoints = std::vector<tcp::endpoint>;
  template <typename Token> auto start(Token&& token) {
    return s.async_connect(endpoints{acceptor.local_endpoint()},
                           std::forward<Token>(token));
  }
  template <typename Token> auto start_pending(Token&& token) {
    return s.async_connect(endpoints(2, silent.local_endpoint()),
                           std::forward<Token>(token));
  }
};

// The endpoint that the condition does not want comes first.
struct connect_condition_case : on_sockets {
  using signature = void(error_code, tcp::endpoint);
  using endpoints = std::vector<tcp::endpoint>;
  auto all_but(tcp::endpoint e) {
    return
        [e](const error_code&, const tcp::endpoint& next) { return next != e; };
  }
  template <typename Token> auto start(Token&& token) {
    return s.async_connect(
        endpoints{silent.local_endpoint(), acceptor.local_endpoint()},
        all_but(silent.local_endpoint()), std::forward<Token>(token));
  }
  template <typename Token> auto start_pending(Token&& token) {
    return s.async_connect(
        endpoints{acceptor.local_endpoint(), silent.local_endpoint()},
        all_but(acceptor.local_endpoint()), std::forward<Token>(token));
  }
};

using cases =
    std::tuple<read_case, write_case, wait_idle_case, drain_case, connect_case,
               connect_sequence_case, connect_condition_case>;

// What became of a handler.
struct record {
  int calls = 0;
  error_code ec = asio::error::would_block;

  auto handler() {
    return [this](error_code e, auto&&...) {
      ++calls;
      ec = e;
    };
  }
  auto move_only() {
    return [this, p = std::make_unique<int>(1)](error_code e, auto&&...) {
      calls += *p;
      ec = e;
    };
  }
  bool succeeded() const { return calls == 1 && !ec; }
  bool aborted() const {
    return calls == 1 && ec == asio::error::operation_aborted;
  }
};

std::exception_ptr result_of_spawn;

void keep(std::exception_ptr e) { result_of_spawn = e; }

bool is_aborted(const system_error& e) {
  return e.code() == asio::error::operation_aborted;
}

} // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(callback, Case, cases) {
  Case c;
  record r;
  c.start(r.handler());
  BOOST_TEST(r.calls == 0); // never from within
  c.complete();
  c.poll_until([&] { return r.calls != 0; });
  BOOST_TEST(r.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(move_only_handler, Case, cases) {
  Case c;
  record r;
  c.start(r.move_only());
  c.complete();
  c.poll_until([&] { return r.calls != 0; });
  BOOST_TEST(r.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(use_future, Case, cases) {
  Case c;
  auto succeeds = c.start(asio::use_future);
  const auto ready = [&] {
    return succeeds.wait_for(0s) == std::future_status::ready;
  };
  c.complete();
  c.poll_until(ready);
  BOOST_TEST_REQUIRE(ready());
  BOOST_CHECK_NO_THROW(succeeds.get());

  Case d;
  asio::cancellation_signal signal;
  auto aborted = d.start_pending(
      asio::bind_cancellation_slot(signal.slot(), asio::use_future));
  signal.emit(asio::cancellation_type::terminal);
  d.poll_until(
      [&] { return aborted.wait_for(0s) == std::future_status::ready; });
  BOOST_CHECK_EXCEPTION(aborted.get(), system_error, is_aborted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(use_awaitable, Case, cases) {
  Case c;
  bool done = false;
  asio::co_spawn(
      c.io,
      [&]() -> asio::awaitable<void> {
        co_await c.start(asio::use_awaitable);
        done = true;
      },
      keep);
  c.poll();
  c.complete();
  c.poll_until([&] { return done; });
  BOOST_TEST(done);

  Case d;
  asio::cancellation_signal signal;
  bool over = false;
  error_code ec;
  asio::co_spawn(
      d.io,
      [&]() -> asio::awaitable<void> {
        co_await d.start_pending(asio::use_awaitable);
      },
      asio::bind_cancellation_slot(signal.slot(), [&](std::exception_ptr e) {
        over = true;
        try {
          if (e)
            std::rethrow_exception(e);
        } catch (const system_error& error) {
          ec = error.code();
        }
      }));
  d.poll();
  signal.emit(asio::cancellation_type::terminal);
  d.poll_until([&] { return over; });
  BOOST_TEST(over);
  BOOST_TEST((ec == asio::error::operation_aborted));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(as_tuple, Case, cases) {
  Case c;
  error_code ec = asio::error::would_block;
  asio::co_spawn(
      c.io,
      [&]() -> asio::awaitable<void> {
        const auto result =
            co_await c.start(asio::as_tuple(asio::use_awaitable));
        ec = std::get<0>(result);
      },
      keep);
  c.poll();
  c.complete();
  c.poll_until([&] { return !ec; });
  BOOST_TEST(!ec);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(deferred, Case, cases) {
  Case c;
  record r;
  auto operation = c.start(asio::deferred);
  c.poll();
  BOOST_TEST(c.wheel.pending() == 0u); // not started
  std::move(operation)(r.handler());
  c.complete();
  c.poll_until([&] { return r.calls != 0; });
  BOOST_TEST(r.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(detached, Case, cases) {
  Case c;
  c.start(asio::detached);
  BOOST_TEST(c.wheel.pending() != 0u);
  c.complete();
  c.poll_until([&] { return c.wheel.pending() == 0; });
  BOOST_TEST(c.wheel.pending() == 0u);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bind_executor_to_a_strand, Case, cases) {
  Case c;
  record r;
  auto strand = asio::make_strand(c.io);
  bool on_strand = false;
  c.start(asio::bind_executor(strand, [&](error_code ec, auto&&...) {
    on_strand = strand.running_in_this_thread();
    r.handler()(ec);
  }));
  c.complete();
  c.poll_until([&] { return r.calls != 0; });
  BOOST_TEST(r.succeeded());
  BOOST_TEST(on_strand);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bind_executor_to_another_context, Case, cases) {
  Case c;
  record r;
  asio::io_context elsewhere;
  c.start(asio::bind_executor(elsewhere.get_executor(), r.handler()));
  BOOST_TEST(elsewhere.poll() == 0u);
  BOOST_TEST(!elsewhere.stopped()); // has work
  c.complete();
  c.poll_until([&] { return elsewhere.poll() != 0; });
  elsewhere.poll();
  BOOST_TEST(r.succeeded());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bind_allocator, Case, cases) {
  Case c;
  record r;
  test::allocation_log memory;
  c.start(asio::bind_allocator(test::tracking_allocator<void>(memory),
                               [&](error_code ec, auto&&...) {
                                 BOOST_TEST(memory.live == 0u);
                                 r.handler()(ec);
                               }));
  c.complete();
  c.poll_until([&] { return r.calls != 0; });
  BOOST_TEST(r.succeeded());
  // A stream in memory needs no memory; below is what sockets allocate.
  if constexpr (!std::is_same_v<Case, read_case> &&
                !std::is_same_v<Case, write_case>)
    BOOST_TEST(memory.allocations != 0u);
  BOOST_TEST(memory.live == 0u);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(bind_cancellation_slot, Case, cases) {
  for (const auto type :
       {asio::cancellation_type::terminal, asio::cancellation_type::partial}) {
    Case c;
    record r;
    asio::cancellation_signal signal;
    c.start_pending(asio::bind_cancellation_slot(signal.slot(), r.handler()));
    signal.emit(asio::cancellation_type::none);
    c.poll();
    BOOST_TEST(r.calls == 0);
    signal.emit(type);
    BOOST_TEST(r.calls == 0); // never from within
    c.poll_until([&] { return r.calls != 0; });
    BOOST_TEST(r.aborted());
    BOOST_TEST(!signal.slot().has_handler());
    signal.emit(type); // reaches nothing
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(any_completion_handler, Case, cases) {
  using any = asio::any_completion_handler<typename Case::signature>;
  {
    Case c;
    record r;
    c.start(any(r.move_only()));
    c.complete();
    c.poll_until([&] { return r.calls != 0; });
    BOOST_TEST(r.succeeded());
  }
  Case c;
  record r;
  asio::cancellation_signal signal;
  c.start_pending(any(asio::bind_cancellation_slot(
      signal.slot(),
      asio::bind_executor(asio::make_strand(c.io), r.handler()))));
  signal.emit(asio::cancellation_type::terminal);
  c.poll_until([&] { return r.calls != 0; });
  BOOST_TEST(r.aborted());
}

// ---------------------------------------------------------------------------

namespace {

// Every function of a stream whose executor brings use_awaitable along.
template <typename Stream>
asio::awaitable<void> without_a_token(Stream& s, tcp::acceptor& acceptor,
                                      int& done) {
  std::array<char, 3> data{};
  stream_timeouts t;
  t.idle = 5ms;
  co_await s.async_connect(acceptor.local_endpoint());
  ++done;
  tcp::socket server = acceptor.accept();
  s.timeouts(t);
  const std::size_t written = co_await s.async_write_some(asio::buffer(data));
  BOOST_TEST(written == 3u);
  ++done;
  server.send(asio::buffer("abc", 3));
  const std::size_t n = co_await s.async_read_some(asio::buffer(data));
  BOOST_TEST(n == 3u);
  ++done;
  co_await s.async_wait_idle();
  ++done;
  s.close();
  const std::vector<tcp::endpoint> endpoints{acceptor.local_endpoint()};
  const tcp::endpoint e = co_await s.async_connect(endpoints);
  BOOST_TEST((e == endpoints[0]));
  ++done;
}

template <typename Stream> void check_default_token(Stream& s, on_sockets& c) {
  int done = 0;
  asio::co_spawn(c.io, without_a_token(s, c.acceptor, done), keep);
  for (int i = 0; i != 100'000 && done != 5; ++i) {
    c.poll();
    if (done == 3)
      c.clock.advance(1ms);
  }
  BOOST_TEST(done == 5);
}

} // namespace

BOOST_AUTO_TEST_CASE(default_token_of_the_executor) {
  using executor =
      asio::use_awaitable_t<>::executor_with_default<asio::any_io_executor>;
  on_sockets c;
  asio_wheel::timeout_stream<>::rebind_executor<executor>::other s(
      executor(c.io.get_executor()));
  static_assert(std::is_same_v<decltype(s)::executor_type, executor>);
  check_default_token(s, c);
}

BOOST_AUTO_TEST_CASE(as_default_on_a_stream) {
  on_sockets c;
  auto s =
      asio::use_awaitable.as_default_on(asio_wheel::timeout_stream<>(c.io));
  check_default_token(s, c);
}

// ---------------------------------------------------------------------------

namespace {

// How often a stream allocates for a thousand writes and reads, once warm.
template <typename Stream, typename Bind>
std::size_t allocations_of(manual_context& c, Stream& s, tcp::socket& theirs,
                           Bind bind) {
  std::array<char, 16> data{};
  std::size_t counted = 0;
  for (int i = 0; i != 1100; ++i) {
    if (i == 100)
      counted = allocations;
    bool read = false, written = false;
    s.async_read_some(asio::buffer(data), bind([&](error_code ec, std::size_t) {
                        BOOST_TEST_REQUIRE(!ec);
                        read = true;
                      }));
    s.async_write_some(asio::buffer(data),
                       bind([&](error_code ec, std::size_t) {
                         BOOST_TEST_REQUIRE(!ec);
                         written = true;
                       }));
    while (!written)
      c.poll();
    std::array<char, 16> echo;
    theirs.send(asio::buffer(echo, theirs.receive(asio::buffer(echo))));
    while (!read)
      c.poll();
    c.clock.advance(1us);
  }
  return allocations - counted;
}

} // namespace

BOOST_AUTO_TEST_CASE(nothing_is_allocated_beyond_what_the_socket_does) {
  const auto counts = [](auto bind, bool bounded, bool with_extras) {
    manual_context c;
    local_pair pair(c.io);
    if (!bounded)
      return allocations_of(c, pair.ours, pair.theirs, bind);
    asio_wheel::timeout_stream<> s(std::move(pair.ours));
    stream_timeouts t;
    t.read = t.write = 10s;
    t.idle = 60s;
    if (with_extras) {
      t.read_rate = t.write_rate = {1, 5s};
      s.expires_after(1h);
    }
    s.timeouts(t);
    return allocations_of(c, s, pair.theirs, bind);
  };
  const auto as_it_is = [](auto handler) { return handler; };
  const auto plain = [](auto handler) {
    return test::with_new(std::move(handler));
  };
  BOOST_TEST(counts(as_it_is, false, false) == 0u);
  BOOST_TEST(counts(as_it_is, true, false) == 0u);
  BOOST_TEST(counts(as_it_is, true, true) == 0u);
  const std::size_t bare = counts(plain, false, false);
  BOOST_TEST(bare != 0u);
  BOOST_TEST(counts(plain, true, false) == bare);
  BOOST_TEST(counts(plain, true, true) == bare);
}
