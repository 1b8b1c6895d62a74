//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// A client of a service that is not always there. Each call has a timeout for
// each attempt and one for all of them, and is tried again, later each time. A
// heartbeat notices a peer that has died without a word, and the client
// connects anew. Some hours with a bad server, in virtual time.

#include <asio_wheel.hpp>

#include <boost/asio.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iostream>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace rpc_client {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio::use_awaitable;
using asio_wheel::backoff;
using boost::system::error_code;
using boost::system::system_error;
using duration = std::chrono::steady_clock::duration;

struct options {
  duration attempt_timeout = 500ms;
  duration call_timeout = 5s; // for all attempts
  backoff between_attempts =
      backoff::exponential(100ms, 2s).jitter(asio_wheel::jitter::full);
  duration heartbeat = 10s;
  duration heartbeat_timeout = 1s;
  backoff between_connects =
      backoff::exponential(200ms, 30s).jitter(asio_wheel::jitter::equal);
};

// Peer: has connect(), which throws if it cannot, and exchange(request), which
// gives the reply, and throws if the connection is gone; both are coroutines
// that can be cancelled. Exchanges overlap, and one that took too long is given
// up: a reply has to be told to its request by a number, say, not by the order.
// All on one thread, or one strand.
template <typename Peer> class client {
public:
  client(asio::any_io_executor ex, Peer& peer, options o = {})
      : executor_(std::move(ex)), peer_(peer), options_(std::move(o)) {}

  // Throws the error of the last attempt.
  asio::awaitable<std::string> call(std::string request) {
    // An attempt is a coroutine that is made anew for each. While there is no
    // connection it fails at once, and the next one may find one.
    const auto attempt = [this, &request] {
      return asio::co_spawn(executor_, exchange(request), asio::deferred);
    };
    asio_wheel::retry_options limits;
    limits.attempt_timeout = options_.attempt_timeout;
    limits.time_limit = options_.call_timeout;
    limits.retry_if = [](const error_code& ec) {
      return ec != asio::error::invalid_argument; // the peer's "bad request"
    };
    // Here, for the calls that fail in the end are counted too.
    limits.before_wait = [this](const error_code&, std::size_t, duration) {
      ++retried_;
    };
    backoff pauses = options_.between_attempts; // each call has its own
    auto [attempts, reply] = co_await asio_wheel::async_retry(
        attempt, pauses, limits, use_awaitable);
    co_return reply;
  }

  // Keeps the connection, until stop(). Throws if trying to connect ended by
  // something else: the wheel was stopped, say.
  asio::awaitable<void> run() {
    while (!stopped_) {
      co_await connect();
      if (stopped_)
        break;
      connected_ = true;
      ++connects_;
      co_await beat();
      connected_ = false;
    }
  }

  // The calls that are under way have their own end.
  void stop() {
    stopped_ = true;
    stop_.emit(asio::cancellation_type::terminal);
  }

  bool connected() const noexcept { return connected_; }
  std::size_t connects() const noexcept { return connects_; }
  std::uint64_t retried() const noexcept { return retried_; }

private:
  asio::awaitable<std::string> exchange(std::string request) {
    if (!connected_)
      throw system_error(asio::error::not_connected);
    co_return co_await peer_.exchange(std::move(request));
  }

  // Tries for as long as it takes.
  asio::awaitable<void> connect() {
    backoff pauses = options_.between_connects;
    const auto attempt = [this] {
      return asio::co_spawn(executor_, peer_.connect(), asio::deferred);
    };
    asio_wheel::retry_options limits;
    limits.attempt_timeout = 5s;
    auto [error, attempts] = co_await asio_wheel::async_retry(
        attempt, pauses, limits,
        asio::bind_cancellation_slot(stop_.slot(),
                                     asio::as_tuple(use_awaitable)));
    if (error && !stopped_)
      std::rethrow_exception(error);
  }

  // Until a heartbeat is not answered, or stop(), whose signal does not reach
  // an exchange that has just ended.
  asio::awaitable<void> beat() {
    asio_wheel::periodic_timer timer(executor_, options_.heartbeat);
    while (!stopped_) {
      auto [ec, missed] =
          co_await timer.async_wait(asio::bind_cancellation_slot(
              stop_.slot(), asio::as_tuple(use_awaitable)));
      if (ec)
        co_return;
      auto [error, reply] = co_await asio::co_spawn(
          executor_, peer_.exchange("ping"),
          asio_wheel::timeout_after(
              options_.heartbeat_timeout,
              asio::bind_cancellation_slot(stop_.slot(),
                                           asio::as_tuple(use_awaitable))));
      if (error)
        co_return;
    }
  }

  asio::any_io_executor executor_;
  Peer& peer_;
  options options_;
  asio::cancellation_signal stop_;
  bool connected_ = false, stopped_ = false;
  std::size_t connects_ = 0;
  std::uint64_t retried_ = 0;
};

// A peer that does as it is told. A real one has a socket, one coroutine that
// reads the replies, and requests that wait for theirs.
class simulated_peer {
public:
  enum class mood { well, slow, silent, gone };

  explicit simulated_peer(asio::any_io_executor ex)
      : executor_(std::move(ex)) {}

  // One that was gone has lost its connections.
  void be(mood m) {
    if (m == mood::gone)
      ++generation_;
    mood_ = m;
  }

  asio::awaitable<void> connect() {
    co_await take(mood_ == mood::silent ? duration::max() : 5ms);
    if (mood_ == mood::gone)
      throw system_error(asio::error::connection_refused);
    connected_to_ = generation_;
  }

  asio::awaitable<std::string> exchange(std::string request) {
    co_await take(mood_ == mood::silent ? duration::max()
                  : mood_ == mood::slow ? 450ms + 1ms * (++requests_ % 100)
                                        : 5ms);
    if (mood_ == mood::gone || connected_to_ != generation_)
      throw system_error(asio::error::connection_reset);
    if (request.empty())
      throw system_error(asio::error::invalid_argument);
    co_return "re: " + request;
  }

private:
  asio::awaitable<void> take(duration d) {
    asio_wheel::wheel_timer timer(executor_, d);
    co_await timer.async_wait(use_awaitable);
  }

  asio::any_io_executor executor_;
  mood mood_ = mood::well;
  unsigned generation_ = 0, connected_to_ = 0, requests_ = 0;
};

} // namespace rpc_client

int main() {
  using namespace rpc_client;
  asio_wheel::manual_clock clock;
  asio::io_context io{1};
  asio_wheel::wheel_options wheel;
  wheel.clock = clock;
  asio_wheel::make_wheel(io, wheel);

  using mood = simulated_peer::mood;
  simulated_peer peer(io.get_executor());
  client<simulated_peer> c(io.get_executor(), peer);
  std::map<std::string, int> results; // of the hour
  bool over = false;

  const auto callers = [&]() -> asio::awaitable<void> {
    asio_wheel::periodic_timer every_second(io.get_executor(), 1s);
    int i = 0;
    while (!over) {
      co_await every_second.async_wait(use_awaitable);
      asio::co_spawn(io, c.call("question " + std::to_string(i++)),
                     [&](std::exception_ptr e, std::string) {
                       try {
                         if (e)
                           std::rethrow_exception(e);
                         ++results["answered"];
                       } catch (const system_error& x) {
                         ++results[x.code().message()];
                       }
                     });
    }
  };

  const auto director = [&]() -> asio::awaitable<void> {
    const std::pair<mood, const char*> acts[] = {
        {mood::well, "all is well"},
        {mood::slow, "the peer is slow"},
        {mood::silent, "the peer is silent"},
        {mood::well, "the peer is well again"},
        {mood::gone, "the peer is gone"},
        {mood::well, "the peer has been started again"}};
    asio_wheel::wheel_timer timer(io);
    for (const auto& [m, text] : acts) {
      peer.be(m);
      timer.expires_after(1h);
      co_await timer.async_wait(use_awaitable);
      std::cout << text << ", for an hour: " << c.retried()
                << " attempts failed and were made again, " << c.connects()
                << " connects so far\n";
      for (const auto& [result, n] : std::exchange(results, {}))
        std::cout << "  " << n << " " << result << '\n';
    }
    over = true;
    c.stop();
  };

  asio::co_spawn(io, c.run(), asio::detached);
  asio::co_spawn(io, callers(), asio::detached);
  asio::co_spawn(io, director(), asio::detached);
  asio_wheel::run_simulation({io}, clock);
  return c.connected() ? 1 : 0;
}
