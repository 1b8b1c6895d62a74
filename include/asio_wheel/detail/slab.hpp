//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_SLAB_HPP
#define ASIO_WHEEL_DETAIL_SLAB_HPP

#include <asio_wheel/detail/config.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// Nodes that stay where they are and are known by a number, from memory that is
// used again and returned at the end. Not from operator new, which a program
// may have replaced by code of its own: nodes are taken under locks.
//
// Node has a default constructor, public members `std::uint32_t index` and
// `Node* next_free`, which the slab uses (the latter while the node is free),
// and a destructor that does nothing.
template <typename Node> class slab {
public:
  slab() = default;
  slab(const slab&) = delete;
  slab& operator=(const slab&) = delete;
  ~slab();

  // Throws bad_alloc.
  Node& take();

  void give_back(Node& n) noexcept {
    n.next_free = free_;
    free_ = &n;
  }

  // A node that was taken once; null if there was none of this number.
  Node* find(std::uint32_t index) const noexcept {
    return index < made_ ? address(index) : nullptr;
  }

private:
  static constexpr std::size_t chunk_size = 128;

  // A chunk is aligned by hand, in a block of malloc().
  struct chunk {
    void* block;
    Node* nodes;
  };

  Node* address(std::size_t index) const noexcept {
    return chunks_[index / chunk_size].nodes + index % chunk_size;
  }
  void add_chunk();

  Node* free_ = nullptr;
  std::size_t made_ = 0;
  chunk* chunks_ = nullptr;
  std::size_t count_ = 0; // of chunks: always made_ / chunk_size, rounded up
  std::size_t room_ = 0;  // in chunks_
};

template <typename Node> slab<Node>::~slab() {
  for (std::size_t i = 0; i != made_; ++i)
    address(i)->~Node();
  for (std::size_t i = 0; i != count_; ++i)
    std::free(chunks_[i].block);
  std::free(chunks_);
}

template <typename Node> Node& slab<Node>::take() {
  if (Node* const n = free_) {
    free_ = n->next_free;
    return *n;
  }
  if (made_ == count_ * chunk_size)
    add_chunk();
  Node* const n = ::new (static_cast<void*>(address(made_))) Node;
  n->index = static_cast<std::uint32_t>(made_++);
  return *n;
}

template <typename Node> void slab<Node>::add_chunk() {
  if (made_ > std::numeric_limits<std::uint32_t>::max() - chunk_size)
    throw std::bad_alloc();
  if (count_ == room_) {
    const std::size_t room = room_ != 0 ? 2 * room_ : 4;
    void* const p = std::realloc(chunks_, room * sizeof(chunk));
    if (!p)
      throw std::bad_alloc();
    chunks_ = static_cast<chunk*>(p);
    room_ = room;
  }
  constexpr std::size_t spare =
      alignof(Node) > alignof(std::max_align_t) ? alignof(Node) : 0;
  void* const block = std::malloc(chunk_size * sizeof(Node) + spare);
  if (!block)
    throw std::bad_alloc();
  auto at = reinterpret_cast<std::uintptr_t>(block);
  if constexpr (spare != 0)
    at = (at + spare - 1) / spare * spare;
  chunks_[count_++] = {block, reinterpret_cast<Node*>(at)};
}

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_SLAB_HPP
