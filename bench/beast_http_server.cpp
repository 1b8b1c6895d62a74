//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

//
// For bench/http.sh: GET /hello as example/http_server answers it, with the
// same parser, response, buffer, executor and coroutines, but on Beast's own
// stream, which is told expires_after() before each operation, as Beast's
// documentation has it.
//

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/json.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace json = boost::json;
using namespace std::chrono_literals;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto no_throw = asio::as_tuple(asio::use_awaitable);

// As the example has them by default.
constexpr auto idle_timeout = 60s;
constexpr auto header_timeout = 10s;
constexpr auto write_timeout = 15s;

using request_parser = http::request_parser<http::string_body>;
using request = request_parser::value_type;

http::message_generator short_answer(const request& req, http::status status,
                                     std::string_view type, std::string body) {
  http::response<http::string_body> response(status, req.version());
  response.set(http::field::server, "asio_wheel");
  response.set(http::field::content_type, type);
  response.content_length(body.size());
  response.keep_alive(req.keep_alive());
  response.body() = std::move(body);
  return response;
}

http::message_generator respond(const request& req) {
  const std::string_view target = req.target();
  const std::string_view path = target.substr(0, target.find('?'));
  if (req.method() == http::verb::get && path == "/hello")
    return short_answer(req, http::status::ok, "application/json",
                        json::serialize(json::object{{"hello", "world"}}));
  return short_answer(req, http::status::not_found, "text/plain",
                      "404 Not Found\n");
}

asio::awaitable<void> session(beast::tcp_stream stream) {
  beast::flat_buffer buffer(64 * 1024);
  for (bool keep_alive = true; keep_alive;) {
    error_code ec;
    if (buffer.size() == 0) {
      std::size_t n = 0;
      stream.expires_after(idle_timeout);
      std::tie(ec, n) =
          co_await stream.async_read_some(buffer.prepare(4096), no_throw);
      if (ec)
        co_return;
      buffer.commit(n);
    }

    // Most requests have come as a whole.
    request_parser parser;
    parser.header_limit(8192);
    parser.body_limit(1'000'000);
    parser.eager(true);
    buffer.consume(parser.put(buffer.data(), ec));
    if (ec == http::error::need_more || (!ec && !parser.is_done())) {
      stream.expires_after(header_timeout);
      std::tie(ec, std::ignore) =
          co_await http::async_read(stream, buffer, parser, no_throw);
    }
    if (ec)
      co_return;

    http::message_generator answer = respond(parser.get());
    keep_alive = answer.keep_alive();
    stream.expires_after(write_timeout);
    std::tie(ec, std::ignore) =
        co_await beast::async_write(stream, std::move(answer), no_throw);
    if (ec)
      co_return;
  }
  error_code ignored;
  stream.socket().shutdown(tcp::socket::shutdown_send, ignored);
}

asio::awaitable<void> accept_all(asio::io_context& io, tcp::acceptor acceptor) {
  for (;;) {
    auto socket = co_await acceptor.async_accept(asio::use_awaitable);
    socket.set_option(tcp::no_delay(true));
    co_spawn(io, session(beast::tcp_stream(std::move(socket))), asio::detached);
  }
}

} // namespace

// Serves on any free port of 127.0.0.1 until it is killed.
int main() {
  try {
    asio::io_context io(1);
    tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    std::cout << "listening on " << acceptor.local_endpoint() << std::endl;
    co_spawn(io, accept_all(io, std::move(acceptor)),
             [](std::exception_ptr failed) {
               if (failed)
                 std::rethrow_exception(failed);
             });
    io.run();
  } catch (const std::exception& e) {
    std::cerr << "beast_http_server: " << e.what() << '\n';
    return 1;
  }
}
