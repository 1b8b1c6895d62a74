//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BENCH_PERCENTILE_HPP
#define ASIO_WHEEL_BENCH_PERCENTILE_HPP

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace bench {

/// The least value that at least the share p of all do not exceed.
/** @param sorted Not empty. @param p Above 0, at most 1. */
inline double percentile(const std::vector<double>& sorted, double p) {
  const auto n = static_cast<double>(sorted.size());
  const auto rank = static_cast<std::size_t>(std::ceil(p * n));
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

} // namespace bench

#endif // ASIO_WHEEL_BENCH_PERCENTILE_HPP
