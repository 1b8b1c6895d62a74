//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BENCH_TALLY_HPP
#define ASIO_WHEEL_BENCH_TALLY_HPP

#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>

#include <cstdint>
#include <memory>

namespace bench {

/// How many handlers ran, with what.
struct tally {
  std::uint64_t fired = 0;
  std::uint64_t aborted = 0;
  std::uint64_t other = 0;

  void count(const boost::system::error_code& ec) noexcept {
    if (!ec)
      ++fired;
    else if (ec == boost::asio::error::operation_aborted)
      ++aborted;
    else
      ++other;
  }
};

/// Makes handlers that hold a pointer: small and trivially copyable.
class pointer_handlers {
public:
  auto make() noexcept {
    return [counts = &counts_](const boost::system::error_code& ec) {
      counts->count(ec);
    };
  }
  const tally& counts() const noexcept { return counts_; }

private:
  tally counts_;
};

/// Makes handlers that hold a shared_ptr, as servers' handlers do to keep their
/// connection alive: they are not trivially copyable.
/**
 * All share one count, so that a figure shows what it costs to keep such a
 * handler, and not the cache miss on the connection.
 */
class shared_handlers {
public:
  auto make() noexcept {
    return [counts = counts_](const boost::system::error_code& ec) {
      counts->count(ec);
    };
  }
  const tally& counts() const noexcept { return *counts_; }

private:
  std::shared_ptr<tally> counts_ = std::make_shared<tally>();
};

} // namespace bench

#endif // ASIO_WHEEL_BENCH_TALLY_HPP
