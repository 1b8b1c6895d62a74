//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// An HTTP/1.1 API on which nobody gets more than a share.
//
//   rate_limited_api [port]
//
// Three limits, each a rate_limiter:
//
//   each client   so many requests per second. Who is over it gets 429 at once,
//                 and is told when to come again.
//   the service   so many requests per second. What is over it waits in line
//                 for a moment, and gets 503 if that is not enough.
//   the network   so many bytes per second, all answers together.
//
// Stops gracefully on SIGINT and SIGTERM.

#include <asio_wheel.hpp>

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/json.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

namespace rate_limited_api {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace json = boost::json;
using namespace std::chrono_literals;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::seconds;

constexpr auto no_throw = asio::as_tuple(asio::use_awaitable);

using request = http::request<http::string_body>;
using response = http::response<http::string_body>;
using stream = asio_wheel::rate_limited_stream<asio_wheel::timeout_stream<>>;

struct limit {
  asio_wheel::token_rate rate; // per second
  double burst;
};

struct limits {
  limit client{5, 10};                                  // requests
  limit service{1000, 100};                             // requests
  limit network{10e6, 256 * 1024};                      // bytes
  std::chrono::steady_clock::duration patience = 500ms; // for the service
};

// ----------------------------------------------------------------------------
// Who may do something

class gate {
public:
  gate(const asio::any_io_executor& ex, const limits& l)
      : executor_(ex), limits_(l),
        service_(ex, l.service.rate, l.service.burst) {}

  struct verdict {
    http::status status; // ok: go ahead
    seconds retry_after{};
  };

  asio::awaitable<verdict> admit(asio::ip::address client) {
    if (!limiter(client).try_acquire())
      co_return verdict{http::status::too_many_requests,
                        whole_seconds(limiter(client))};
    const auto [ec] = co_await service_.async_acquire(
        1, asio_wheel::timeout_after(limits_.patience, no_throw));
    if (!ec)
      co_return verdict{http::status::ok};
    limiter(client).give_back(1); // that was not the client's fault
    co_return verdict{http::status::service_unavailable,
                      whole_seconds(service_)};
  }

  std::size_t clients() const { return clients_.size(); }
  const asio_wheel::rate_limiter& service() const { return service_; }

private:
  using limiters = std::map<asio::ip::address, asio_wheel::rate_limiter>;

  static seconds whole_seconds(const asio_wheel::rate_limiter& limiter) {
    return std::max<seconds>(std::chrono::ceil<seconds>(limiter.time_until()),
                             1s);
  }

  // Whoever has an address of IPv6 has a whole network of them.
  static asio::ip::address network_of(const asio::ip::address& a) {
    if (!a.is_v6())
      return a;
    auto bytes = a.to_v6().to_bytes();
    std::fill(bytes.begin() + 8, bytes.end(), std::uint8_t{0});
    return asio::ip::address_v6(bytes);
  }

  asio_wheel::rate_limiter& limiter(const asio::ip::address& client) {
    const auto key = network_of(client);
    if (const auto found = clients_.find(key); found != clients_.end())
      return found->second;
    if (clients_.size() >= forget_at_)
      forget_idle();
    return clients_
        .try_emplace(key, executor_, limits_.client.rate, limits_.client.burst)
        .first->second;
  }

  // A client whose bucket is full again is as good as a new one.
  void forget_idle() {
    std::erase_if(clients_, [](const auto& client) {
      const asio_wheel::rate_limiter& l = client.second;
      return l.available() == l.burst();
    });
    forget_at_ = std::max<std::size_t>(1000, 2 * clients_.size());
  }

  asio::any_io_executor executor_;
  limits limits_;
  asio_wheel::rate_limiter service_;
  limiters clients_;
  std::size_t forget_at_ = 1000;
};

// ----------------------------------------------------------------------------
// What it does

struct service {
  gate doors;
  std::shared_ptr<asio_wheel::rate_limiter> network;
  bool stopping = false;
  std::map<unsigned, std::uint64_t> answers; // by status

