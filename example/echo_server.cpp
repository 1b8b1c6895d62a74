//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// A TCP echo server on which no connection can hang for ever.
//
//   echo_server --port 7777 --idle 30 --write 10
//
// Stops gracefully on SIGINT and SIGTERM, and says what ended its connections.

#include <asio_wheel.hpp>

#include <boost/asio.hpp>
#include <boost/program_options.hpp>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iomanip>
#include <iostream>
#include <list>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

namespace asio = boost::asio;
namespace po = boost::program_options;
using namespace std::chrono_literals;
using asio::use_awaitable;
using asio::ip::tcp;
using boost::system::error_code;

using stream = asio_wheel::timeout_stream<tcp::socket>;

// co_await gives the error_code instead of throwing it.
constexpr auto no_throw = asio::as_tuple(use_awaitable);

struct server {
  asio::io_context io{1}; // run by one thread
  tcp::acceptor acceptor{io};
  asio_wheel::stream_timeouts timeouts;
  std::list<stream> open;
  std::map<std::string, std::size_t> ended; // by what, how many connections
};

// Send back what comes, until an error ends it: the end of the stream, or a
// timeout. Nothing in here has to know about time.
asio::awaitable<error_code> echo(stream& client) {
  std::array<char, 4096> data;
  for (;;) {
    auto [ec, n] =
        co_await client.async_read_some(asio::buffer(data), no_throw);
    if (ec)
      co_return ec;
    auto [write_ec, written] =
        co_await asio::async_write(client, asio::buffer(data, n), no_throw);
    if (write_ec)
      co_return write_ec;
  }
}

asio::awaitable<void> accept_all(server& s) {
  while (s.acceptor.is_open()) {
    auto [ec, socket] = co_await s.acceptor.async_accept(no_throw);
    if (!ec) {
      const auto client = s.open.emplace(s.open.end(), std::move(socket));
      client->timeouts(s.timeouts); // from here on it is bounded
      co_spawn(s.io, echo(*client),
               [&s, client](std::exception_ptr e, error_code reason) {
                 if (e) // no memory: let it end the server
                   std::rethrow_exception(e);
                 ++s.ended[reason.message()];
                 s.open.erase(client); // closes the socket
               });
    } else if (s.acceptor.is_open()) { // no more descriptors, most likely
      asio_wheel::wheel_timer pause(s.io, 100ms);
      co_await pause.async_wait(use_awaitable);
    }
  }
}

// The order of a graceful stop: no new connections; those that fall silent are
// let go, one after the other; after two seconds the busy ones go too.
asio::awaitable<void> stop_on_signal(server& s) {
  asio::signal_set signals(s.io, SIGINT, SIGTERM);
  co_await signals.async_wait(use_awaitable);
  signals.clear(); // a second one kills

  s.acceptor.close();
  co_await asio_wheel::use_wheel(s.io).async_drain(2s, no_throw);
  error_code ignored;
  for (stream& client : s.open)
    client.close(ignored);
}

void print_summary(const server& s) {
  std::size_t connections = 0;
  for (const auto& [reason, count] : s.ended)
    connections += count;
  std::cout << "connections: " << connections << '\n';
  for (const auto& [reason, count] : s.ended)
    std::cout << std::setw(10) << count << "  " << reason << '\n';
}

std::chrono::milliseconds seconds_of(const po::variables_map& args,
                                     const char* name) {
  const double value = args[name].as<double>();
  if (!(value >= 0.001 && value <= 1e6))
    throw std::invalid_argument("--" + std::string(name) +
                                ": from 0.001 to 1000000 seconds, please");
  return std::chrono::milliseconds(static_cast<std::int64_t>(value * 1000));
}

int main(int argc, char* argv[]) {
  try {
    po::options_description usage("Options");
    usage.add_options()("help", "print this");
    usage.add_options()("port", po::value<std::uint16_t>()->default_value(0),
                        "port on 127.0.0.1; 0: any free one");
    usage.add_options()("idle", po::value<double>()->default_value(30),
                        "seconds for which no byte may move, either way");
    usage.add_options()("read", po::value<double>()->default_value(60),
                        "seconds that the next bytes may take");
    usage.add_options()("write", po::value<double>()->default_value(10),
                        "seconds for which the peer may accept nothing");
    po::variables_map args;
    po::store(po::command_line_parser(argc, argv)
                  .options(usage)
                  .positional({}) // nothing but options
                  .run(),
              args);
    if (args.count("help")) {
      std::cout << usage;
      return 0;
    }

    server s;
    s.timeouts.idle = seconds_of(args, "idle");
    s.timeouts.read = seconds_of(args, "read");
    s.timeouts.write = seconds_of(args, "write");
    s.acceptor = {s.io, tcp::endpoint(asio::ip::address_v4::loopback(),
                                      args["port"].as<std::uint16_t>())};
    std::cout << "listening on " << s.acceptor.local_endpoint() << std::endl;

    co_spawn(s.io, accept_all(s), asio::detached);
    co_spawn(s.io, stop_on_signal(s), asio::detached);
    s.io.run(); // returns when the last connection is gone
    print_summary(s);
  } catch (const boost::system::system_error& e) { // the port is in use, say
    std::cerr << "echo_server: " << e.code().message() << '\n';
    return 1;
  } catch (const std::exception& e) {
    std::cerr << "echo_server: " << e.what() << '\n';
    return 1;
  }
}
