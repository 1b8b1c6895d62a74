//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_DELAY_QUEUE_CORE_HPP
#define ASIO_WHEEL_DETAIL_DELAY_QUEUE_CORE_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/delay_index.hpp>
#include <asio_wheel/detail/pending_op.hpp>
#include <asio_wheel/detail/shard.hpp>
#include <asio_wheel/detail/slab.hpp>
#include <asio_wheel/detail/wakeup.hpp>
#include <asio_wheel/error.hpp>

#include <boost/asio/error.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace detail {
template <typename T, typename Executor> class delay_queue_core;
}

/// Names an item of a delay_queue, also after it has gone.
/**
 * A small value. It is of use with the queue that gave it, and never names
 * another item: each use of an item's memory counts (31 bits).
 */
class delay_key {
public:
  /// Names nothing.
  constexpr delay_key() noexcept = default;

  /// Whether it was got from a queue.
  constexpr explicit operator bool() const noexcept { return generation_ != 0; }

  friend constexpr bool operator==(delay_key a, delay_key b) noexcept {
    return a.index_ == b.index_ && a.generation_ == b.generation_;
  }
  friend constexpr bool operator!=(delay_key a, delay_key b) noexcept {
    return !(a == b);
  }

private:
  template <typename, typename> friend class detail::delay_queue_core;

  constexpr delay_key(std::uint32_t index, std::uint32_t generation) noexcept
      : index_(index), generation_(generation) {}

  std::uint32_t index_ = 0;
  std::uint32_t generation_ = 0; // odd, once it names something
};

namespace detail {

// What a delay_queue shares with its operations and its wakeup, all of which
// may outlive it.
//
// The way of an item: put() takes a node from the slab, makes the value in it,
// and puts it in the index. Its node's generation is odd from then on, until
// take() has it out of there; then only the taker knows of it. A pop gets the
// node as a taken_item; others move the value out themselves.
//
// Ground rules:
// - All data is guarded by mutex_, save a value, which belongs to whoever
//   makes it or has taken it.
// - Operations wait only in pops_ and pushes_. While any does, the wakeup is
//   set, and wake() is what completes them; only an operation's start and its
//   slot complete one besides.
// - Values are made, moved and destroyed without the lock, unless they are
//   trivial.
template <typename T, typename Executor> class delay_queue_core {
public:
  using duration = delay_index::duration;
  using time_point = delay_index::time_point;

  class taken_item;
  using pop_queue = pending_op_queue<delay_queue_core, taken_item>;
  using push_queue = pending_op_queue<delay_queue_core, delay_key>;
  using pop_op = typename pop_queue::op;
  using push_op = typename push_queue::op;

  delay_queue_core(const Executor& ex, std::size_t capacity)
      : wakeup_(*this, ex), capacity_(capacity),
        mutex_(!wakeup_.owner().single_threaded()),
        index_(now(), wakeup_.owner().tick()) {}

  const Executor& get_executor() const noexcept {
    return wakeup_.get_executor();
  }
  std::size_t capacity() const noexcept { return capacity_; }
  time_point now() const noexcept { return wakeup_.owner().now(); }
  time_point after(duration d) const noexcept {
    return d == duration::max() ? time_point::max() : time_scale::add(now(), d);
  }

  // From any thread.
  template <typename U>
  delay_key put(U&& value, time_point due, error_code& ec);
  std::optional<T> try_pop();
  std::optional<T> remove(delay_key key);
  bool reset(delay_key key, time_point due);
  bool contains(delay_key key);
  std::optional<time_point> peek();
  std::size_t clear() noexcept;
  std::size_t size();
  void close() noexcept;
  bool closed();
  void end() noexcept; // the queue is destroyed

  void start(pop_op& op);
  void start(push_op& op, T&& value, time_point due);

  // For the operations' slots.
  void cancel(typename pop_queue::link& l);
  void cancel(typename push_queue::link& l);
  void forget(typename pop_queue::link& l) noexcept {
    const lock_type lock(mutex_);
    pop_queue::forget(l);
  }
  void forget(typename push_queue::link& l) noexcept {
    const lock_type lock(mutex_);
    push_queue::forget(l);
  }

  // For the wakeup.
  void wake();
  void lost() noexcept;

private:
  using lock_type = std::unique_lock<optional_mutex>;

  struct node : delay_item {
    node() noexcept {}
    ~node() {}
    std::uint32_t index; // the slab's
    std::uint32_t generation = 0;
    union {
      T value;
      node* next_free; // the slab's
    };
  };

  // Making a T of it runs no code of the user's: the lock may be kept.
  template <typename U>
  static constexpr bool is_trivial = std::is_trivially_constructible_v<T, U&&>&&
      std::is_trivially_destructible_v<T>;

  friend void intrusive_ptr_add_ref(delay_queue_core* c) noexcept {
    c->references_.fetch_add(1, std::memory_order_relaxed);
  }
  friend void intrusive_ptr_release(delay_queue_core* c) noexcept {
    if (c->references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      delete c;
  }
  ~delay_queue_core() = default;

  class new_node;
  template <typename Queue> class op_guard;

  bool has_room() const noexcept { return size_ < capacity_; }
  bool at_end() const noexcept { return closed_ && size_ == 0; }
  bool anything_waits() const noexcept {
    return !pops_.empty() || !pushes_.empty();
  }
  node* find(delay_key key) const noexcept;
  node* node_of(const push_op& op) const noexcept {
    return slab_.find(static_cast<std::uint32_t>(op.tag));
  }
  delay_key add(node& n) noexcept;
  node* take_due();
  void take(node& n) noexcept;
  void dispose(node& n) noexcept;
  std::optional<T> move_out(node& n, lock_type& lock);
  void uncount(std::size_t n) noexcept;

  outcome set_wakeup(time_point t);
  void hurry() noexcept;
  void unset_wakeup() noexcept;
  bool complete_one(lock_type& lock, const error_code& failure);
  void complete_all(lock_type& lock, const error_code& failure,
                    std::exception_ptr& thrown);
  void discard_all(lock_type& lock) noexcept;

  std::atomic<std::size_t> references_{0};
  wakeup<delay_queue_core, Executor> wakeup_;
  const std::size_t capacity_;

  optional_mutex mutex_;
  slab<node> slab_;
  delay_index index_;
  std::size_t size_ = 0; // of values in the index, coming to it or leaving it
  pop_queue pops_;
  push_queue pushes_; // the tag is the node's number; it is not in the index
  bool closed_ = false;
  bool ended_ = false;
  bool wakeup_set_ = false;
  time_point wakeup_at_{}; // if set
};

// An item on its way to a pop's handler, which gets the value in its node.
template <typename T, typename Executor>
class delay_queue_core<T, Executor>::taken_item {
public:
  taken_item() noexcept = default; // none: the pop failed
  taken_item(delay_queue_core& c, node& n) noexcept : core_(&c), node_(&n) {}
  taken_item(taken_item&& other) noexcept
      : core_(std::move(other.core_)),
        node_(std::exchange(other.node_, nullptr)) {}
  taken_item& operator=(taken_item&& other) noexcept {
    std::swap(core_, other.core_);
    std::swap(node_, other.node_);
    return *this;
  }
  ~taken_item() {
    if (node_)
      core_->dispose(*node_);
  }

  explicit operator bool() const noexcept { return node_ != nullptr; }
  T& value() const noexcept { return node_->value; }

private:
  boost::intrusive_ptr<delay_queue_core> core_;
  node* node_ = nullptr;
};

// A node whose value is made without the lock; counted meanwhile if there is
// room for it.
template <typename T, typename Executor>
class delay_queue_core<T, Executor>::new_node {
public:
  new_node(delay_queue_core& c, lock_type& lock, time_point due)
      : core_(c), lock_(lock), node_(&c.slab_.take()), counted_(c.has_room()) {
    node_->due(due);
    core_.size_ += counted_;
  }
  ~new_node() {
    if (!node_)
      return;
    if (made_) {
      if (lock_.owns_lock())
        lock_.unlock();
      node_->value.~T();
    }
    if (!lock_.owns_lock())
      lock_.lock();
    core_.slab_.give_back(*node_);
    core_.uncount(counted_);
  }

  template <typename U> void make(U&& value) {
    if constexpr (!is_trivial<U>)
      lock_.unlock();
    ::new (static_cast<void*>(std::addressof(node_->value)))
        T(std::forward<U>(value));
    made_ = true;
    if constexpr (!is_trivial<U>)
      lock_.lock();
  }

  // Whether it is counted, or can be now.
  bool count() noexcept {
    if (!counted_ && core_.has_room()) {
      counted_ = true;
      ++core_.size_;
    }
    return counted_;
  }

  node& operator*() const noexcept { return *node_; }
  node& release() noexcept { return *std::exchange(node_, nullptr); }

private:
  delay_queue_core& core_;
  lock_type& lock_;
  node* node_;
  bool counted_;
  bool made_ = false;
};

// An operation that is being started.
template <typename T, typename Executor>
template <typename Queue>
class delay_queue_core<T, Executor>::op_guard {
public:
  op_guard(typename Queue::op& op, lock_type& lock) noexcept
      : op_(&op), lock_(lock) {}
  ~op_guard() {
    if (op_)
      release().discard();
  }

  // It does not wait: to be completed, or discarded. Leaves it unlocked.
  typename Queue::op& release() noexcept {
    if (!lock_.owns_lock())
      lock_.lock();
    Queue::release(*op_);
    lock_.unlock();
    return *std::exchange(op_, nullptr);
  }
  void wait_in(Queue& q) noexcept { q.push_back(*std::exchange(op_, nullptr)); }

private:
  typename Queue::op* op_;
  lock_type& lock_;
};

// ---------------------------------------------------------------------------
// Items

template <typename T, typename Executor>
typename delay_queue_core<T, Executor>::node*
delay_queue_core<T, Executor>::find(delay_key key) const noexcept {
  node* const n = slab_.find(key.index_);
  return n && n->generation == key.generation_ && n->generation % 2 != 0
             ? n
             : nullptr;
}

template <typename T, typename Executor>
delay_key delay_queue_core<T, Executor>::add(node& n) noexcept {
  ++n.generation;
  index_.insert(n);
  return {n.index, n.generation};
}

template <typename T, typename Executor>
typename delay_queue_core<T, Executor>::node*
delay_queue_core<T, Executor>::take_due() {
  auto* const n = static_cast<node*>(index_.first_due(now()));
  if (n)
    take(*n);
  return n;
}

template <typename T, typename Executor>
void delay_queue_core<T, Executor>::take(node& n) noexcept {
  index_.erase(n);
  ++n.generation;
}

// Of a node that is in no index, and not counted.
template <typename T, typename Executor>
void delay_queue_core<T, Executor>::dispose(node& n) noexcept {
  n.value.~T();
  const lock_type lock(mutex_);
  slab_.give_back(n);
}

// Of a node that was taken; it is counted as long as it may come back.
template <typename T, typename Executor>
std::optional<T> delay_queue_core<T, Executor>::move_out(node& n,
                                                         lock_type& lock) {
  struct guard {
    delay_queue_core& core;
    node& n;
    lock_type& lock;
    bool moved;
    ~guard() {
      if (!lock.owns_lock())
        lock.lock();
      if (moved) {
        core.slab_.give_back(n);
        core.uncount(1);
      } else {
        --n.generation; // as if it had not been taken
        core.index_.put_back(n);
        core.hurry(); // it may be the next
      }
    }
  } g{*this, n, lock, false};
  if constexpr (!is_trivial<T>)
    lock.unlock();
  std::optional<T> value(std::move(n.value));
  g.moved = true;
  n.value.~T();
  return value;
}

// So many items have gone: there may be room, or an end.
template <typename T, typename Executor>
void delay_queue_core<T, Executor>::uncount(std::size_t n) noexcept {
  size_ -= n;
  if (!pushes_.empty() || at_end())
    hurry();
}

template <typename T, typename Executor>
template <typename U>
delay_key delay_queue_core<T, Executor>::put(U&& value, time_point due,
                                             error_code& ec) {
  lock_type lock(mutex_);
  if (closed_)
    ec = asio::error::shut_down;
  else if (!has_room())
    ec = error::too_many_pending;
  if (ec)
    return {};
  new_node n(*this, lock, due);
  n.make(std::forward<U>(value));
  if (!pops_.empty())
    set_wakeup(due);
  return add(n.release());
}

template <typename T, typename Executor>
std::optional<T> delay_queue_core<T, Executor>::try_pop() {
  lock_type lock(mutex_);
  node* const n = take_due();
  if (!n)
    return {};
  return move_out(*n, lock);
}

template <typename T, typename Executor>
std::optional<T> delay_queue_core<T, Executor>::remove(delay_key key) {
  lock_type lock(mutex_);
  node* const n = find(key);
  if (!n)
    return {};
  take(*n);
  return move_out(*n, lock);
}

template <typename T, typename Executor>
bool delay_queue_core<T, Executor>::reset(delay_key key, time_point due) {
  const lock_type lock(mutex_);
  node* const n = find(key);
  if (!n)
    return false;
  if (!pops_.empty())
    set_wakeup(due);
  index_.move(*n, due);
  return true;
}

template <typename T, typename Executor>
bool delay_queue_core<T, Executor>::contains(delay_key key) {
  const lock_type lock(mutex_);
  return find(key) != nullptr;
}

template <typename T, typename Executor>
std::optional<typename delay_queue_core<T, Executor>::time_point>
delay_queue_core<T, Executor>::peek() {
  const lock_type lock(mutex_);
  if (index_.empty())
    return {};
  return index_.next_time(now());
}

template <typename T, typename Executor>
std::size_t delay_queue_core<T, Executor>::clear() noexcept {
  delay_list cleared;
  std::size_t n = 0;
  {
    const lock_type lock(mutex_);
    index_.clear([&](delay_item& item) {
      ++static_cast<node&>(item).generation;
      cleared.push_back(item);
      ++n;
    });
  }
  if constexpr (!std::is_trivially_destructible_v<T>)
    for (auto& e : cleared)
      static_cast<node&>(e).value.~T();
  const lock_type lock(mutex_);
  while (!cleared.empty()) {
    auto& freed = static_cast<node&>(cleared.front());
    cleared.pop_front();
    slab_.give_back(freed);
  }
  uncount(n);
  return n;
}

template <typename T, typename Executor>
std::size_t delay_queue_core<T, Executor>::size() {
  const lock_type lock(mutex_);
  return size_;
}

template <typename T, typename Executor>
void delay_queue_core<T, Executor>::close() noexcept {
  const lock_type lock(mutex_);
  closed_ = true;
  uncount(0);
}

template <typename T, typename Executor>
bool delay_queue_core<T, Executor>::closed() {
  const lock_type lock(mutex_);
  return closed_;
}

template <typename T, typename Executor>
void delay_queue_core<T, Executor>::end() noexcept {
  clear();
  std::optional<Executor> executor;
  const lock_type lock(mutex_);
  ended_ = true;
  hurry();
  wakeup_.release_executor(executor);
}

// ---------------------------------------------------------------------------
// Operations

template <typename T, typename Executor>
void delay_queue_core<T, Executor>::start(pop_op& op) {
  lock_type lock(mutex_);
  op_guard<pop_queue> guard(op, lock);
  if (pops_.empty()) {
    if (node* const n = take_due()) {
      uncount(1);
      taken_item item(*this, *n);
      return guard.release().complete({}, std::move(item));
    }
  }
  if (at_end())
    return guard.release().complete(asio::error::eof, {});
  const outcome why = wakeup_.owner().stopped()
                          ? outcome::stopped
                          : set_wakeup(index_.next_time(now()));
  if (why == outcome::none)
    guard.wait_in(pops_);
  else if (why != outcome::abandoned)
    guard.release().complete(error_of(why), {});
}

template <typename T, typename Executor>
void delay_queue_core<T, Executor>::start(push_op& op, T&& value,
                                          time_point due) {
  lock_type lock(mutex_);
  op_guard<push_queue> guard(op, lock);
  if (closed_)
    return guard.release().complete(asio::error::shut_down, {});
  new_node n(*this, lock, due);
  n.make(std::move(value));
  if (n.count()) {
    if (!pops_.empty())
      set_wakeup(due);
    const delay_key key = add(n.release());
    return guard.release().complete({}, key);
  }
  outcome why = outcome::stopped;
  if (!wakeup_.owner().stopped())
    why = set_wakeup(closed_ ? time_point::min() : time_point::max());
  if (why == outcome::none) {
    op.tag = n.release().index;
    guard.wait_in(pushes_);
  } else if (why != outcome::abandoned) {
    guard.release().complete(error_of(why), {});
  }
}

template <typename T, typename Executor>
void delay_queue_core<T, Executor>::cancel(typename pop_queue::link& l) {
  lock_type lock(mutex_);
  pop_op* const op = pops_.take(l);
  if (!op)
    return;
  unset_wakeup();
  lock.unlock();
  op->complete(asio::error::operation_aborted, {});
}

template <typename T, typename Executor>
void delay_queue_core<T, Executor>::cancel(typename push_queue::link& l) {
  lock_type lock(mutex_);
  push_op* const op = pushes_.take(l);
  if (!op)
    return;
  node* const n = node_of(*op);
  unset_wakeup();
  lock.unlock();
  dispose(*n);
  op->complete(asio::error::operation_aborted, {});
}

// ---------------------------------------------------------------------------
// The wakeup

// Have wake() called at t, or earlier.
template <typename T, typename Executor>
outcome delay_queue_core<T, Executor>::set_wakeup(time_point t) {
  if (wakeup_set_ && t >= wakeup_at_)
    return outcome::none;
  const outcome why = wakeup_.set(t);
  if (why == outcome::none) {
    wakeup_set_ = true;
    wakeup_at_ = t;
  }
  return why;
}

// If it is not set, wake() is running, and will look again.
template <typename T, typename Executor>
void delay_queue_core<T, Executor>::hurry() noexcept {
  if (wakeup_set_)
    set_wakeup(time_point::min()); // needs no memory, since it is set
}

template <typename T, typename Executor>
void delay_queue_core<T, Executor>::unset_wakeup() noexcept {
  if (!anything_waits()) {
    wakeup_.clear();
    wakeup_set_ = false;
  }
}

template <typename T, typename Executor>
void delay_queue_core<T, Executor>::wake() {
  std::optional<Executor> executor;
  lock_type lock(mutex_);
  wakeup_.woken();
  wakeup_set_ = false;
  std::exception_ptr thrown;
  complete_all(lock, {}, thrown);
  if (anything_waits()) {
    error_code failure = asio::error::operation_aborted; // the wheel's stop()
    outcome why = outcome::stopped;
    try {
      why = set_wakeup(pops_.empty() ? time_point::max()
                                     : index_.next_time(now()));
    } catch (const std::bad_alloc&) {
      failure = asio::error::no_memory;
    }
    if (why == outcome::abandoned)
      discard_all(lock);
    else if (why != outcome::none)
      complete_all(lock, failure, thrown);
  }
  if (ended_)
    wakeup_.release_executor(executor);
  if (thrown)
    std::rethrow_exception(thrown);
}

template <typename T, typename Executor>
void delay_queue_core<T, Executor>::lost() noexcept {
  std::optional<Executor> executor;
  lock_type lock(mutex_);
  wakeup_.woken();
  wakeup_set_ = false;
  discard_all(lock);
  if (ended_)
    wakeup_.release_executor(executor);
}

// Complete the operations that are to be; with a failure, all. What an executor
// throws ends one operation, not the others.
template <typename T, typename Executor>
void delay_queue_core<T, Executor>::complete_all(lock_type& lock,
                                                 const error_code& failure,
                                                 std::exception_ptr& thrown) {
  for (bool more = true; more;) {
    try {
      more = complete_one(lock, failure);
    } catch (...) {
      thrown = std::current_exception();
    }
    if (!lock.owns_lock())
      lock.lock();
  }
}

// True: it has, and unlocked for that.
template <typename T, typename Executor>
bool delay_queue_core<T, Executor>::complete_one(lock_type& lock,
                                                 const error_code& failure) {
  error_code ec = failure;
  if (ended_)
    ec = asio::error::operation_aborted;
  if (!pops_.empty()) {
    taken_item item;
    if (!ec) {
      if (node* const n = take_due()) {
        item = taken_item(*this, *n);
        --size_;
      } else if (at_end()) {
        ec = asio::error::eof;
      }
    }
    if (ec || item) {
      pop_op& op = pops_.take_front();
      lock.unlock();
      op.complete(ec, std::move(item));
      return true;
    }
  }
  if (!pushes_.empty()) {
    if (!ec && closed_)
      ec = asio::error::shut_down;
    if (ec || has_room()) {
      push_op& op = pushes_.take_front();
      node* const n = node_of(op);
      delay_key key;
      if (!ec) {
        ++size_;
        key = add(*n);
      }
      lock.unlock();
      if (ec)
        dispose(*n);
      op.complete(ec, key);
      return true;
    }
  }
  return false;
}

template <typename T, typename Executor>
void delay_queue_core<T, Executor>::discard_all(lock_type& lock) noexcept {
  while (!pops_.empty()) {
    pop_op& op = pops_.take_front();
    lock.unlock();
    op.discard();
    lock.lock();
  }
  while (!pushes_.empty()) {
    push_op& op = pushes_.take_front();
    node* const n = node_of(op);
    lock.unlock();
    op.discard();
    dispose(*n);
    lock.lock();
  }
}

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_DELAY_QUEUE_CORE_HPP