  explicit service(const asio::any_io_executor& ex, const limits& l = limits())
      : doors(ex, l), network(std::make_shared<asio_wheel::rate_limiter>(
                          ex, l.network.rate, l.network.burst)) {}
};

std::pair<http::status, json::object> call(const service& s,
                                           const request& req) {
  if (req.method() != http::verb::get)
    return {http::status::method_not_allowed, {{"error", "only GET"}}};
  if (req.target() == "/hello")
    return {http::status::ok, {{"hello", "world"}}};
  if (req.target() == "/status") {
    json::object counts;
    for (const auto& [status, n] : s.answers)
      counts[std::to_string(status)] = n;
    return {http::status::ok,
            {{"clients", s.doors.clients()},
             {"in_line", s.doors.service().waiting()},
             {"answers", std::move(counts)}}};
  }
  return {http::status::not_found, {{"error", "no such thing"}}};
}

asio::awaitable<response> answer(service& s, asio::ip::address client,
                                 const request& req) {
  response res;
  const auto verdict = co_await s.doors.admit(client);
  if (verdict.status == http::status::ok) {
    const auto [status, body] = call(s, req);
    res.result(status);
    res.body() = json::serialize(body);
  } else {
    res.result(verdict.status);
    res.set(http::field::retry_after,
            std::to_string(verdict.retry_after.count()));
    res.body() = json::serialize(json::object{{"error", "too many requests"}});
  }
  ++s.answers[res.result_int()];
  res.version(req.version());
  res.set(http::field::content_type, "application/json");
  res.keep_alive(req.keep_alive() && !s.stopping);
  res.prepare_payload();
  co_return res;
}

// ----------------------------------------------------------------------------
// Connections

asio::awaitable<void> session(service& s, tcp::socket socket) {
  error_code ec;
  const auto client = socket.remote_endpoint(ec).address();
  if (ec)
    co_return; // gone already
  stream peer(std::move(socket));
  peer.next_layer().timeouts({.read = 30s, .write = 10s});
  peer.write_limiter(s.network);

  beast::flat_buffer buffer(64 * 1024);
  for (bool keep_alive = true; keep_alive;) {
    request req;
    std::tie(ec, std::ignore) =
        co_await http::async_read(peer, buffer, req, no_throw);
    if (ec)
      break; // the end, a timeout, or no HTTP
    const response res = co_await answer(s, client, req);
    keep_alive = res.keep_alive();
    std::tie(ec, std::ignore) = co_await http::async_write(peer, res, no_throw);
    if (ec)
      break;
  }
  peer.lowest_layer().shutdown(tcp::socket::shutdown_send, ec);
}

asio::awaitable<void> accept_all(service& s, tcp::acceptor& acceptor) {
  const auto ex = co_await asio::this_coro::executor;
  while (acceptor.is_open()) {
    auto [ec, socket] = co_await acceptor.async_accept(no_throw);
    if (!ec) {
      co_spawn(ex, session(s, std::move(socket)), asio::detached);
    } else if (acceptor.is_open()) { // no more descriptors, most likely
      asio_wheel::wheel_timer pause(ex, 100ms);
      co_await pause.async_wait(asio::use_awaitable);
    }
  }
}

// No new connections; requests under way are answered, if that does not take
// long; then whoever is left has to go.
asio::awaitable<void> stop_on_signal(service& s, asio::io_context& io,
                                     tcp::acceptor& acceptor) {
  asio::signal_set signals(io, SIGINT, SIGTERM);
  co_await signals.async_wait(asio::use_awaitable);
  signals.clear(); // a second one kills
  s.stopping = true;
  acceptor.close();
  co_await asio_wheel::use_wheel(io).async_drain(5s, no_throw);
  io.stop();
}

} // namespace rate_limited_api

int main(int argc, char* argv[]) {
  using namespace rate_limited_api;
  try {
    const int port = argc > 1 ? std::atoi(argv[1]) : 0; // 0: any free one
    asio::io_context io(1);                             // run by one thread
    service s(io.get_executor());
    tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(),
                                static_cast<asio::ip::port_type>(port)});
    std::cout << "listening on " << acceptor.local_endpoint() << std::endl;
    co_spawn(io, accept_all(s, acceptor), asio::detached);
    co_spawn(io, stop_on_signal(s, io, acceptor), asio::detached);
    io.run();
    std::cout << json::serialize(
                     call(s, {http::verb::get, "/status", 11}).second)
              << '\n';
  } catch (const std::exception& e) {
    std::cerr << "rate_limited_api: " << e.what() << '\n';
    return 1;
  }
  return 0;
}
