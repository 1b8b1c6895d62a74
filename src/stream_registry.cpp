//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/detail/stream_registry.hpp>
#include <asio_wheel/detail/time_scale.hpp>

#include <algorithm>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

void stream_registry::add(registered_stream& s, drain_share& share) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  streams_.push_back(s);
  ++size_;
  if (draining()) // it came late, and has to go with the last
    share = share_of(size_);
}

void stream_registry::remove(registered_stream& s) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!s.is_linked())
    return;
  streams_.erase(streams_.s_iterator_to(s));
  if (--size_ == 0)
    for (drain_end_base& e : ends_)
      e.hasten();
}

std::size_t stream_registry::size() const noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  return size_;
}

stream_registry::time_point
stream_registry::idle_end(const registered_stream& s, const drain_share& share,
                          bool at_work, time_point since) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!s.is_linked())
    return time_point::max();
  const duration all = time_scale::subtract(end_, start_);
  duration idle = all / 65536 * (share + 1); // in this order it fits
  if (at_work)
    idle = all / 2 + idle / 2;
  return std::min(end_, time_scale::add(std::max(since, start_), idle));
}

void stream_registry::await_end(drain_end_base& e) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ends_.push_back(e);
  if (size_ == 0)
    e.hasten();
}

void stream_registry::forget(drain_end_base& e) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  ends_.erase(ends_.iterator_to(e));
}

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel
