//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_TIMING_WHEEL_HPP
#define ASIO_WHEEL_TIMING_WHEEL_HPP

#include <asio_wheel/detail/config.hpp>
#include <boost/intrusive/list.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// A base class for whatever is to wait in a timing_wheel.
/**
 * Derive from it, and cast back in the sink of timing_wheel::advance. An entry
 * holds its links and its deadline and allocates nothing. It must not be
 * copied, moved or destroyed while it is linked (asserted).
 */
class timing_wheel_entry
    : public boost::intrusive::list_base_hook<
          boost::intrusive::link_mode<boost::intrusive::safe_link>> {
public:
  timing_wheel_entry() = default;
  timing_wheel_entry(const timing_wheel_entry&) = delete;
  timing_wheel_entry& operator=(const timing_wheel_entry&) = delete;

  /// The tick at which the entry is due, or timing_wheel::never.
  std::uint64_t deadline() const noexcept { return deadline_; }

private:
  friend class timing_wheel;

  // Where the entry is linked follows from registered_; when it is due is
  // deadline_. registered_ <= deadline_ while linked: that is what makes
  // putting a deadline off a store.
  std::uint64_t registered_ = 0;
  std::uint64_t deadline_ = ~std::uint64_t{0};
};

/// A timing wheel: ticks in, due entries out. No clock, no lock, no Asio.
/**
 * A wheel holds entries with a deadline in *ticks*, unsigned integers whose
 * length in time is its user's affair. One level of slots is the hashed wheel
 * with rounds; several are the hierarchical wheel, in which an entry moves to
 * a finer level as its time comes near (both from Varghese and Lauck, "Hashed
 * and Hierarchical Timing Wheels", SOSP 1987). An entry's level is given by
 * the highest bit in which its tick differs from the current one. The coarsest
 * level also holds whatever lies beyond the span of the wheel.
 *
 * Deadlines are lazy: moving one later, or taking it away (retire()), is a
 * store. When the slot in which the entry is linked comes round, the wheel
 * looks at the deadline and links the entry again further on, or lets it go.
 *
 * Choose it for very many deadlines of which few are ever reached, and whose
 * order within one tick does not matter. Where deadlines must come out in
 * exact order of time, take a heap.
 *
 * @par Thread Safety
 * None: neither distinct calls on one wheel nor calls on entries of one wheel
 * may overlap.
 *
 * @par Complexity
 * insert(), erase(), move(), retire(): constant. advance(): constant for each
 * entry moved or handed out, plus a scan of one bitmap per level for each
 * occupied slot on the way; independent of the number of ticks passed over. An
 * entry is moved at most once per level, and on the coarsest level once for
 * each revolution that brings something due in its slot. next_tick(): a bitmap
 * scan per level; on the coarsest level up to the number of slots when all its
 * entries lie a whole revolution ahead, and advance() pays the same there for
 * each occupied slot. Memory: 72 bytes per slot and one bit, allocated by the
 * constructor; nothing else allocates.
 *
 * @par Example
 * @snippet timing_wheel.cpp use_alone
 */
class timing_wheel {
public:
  /// A point on the wheel's own time axis.
  using tick_type = std::uint64_t;

  /// The deadline of an entry that is never due.
  static constexpr tick_type never = ~tick_type{0};

  /// No limit on the work of one advance().
  static constexpr std::size_t unlimited = ~std::size_t{0};

  /// The number of slots of a level and the number of levels.
  struct geometry {
    /// A power of two from 2 to 65,536.
    std::size_t slots = 256;
    /// At least 1; log2(slots) * levels must be at most 63.
    std::size_t levels = 4;
  };

  /// Construct an empty wheel whose current tick is @c start.
  /**
   * @throws std::invalid_argument if the geometry is out of range; what() names
   * the field and the legal range.
   * @throws std::bad_alloc
   */
  explicit timing_wheel(geometry g, tick_type start = 0);

  timing_wheel(const timing_wheel&) = delete;
  timing_wheel& operator=(const timing_wheel&) = delete;

  /// Unlinks whatever is still linked; entries are not touched otherwise.
  ~timing_wheel();

  /// The geometry given to the constructor.
  geometry shape() const noexcept;

  /// The current tick: all that was due at or before it has been handed out,
  /// unless the last advance() stopped at its budget.
  tick_type now() const noexcept { return now_; }

  /// True if nothing is linked, retired entries included.
  bool empty() const noexcept;

  /// Link an entry that is not linked, due at @c tick.
  /**
   * @returns false, with the entry left unlinked, if @c tick is not in the
   * future (it is due already: a wheel holds only what lies ahead) or is
   * @c never. An entry that is linked already is asserted against, and moved
   * in release builds.
   */
  bool insert(timing_wheel_entry& e, tick_type tick) noexcept;

  /// Unlink an entry, now. Does nothing if it is not linked.
  /** Touches the entry's neighbours; retire() does not. */
  void erase(timing_wheel_entry& e) noexcept;

  /// Have an entry's neighbours come to the cache, for an erase() later.
  void prefetch(const timing_wheel_entry& e) const noexcept;

  /// Change the deadline of an entry, linked or not.
  /**
   * To a later tick than the one it is registered under: a store. To an
   * earlier one: unlinks and links again. A @c tick of @c never is retire().
   *
   * @returns whether the entry is linked now: false if @c tick is not in the
   * future, or is @c never and the entry was not linked before.
   */
  bool move(timing_wheel_entry& e, tick_type tick) noexcept;

  /// Take away an entry's deadline: a store.
  /**
   * The entry stays linked until its slot comes round and is then handed to
   * the sink of advance() with a deadline() of @c never; move() gives it a
   * deadline again before that.
   */
  void retire(timing_wheel_entry& e) noexcept { e.deadline_ = never; }

  /// Put @c to, which is not linked, in the place of @c from, which may be.
  /** @c to takes over the deadline; @c from is unlinked and has none. */
  void replace(timing_wheel_entry& from, timing_wheel_entry& to) noexcept;

  /// The earliest tick at which advance() may have something to hand out.
  /**
   * A lower bound: nothing is due earlier. Exact unless the entry it stems
   * from was erased, moved or retired since. @c never if the wheel is empty,
   * now() if advance() stopped at its budget.
   */
  tick_type next_tick() const noexcept;

  /// Set the current tick to @c to and hand out what has become due.
  /**
   * Calls @c sink(timing_wheel_entry&) for each entry with deadline() <= to,
   * in order of deadline (order within one tick is unspecified), and for each
   * retired entry it comes across. Before the call the entry is unlinked, and
   * now() is at its deadline (if it has one). The sink may insert, erase, move
   * or retire any entry, but must not call advance() or clear(), nor throw.
   *
   * @param to The new current tick. A tick before now() is taken as now().
   * @param budget How many entries may be handed out or moved to another slot
   * before the call returns: a bound on the time it takes.
   *
   * @returns true if everything up to @c to was handed out; false if the
   * budget came first. Then now() is the tick that was reached, and the next
   * call goes on from there.
   */
  template <typename Sink>
  bool advance(tick_type to, Sink&& sink, std::size_t budget = unlimited);

  /// Call @c f(timing_wheel_entry&) for each linked entry, in no order.
  /** The function must not change the wheel. */
  template <typename F> void for_each(F&& f);

  /// Unlink everything, handing each entry to @c f(timing_wheel_entry&).
  template <typename F> void clear(F&& f);

  /// Unlink everything.
  void clear() noexcept {
    clear([](timing_wheel_entry&) {});
  }

  /// Verify every invariant. For tests; linear in slots and entries.
  /** @returns A null pointer if all hold, else the first that does not. */
  const char* check() const noexcept;

private:
  using list_type =
      boost::intrusive::list<timing_wheel_entry,
                             boost::intrusive::constant_time_size<false>>;

  // A slot's entries are dealt out to several lists, which advance() walks in
  // step, from both ends: to walk one list is to wait for one cache miss after
  // the other, but the misses of several overlap.
  static constexpr unsigned lanes = 4;
  using lane_array = std::array<list_type, lanes>;

  // A slot knows a lower bound of the ticks its entries are registered under,
  // so that the wheel can sleep up to that tick and not just up to the time
  // the slot begins.
  struct slot {
    bool empty() const noexcept {
      for (const auto& l : lists)
        if (!l.empty())
          return false;
      return true;
    }

    lane_array lists;
    tick_type earliest = never;
  };

  struct position {
    tick_type begins;
    std::size_t index;
  };

  tick_type digit(tick_type t, unsigned level) const noexcept {
    return (t >> (level * bits_)) & mask_;
  }
  slot* level_begin(unsigned level) const noexcept {
    return slots_.get() + (std::size_t{level} << bits_);
  }
  std::uint64_t* bitmap(unsigned level) const noexcept {
    return occupied_.get() + level * words_;
  }
  unsigned level_of(tick_type t) const noexcept {
    return level_of_bit_[highest_bit(t ^ now_)];
  }

  static unsigned highest_bit(std::uint64_t x) noexcept;
  static unsigned lowest_bit(std::uint64_t x) noexcept;

  void place(timing_wheel_entry& e, tick_type tick) noexcept;
  std::size_t find_from(unsigned level, std::size_t index) const noexcept;
  position next_in(unsigned level) const noexcept;
  bool enter_next(tick_type to) noexcept;
  timing_wheel_entry* take_from_work() noexcept;
  bool working() const noexcept;

  tick_type now_;
  unsigned bits_;
  unsigned top_;
  std::size_t words_;
  tick_type mask_;
  // Which level a difference with this highest bit belongs to.
  std::array<unsigned char, 64> level_of_bit_;
  std::unique_ptr<slot[]> slots_;
  std::unique_ptr<std::uint64_t[]> occupied_;
  // The lists of the slot that advance() is at work on; not empty between calls
  // only if it stopped at its budget.
  lane_array work_;
  unsigned turn_ = 0;      // whose it is in take_from_work()
  unsigned next_lane_ = 0; // where place() links the next entry
};

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#include <asio_wheel/impl/timing_wheel.hpp>

#endif // ASIO_WHEEL_TIMING_WHEEL_HPP
