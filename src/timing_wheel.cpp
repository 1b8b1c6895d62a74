//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/timing_wheel.hpp>

#include <stdexcept>
#include <string>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace {

unsigned checked_log2_of_slots(timing_wheel::geometry g) {
  unsigned bits = 0;
  while (bits < 17 && (std::size_t{1} << bits) != g.slots)
    ++bits;
  if (bits == 0 || bits == 17)
    throw std::invalid_argument(
        "asio_wheel: slots must be a power of two from 2 to 65536");
  if (g.levels < 1 || g.levels > 63 / bits)
    throw std::invalid_argument(
        "asio_wheel: levels must be from 1 to 63 / log2(slots), which is " +
        std::to_string(63 / bits) + " for " + std::to_string(g.slots) +
        " slots");
  return bits;
}

} // namespace

timing_wheel::timing_wheel(geometry g, tick_type start)
    : now_(start), bits_(checked_log2_of_slots(g)),
      top_(static_cast<unsigned>(g.levels) - 1), words_((g.slots + 63) / 64),
      mask_(g.slots - 1), slots_(new slot[g.slots * g.levels]),
      occupied_(new std::uint64_t[words_ * g.levels]()) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    const unsigned level = bit / bits_;
    level_of_bit_[bit] =
        static_cast<unsigned char>(level < top_ ? level : top_);
  }
}

timing_wheel::~timing_wheel() { clear(); }

timing_wheel::geometry timing_wheel::shape() const noexcept {
  return {std::size_t{mask_} + 1, std::size_t{top_} + 1};
}

bool timing_wheel::empty() const noexcept {
  if (working())
    return false;
  for (std::size_t i = 0, n = words_ * (top_ + 1); i != n; ++i)
    if (occupied_[i] != 0)
      return false;
  return true;
}

// The first occupied slot of a level at or after index, without wrapping; the
// number of slots if there is none.
std::size_t timing_wheel::find_from(unsigned level,
                                    std::size_t index) const noexcept {
  const std::uint64_t* const map = bitmap(level);
  std::size_t word = index / 64;
  if (word >= words_)
    return mask_ + 1;
  std::uint64_t bits = map[word] & (~std::uint64_t{0} << (index % 64));
  while (bits == 0) {
    if (++word == words_)
      return mask_ + 1;
    bits = map[word];
  }
  return word * 64 + lowest_bit(bits);
}

// The next slot of a level that has to be entered, and when it begins; never
// if the level is empty.
timing_wheel::position timing_wheel::next_in(unsigned level) const noexcept {
  const std::size_t slots = mask_ + 1;
  const unsigned shift = level * bits_;
  const tick_type here = digit(now_, level);
  if (level < top_) {
    // All entries are in this level's current revolution, ahead of now.
    const std::size_t i = find_from(level, here + 1);
    if (i == slots)
      return {never, i};
    return {(((now_ >> shift) - here + i) << shift), i};
  }
  // The coarsest level wraps round and also holds entries that are revolutions
  // away. A slot has to be entered in the revolution of its earliest entry.
  position best{never, slots};
  std::size_t i = find_from(level, here + 1);
  bool wrapped = false;
  for (;;) {
    if (i == slots) {
      if (wrapped)
        return best;
      wrapped = true;
      i = find_from(level, 0);
      continue;
    }
    if (wrapped && i > here)
      return best;
    const tick_type begins = (level_begin(level)[i].earliest >> shift) << shift;
    const tick_type ahead = (begins >> shift) - (now_ >> shift);
    if (ahead <= slots)
      return {begins, i}; // in this revolution: all others begin later
    if (begins < best.begins)
      best = {begins, i};
    i = find_from(level, i + 1);
  }
}

timing_wheel::tick_type timing_wheel::next_tick() const noexcept {
  if (working())
    return now_;
  // A finer level's entries all lie before a coarser level's next slot.
  for (unsigned level = 0; level <= top_; ++level) {
    const position p = next_in(level);
    if (p.begins != never)
      return level_begin(level)[p.index].earliest;
  }
  return never;
}

// Go into the next occupied slot that begins at or before `to` and take up its
// entries; if there is none, go to `to`.
bool timing_wheel::enter_next(tick_type to) noexcept {
  for (unsigned level = 0; level <= top_; ++level) {
    const position p = next_in(level);
    if (p.begins == never)
      continue;
    if (p.begins > to)
      break;
    slot& s = level_begin(level)[p.index];
    // Not to where the slot begins but to its earliest entry, which has no way
    // down through the finer levels then.
    now_ = s.earliest < to ? s.earliest : to;
    for (unsigned i = 0; i != lanes; ++i)
      work_[i].splice(work_[i].end(), s.lists[i]);
    s.earliest = never;
    bitmap(level)[p.index / 64] &= ~(std::uint64_t{1} << (p.index % 64));
    return true;
  }
  if (to > now_)
    now_ = to;
  return false;
}

const char* timing_wheel::check() const noexcept {
  for (const auto& list : work_)
    for (const auto& e : list)
      if (e.deadline_ < e.registered_)
        return "a deadline is not before the tick it is registered under";
  for (unsigned level = 0; level <= top_; ++level) {
    for (std::size_t i = 0; i <= mask_; ++i) {
      const slot& s = level_begin(level)[i];
      const bool bit = (bitmap(level)[i / 64] >> (i % 64)) & 1;
      if (bit == s.empty())
        return "a slot's bit says whether the slot is occupied";
      if (s.empty() && s.earliest != never)
        return "an empty slot has no earliest tick";
      for (const auto& list : s.lists) {
        for (const auto& e : list) {
          if (e.registered_ <= now_)
            return "what is linked lies ahead";
          if (e.deadline_ < e.registered_)
            return "a deadline is not before the tick it is registered under";
          if (e.registered_ < s.earliest)
            return "a slot's earliest tick is not after its entries'";
          if (level_of(e.registered_) != level)
            return "an entry is on the level of its distance";
          if (digit(e.registered_, level) != i)
            return "an entry is in the slot of its tick";
        }
      }
    }
  }
  return nullptr;
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel
