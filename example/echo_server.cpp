//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// A TCP echo server that closes connections on which nothing arrives.
//
//   echo_server --port 7777 --idle 30
//
// One watchdog per connection. Stops gracefully on SIGINT and SIGTERM.

#include <asio_wheel.hpp>

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/program_options.hpp>

#include <sys/resource.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <ctime>
#include <exception>
#include <iomanip>
#include <iostream>
#include <stdexcept>
#include <string>
#include <unordered_set>
#include <utility>

namespace asio = boost::asio;
namespace po = boost::program_options;
using namespace asio::experimental::awaitable_operators;
using namespace std::chrono_literals;
using asio::use_awaitable;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::steady_clock;

constexpr auto no_throw = asio::as_tuple(use_awaitable);

struct server {
  std::unordered_set<tcp::socket*> open; // first, so that it outlives sessions
  asio::io_context io{1};                // run by one thread
  tcp::acceptor acceptor{io};
  asio_wheel::wheel_timer last_closed{io}; // cancelled when open gets empty
  steady_clock::duration idle{};           // how long a peer may be silent
  steady_clock::duration slack{};          // how much later it may be closed
  std::uint64_t accepted = 0;
  std::uint64_t closed_idle = 0;
};

// Send back what comes until the peer, or the server, says that it is over.
asio::awaitable<void> echo(tcp::socket& socket, asio_wheel::watchdog& dog) {
  std::array<char, 4096> data;
  for (;;) {
    auto [ec, n] =
        co_await socket.async_read_some(asio::buffer(data), no_throw);
    if (ec)
      co_return;
    dog.kick();
    auto [write_ec, written] =
        co_await asio::async_write(socket, asio::buffer(data, n), no_throw);
    if (write_ec)
      co_return;
  }
}

asio::awaitable<void> session(server& s, tcp::socket socket) {
  struct registration {
    std::unordered_set<tcp::socket*>& open;
    tcp::socket* socket;
    ~registration() { open.erase(socket); }
  } registered{s.open, *s.open.insert(&socket).first};

  asio_wheel::watchdog dog(socket.get_executor(), s.idle, s.slack);

  // Whichever ends first cancels the other.
  auto ended = co_await (echo(socket, dog) || dog.async_wait(use_awaitable));
  if (ended.index() == 1)
    ++s.closed_idle;
}

asio::awaitable<void> accept_all(server& s) {
  while (s.acceptor.is_open()) {
    auto [ec, socket] = co_await s.acceptor.async_accept(no_throw);
    if (!ec) {
      ++s.accepted;
      co_spawn(s.io, session(s, std::move(socket)), [&s](std::exception_ptr) {
        if (s.open.empty())
          s.last_closed.cancel();
      });
    } else if (s.acceptor.is_open()) { // no more descriptors, most likely
      asio_wheel::wheel_timer pause(s.io, 100ms);
      co_await pause.async_wait(use_awaitable);
    }
  }
}

// The order of a graceful stop: no new connections; no new requests, while the
// replies on their way still go out; after two seconds whatever is left goes.
asio::awaitable<void> stop_on_signal(server& s) {
  asio::signal_set signals(s.io, SIGINT, SIGTERM);
  co_await signals.async_wait(use_awaitable);
  signals.clear(); // a second one kills

  s.acceptor.close();
  if (s.open.empty())
    co_return;
  error_code ignored;
  for (tcp::socket* socket : s.open)
    socket->shutdown(tcp::socket::shutdown_receive, ignored);
  s.last_closed.expires_after(2s);
  auto [cancelled] = co_await s.last_closed.async_wait(no_throw);
  if (!cancelled)
    for (tcp::socket* socket : s.open)
      socket->close(ignored);
}

// Each connection takes a descriptor, and the usual soft limit is 1,024.
void raise_file_limit() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
}

void print_summary(server& s, double seconds) {
  const auto wheel = asio_wheel::use_wheel(s.io).stats();
  const std::chrono::duration<double, std::milli> late = wheel.max_lateness;
  const double cpu = double(std::clock()) / CLOCKS_PER_SEC;
  std::cout << std::fixed << std::setprecision(1) //
            << "server: accepted        " << s.accepted << '\n'
            << "server: closed idle     " << s.closed_idle << '\n'
            << "server: CPU             " << 100 * cpu / seconds
            << " % of a core\n"
            << "wheel: most pending     " << wheel.peak_pending << '\n'
            << "wheel: late by at most  " << late.count() << " ms\n"
            << "wheel: wake-ups         " << double(wheel.wakeups) / seconds
            << " per second, " << double(wheel.spurious_wakeups) / seconds
            << " with nothing due\n";
}

steady_clock::duration seconds_of(const po::variables_map& args,
                                  const char* name, double least) {
  const double value = args[name].as<double>();
  if (!(value >= least && value <= 1e6))
    throw std::invalid_argument("--" + std::string(name) + ": out of range");
  return std::chrono::duration_cast<steady_clock::duration>(
      std::chrono::duration<double>(value));
}

int main(int argc, char* argv[]) {
  try {
    po::options_description usage("Options");
    usage.add_options()("help", "print this");
    usage.add_options()("port", po::value<std::uint16_t>()->default_value(0),
                        "port on 127.0.0.1; 0: any free one");
    usage.add_options()("idle", po::value<double>()->default_value(30),
                        "seconds of silence before a connection is closed");
    usage.add_options()("slack", po::value<double>()->default_value(0),
                        "seconds it may be late, for a cheaper kick");
    po::variables_map args;
    po::store(po::parse_command_line(argc, argv, usage), args);
    if (args.count("help")) {
      std::cout << usage;
      return 0;
    }

    raise_file_limit();
    server s;
    s.idle = seconds_of(args, "idle", 0.001);
    s.slack = seconds_of(args, "slack", 0);
    s.acceptor = {s.io, tcp::endpoint(asio::ip::address_v4::loopback(),
                                      args["port"].as<std::uint16_t>())};
    std::cout << "listening on " << s.acceptor.local_endpoint() << std::endl;

    co_spawn(s.io, accept_all(s), asio::detached);
    co_spawn(s.io, stop_on_signal(s), asio::detached);
    const auto start = steady_clock::now();
    s.io.run(); // returns when the last connection is gone
    const std::chrono::duration<double> ran = steady_clock::now() - start;
    print_summary(s, ran.count());
  } catch (const std::exception& e) {
    std::cerr << "echo_server: " << e.what() << '\n';
    return 1;
  }
}
