//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// A proxy for a protocol of lines: each line from a client goes to an upstream
// server over a connection of its own, whose first line is the answer. Whatever
// the upstream does, the client has an answer when the deadline of its request
// has passed: "ERROR timeout", if nothing better.
//
//   line_proxy --port 7777 --upstream localhost:9999 --deadline 3
//
// Stops gracefully on SIGINT and SIGTERM, and says what ended its requests and
// its connections.

#include <asio_wheel.hpp>

#include <boost/asio.hpp>
#include <boost/program_options.hpp>

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
#include <tuple>
#include <utility>

namespace asio = boost::asio;
namespace po = boost::program_options;
using namespace std::chrono_literals;
using asio::use_awaitable;
using asio::ip::tcp;
using asio_wheel::bind_deadline;
using boost::system::error_code;

using stream = asio_wheel::timeout_stream<tcp::socket>;

// co_await gives the error_code instead of throwing it.
constexpr auto no_throw = asio::as_tuple(use_awaitable);

constexpr std::size_t longest_line = 64 * 1024;

struct server {
  asio::io_context io{1}; // run by one thread
  tcp::acceptor acceptor{io};
  tcp::resolver::results_type upstream;
  std::chrono::milliseconds deadline{}; // of a request, from line to line
  int attempts = 0;                     // to connect to the upstream
  asio_wheel::stream_timeouts client_timeouts;
  asio_wheel::stream_timeouts upstream_timeouts;
  std::list<stream> open;                     // the clients
  std::map<std::string, std::size_t> ended;   // by what, how many clients
  std::map<std::string, std::size_t> answers; // how many of which kind
};

// A refused connection may be a server that is just starting: try again. This
// is safe, since the request has not been sent.
asio::awaitable<error_code> connect(server& s, stream& upstream,
                                    asio_wheel::deadline& deadline) {
  auto pause = 50ms;
  for (int attempt = 1;; ++attempt) {
    auto [ec, endpoint] = co_await upstream.async_connect(
        s.upstream, bind_deadline(deadline, no_throw));
    if (!ec || ec == asio_wheel::error::deadline_exceeded ||
        attempt == s.attempts)
      co_return ec;
    asio_wheel::wheel_timer timer(s.io, pause);
    auto [cut_short] =
        co_await timer.async_wait(bind_deadline(deadline, no_throw));
    if (cut_short)
      co_return cut_short;
    pause *= 2;
  }
}

// Connect, write and read share what time there is: the slower one of them was,
// the less is left for the next.
asio::awaitable<error_code> ask(server& s, const std::string& request,
                                std::string& answer) {
  asio_wheel::deadline deadline(s.io.get_executor(), s.deadline);
  stream upstream(s.io);
  upstream.timeouts(s.upstream_timeouts);

  error_code ec = co_await connect(s, upstream, deadline);
  std::size_t n = 0;
  if (!ec)
    std::tie(ec, n) = co_await asio::async_write(
        upstream, asio::buffer(request), bind_deadline(deadline, no_throw));
  if (!ec)
    std::tie(ec, n) = co_await asio::async_read_until(
        upstream, asio::dynamic_buffer(answer, longest_line), '\n',
        bind_deadline(deadline, no_throw));
  if (!ec)
    answer.resize(n); // it may have sent more than a line
  co_return ec;
}

asio::awaitable<std::string> answer_to(server& s, const std::string& request) {
  std::string answer;
  const error_code ec = co_await ask(s, request, answer);
  if (!ec)
    ++s.answers["answered"];
  else
    ++s.answers[ec.message()];

  if (!ec)
    co_return answer;
  if (ec == asio_wheel::condition::timeout)
    co_return "ERROR timeout\n";
  if (ec == asio::error::connection_refused)
    co_return "ERROR refused\n";
  co_return "ERROR " + ec.message() + '\n';
}

asio::awaitable<error_code> session(server& s, stream& client) {
  std::string input;
  for (;;) {
    auto [ec, n] = co_await asio::async_read_until(
        client, asio::dynamic_buffer(input, longest_line), '\n', no_throw);
    if (ec)
      co_return ec;
    const std::string answer = co_await answer_to(s, input.substr(0, n));
    input.erase(0, n);
    // While the server stops, every stream has an idle timeout. That this one
    // was silent meanwhile was not its client's doing.
    client.touch();
    auto [write_ec, written] =
        co_await asio::async_write(client, asio::buffer(answer), no_throw);
    if (write_ec)
      co_return write_ec;
  }
}

asio::awaitable<void> accept_all(server& s) {
  while (s.acceptor.is_open()) {
    auto [ec, socket] = co_await s.acceptor.async_accept(no_throw);
    if (!ec) {
      const auto client = s.open.emplace(s.open.end(), std::move(socket));
      client->timeouts(s.client_timeouts);
      co_spawn(s.io, session(s, *client),
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

void print(const char* title, const std::map<std::string, std::size_t>& m) {
  std::size_t sum = 0;
  for (const auto& [reason, count] : m)
    sum += count;
  std::cout << title << ": " << sum << '\n';
  for (const auto& [reason, count] : m)
    std::cout << std::setw(10) << count << "  " << reason << '\n';
}

// Once, at the start: resolving a name blocks a thread of Asio's, and cannot be
// cancelled, so no deadline bounds it.
tcp::resolver::results_type resolve(asio::io_context& io,
                                    const std::string& upstream) {
  const auto colon = upstream.rfind(':');
  if (colon == std::string::npos)
    throw std::invalid_argument("--upstream: HOST:PORT, please");
  error_code ec;
  auto results = tcp::resolver(io).resolve(upstream.substr(0, colon),
                                           upstream.substr(colon + 1), ec);
  if (ec)
    throw std::runtime_error("--upstream " + upstream + ": " + ec.message());
  return results;
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
    usage.add_options()("upstream", po::value<std::string>()->required(),
                        "HOST:PORT to send the requests to");
    usage.add_options()("deadline", po::value<double>()->default_value(3),
                        "seconds in which a request is answered");
    usage.add_options()("attempts", po::value<int>()->default_value(3),
                        "how often to try to connect");
    usage.add_options()("read", po::value<double>()->default_value(60),
                        "seconds that a client may take for its next bytes");
    usage.add_options()("write", po::value<double>()->default_value(10),
                        "seconds for which a client may accept nothing");
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
    po::notify(args); // complains about what is missing

    server s;
    s.upstream = resolve(s.io, args["upstream"].as<std::string>());
    s.deadline = seconds_of(args, "deadline");
    s.attempts = args["attempts"].as<int>();
    if (s.attempts < 1 || s.attempts > 100)
      throw std::invalid_argument("--attempts: from 1 to 100, please");
    // Not an idle timeout: while its request is at work, a client's connection
    // is silent, and that is not the client's fault. A read timeout runs only
    // while something is to be read.
    s.client_timeouts.read = seconds_of(args, "read");
    s.client_timeouts.write = seconds_of(args, "write");
    // An attempt to connect that hangs leaves time for the next one.
    s.upstream_timeouts.connect = s.deadline / (s.attempts + 1) + 1ms;
    s.acceptor = {s.io, tcp::endpoint(asio::ip::address_v4::loopback(),
                                      args["port"].as<std::uint16_t>())};
    std::cout << "listening on " << s.acceptor.local_endpoint() << std::endl;

    co_spawn(s.io, accept_all(s), asio::detached);
    co_spawn(s.io, stop_on_signal(s), asio::detached);
    s.io.run(); // returns when the last connection is gone
    print("requests", s.answers);
    print("connections", s.ended);
  } catch (const boost::system::system_error& e) { // the port is in use, say
    std::cerr << "line_proxy: " << e.code().message() << '\n';
    return 1;
  } catch (const std::exception& e) {
    std::cerr << "line_proxy: " << e.what() << '\n';
    return 1;
  }
}
