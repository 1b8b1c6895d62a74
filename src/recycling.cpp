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
  block* first;
  std::size_t count;
  bool closed; // the thread is ending: keep nothing any more
};

thread_local cache local;

struct cleaner {
  ~cleaner() {
    local.closed = true;
    local.count = 0;
    while (local.first)
      ::operator delete(std::exchange(local.first, local.first->next));
  }
  void touch() noexcept {}
};

} // namespace

void* recycled_memory::allocate() {
  if (block* const b = local.first) {
    local.first = b->next;
    --local.count;
    return b;
  }
  return ::operator new(block_size);
}

void recycled_memory::deallocate(void* p) noexcept {
  if (local.count == blocks_kept || local.closed) {
    ::operator delete(p);
    return;
  }
  if (local.count == 0) {
    thread_local cleaner at_thread_exit;
    at_thread_exit.touch();
  }
  local.first = ::new (p) block{local.first};
  ++local.count;
}

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel
