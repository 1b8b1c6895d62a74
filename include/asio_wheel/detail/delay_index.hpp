//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_DELAY_INDEX_HPP
#define ASIO_WHEEL_DETAIL_DELAY_INDEX_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/time_scale.hpp>
#include <asio_wheel/timing_wheel.hpp>

#include <boost/intrusive/list.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// Something that waits for its time in a delay_index.
class delay_item : public timing_wheel_entry {
public:
  using time_point = std::chrono::steady_clock::time_point;

  time_point due() const noexcept { return due_; }
  // Not while it is in an index.
  void due(time_point t) noexcept { due_ = t; }

private:
  friend class delay_index;
  friend class sorted_runs;
  friend class tick_sorter;

  bool before(const delay_item& other) const noexcept {
    return due_ != other.due_ ? due_ < other.due_ : age_ < other.age_;
  }

  time_point due_{};
  std::uint64_t age_ = 0; // smaller is older
};

using delay_list =
    boost::intrusive::list<timing_wheel_entry,
                           boost::intrusive::constant_time_size<false>>;

// Items in exact order, without memory of its own: sorted lists, each about
// twice as long as the one before. What is put in is a list, often of one; two
// lists that want the same place are merged and move up. So an item is merged
// a logarithmic number of times, and the first of all is that of a few heads.
class sorted_runs {
public:
  void insert(delay_item& item) noexcept;
  void insert(delay_list& run) noexcept; // sorted; it is empty then
  delay_item* first() noexcept;          // null: empty

  static void erase(delay_item& item) noexcept {
    delay_list any; // any list would do: the links are all that matters
    any.erase(delay_list::s_iterator_to(item));
  }

  template <typename F> void clear(F&& f);

private:
  std::array<delay_list, 32> runs_;
  std::size_t used_ = 0; // the rest is empty
};

// Sorts what the wheel hands out of one tick: in a small array, which is
// several times faster than in lists.
class tick_sorter {
public:
  explicit tick_sorter(sorted_runs& out) noexcept : out_(out) {}
  ~tick_sorter() { flush(); }
  tick_sorter(const tick_sorter&) = delete;
  tick_sorter& operator=(const tick_sorter&) = delete;

  void add(delay_item& item) noexcept {
    if (size_ == items_.size())
      flush();
    items_[size_++] = {item.due_.time_since_epoch().count(), item.age_, &item};
  }

private:
  struct element {
    std::int64_t due;
    std::uint64_t age;
    delay_item* item;
  };
  void flush() noexcept;

  sorted_runs& out_;
  std::size_t size_ = 0;
  std::array<element, 64> items_; // uninitialised
};

// When items are due, and which is next: in order of time, and then of
// insertion. Items that lie ahead are on a wheel; those of the tick that the
// wheel has come to are sorted. Nothing allocates, save construction.
class delay_index {
public:
  using duration = std::chrono::steady_clock::duration;
  using time_point = delay_item::time_point;

  // Ticks count from the epoch; what is due before is just as well.
  delay_index(time_point epoch, duration tick)
      : scale_(epoch, tick), wheel_(timing_wheel::geometry()) {}

  // Items must be out, see clear().
  delay_index(const delay_index&) = delete;
  delay_index& operator=(const delay_index&) = delete;

  bool empty() const noexcept { return size_ == 0; }

  // Put in what is due at item.due(); max(): never.
  void insert(delay_item& item) noexcept;
  // Where it was before it was erased.
  void put_back(delay_item& item) noexcept;
  void erase(delay_item& item) noexcept;
  // Put it where it would be if it were put in now, due at another time. Mostly
  // a store if that is later.
  void move(delay_item& item, time_point due) noexcept;

  // The first item, if it is due by now; null if not.
  delay_item* first_due(time_point now) noexcept;

  // A time before which none is due: that of the first, unless it is far ahead.
  // Then up to a tick earlier, and stemming perhaps from an item that was
  // erased or moved. max(): none ever.
  time_point next_time(time_point now) noexcept;

  // Take all out.
  template <typename F> void clear(F&& f);

private:
  using tick_type = timing_wheel::tick_type;

  // How far the wheel may run ahead of the clock for an exact next_time().
  // What is put in behind the wheel has to be sorted in, which costs more.
  static constexpr tick_type far_ahead = 64;

  bool on_wheel(const delay_item& item) const noexcept {
    return item.deadline() > wheel_.now() &&
           item.deadline() != timing_wheel::never;
  }
  tick_type tick_of(const delay_item& item) const noexcept {
    return item.due_ == time_point::max() ? timing_wheel::never
                                          : scale_.floor(item.due_);
  }
  void place(delay_item& item) noexcept;
  void place_off_wheel(delay_item& item) noexcept;
  void take_off(delay_item& item) noexcept;
  delay_item* fetch(tick_type to) noexcept;

  const time_scale scale_;
  timing_wheel wheel_;
  sorted_runs near_; // all that is due up to the wheel's tick
  delay_list never_; // what is never due
  std::size_t size_ = 0;
  std::uint64_t next_age_ = 0;
};

// ---------------------------------------------------------------------------

inline void sorted_runs::insert(delay_item& item) noexcept {
  delay_list run;
  run.push_back(item);
  insert(run);
}

inline void sorted_runs::insert(delay_list& run) noexcept {
  const auto less = [](const timing_wheel_entry& a,
                       const timing_wheel_entry& b) {
    return static_cast<const delay_item&>(a).before(
        static_cast<const delay_item&>(b));
  };
  std::size_t i = 0;
  for (; !runs_[i].empty(); ++i) {
    run.merge(runs_[i], less);
    if (i + 1 == runs_.size())
      break;
  }
  runs_[i].swap(run);
  if (i >= used_)
    used_ = i + 1;
}

inline delay_item* sorted_runs::first() noexcept {
  while (used_ != 0 && runs_[used_ - 1].empty())
    --used_;
  delay_item* first = nullptr;
  for (std::size_t i = 0; i != used_; ++i) {
    if (runs_[i].empty())
      continue;
    auto& item = static_cast<delay_item&>(runs_[i].front());
    if (!first || item.before(*first))
      first = &item;
  }
  return first;
}

template <typename F> void sorted_runs::clear(F&& f) {
  for (; used_ != 0; --used_)
    for (delay_list& run = runs_[used_ - 1]; !run.empty();) {
      timing_wheel_entry& e = run.front();
      run.pop_front();
      f(e);
    }
}

inline void tick_sorter::flush() noexcept {
  std::sort(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(size_),
            [](const element& a, const element& b) {
              return a.due != b.due ? a.due < b.due : a.age < b.age;
            });
  delay_list run;
  for (std::size_t i = 0; i != size_; ++i)
    run.push_back(*items_[i].item);
  size_ = 0;
  out_.insert(run);
}

inline void delay_index::place(delay_item& item) noexcept {
  if (!wheel_.insert(item, tick_of(item)))
    place_off_wheel(item);
}

inline void delay_index::place_off_wheel(delay_item& item) noexcept {
  if (item.deadline() == timing_wheel::never)
    never_.push_back(item);
  else
    near_.insert(item);
}

inline void delay_index::take_off(delay_item& item) noexcept {
  if (on_wheel(item))
    wheel_.erase(item);
  else
    sorted_runs::erase(item); // or of never_
}

inline void delay_index::insert(delay_item& item) noexcept {
  item.age_ = next_age_++;
  put_back(item);
}

inline void delay_index::put_back(delay_item& item) noexcept {
  place(item);
  ++size_;
}

inline void delay_index::erase(delay_item& item) noexcept {
  take_off(item);
  --size_;
}

inline void delay_index::move(delay_item& item, time_point due) noexcept {
  const bool stays = on_wheel(item) && due != time_point::max();
  if (!stays)
    take_off(item);
  item.due_ = due;
  item.age_ = next_age_++;
  if (!stays)
    place(item);
  else if (!wheel_.move(item, tick_of(item)))
    place_off_wheel(item);
}

// The first item if it lies in a tick up to this one. Takes one tick at a time
// from the wheel, so that what has to be sorted is little.
inline delay_item* delay_index::fetch(tick_type to) noexcept {
  for (;;) {
    if (delay_item* const item = near_.first())
      return item;
    const tick_type next = wheel_.next_tick();
    if (next > to || next == timing_wheel::never)
      return nullptr;
    tick_sorter sorter(near_);
    wheel_.advance(next, [&](timing_wheel_entry& e) {
      sorter.add(static_cast<delay_item&>(e));
    });
  }
}

inline delay_item* delay_index::first_due(time_point now) noexcept {
  delay_item* const item = fetch(scale_.floor(now));
  return item && item->due_ <= now ? item : nullptr;
}

inline delay_index::time_point delay_index::next_time(time_point now) noexcept {
  if (const delay_item* const item = fetch(scale_.floor(now) + far_ahead))
    return item->due_;
  return scale_.begin(wheel_.next_tick());
}

template <typename F> void delay_index::clear(F&& f) {
  size_ = 0;
  const auto take = [&](timing_wheel_entry& e) {
    f(static_cast<delay_item&>(e));
  };
  near_.clear(take);
  wheel_.clear(take);
  while (!never_.empty()) {
    timing_wheel_entry& e = never_.front();
    never_.pop_front();
    take(e);
  }
}

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_DELAY_INDEX_HPP
