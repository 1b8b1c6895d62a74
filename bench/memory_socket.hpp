//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BENCH_MEMORY_SOCKET_HPP
#define ASIO_WHEEL_BENCH_MEMORY_SOCKET_HPP

#include <boost/asio/append.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <utility>

namespace bench {

/// The protocol of a socket that is always ready, in memory.
struct memory_protocol {
  struct endpoint {};
};

} // namespace bench

namespace boost {
namespace asio {

/// A stream on which reads and writes complete on the next turn, for all bytes.
/** A specialisation of Asio's socket, since Beast's basic_stream takes no other
 * stream than that. */
template <typename Executor>
class basic_stream_socket<bench::memory_protocol, Executor> {
public:
  using executor_type = Executor;
  using protocol_type = bench::memory_protocol;
  using endpoint_type = bench::memory_protocol::endpoint;

  template <typename Executor1> struct rebind_executor {
    using other = basic_stream_socket<bench::memory_protocol, Executor1>;
  };

  explicit basic_stream_socket(const Executor& ex) : executor_(ex) {}

  const Executor& get_executor() const noexcept { return executor_; }
  bool is_open() const noexcept { return true; }
  void close(boost::system::error_code&) {}
  void cancel() {}
  void cancel(boost::system::error_code&) {}

  template <typename Buffers, typename Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return transfer(buffer_size(buffers), std::forward<Token>(token));
  }

  template <typename Buffers, typename Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return transfer(buffer_size(buffers), std::forward<Token>(token));
  }

private:
  // What a real socket puts into a slot is of this size.
  struct on_cancellation {
    void* data[3] = {};
    void operator()(cancellation_type_t) const noexcept {}
  };

  template <typename Token> auto transfer(std::size_t n, Token&& token) {
    return async_initiate<Token, void(boost::system::error_code, std::size_t)>(
        [this](auto&& handler, std::size_t size) {
          auto slot = get_associated_cancellation_slot(handler);
          if (slot.is_connected())
            slot.template emplace<on_cancellation>();
          post(executor_,
               append(std::move(handler), boost::system::error_code(), size));
        },
        token, n);
  }

  Executor executor_;
};

} // namespace asio
} // namespace boost

#endif // ASIO_WHEEL_BENCH_MEMORY_SOCKET_HPP
