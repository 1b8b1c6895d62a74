//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_EXPIRING_MAP_CORE_HPP
#define ASIO_WHEEL_DETAIL_EXPIRING_MAP_CORE_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/recycling.hpp>
#include <asio_wheel/detail/reserve_unlocked.hpp>
#include <asio_wheel/detail/shard.hpp>
#include <asio_wheel/detail/time_scale.hpp>
#include <asio_wheel/detail/wakeup.hpp>

#include <boost/intrusive/set.hpp>
#include <boost/intrusive/slist.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/unordered_set.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// What starts an entry's time to live anew.
enum class expire_after {
  /// Putting it in, and touching it: it lives for a fixed time.
  write,
  /// Finding it as well: it lives for as long as it is used.
  access
};

/// Why an entry of an expiring_map has gone.
enum class expiry_reason {
  /// Its time to live is over.
  expired,
  /// The map was full, and it was the next to expire.
  evicted
};

/// How an expiring_map is built.
template <typename Key, typename T> struct expiring_map_options {
  /// How long an entry lives that is put in without a time of its own: must be
  /// positive. The default, duration::max(): for ever.
  std::chrono::steady_clock::duration time_to_live =
      std::chrono::steady_clock::duration::max();

  /// What starts that time anew.
  asio_wheel::expire_after expire_after = asio_wheel::expire_after::write;

  /// The most entries: at least 1. The default: no limit.
  std::size_t max_size = ~std::size_t{0};

  /// Called with each entry that has expired or was evicted, on the map's
  /// executor, never from inside the map's functions; not with those that were
  /// erased, extracted, replaced or cleared. May use the map. What it throws
  /// leaves `run()`. Empty: nothing is called.
  std::function<void(const Key&, T&&, expiry_reason)> on_expire;
};

namespace detail {

// An entry of an expiring_map. Counts its references: the map's, and those of
// the readers that copy the value without a lock. So the value never changes.
template <typename Key, typename T>
class map_entry : public boost::intrusive::set_base_hook<
                      boost::intrusive::optimize_size<true>>,
                  public boost::intrusive::slist_base_hook<> {
public:
  using duration = std::chrono::steady_clock::duration;
  using time_point = std::chrono::steady_clock::time_point;
  using pointer = boost::intrusive_ptr<map_entry>;

  template <typename K, typename U>
  static pointer make(K&& k, U&& v, duration ttl) {
    memory m;
    struct guard {
      memory& m;
      map_entry* p;
      ~guard() {
        if (p)
          m.deallocate(p, 1);
      }
    } g{m, m.allocate(1)};
    const pointer e(::new (static_cast<void*>(g.p))
                        map_entry(std::forward<K>(k), std::forward<U>(v), ttl));
    g.p = nullptr;
    return e;
  }

  // Of an entry that is out of the map: its value is moved if nobody reads it.
  template <typename F> decltype(auto) give(F&& f) {
    if (references_.load(std::memory_order_acquire) == 1)
      return f(std::move(value));
    return f(T(std::as_const(value)));
  }

  const Key key;
  T value;
  std::size_t hash = 0; // of the key

  // Guarded by the map's lock. The entry is in order of `registered`, which may
  // be earlier than its expiry: that is what makes a touch a store.
  duration ttl;
  time_point expiry{};
  time_point registered{};
  expiry_reason reason = expiry_reason::expired;

private:
  using memory = recycling_allocator<map_entry>;

  template <typename K, typename U>
  map_entry(K&& k, U&& v, duration t)
      : key(std::forward<K>(k)), value(std::forward<U>(v)), ttl(t) {}

  friend void intrusive_ptr_add_ref(map_entry* e) noexcept {
    e->references_.fetch_add(1, std::memory_order_relaxed);
  }
  friend void intrusive_ptr_release(map_entry* e) noexcept {
    if (e->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      e->~map_entry();
      memory().deallocate(e, 1);
    }
  }

  std::atomic<std::size_t> references_{0};
};

// What an expiring_map shares with its wakeup.
//
// Ground rules:
// - All data is guarded by mutex_, save what is const.
// - The user's code runs without the lock, but for Equal. Entries that go are
//   put into a list, or a pointer, that dies after the unlock.
// - The wakeup is set while an entry has an end, or waits for the hook.
template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
class expiring_map_core {
public:
  using entry = map_entry<Key, T>;
  using entry_ptr = typename entry::pointer;
  using options_type = expiring_map_options<Key, T>;
  using duration = typename entry::duration;
  using time_point = typename entry::time_point;

