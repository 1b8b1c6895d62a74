//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BEAST_HPP
#define ASIO_WHEEL_BEAST_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/rate_limited_stream.hpp>
#include <asio_wheel/timeout_stream.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/socket_base.hpp>
#include <boost/beast/core/role.hpp>
#include <boost/beast/core/stream_traits.hpp>
#include <boost/beast/websocket/teardown.hpp>

#include <array>
#include <cstddef>
#include <memory>
#include <utility>

// What Boost.Beast wants to be told about a timeout_stream and about a
// rate_limited_stream. To be included where one lies under a
// beast::websocket::stream; Beast's HTTP needs nothing.
// Not part of asio_wheel.hpp, since it includes Beast.

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// For beast::close_socket().
template <typename NextLayer>
void beast_close_socket(timeout_stream<NextLayer>& stream) {
  error_code ignored;
  stream.close(ignored);
}

/// The end of a WebSocket over a timeout_stream, blocking: not bounded.
template <typename NextLayer>
void teardown(boost::beast::role_type role, timeout_stream<NextLayer>& stream,
              error_code& ec) {
  using boost::beast::websocket::teardown;
  teardown(role, stream.next_layer(), ec);
}

namespace detail {

// A server shuts down its side, a client waits for the server to; each reads
// until the other's end, bounded like any read, and closes.
template <typename NextLayer> class teardown_op {
public:
  teardown_op(boost::beast::role_type role, timeout_stream<NextLayer>& s)
      : role_(role), stream_(s), data_(std::make_unique<data_type>()) {}

  template <typename Self> void operator()(Self& self) {
    error_code ec;
    if (role_ == boost::beast::role_type::server)
      stream_.next_layer().shutdown(asio::socket_base::shutdown_send, ec);
    if (ec)
      asio::post(stream_.get_executor(),
                 asio::prepend(std::move(self), ec, std::size_t(0)));
    else
      read(self);
  }

  template <typename Self>
  void operator()(Self& self, error_code ec, std::size_t) {
    if (!ec)
      return read(self);
    if (ec == asio::error::eof) {
      ec.clear();
      if (role_ == boost::beast::role_type::client)
        stream_.next_layer().shutdown(asio::socket_base::shutdown_send, ec);
      if (!ec)
        stream_.close(ec);
    }
    self.complete(ec);
  }

private:
  using data_type = std::array<char, 2048>; // read and dropped

  template <typename Self> void read(Self& self) {
    const asio::mutable_buffer buffer = asio::buffer(*data_);
    stream_.async_read_some(buffer, std::move(self));
  }

  boost::beast::role_type role_;
  timeout_stream<NextLayer>& stream_;
  std::unique_ptr<data_type> data_;
};

} // namespace detail

/// The end of a WebSocket over a timeout_stream.
/** Each read is bounded by the stream's timeouts: a silent peer does not keep
 * it. */
template <typename NextLayer, typename TeardownHandler>
void async_teardown(boost::beast::role_type role,
                    timeout_stream<NextLayer>& stream,
                    TeardownHandler&& handler) {
  if constexpr (detail::is_socket<NextLayer>) {
    asio::async_compose<TeardownHandler, void(error_code)>(
        detail::teardown_op<NextLayer>(role, stream), handler, stream);
  } else {
    using boost::beast::websocket::async_teardown;
    async_teardown(role, stream.next_layer(),
                   std::forward<TeardownHandler>(handler));
  }
}

/// For beast::close_socket().
template <typename NextLayer>
void beast_close_socket(rate_limited_stream<NextLayer>& stream) {
  boost::beast::close_socket(stream.next_layer());
}

/// The end of a WebSocket over a rate_limited_stream, blocking.
/** That of the next layer: what is read there and dropped costs no tokens. */
template <typename NextLayer>
void teardown(boost::beast::role_type role,
              rate_limited_stream<NextLayer>& stream, error_code& ec) {
  using boost::beast::websocket::teardown;
  teardown(role, stream.next_layer(), ec);
}

/// The end of a WebSocket over a rate_limited_stream.
/** That of the next layer: what is read there and dropped costs no tokens. */
template <typename NextLayer, typename TeardownHandler>
void async_teardown(boost::beast::role_type role,
                    rate_limited_stream<NextLayer>& stream,
                    TeardownHandler&& handler) {
  using boost::beast::websocket::async_teardown;
  async_teardown(role, stream.next_layer(),
                 std::forward<TeardownHandler>(handler));
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_BEAST_HPP
