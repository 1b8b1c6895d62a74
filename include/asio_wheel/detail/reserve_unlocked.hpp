//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_RESERVE_UNLOCKED_HPP
#define ASIO_WHEEL_DETAIL_RESERVE_UNLOCKED_HPP

#include <asio_wheel/detail/config.hpp>

#include <cstddef>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// Room in `v` for count() more elements. Memory is got without the lock, and
// meanwhile others may add to the count: there is some to spare each time, or
// threads that go on adding could keep this from ending.
template <typename Vector, typename Lock, typename Count>
void reserve_unlocked(Vector& v, Lock& lock, const Count& count) {
  for (std::size_t n; v.capacity() - v.size() < (n = count());) {
    lock.unlock();
    v.reserve(v.size() + n + n / 2 + 8);
    lock.lock();
  }
}

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_RESERVE_UNLOCKED_HPP
