//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// A WebSocket chat: what one says, all the others read.
//
//   websocket_chat --port 7777 --idle 20
//
// A member that is silent is sent a ping; one that shows no sign of life after
// it is let go, and so is one that does not read what the others say. Stops
// gracefully on SIGINT and SIGTERM, and says what ended its connections.

#include <asio_wheel.hpp>
#include <asio_wheel/beast.hpp>

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/program_options.hpp>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <iomanip>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace po = boost::program_options;
namespace websocket = beast::websocket;
using namespace asio::experimental::awaitable_operators;
using namespace std::chrono_literals;
using asio::use_awaitable;
using asio::ip::tcp;
using boost::system::error_code;

using stream = asio_wheel::timeout_stream<tcp::socket>;

// co_await gives the error_code instead of throwing it.
constexpr auto no_throw = asio::as_tuple(use_awaitable);

constexpr std::size_t longest_message = 64 * 1024;

// One of the connections, under the WebSocket the stream that knows about time.
struct member {
  explicit member(tcp::socket socket) : ws(std::move(socket)) {}

  stream& bytes() { return ws.next_layer(); }

  websocket::stream<stream> ws;
  // What the others said and this one has not been sent yet. A message is
  // stored once, however many wait for it.
  std::deque<std::shared_ptr<const std::string>> queue;
  asio_wheel::wheel_timer queue_filled{
      ws.get_executor(), asio_wheel::wheel_timer::time_point::max()};
  error_code dropped; // why, if it was not its own doing
  bool joined = false;
};

struct room {
  asio::io_context io{1}; // run by one thread
  tcp::acceptor acceptor{io};
  asio_wheel::stream_timeouts timeouts;
  std::chrono::milliseconds handshake{}; // how long all of it may take
  std::size_t queue_limit = 0;           // messages
  bool stopping = false;
  std::list<member> members;
  std::map<std::string, std::size_t> ended; // by what, how many connections
};

void say(room& r, const member& from, std::string text) {
  const auto message = std::make_shared<const std::string>(std::move(text));
  for (member& m : r.members) {
    if (&m == &from || !m.joined || m.dropped)
      continue;
    if (m.queue.size() == r.queue_limit) { // it reads, but too slowly
      error_code ignored;
      m.dropped = asio::error::no_buffer_space;
      m.bytes().close(ignored);
    } else {
      m.queue.push_back(message);
      m.queue_filled.cancel();
    }
  }
}

asio::awaitable<error_code> receive(room& r, member& m) {
  beast::flat_buffer data;
  for (;;) {
    auto [ec, n] = co_await m.ws.async_read(data, no_throw);
    if (ec)
      co_return ec;
    if (m.ws.got_text())
      say(r, m, beast::buffers_to_string(data.data()));
    data.clear();
  }
}

// A member that accepts nothing ends here with a write timeout.
asio::awaitable<error_code> send(member& m) {
  for (;;) {
    while (m.queue.empty())
      co_await m.queue_filled.async_wait(no_throw); // until cancelled
    const auto message = m.queue.front();
    auto [ec, n] = co_await m.ws.async_write(asio::buffer(*message), no_throw);
    if (ec)
      co_return ec;
    m.queue.pop_front();
  }
}

// While somebody waits for it, an idle timeout cancels nothing: whoever waits
// decides. Here: one ping, and the end if not one byte came back for as long
// again. Any bytes will do, be it a pong or a part of a message.
asio::awaitable<error_code> look_after(room& r, member& m) {
  std::uint64_t received_before_ping = 0;
  for (;;) {
    auto [ec] = co_await m.bytes().async_wait_idle(no_throw);
    if (ec)
      co_return ec;
    if (r.stopping) { // the drain made it idle, to take its leave of it
      m.bytes().expires_after(1s);
      auto [close_ec] = co_await m.ws.async_close(
          websocket::close_code::going_away, no_throw);
      co_return close_ec ? close_ec : websocket::error::closed;
    }
    if (m.bytes().bytes_read() == received_before_ping)
      co_return asio_wheel::error::idle_timeout;
    received_before_ping = m.bytes().bytes_read();
    auto [ping_ec] = co_await m.ws.async_ping({}, no_throw);
    if (ping_ec)
      co_return ping_ec;
  }
}

// Returns what ended the connection.
asio::awaitable<error_code> session(room& r, member& m) {
  // The deadline is for all that the handshake reads and writes together.
  m.bytes().expires_after(r.handshake);
  auto [handshake_ec] = co_await m.ws.async_accept(no_throw);
  if (handshake_ec)
    co_return handshake_ec;
  m.bytes().expires_never();
  m.joined = true;

  // Whichever ends first ends the others.
  const auto ended = co_await (receive(r, m) || send(m) || look_after(r, m));
  co_return m.dropped
      ? m.dropped
      : std::visit([](error_code first) { return first; }, ended);
}

asio::awaitable<void> accept_all(room& r) {
  while (r.acceptor.is_open()) {
    auto [ec, socket] = co_await r.acceptor.async_accept(no_throw);
    if (!ec) {
      const auto m = r.members.emplace(r.members.end(), std::move(socket));
      m->bytes().timeouts(r.timeouts);
      m->ws.read_message_max(longest_message);
      co_spawn(r.io, session(r, *m),
               [&r, m](std::exception_ptr e, error_code reason) {
                 if (e) // no memory: let it end the server
                   std::rethrow_exception(e);
                 ++r.ended[reason.message()];
                 r.members.erase(m); // closes the socket
               });
    } else if (r.acceptor.is_open()) { // no more descriptors, most likely
      asio_wheel::wheel_timer pause(r.io, 100ms);
      co_await pause.async_wait(use_awaitable);
    }
  }
}

// The order of a graceful stop: no new connections; members are taken leave of,
// one after the other; after two seconds the rest goes too.
asio::awaitable<void> stop_on_signal(room& r) {
  asio::signal_set signals(r.io, SIGINT, SIGTERM);
  co_await signals.async_wait(use_awaitable);
  signals.clear(); // a second one kills

  r.stopping = true;
  r.acceptor.close();
  co_await asio_wheel::use_wheel(r.io).async_drain(2s, no_throw);
  error_code ignored;
  for (member& m : r.members)
    m.bytes().close(ignored);
}

void print_summary(const room& r) {
  std::size_t connections = 0;
  for (const auto& [reason, count] : r.ended)
    connections += count;
  std::cout << "connections: " << connections << '\n';
  for (const auto& [reason, count] : r.ended)
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
    usage.add_options()("handshake", po::value<double>()->default_value(5),
                        "seconds that the whole handshake may take");
    usage.add_options()("idle", po::value<double>()->default_value(20),
                        "seconds of silence before a ping, and after it");
    usage.add_options()("write", po::value<double>()->default_value(10),
                        "seconds for which a member may accept nothing");
    usage.add_options()("queue", po::value<std::size_t>()->default_value(1000),
                        "messages that may wait for a member");
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

    room r;
    r.timeouts.idle = seconds_of(args, "idle");
    // What we send is no sign of life of theirs.
    r.timeouts.idle_counts = asio_wheel::idle_activity::received;
    r.timeouts.write = seconds_of(args, "write");
    r.handshake = seconds_of(args, "handshake");
    r.queue_limit = args["queue"].as<std::size_t>();
    if (r.queue_limit == 0)
      throw std::invalid_argument("--queue: at least 1, please");
    r.acceptor = {r.io, tcp::endpoint(asio::ip::address_v4::loopback(),
                                      args["port"].as<std::uint16_t>())};
    std::cout << "listening on " << r.acceptor.local_endpoint() << std::endl;

    co_spawn(r.io, accept_all(r), asio::detached);
    co_spawn(r.io, stop_on_signal(r), asio::detached);
    r.io.run(); // returns when the last connection is gone
    print_summary(r);
  } catch (const boost::system::system_error& e) { // the port is in use, say
    std::cerr << "websocket_chat: " << e.code().message() << '\n';
    return 1;
  } catch (const std::exception& e) {
    std::cerr << "websocket_chat: " << e.what() << '\n';
    return 1;
  }
}
