//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_WAIT_OP_HPP
#define ASIO_WHEEL_DETAIL_WAIT_OP_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/executor_work.hpp>
#include <asio_wheel/detail/native_executor.hpp>
#include <asio_wheel/detail/recycling.hpp>
#include <asio_wheel/detail/shard_ptr.hpp>
#include <asio_wheel/error.hpp>

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/intrusive/list.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

class alarm;

// How a wait ends. `none`: open, or started with success.
enum class outcome : unsigned char {
  none,
  aborted,
  too_many_pending,
  stopped,
  not_supported,
  abandoned // its context is gone: the handler is destroyed uncalled
};

error_code error_of(outcome o) noexcept;

// A wait kept by value: a handler that can be moved by copying its bytes. It
// lives in its alarm while it is open, and is copied out, under the lock, to
// the stack of the drain that starts it or to a small_op that carries it to
// one. No user code runs in the copying, which is why it may.
struct small_wait {
  static constexpr std::size_t capacity = 32;

  template <typename Handler> static constexpr bool fits() noexcept {
    return sizeof(Handler) <= capacity && alignof(Handler) <= alignof(void*) &&
           std::is_trivially_copyable_v<Handler> &&
           std::is_trivially_destructible_v<Handler> &&
           // A handler that brings an allocator wants it used.
           std::is_same_v<asio::associated_allocator_t<Handler>,
                          std::allocator<void>>;
  }

  template <typename Handler>
  static small_wait make(const Handler& h) noexcept {
    small_wait w;
    w.call = [](void* handler, const error_code& ec) {
      std::move (*std::launder(reinterpret_cast<Handler*>(handler)))(ec);
    };
    std::memcpy(w.bytes, std::addressof(h), sizeof(Handler));
    return w;
  }

  small_wait() noexcept {} // bytes are left uninitialised

  explicit operator bool() const noexcept { return call != nullptr; }

  void (*call)(void*, const error_code&) = nullptr;
  alignas(void*) unsigned char bytes[capacity];
};

// A wait that is an object of its own.
class wait_op : public boost::intrusive::list_base_hook<
                    boost::intrusive::link_mode<boost::intrusive::safe_link>> {
public:
  class slot_link;

  wait_op(const wait_op&) = delete;
  wait_op& operator=(const wait_op&) = delete;

  // The rest frees the operation, and runs user code: not under a lock.

  // Call the handler with ec.
  void complete(const error_code& ec) { perform_(this, action::complete, ec); }
  // Hand the operation to its executor, which will make it arrive.
  void hand_over() { perform_(this, action::hand_over, {}); }
  // Destroy the handler uncalled.
  void discard() noexcept { perform_(this, action::discard, {}); }

protected:
  enum class action : unsigned char { complete, hand_over, discard };
  using perform_type = void (*)(wait_op*, action, const error_code&);
  enum class kind : unsigned char {
    direct,  // a drain may call the handler
    foreign, // it has to be handed to its own executor
    small    // a small_op: carries a small wait that has an outcome
  };

  wait_op(perform_type perform, kind k) noexcept
      : perform_(perform), kind_(k) {}
  ~wait_op() = default;

  bool clears_slot() const noexcept { return clears_slot_; }

private:
  friend class shard;

  perform_type perform_;
  // The rest is guarded by the shard's lock.
  alarm* alarm_ = nullptr;    // while the wait is open
  slot_link* link_ = nullptr; // while a slot refers to the operation
  std::uint64_t age_ = 0;     // smaller is older, within an alarm
  outcome outcome_ = outcome::none;
  const kind kind_;
  bool handed_ = false;      // a thunk is on its way
  bool clears_slot_ = false; // the slot still was ours when it was started
};

using wait_op_list =
    boost::intrusive::list<wait_op,
                           boost::intrusive::constant_time_size<false>>;

// What a cancellation slot holds. Tells the operation when the slot lets go of
// it, and is told when the operation is gone: neither ever dangles, whichever
// goes first.
class wait_op::slot_link {
public:
  slot_link(wait_op& op, shard& s) noexcept;
  ~slot_link();
  slot_link(const slot_link&) = delete;
  slot_link& operator=(const slot_link&) = delete;

  void operator()(asio::cancellation_type_t type);

private:
  friend class shard;
  shard_ptr shard_;
  wait_op* op_; // guarded by the shard's lock
};

// Carries a small wait that has an outcome to a drain. Pooled by the shard.
class small_op final : public wait_op {
private:
  friend class shard;
  small_op() noexcept : wait_op(nullptr, kind::small) {}
  small_wait wait_;
};

// An operation's memory: from the handler's allocator, or recycled.
template <typename Op, typename Handler> class op_memory {
public:
  using allocator_type =
      asio::associated_allocator_t<Handler, recycling_allocator<void>>;
  using traits = typename std::allocator_traits<
      allocator_type>::template rebind_traits<Op>;

  explicit op_memory(const Handler& h)
      : allocator_(
            asio::get_associated_allocator(h, recycling_allocator<void>())) {}

  template <typename... Args> static Op* make(Handler& h, Args&&... args) {
    op_memory memory(h);
    struct release {
      op_memory& memory;
      Op* p;
      ~release() {
        if (p)
          traits::deallocate(memory.allocator_, p, 1);
      }
    } guard{memory, traits::allocate(memory.allocator_, 1)};
    Op* const op = ::new (static_cast<void*>(guard.p))
        Op(std::move(h), std::forward<Args>(args)...);
    guard.p = nullptr;
    return op;
  }

  void free(Op* op) noexcept {
    op->~Op();
    traits::deallocate(allocator_, op, 1);
  }

private:
  typename traits::allocator_type allocator_;
};

// With an explicit default, since Boost 1.81 finds two functions without for a
// std::reference_wrapper.
template <typename Handler> auto slot_of(const Handler& h) noexcept {
  return asio::get_associated_cancellation_slot(h, asio::cancellation_slot());
}

template <typename Handler> void clear_slot_of(const Handler& h) {
  auto slot = slot_of(h);
  if (slot.is_connected())
    slot.clear();
}

// A wait whose handler a drain may call directly.
template <typename Handler> class direct_op final : public wait_op {
public:
  explicit direct_op(Handler&& h)
      : wait_op(&direct_op::perform, kind::direct), handler_(std::move(h)) {}

private:
  friend class op_memory<direct_op, Handler>;

  static void perform(wait_op* base, action what, const error_code& ec) {
    auto* const op = static_cast<direct_op*>(base);
    op_memory<direct_op, Handler> memory(op->handler_);
    const bool clear_slot = op->clears_slot();
    Handler handler(std::move(op->handler_));
    memory.free(op);
    if (what == action::discard)
      return;
    if (clear_slot)
      clear_slot_of(handler);
    std::move(handler)(ec);
  }

  Handler handler_;
};

void arrive(shard& s, wait_op& op);
void drop(shard& s, wait_op& op) noexcept;

// A wait whose handler is called through an executor of its own. Holds work on
// that executor as long as it waits.
template <typename Handler, typename Executor>
class foreign_op final : public wait_op {
public:
  foreign_op(Handler&& h, const Executor& ex, shard& s)
      : wait_op(&foreign_op::perform, kind::foreign), work_(ex), shard_(&s),
        handler_(std::move(h)) {}

private:
  friend class op_memory<foreign_op, Handler>;

  // What is handed to the executor. Destroyed without having been called, it
  // takes the operation with it.
  class thunk {
  public:
    using allocator_type =
        typename op_memory<foreign_op, Handler>::allocator_type;

    thunk(foreign_op* op) noexcept : op_(op) {}
    thunk(thunk&& other) noexcept : op_(std::exchange(other.op_, nullptr)) {}
    ~thunk() {
      if (op_) {
        const shard_ptr s = op_->shard_;
        drop(*s, *op_);
      }
    }

    allocator_type get_allocator() const noexcept {
      return asio::get_associated_allocator(op_->handler_,
                                            recycling_allocator<void>());
    }

    void operator()() {
      foreign_op* const op = std::exchange(op_, nullptr);
      const shard_ptr s = op->shard_;
      arrive(*s, *op);
    }

  private:
    foreign_op* op_;
  };

  static void perform(wait_op* base, action what, const error_code& ec) {
    auto* const op = static_cast<foreign_op*>(base);
    if (what == action::hand_over) {
      thunk t(op);
      const auto ex = op->work_.get_executor();
      asio::dispatch(ex, std::move(t));
      return;
    }
    op_memory<foreign_op, Handler> memory(op->handler_);
    const bool clear_slot = op->clears_slot();
    [[maybe_unused]] const auto work = std::move(op->work_);
    Handler handler(std::move(op->handler_));
    memory.free(op);
    if (what == action::discard)
      return;
    if (clear_slot)
      clear_slot_of(handler);
    std::move(handler)(ec);
  }

  executor_work<Executor> work_;
  shard_ptr shard_;
  Handler handler_;
};

// Stands for "no executor": an associated executor that still is this one is
// not the handler's own.
struct no_executor {
  void execute() const = delete;
};

template <typename Handler>
inline constexpr bool has_own_executor =
    !std::is_same_v<asio::associated_executor_t<Handler, no_executor>,
                    no_executor>;

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_WAIT_OP_HPP
