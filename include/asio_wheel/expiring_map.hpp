//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_EXPIRING_MAP_HPP
#define ASIO_WHEEL_EXPIRING_MAP_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/expiring_map_core.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// A map whose entries go when their time to live is over.
/**
 * For sessions and caches: an entry lives for a time after it was put in, or
 * after it was last used (expire_after), and if their number is limited, a new
 * one takes the place of the one that would have expired next.
 *
 * An entry past its time is never found, even if the timer has not come to it
 * yet. It is destroyed, and the hook called with it, on the map's executor.
 *
 * Values do not change in the map: they are given out as copies, and replaced
 * as a whole. What is large, or changes, or cannot be copied goes into a
 * `std::shared_ptr`.
 *
 * An entry that is to expire holds `run()`; clear(), or taking the last of them
 * out, lets go. If the context is destroyed first, all entries are destroyed
 * with it, provided that one of them was to expire; the hook is not called.
 *
 * @tparam Key, T Key and value; T must be copy constructible.
 * @tparam Hash, Equal As for std::unordered_map. Equal is called under the
 * map's lock, and must not use the map; nothing else of the user's is. Hash is
 * called once for each function, by several threads at a time.
 *
 * @par Timing
 * The hook is called never early and at most one wheel_options::tick late, plus
 * the time the loop needs: after wheel_options::expiry_batch entries its other
 * work gets its turn.
 *
 * @par After wheel_service::stop()
 * Entries are still not found past their time, but no longer destroyed by
 * themselves, only replaced, evicted, and cleared. The hook is not called.
 *
 * @par When Values Throw
 * An entry is made before the map is touched, and never moves: what throws then
 * (or Hash, or Equal) leaves the map as it was. extract() moves the value out:
 * if that throws, the entry is gone. What the hook throws leaves `run()`.
 *
 * @par Thread Safety
 * Distinct objects: safe. Shared objects: safe, save for construction and
 * destruction. Every function may be called from the hook and from handlers.
 *
 * @par Complexity
 * A look-up, and on the average constant besides: putting entries in that all
 * live equally long is; else logarithmic. touch(), and finding with
 * expire_after::access, store the time: an entry is put where it belongs when
 * it comes up as the next to expire, which is logarithmic, and once per time to
 * live at most. An entry is two allocations, recycled in the thread that frees
 * them; some 140 bytes besides key and value (glibc, 64 bits).
 *
 * @par Example
 * @code
 * asio_wheel::expiring_map_options<std::string, session> options;
 * options.time_to_live = 20min;
 * options.expire_after = asio_wheel::expire_after::access;
 * options.max_size = 100'000;
 * options.on_expire = [&](const std::string& key, session&& s,
 *                         asio_wheel::expiry_reason) { log_out(key, s); };
 * asio_wheel::expiring_map<std::string, session> sessions(io, options);
 *
 * sessions.insert_or_assign(id, session{user});
 * if (auto s = sessions.find(id)) // and lives for another 20 minutes
 *   serve(*s);
 * @endcode
 */
template <typename Key, typename T, typename Hash = std::hash<Key>,
          typename Equal = std::equal_to<Key>,
          typename Executor = asio::any_io_executor>
class expiring_map {
  static_assert(std::is_copy_constructible_v<T>,
                "expiring_map gives values out as copies: T must be copy "
                "constructible (std::shared_ptr<T> always is)");

public:
  using key_type = Key;
  using mapped_type = T;
  using hasher = Hash;
  using key_equal = Equal;

  /// How a map is built.
  using options_type = expiring_map_options<Key, T>;

  /// The type of the executor associated with the map.
  using executor_type = Executor;

  /// The map type for another executor.
  template <typename Executor1> struct rebind_executor {
    using other = expiring_map<Key, T, Hash, Equal, Executor1>;
  };

  using clock_type = std::chrono::steady_clock;
  using duration = clock_type::duration;
  using time_point = clock_type::time_point;

  /// Construct an empty map.
  /**
   * @param ex Its context's wheel is used. Where the hook is called and expired
   * entries are destroyed.
   * @param options See there.
   * @param hash, equal The function objects, copied.
   * @throws std::invalid_argument if time_to_live is not positive or max_size
   * is zero; what() names it. std::bad_alloc, and what copying throws.
   */
  explicit expiring_map(const executor_type& ex,
                        options_type options = options_type(),
                        const Hash& hash = Hash(),
                        const Equal& equal = Equal());

  /// As above, on a context's executor.
  template <typename ExecutionContext>
  explicit expiring_map(
      ExecutionContext& context, options_type options = options_type(),
      const Hash& hash = Hash(), const Equal& equal = Equal(),
      std::enable_if_t<
          std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
          int> = 0);

  expiring_map(const expiring_map&) = delete;
  expiring_map& operator=(const expiring_map&) = delete;

  /// Destroy all entries, those that wait for the hook as well.
  /** The hook is not called any more, unless it is being called. */
  ~expiring_map() { core_->end(); }

  const executor_type& get_executor() const noexcept {
    return core_->get_executor();
  }

  /// The options it was made with.
  const options_type& options() const noexcept { return core_->options(); }

  /// Put an entry in, unless there is one of that key.
  /**
   * If the map is full, the next to expire is evicted for it.
   *
   * @param key, value Arguments for the constructors of Key and T. They are
   * used up also if there is an entry already.
   * @returns Whether it was put in.
   * @throws What the constructors, Hash and Equal throw; std::bad_alloc. The
   * map is then as before.
   */
  template <typename K = Key, typename U = T> bool insert(K&& key, U&& value);

  /// As above, with a time to live of its own.
  /**
   * @param time_to_live Any value. Zero and negative: it has expired at once.
   * duration::max(), and what does not fit the clock: for ever.
   */
  template <typename K = Key, typename U = T>
  bool insert(K&& key, U&& value, const duration& time_to_live);

  /// Put an entry in, instead of the one of that key if there is one.
  /** @returns Whether there was none. As insert() for the rest. */
  template <typename K = Key, typename U = T>
  bool insert_or_assign(K&& key, U&& value);

  /// As above, with a time to live of its own.
  template <typename K = Key, typename U = T>
  bool insert_or_assign(K&& key, U&& value, const duration& time_to_live);

  /// A copy of an entry's value; nothing if there is none.
  /**
   * With expire_after::access, its time to live starts anew. The value is
   * copied without the lock.
   * @throws What Hash, Equal and the copy constructor throw.
   */
  std::optional<T> find(const Key& key);

  /// Whether there is an entry. Does not start its time anew.
  bool contains(const Key& key) const { return expiry(key).has_value(); }

  /// Start an entry's time to live anew.
  /** @returns false if there is none. */
  bool touch(const Key& key) { return core_->touch(key); }

  /// Give an entry another time to live, from now on.
  /**
   * @param key The entry's.
   * @param time_to_live As for insert().
   * @returns false if there is none.
   */
  bool touch(const Key& key, const duration& time_to_live) {
    return core_->touch(key, time_to_live);
  }

  /// When an entry expires; nothing if there is none.
  /** time_point::max(): never. */
  std::optional<time_point> expiry(const Key& key) const {
    return core_->expiry(key);
  }

  /// Destroy an entry. The hook is not called.
  /** @returns Whether there was one. */
  bool erase(const Key& key) { return core_->remove(key) != nullptr; }

  /// Take an entry out; nothing if there is none. The hook is not called.
  /**
   * The value is moved, or copied if it is just being copied elsewhere.
   * @throws What Hash, Equal and that constructor throw.
   */
  std::optional<T> extract(const Key& key);

  /// Destroy all entries. The hook is not called with them.
  /** @returns How many there were, past their time or not. */
  std::size_t clear() noexcept { return core_->clear(); }

  /// How many entries there are.
  /** Those past their time that the timer has not come to yet count. */
  std::size_t size() const { return core_->size(); }

  /// Whether there are none.
  bool empty() const { return size() == 0; }

  /// Call @c f(const Key&, const T&) for each entry.
  /**
   * In no order, without the lock, for the entries that there were at the
   * beginning. Does not start their time anew. Allocates, linearly.
   */
  template <typename F> void for_each(F&& f) const;

private:
  using core = detail::expiring_map_core<Key, T, Hash, Equal, Executor>;

  boost::intrusive_ptr<core> core_;
};

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#include <asio_wheel/impl/expiring_map.hpp>

#endif // ASIO_WHEEL_EXPIRING_MAP_HPP
