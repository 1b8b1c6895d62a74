//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_TEST_FAILING_NEW_HPP
#define ASIO_WHEEL_TEST_FAILING_NEW_HPP

#include <boost/asio/bind_allocator.hpp>

#include <cstddef>
#include <cstdlib>
#include <functional>
#include <new>
#include <utility>

#ifdef __GLIBC__
#include <malloc.h>
#endif

// Replaces operator new: to be included in one source of a program.

namespace test {

// Counts this thread's allocations; fails the one `fail_at` allocations from
// now. (`live` is off by what another thread frees.)
inline thread_local std::size_t allocations = 0;
inline thread_local std::size_t live = 0;
inline thread_local std::size_t fail_at = ~std::size_t{0};

// Called before each allocation of this thread but its own.
inline thread_local const std::function<void()>* on_new = nullptr;

inline void* counted_new(std::size_t size) noexcept {
  ++allocations;
  if (const auto* const f = std::exchange(on_new, nullptr)) {
    (*f)();
    on_new = f;
  }
  if (fail_at != ~std::size_t{0} && fail_at-- == 0)
    return nullptr;
  void* const p = std::malloc(size != 0 ? size : 1);
  if (p)
    ++live;
  return p;
}

// How many bytes are in use that malloc() gave, to whomever; always 0 where it
// cannot be asked, as under a sanitizer.
inline std::size_t bytes_in_use() noexcept {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}

} // namespace test

void* operator new(std::size_t size) {
  if (void* const p = test::counted_new(size))
    return p;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return test::counted_new(size);
}
void* operator new(std::size_t size, std::align_val_t) {
  // malloc aligns for all that is here.
  if (void* const p = test::counted_new(size))
    return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept {
  if (p)
    --test::live;
  std::free(p);
}
void operator delete(void* p, std::size_t) noexcept { operator delete(p); }
void operator delete(void* p, std::align_val_t) noexcept { operator delete(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  operator delete(p);
}

namespace test {

// Operator new, and nothing that Asio would replace by its recycling memory,
// which comes from std::aligned_alloc.
template <typename T> struct plain_allocator {
  using value_type = T;
  plain_allocator() = default;
  template <typename U> plain_allocator(const plain_allocator<U>&) noexcept {}
  T* allocate(std::size_t n) {
    return static_cast<T*>(::operator new(n * sizeof(T)));
  }
  void deallocate(T* p, std::size_t) noexcept { ::operator delete(p); }
  template <typename U>
  bool operator==(const plain_allocator<U>&) const noexcept {
    return true;
  }
  template <typename U>
  bool operator!=(const plain_allocator<U>&) const noexcept {
    return false;
  }
};
template <> struct plain_allocator<void> {
  using value_type = void;
  plain_allocator() = default;
  template <typename U> plain_allocator(const plain_allocator<U>&) noexcept {}
  template <typename U>
  bool operator==(const plain_allocator<U>&) const noexcept {
    return true;
  }
  template <typename U>
  bool operator!=(const plain_allocator<U>&) const noexcept {
    return false;
  }
};

template <typename Handler> auto with_new(Handler h) {
  return boost::asio::bind_allocator(plain_allocator<void>(), std::move(h));
}

} // namespace test

#endif // ASIO_WHEEL_TEST_FAILING_NEW_HPP
