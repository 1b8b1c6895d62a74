//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_TEST_MANUAL_CONTEXT_HPP
#define ASIO_WHEEL_TEST_MANUAL_CONTEXT_HPP

#include <asio_wheel/manual_clock.hpp>
#include <asio_wheel/wheel_options.hpp>
#include <asio_wheel/wheel_service.hpp>

#include <boost/asio/io_context.hpp>

#include <cstddef>

namespace test {

/// An io_context whose wheel stands under a manual clock.
struct manual_context {
  using duration = asio_wheel::manual_clock::duration;
  using time_point = asio_wheel::manual_clock::time_point;

  asio_wheel::manual_clock clock;
  boost::asio::io_context io;
  asio_wheel::wheel_service& wheel;

  explicit manual_context(
      asio_wheel::wheel_options options = asio_wheel::wheel_options(),
      asio_wheel::manual_clock c = asio_wheel::manual_clock())
      : clock(c),
        wheel(asio_wheel::make_wheel(io, with(std::move(options), c))) {}

  /// Run what is ready, however the last run ended.
  std::size_t poll() {
    io.restart();
    return io.poll();
  }

  /// Set the time on, then run what is ready.
  std::size_t advance(duration d) {
    clock.advance(d);
    return poll();
  }

  time_point now() const noexcept { return clock.now(); }

private:
  static asio_wheel::wheel_options with(asio_wheel::wheel_options o,
                                        const asio_wheel::manual_clock& c) {
    o.clock = c;
    return o;
  }
};

} // namespace test

#endif // ASIO_WHEEL_TEST_MANUAL_CONTEXT_HPP
