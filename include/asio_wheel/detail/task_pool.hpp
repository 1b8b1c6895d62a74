//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_TASK_POOL_HPP
#define ASIO_WHEEL_DETAIL_TASK_POOL_HPP

#include <asio_wheel/detail/config.hpp>

#include <array>
#include <cstddef>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// Memory for tasks: free lists, one for each size that is a multiple of 16
// bytes, cut from chunks that stay until the pool goes. Larger blocks are
// operator new's. Guarded by the shard's lock; not operator new for the chunks,
// which a program may have replaced by code of its own.
class task_pool {
public:
  static constexpr std::size_t largest = 512;

  task_pool() = default;
  task_pool(const task_pool&) = delete;
  task_pool& operator=(const task_pool&) = delete;
  ~task_pool();

  // Of sizes up to the largest. Throws bad_alloc.
  void* allocate(std::size_t size) {
    const std::size_t list = index(size);
    if (block* const b = free_[list]) {
      free_[list] = b->next;
      return b;
    }
    return cut((list + 1) * grain);
  }
  void deallocate(void* p, std::size_t size) noexcept {
    const std::size_t list = index(size);
    free_[list] = ::new (p) block{free_[list]};
  }

private:
  static constexpr std::size_t grain = 16;
  static constexpr std::size_t chunk_size = 65536;

  struct block {
    block* next;
  };

  static constexpr std::size_t index(std::size_t size) noexcept {
    return (size - 1) / grain;
  }
  void* cut(std::size_t size);

  std::array<block*, largest / grain> free_{};
  block* chunks_ = nullptr;
  unsigned char* next_ = nullptr; // in the newest chunk
  std::size_t left_ = 0;
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_TASK_POOL_HPP
