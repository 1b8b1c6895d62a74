//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_RECYCLING_HPP
#define ASIO_WHEEL_DETAIL_RECYCLING_HPP

#include <asio_wheel/detail/config.hpp>

#include <cstddef>
#include <new>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// Memory for operations whose handlers bring no allocator: each thread keeps
// some blocks of each size that is a multiple of 16 bytes. (Asio's own
// recycling_allocator keeps two per thread, and a turn of the loop may cancel
// and start hundreds of waits.) What is larger or over-aligned comes from
// operator new.
struct recycled_memory {
  static constexpr std::size_t largest = 512;
  // Of each size, but no more than 32 KiB.
  static constexpr std::size_t blocks_kept(std::size_t size) noexcept {
    return size <= 128 ? 256 : 32768 / size;
  }

  static void* allocate(std::size_t size);
  static void deallocate(void* p, std::size_t size) noexcept;
};

template <typename T> class recycling_allocator {
public:
  using value_type = T;

  recycling_allocator() = default;
  template <typename U>
  recycling_allocator(const recycling_allocator<U>&) noexcept {}

  T* allocate(std::size_t n) {
    if (recycled(n))
      return static_cast<T*>(recycled_memory::allocate(sizeof(T)));
    if constexpr (alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__)
      return static_cast<T*>(
          ::operator new(n * sizeof(T), std::align_val_t(alignof(T))));
    else
      return static_cast<T*>(::operator new(n * sizeof(T)));
  }

  void deallocate(T* p, std::size_t n) noexcept {
    if (recycled(n))
      recycled_memory::deallocate(p, sizeof(T));
    else if constexpr (alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__)
      ::operator delete(p, std::align_val_t(alignof(T)));
    else
      ::operator delete(p);
  }

  template <typename U>
  bool operator==(const recycling_allocator<U>&) const noexcept {
    return true;
  }
  template <typename U>
  bool operator!=(const recycling_allocator<U>&) const noexcept {
    return false;
  }

private:
  static constexpr bool recycled(std::size_t n) noexcept {
    return n == 1 && sizeof(T) <= recycled_memory::largest &&
           alignof(T) <= __STDCPP_DEFAULT_NEW_ALIGNMENT__;
  }
};

template <> class recycling_allocator<void> {
public:
  using value_type = void;

  recycling_allocator() = default;
  template <typename U>
  recycling_allocator(const recycling_allocator<U>&) noexcept {}

  template <typename U>
  bool operator==(const recycling_allocator<U>&) const noexcept {
    return true;
  }
  template <typename U>
  bool operator!=(const recycling_allocator<U>&) const noexcept {
    return false;
  }
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_RECYCLING_HPP