  expiring_map_core(const Executor& ex, options_type&& options,
                    const Hash& hash, const Equal& equal)
      : wakeup_(*this, ex), options_(std::move(options)), hash_(hash),
        equal_(equal), mutex_(!wakeup_.owner().single_threaded()) {}

  const Executor& get_executor() const noexcept {
    return wakeup_.get_executor();
  }
  const options_type& options() const noexcept { return options_; }

  template <typename K, typename U>
  bool put(K&& key, U&& value, duration ttl, bool replace);
  entry_ptr find(const Key& key);
  bool touch(const Key& key);
  bool touch(const Key& key, duration ttl);
  std::optional<time_point> expiry(const Key& key);
  entry_ptr remove(const Key& key);
  std::size_t clear() noexcept;
  std::size_t size();
  std::vector<entry_ptr> snapshot();
  void end() noexcept; // the map is destroyed

  // For the wakeup.
  void wake();
  void lost() noexcept;

private:
  using lock_type = std::unique_lock<optional_mutex>;

  // The table holds pointers, each once; only lookup knows of keys.
  struct hash_of_entry {
    std::size_t operator()(const entry* e) const noexcept { return e->hash; }
  };
  using table_type =
      boost::unordered_set<entry*, hash_of_entry, std::equal_to<entry*>,
                           recycling_allocator<entry*>>;

  struct lookup {
    const Key& key;
    std::size_t hash;
  };
  struct hash_of_lookup {
    std::size_t operator()(const lookup& l) const noexcept { return l.hash; }
  };
  struct same_key {
    const Equal& equal;
    bool operator()(const lookup& l, const entry* e) const {
      return l.hash == e->hash && equal(l.key, e->key);
    }
    bool operator()(const entry* e, const lookup& l) const {
      return (*this)(l, e);
    }
  };

  struct by_registered {
    bool operator()(const entry& a, const entry& b) const noexcept {
      return a.registered < b.registered;
    }
  };
  using order_type =
      boost::intrusive::multiset<entry,
                                 boost::intrusive::compare<by_registered>,
                                 boost::intrusive::constant_time_size<false>>;

  using entry_list =
      boost::intrusive::slist<entry, boost::intrusive::cache_last<true>,
                              boost::intrusive::constant_time_size<false>>;

  // Entries that have gone, each with the reference that the map had.
  class gone_list : public entry_list {
  public:
    gone_list() = default;
    ~gone_list() {
      while (!this->empty())
        take_front();
    }
    entry_ptr take_front() noexcept {
      entry& e = this->front();
      this->pop_front();
      return entry_ptr(&e, false);
    }
  };

  friend void intrusive_ptr_add_ref(expiring_map_core* c) noexcept {
    c->references_.fetch_add(1, std::memory_order_relaxed);
  }
  friend void intrusive_ptr_release(expiring_map_core* c) noexcept {
    if (c->references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete c;
  }
  ~expiring_map_core() = default;

  time_point now() const noexcept { return wakeup_.owner().now(); }
  time_point after(duration d) const noexcept {
    return d == duration::max() ? time_point::max() : time_scale::add(now(), d);
  }

  entry* find(const lookup& l);
  entry* find_alive(const lookup& l);
  entry* next_to_expire() noexcept;
  void place(entry& e) noexcept;
  void unlink(entry& e) noexcept;
  entry_ptr take_ended() noexcept;
  void take_all(gone_list& gone) noexcept;
  outcome set_wakeup(time_point t);
  void clear_wakeup_if_idle() noexcept;

  std::atomic<std::size_t> references_{0};
  wakeup<expiring_map_core, Executor> wakeup_;
  const options_type options_;
  const Hash hash_;
  const Equal equal_;

  optional_mutex mutex_;
  table_type table_;   // each with a reference
  order_type order_;   // the same entries
  gone_list for_hook_; // entries that the hook is to be called with
  bool wakeup_set_ = false;
  time_point wakeup_at_{}; // if set
};

// ---------------------------------------------------------------------------

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
typename expiring_map_core<Key, T, Hash, Equal, Executor>::entry*
expiring_map_core<Key, T, Hash, Equal, Executor>::find(const lookup& l) {
  const auto i = table_.find(l, hash_of_lookup(), same_key{equal_});
  return i == table_.end() ? nullptr : *i;
}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
typename expiring_map_core<Key, T, Hash, Equal, Executor>::entry*
expiring_map_core<Key, T, Hash, Equal, Executor>::find_alive(const lookup& l) {
  entry* const e = find(l);
  return e && e->expiry > now() ? e : nullptr;
}

// Puts those that were touched where they belong, as they come first.
template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
typename expiring_map_core<Key, T, Hash, Equal, Executor>::entry*
expiring_map_core<Key, T, Hash, Equal, Executor>::next_to_expire() noexcept {
  while (!order_.empty()) {
    entry& e = *order_.begin();
    if (e.registered == e.expiry)
      return &e;
    order_.erase(order_.begin());
    place(e);
  }
  return nullptr;
}

// Mostly it is the last to expire, and that is tried first.
template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
void expiring_map_core<Key, T, Hash, Equal, Executor>::place(
    entry& e) noexcept {
  e.registered = e.expiry;
  order_.insert(order_.end(), e);
}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
void expiring_map_core<Key, T, Hash, Equal, Executor>::unlink(
    entry& e) noexcept {
  order_.erase(order_.iterator_to(e));
  table_.erase(table_.find(&e));
}

// The next entry that is to go, or went, with its hook.
template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
typename expiring_map_core<Key, T, Hash, Equal, Executor>::entry_ptr
expiring_map_core<Key, T, Hash, Equal, Executor>::take_ended() noexcept {
  if (!for_hook_.empty())
    return for_hook_.take_front();
  entry* const e = next_to_expire();
  if (!e || e->expiry > now())
    return {};
  unlink(*e);
  return entry_ptr(e, false);
}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
void expiring_map_core<Key, T, Hash, Equal, Executor>::take_all(
    gone_list& gone) noexcept {
  table_.clear();
  order_.clear_and_dispose([&](entry* e) { gone.push_back(*e); });
}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
template <typename K, typename U>
bool expiring_map_core<Key, T, Hash, Equal, Executor>::put(K&& key, U&& value,
                                                           duration ttl,
                                                           bool replace) {
  const entry_ptr e =
      entry::make(std::forward<K>(key), std::forward<U>(value), ttl);
  e->hash = hash_(e->key);
  gone_list gone;
  const lock_type lock(mutex_);
  const time_point t = now();
  entry* old = find(lookup{e->key, e->hash});
  const bool present = old && old->expiry > t;
  if (present && !replace)
    return false;
  if (!old && table_.size() >= options_.max_size)
    old = next_to_expire();

  // What may throw comes first: no more happens then.
  e->expiry = after(ttl);
  const bool hook = old && !present && options_.on_expire;
  const outcome set = set_wakeup(hook ? time_point::min() : e->expiry);
  table_.insert(e.get());
  intrusive_ptr_add_ref(e.get());
  place(*e);
  if (old) {
    unlink(*old);
    old->reason =
        old->expiry <= t ? expiry_reason::expired : expiry_reason::evicted;
    (hook && set == outcome::none ? for_hook_ : gone).push_back(*old);
    clear_wakeup_if_idle();
  }
  return !present;
}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
typename expiring_map_core<Key, T, Hash, Equal, Executor>::entry_ptr
expiring_map_core<Key, T, Hash, Equal, Executor>::find(const Key& key) {
  const lookup l{key, hash_(key)};
  const lock_type lock(mutex_);
  entry* const e = find_alive(l);
  if (e && options_.expire_after == expire_after::access)
    e->expiry = after(e->ttl);
  return entry_ptr(e);
}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
bool expiring_map_core<Key, T, Hash, Equal, Executor>::touch(const Key& key) {
  const lookup l{key, hash_(key)};
  const lock_type lock(mutex_);
  entry* const e = find_alive(l);
  if (!e)
    return false;
  e->expiry = after(e->ttl);
  return true;
}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
bool expiring_map_core<Key, T, Hash, Equal, Executor>::touch(const Key& key,
                                                             duration ttl) {
  const lookup l{key, hash_(key)};
  const lock_type lock(mutex_);
  entry* const e = find_alive(l);
  if (!e)
    return false;
  const time_point t = after(ttl);
  set_wakeup(t);
  e->ttl = ttl;
  e->expiry = t;
  if (t < e->registered) {
    order_.erase(order_.iterator_to(*e));
    place(*e);
  }
  clear_wakeup_if_idle();
  return true;
}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
std::optional<
    typename expiring_map_core<Key, T, Hash, Equal, Executor>::time_point>
expiring_map_core<Key, T, Hash, Equal, Executor>::expiry(const Key& key) {
  const lookup l{key, hash_(key)};
  const lock_type lock(mutex_);
  const entry* const e = find_alive(l);
  if (!e)
    return {};
  return e->expiry;
}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
typename expiring_map_core<Key, T, Hash, Equal, Executor>::entry_ptr
expiring_map_core<Key, T, Hash, Equal, Executor>::remove(const Key& key) {
  const lookup l{key, hash_(key)};
  const lock_type lock(mutex_);
  entry* const e = find_alive(l);
  if (!e)
    return {};
  unlink(*e);
  clear_wakeup_if_idle();
  return entry_ptr(e, false);
}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
std::size_t expiring_map_core<Key, T, Hash, Equal, Executor>::clear() noexcept {
  gone_list gone;
  const lock_type lock(mutex_);
  const std::size_t n = table_.size();
  take_all(gone);
  clear_wakeup_if_idle();
  return n;
}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
std::size_t expiring_map_core<Key, T, Hash, Equal, Executor>::size() {
  const lock_type lock(mutex_);
  return table_.size();
}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
std::vector<
    typename expiring_map_core<Key, T, Hash, Equal, Executor>::entry_ptr>
expiring_map_core<Key, T, Hash, Equal, Executor>::snapshot() {
  std::vector<entry_ptr> all;
  lock_type lock(mutex_);
  reserve_unlocked(all, lock, [this] { return table_.size(); });
  const time_point t = now();
  for (entry* const e : table_)
    if (e->expiry > t)
      all.emplace_back(e);
  return all;
}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
void expiring_map_core<Key, T, Hash, Equal, Executor>::end() noexcept {
  gone_list gone;
  const lock_type lock(mutex_);
  take_all(gone);
  gone.splice_after(gone.before_begin(), for_hook_);
  clear_wakeup_if_idle();
}

// ---------------------------------------------------------------------------
// The wakeup

// Have wake() called at t, or earlier.
template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
outcome
expiring_map_core<Key, T, Hash, Equal, Executor>::set_wakeup(time_point t) {
  if (t == time_point::max() || (wakeup_set_ && t >= wakeup_at_))
    return outcome::none;
  const outcome why = wakeup_.set(t);
  if (why == outcome::none) {
    wakeup_set_ = true;
    wakeup_at_ = t;
  }
  return why;
}

// What has no end does not hold run().
template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
void expiring_map_core<Key, T, Hash, Equal,
                       Executor>::clear_wakeup_if_idle() noexcept {
  if (!wakeup_set_ || !for_hook_.empty())
    return;
  const entry* const e = next_to_expire();
  if (!e || e->expiry == time_point::max()) {
    wakeup_.clear();
    wakeup_set_ = false;
  }
}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
void expiring_map_core<Key, T, Hash, Equal, Executor>::wake() {
  gone_list gone;
  std::exception_ptr thrown;
  lock_type lock(mutex_);
  wakeup_.woken();
  wakeup_set_ = false;
  // One at a time, so that the wheel's limit for a turn counts entries.
  if (entry_ptr e = take_ended()) {
    lock.unlock();
    try {
      if (options_.on_expire)
        e->give([&](T&& value) {
          options_.on_expire(e->key, std::move(value), e->reason);
        });
    } catch (...) {
      thrown = std::current_exception();
    }
    e.reset();
    lock.lock();
  }

  outcome why = outcome::none;
  try {
    if (!for_hook_.empty())
      why = set_wakeup(time_point::min());
    else if (const entry* const e = next_to_expire())
      why = set_wakeup(e->expiry);
  } catch (...) { // no memory; the next that is put in sets it
    thrown = std::current_exception();
  }
  if (why != outcome::none)
    gone.splice_after(gone.before_begin(), for_hook_);
  if (why == outcome::abandoned)
    take_all(gone);
  lock.unlock();
  if (thrown)
    std::rethrow_exception(thrown);
}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
void expiring_map_core<Key, T, Hash, Equal, Executor>::lost() noexcept {
  gone_list gone;
  const lock_type lock(mutex_);
  wakeup_.woken();
  wakeup_set_ = false;
  take_all(gone);
  gone.splice_after(gone.before_begin(), for_hook_);
}

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_EXPIRING_MAP_CORE_HPP
