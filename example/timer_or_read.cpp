//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// A read with a timeout, in one line: timer || read.

#include <asio_wheel.hpp>

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <variant>

namespace asio = boost::asio;
using namespace asio::experimental::awaitable_operators;
using namespace std::chrono_literals;
using asio::use_awaitable;
using asio::ip::tcp;

asio::awaitable<void> client(tcp::endpoint server) {
  tcp::socket socket(co_await asio::this_coro::executor);
  co_await socket.async_connect(server, use_awaitable);

  asio_wheel::wheel_timer timer(socket.get_executor());
  std::string buffer;
  for (;;) {
    timer.expires_after(300ms);
    auto first =
        co_await (timer.async_wait(use_awaitable) ||
                  asio::async_read_until(socket, asio::dynamic_buffer(buffer),
                                         '\n', use_awaitable));
    if (first.index() == 0) { // the timer; the read was cancelled
      std::cout << "client: nothing for 300 ms, that was it\n";
      co_return;
    }
    const std::size_t length = std::get<1>(first);
    std::cout << "client: " << std::string_view(buffer).substr(0, length);
    buffer.erase(0, length);
  }
}

// Says three things, 100 ms apart, and then nothing more.
asio::awaitable<void> server(tcp::acceptor& acceptor) {
  tcp::socket socket = co_await acceptor.async_accept(use_awaitable);
  asio_wheel::wheel_timer pause(socket.get_executor());
  for (const char* line : {"one\n", "two\n", "three\n"}) {
    co_await asio::async_write(socket, asio::buffer(std::string_view(line)),
                               use_awaitable);
    pause.expires_after(100ms);
    co_await pause.async_wait(use_awaitable);
  }
  char end;
  co_await socket.async_read_some(asio::buffer(&end, 1),
                                  asio::as_tuple(use_awaitable));
  std::cout << "server: the client is gone\n";
}

int main() {
  asio::io_context io;
  tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
  auto rethrow = [](std::exception_ptr e) {
    if (e)
      std::rethrow_exception(e);
  };
  try {
    co_spawn(io, server(acceptor), rethrow);
    co_spawn(io, client(acceptor.local_endpoint()), rethrow);
    io.run();
  } catch (const std::exception& e) {
    std::cerr << "timer_or_read: " << e.what() << '\n';
    return 1;
  }
}
