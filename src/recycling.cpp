//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/detail/recycling.hpp>

#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

namespace {

struct block {
  block* next;
};

// Plain data, so that reaching it needs no check whether it is constructed;
// it also is there while other thread_locals are being destroyed, when
// operations may still be freed.
struct cache {
  struct {
    block* first;
    std::size_t count;
  } of_size[recycled_memory::largest / 16];
  bool registered; // to be emptied when the thread ends
  bool closed;     // the thread is ending: keep nothing any more
};

thread_local cache local;

std::size_t index_of(std::size_t size) noexcept { return (size - 1) / 16; }

struct cleaner {
  ~cleaner() {
    local.closed = true;
    for (auto& blocks : local.of_size) {
      blocks.count = 0;
      while (blocks.first)
        ::operator delete(std::exchange(blocks.first, blocks.first->next));
    }
  }
  void touch() noexcept { local.registered = true; }
};

} // namespace

void* recycled_memory::allocate(std::size_t size) {
  auto& blocks = local.of_size[index_of(size)];
  if (block* const b = blocks.first) {
    blocks.first = b->next;
    --blocks.count;
    return b;
  }
  return ::operator new((index_of(size) + 1) * 16);
}

void recycled_memory::deallocate(void* p, std::size_t size) noexcept {
  auto& blocks = local.of_size[index_of(size)];
  if (blocks.count >= blocks_kept(size) || local.closed) {
    ::operator delete(p);
    return;
  }
  if (!local.registered) {
    thread_local cleaner at_thread_exit;
    at_thread_exit.touch();
  }
  blocks.first = ::new (p) block{blocks.first};
  ++blocks.count;
}

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel
