//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// A WebSocket client for websocket_chat.sh, without asio_wheel: sends each line
// of its input as a message, prints each message that it receives as a line,
// and answers pings, saying so. Ends when the server does, and says how.
//
//   websocket_client PORT

#include <boost/asio.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/websocket.hpp>

#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
using asio::ip::tcp;
using boost::system::error_code;

class client {
public:
  client(asio::io_context& io, unsigned short port)
      : ws_(io), input_(io, ::dup(STDIN_FILENO)) {
    ws_.next_layer().connect({asio::ip::address_v4::loopback(), port});
    ws_.handshake("127.0.0.1", "/");
    ws_.control_callback([](websocket::frame_type kind, beast::string_view) {
      if (kind == websocket::frame_type::ping)
        std::cout << "[ping]" << std::endl;
    });
    std::cout << "[joined]" << std::endl;
    receive();
    send();
  }

private:
  void receive() {
    ws_.async_read(received_, [this](error_code ec, std::size_t) {
      if (ec) {
        std::cout << "[ended: " << ec.message() << ", code "
                  << ws_.reason().code << ']' << std::endl;
        std::exit(0);
      }
      std::cout << beast::buffers_to_string(received_.data()) << std::endl;
      received_.clear();
      receive();
    });
  }

  void send() {
    asio::async_read_until(input_, asio::dynamic_buffer(lines_), '\n',
                           [this](error_code ec, std::size_t n) {
                             if (ec)
                               return; // says nothing any more, and listens on
                             ws_.async_write(
                                 asio::buffer(lines_, n - 1),
                                 [this, n](error_code write_ec, std::size_t) {
                                   lines_.erase(0, n);
                                   if (!write_ec)
                                     send();
                                 });
                           });
  }

  websocket::stream<tcp::socket> ws_;
  asio::posix::stream_descriptor input_;
  beast::flat_buffer received_;
  std::string lines_;
};

int main(int argc, char* argv[]) {
  try {
    asio::io_context io(1);
    const client c(
        io, static_cast<unsigned short>(std::atoi(argc > 1 ? argv[1] : "")));
    io.run();
  } catch (const std::exception& e) {
    std::cerr << "websocket_client: " << e.what() << '\n';
    return 1;
  }
}
