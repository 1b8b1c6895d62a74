//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_RESERVED_MEMORY_HPP
#define ASIO_WHEEL_DETAIL_RESERVED_MEMORY_HPP

#include <asio_wheel/detail/config.hpp>

#include <cstddef>
#include <new>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// Room for one object at a time of a type that only Asio knows: the operation
// of a posted drain, or of the driver's wait. Whoever starts one knows that
// the last has been freed, so that starting it cannot fail for want of memory.
class reserved_memory {
public:
  reserved_memory() = default;
  reserved_memory(const reserved_memory&) = delete;
  reserved_memory& operator=(const reserved_memory&) = delete;

  void* allocate(std::size_t size) {
    if (used_ || size > sizeof(storage_))
      return ::operator new(size); // a build of Asio with larger operations
    used_ = true;
    return storage_;
  }

  void deallocate(void* p) noexcept {
    if (p == storage_)
      used_ = false;
    else
      ::operator delete(p);
  }

private:
  alignas(std::max_align_t) unsigned char storage_[160];
  bool used_ = false;
};

template <typename T> class reserved_allocator {
public:
  using value_type = T;

  explicit reserved_allocator(reserved_memory& m) noexcept : memory_(&m) {}
  template <typename U>
  reserved_allocator(const reserved_allocator<U>& other) noexcept
      : memory_(other.memory_) {}

  T* allocate(std::size_t n) {
    static_assert(alignof(T) <= alignof(std::max_align_t), "over-aligned");
    return static_cast<T*>(memory_->allocate(n * sizeof(T)));
  }
  void deallocate(T* p, std::size_t) noexcept { memory_->deallocate(p); }

  template <typename U>
  bool operator==(const reserved_allocator<U>& other) const noexcept {
    return memory_ == other.memory_;
  }
  template <typename U>
  bool operator!=(const reserved_allocator<U>& other) const noexcept {
    return memory_ != other.memory_;
  }

private:
  template <typename> friend class reserved_allocator;
  reserved_memory* memory_;
};

template <> class reserved_allocator<void> {
public:
  using value_type = void;

  explicit reserved_allocator(reserved_memory& m) noexcept : memory_(&m) {}
  template <typename U>
  reserved_allocator(const reserved_allocator<U>& other) noexcept
      : memory_(other.memory_) {}

  template <typename U>
  bool operator==(const reserved_allocator<U>& other) const noexcept {
    return memory_ == other.memory_;
  }
  template <typename U>
  bool operator!=(const reserved_allocator<U>& other) const noexcept {
    return memory_ != other.memory_;
  }

private:
  template <typename> friend class reserved_allocator;
  reserved_memory* memory_;
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_RESERVED_MEMORY_HPP
