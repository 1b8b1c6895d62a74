//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_TEST_TRACKING_ALLOCATOR_HPP
#define ASIO_WHEEL_TEST_TRACKING_ALLOCATOR_HPP

#include <atomic>
#include <cstddef>
#include <memory>

namespace test {

/// What the tracking_allocators that refer to it have done.
struct allocation_log {
  std::atomic<std::size_t> allocations{0};
  std::atomic<std::size_t> live{0};
};

/// Counts in an allocation_log what it allocates and frees.
template <typename T> class tracking_allocator {
public:
  using value_type = T;

  explicit tracking_allocator(allocation_log& log) noexcept : log_(&log) {}

  template <typename U>
  tracking_allocator(const tracking_allocator<U>& other) noexcept
      : log_(other.log_) {}

  T* allocate(std::size_t n) {
    T* p = std::allocator<T>().allocate(n);
    ++log_->allocations;
    ++log_->live;
    return p;
  }

  void deallocate(T* p, std::size_t n) noexcept {
    --log_->live;
    std::allocator<T>().deallocate(p, n);
  }

  template <typename U>
  bool operator==(const tracking_allocator<U>& other) const noexcept {
    return log_ == other.log_;
  }
  template <typename U>
  bool operator!=(const tracking_allocator<U>& other) const noexcept {
    return log_ != other.log_;
  }

private:
  template <typename> friend class tracking_allocator;
  allocation_log* log_;
};

} // namespace test

#endif // ASIO_WHEEL_TEST_TRACKING_ALLOCATOR_HPP
