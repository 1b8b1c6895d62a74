//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_IMPL_TIMING_WHEEL_HPP
#define ASIO_WHEEL_IMPL_TIMING_WHEEL_HPP

#include <asio_wheel/timing_wheel.hpp>

#if defined(_MSC_VER)
#include <intrin.h>
#endif

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

inline unsigned timing_wheel::highest_bit(std::uint64_t x) noexcept {
#if defined(_MSC_VER) && !defined(__clang__)
  unsigned long i;
  _BitScanReverse64(&i, x);
  return static_cast<unsigned>(i);
#else
  return 63u - static_cast<unsigned>(__builtin_clzll(x));
#endif
}

inline unsigned timing_wheel::lowest_bit(std::uint64_t x) noexcept {
#if defined(_MSC_VER) && !defined(__clang__)
  unsigned long i;
  _BitScanForward64(&i, x);
  return static_cast<unsigned>(i);
#else
  return static_cast<unsigned>(__builtin_ctzll(x));
#endif
}

// Link e, which is not linked, under a tick in the future.
inline void timing_wheel::place(timing_wheel_entry& e,
                                tick_type tick) noexcept {
  const unsigned level = level_of(tick);
  const std::size_t index = digit(tick, level);
  slot& s = level_begin(level)[index];
  e.registered_ = tick;
  s.lists[next_lane_++ % lanes].push_back(e);
  if (tick < s.earliest)
    s.earliest = tick;
  bitmap(level)[index / 64] |= std::uint64_t{1} << (index % 64);
}

inline bool timing_wheel::insert(timing_wheel_entry& e,
                                 tick_type tick) noexcept {
  ASIO_WHEEL_ASSERT(!e.is_linked());
  return move(e, tick);
}

inline bool timing_wheel::move(timing_wheel_entry& e, tick_type tick) noexcept {
  if (e.is_linked()) {
    if (tick >= e.registered_ && tick > now_) {
      e.deadline_ = tick;
      return true;
    }
    erase(e);
  }
  e.deadline_ = tick;
  if (tick <= now_ || tick == never)
    return false;
  place(e, tick);
  return true;
}

inline void timing_wheel::erase(timing_wheel_entry& e) noexcept {
  if (!e.is_linked())
    return;
  const auto it = list_type::s_iterator_to(e);
  auto before = it, after = it;
  --before;
  ++after;
  work_[0].erase(it); // any list would do: the links are all that matters
  if (before != after)
    return;
  // The entry was alone, so both neighbours were the end of its list. If that
  // list is a slot's (and not one advance() is at work on), and the slot's
  // other lists are empty, it is free now.
  const auto list = reinterpret_cast<std::uintptr_t>(
      &list_type::container_from_end_iterator(after));
  const auto offset = list - reinterpret_cast<std::uintptr_t>(slots_.get());
  if (offset >= ((std::size_t{top_} + 1) << bits_) * sizeof(slot))
    return;
  const std::size_t i = offset / sizeof(slot);
  if (!slots_[i].empty())
    return;
  const std::size_t index = i & mask_;
  bitmap(static_cast<unsigned>(i >> bits_))[index / 64] &=
      ~(std::uint64_t{1} << (index % 64));
  slots_[i].earliest = never;
}

inline void timing_wheel::prefetch(const timing_wheel_entry& e) const noexcept {
  if (!e.is_linked())
    return;
  const auto it = list_type::s_iterator_to(e);
  ASIO_WHEEL_PREFETCH(std::prev(it).operator->());
  ASIO_WHEEL_PREFETCH(std::next(it).operator->());
}

inline void timing_wheel::replace(timing_wheel_entry& from,
                                  timing_wheel_entry& to) noexcept {
  ASIO_WHEEL_ASSERT(!to.is_linked());
  if (from.is_linked()) {
    const auto it = list_type::s_iterator_to(from);
    work_[0].insert(it, to); // any list would do, as in erase()
    work_[0].erase(it);
  }
  to.registered_ = from.registered_;
  to.deadline_ = from.deadline_;
  from.deadline_ = never;
}

inline bool timing_wheel::working() const noexcept {
  for (const auto& list : work_)
    if (!list.empty())
      return true;
  return false;
}

// Null if nothing is left. The lists take turns, and so do the ends of a list:
// taking an entry writes to its neighbour, whose line is on its way from memory
// while it is the others' turn.
inline timing_wheel_entry* timing_wheel::take_from_work() noexcept {
  for (unsigned n = 0; n != lanes; ++n) {
    const unsigned turn = turn_++ % (2 * lanes);
    list_type& list = work_[turn % lanes];
    if (list.empty())
      continue;
    const bool at_front = turn < lanes;
    timing_wheel_entry& e = at_front ? list.front() : list.back();
    if (at_front)
      list.pop_front();
    else
      list.pop_back();
    return &e;
  }
  return nullptr;
}

template <typename Sink>
bool timing_wheel::advance(tick_type to, Sink&& sink, std::size_t budget) {
  do {
    while (timing_wheel_entry* const e = budget ? take_from_work() : nullptr) {
      --budget;
      if (e->deadline_ <= now_ || e->deadline_ == never)
        sink(*e);
      else
        place(*e, e->deadline_);
    }
    if (budget == 0 && working())
      return false;
  } while (enter_next(to));
  return true;
}

template <typename F> void timing_wheel::for_each(F&& f) {
  for (auto& list : work_)
    for (auto& e : list)
      f(e);
  for (slot *s = slots_.get(), *end = level_begin(top_ + 1); s != end; ++s)
    for (auto& list : s->lists)
      for (auto& e : list)
        f(e);
}

template <typename F> void timing_wheel::clear(F&& f) {
  const auto drain = [&](list_type& list) {
    while (!list.empty()) {
      timing_wheel_entry& e = list.front();
      erase(e);
      f(e);
    }
  };
  for (auto& list : work_)
    drain(list);
  for (slot *s = slots_.get(), *end = level_begin(top_ + 1); s != end; ++s)
    for (auto& list : s->lists)
      drain(list);
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_IMPL_TIMING_WHEEL_HPP
