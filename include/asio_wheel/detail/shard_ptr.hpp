//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_SHARD_PTR_HPP
#define ASIO_WHEEL_DETAIL_SHARD_PTR_HPP

#include <asio_wheel/detail/config.hpp>

#include <boost/smart_ptr/intrusive_ptr.hpp>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

class shard;

void intrusive_ptr_add_ref(const shard* s) noexcept;
void intrusive_ptr_release(const shard* s) noexcept;

// A shard outlives its service as long as a timer, an operation on its way to
// another executor, or a cancellation slot refers to it.
using shard_ptr = boost::intrusive_ptr<shard>;

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_SHARD_PTR_HPP
