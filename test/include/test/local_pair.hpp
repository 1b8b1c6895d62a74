//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_TEST_LOCAL_PAIR_HPP
#define ASIO_WHEEL_TEST_LOCAL_PAIR_HPP

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include <string_view>

namespace test {

/// Two sockets that are connected to each other.
struct local_pair {
  using socket = boost::asio::ip::tcp::socket;

  socket ours;
  socket theirs;

  /// Theirs is used from here only, and blocks.
  template <typename Executor, typename ExecutionContext>
  local_pair(const Executor& ex, ExecutionContext& context)
      : ours(ex), theirs(context) {
    using boost::asio::ip::tcp;
    tcp::acceptor acceptor(context,
                           {boost::asio::ip::address_v4::loopback(), 0});
    theirs.connect(acceptor.local_endpoint());
    acceptor.accept(ours);
    ours.set_option(tcp::no_delay(true));
    theirs.set_option(tcp::no_delay(true));
  }

  template <typename ExecutionContext>
  explicit local_pair(ExecutionContext& context)
      : local_pair(context.get_executor(), context) {}

  void say(std::string_view text) {
    boost::asio::write(theirs, boost::asio::buffer(text));
  }
};

} // namespace test

#endif // ASIO_WHEEL_TEST_LOCAL_PAIR_HPP
