//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_PENDING_OP_HPP
#define ASIO_WHEEL_DETAIL_PENDING_OP_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/executor_work.hpp>
#include <asio_wheel/detail/recycling.hpp>
#include <asio_wheel/detail/wait_op.hpp>
#include <asio_wheel/error.hpp>

#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/post.hpp>
#include <boost/intrusive/list.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

template <typename Owner, typename... Results> class pending_op_queue;

// What an operation carries besides, for Owner to read and write under its
// lock: specialised by an Owner that wants something.
template <typename Owner> struct pending_request {};

// An operation that waits in a part for a result: void(error_code, Results...).
// The part, Owner, keeps it in a pending_op_queue, under its lock, until it has
// the result or until the operation is cancelled; whoever takes it out of the
// queue completes it, without the lock.
//
// Owner is reference-counted (intrusive_ptr_add_ref and _release) and has
//
//   cancel(pending_op_link&)            the operation's slot asks for its end
//   forget(pending_op_link&) noexcept   the slot lets go of the operation
//
// which take the lock, and then do what pending_op_queue::take and
// pending_op_queue::forget say.
template <typename Owner, typename... Results>
class pending_op
    : public boost::intrusive::list_base_hook<
          boost::intrusive::link_mode<boost::intrusive::safe_link>>,
      public pending_request<Owner> {
public:
  class link;

  pending_op(const pending_op&) = delete;
  pending_op& operator=(const pending_op&) = delete;

  // What the operation is about: the owner's affair.
  std::uint64_t tag = 0;

  // These free the operation, and run user code: not under a lock.

  // Have the handler called later, with these results, on its executor.
  void complete(const error_code& ec, Results... results) {
    std::tuple<Results...> r(std::move(results)...);
    perform_(this, &ec, &r);
  }
  // Destroy the handler uncalled.
  void discard() noexcept { perform_(this, nullptr, nullptr); }

protected:
  using perform_type = void (*)(pending_op*, const error_code*,
                                std::tuple<Results...>*);

  explicit pending_op(perform_type perform) noexcept : perform_(perform) {}
  ~pending_op() = default;

  bool clears_slot() const noexcept { return clears_slot_; }

private:
  friend class pending_op_queue<Owner, Results...>;

  const perform_type perform_;
  // The rest is guarded by the owner's lock.
  link* link_ = nullptr;     // while a slot refers to the operation
  bool clears_slot_ = false; // the slot still was ours when it was taken
};

// What the cancellation slot holds: neither it nor the operation ever dangles,
// whichever goes first.
template <typename Owner, typename... Results>
class pending_op<Owner, Results...>::link {
public:
  link(boost::intrusive_ptr<Owner> owner, pending_op& op) noexcept
      : owner_(std::move(owner)), op_(&op) {
    op.link_ = this; // it is not in the queue yet: no lock is needed
  }
  ~link() { owner_->forget(*this); }
  link(const link&) = delete;
  link& operator=(const link&) = delete;

  void operator()(asio::cancellation_type_t type) {
    using asio::cancellation_type;
    if ((type & (cancellation_type::terminal | cancellation_type::partial |
                 cancellation_type::total)) != cancellation_type::none) {
      // The slot may let go of this object meanwhile.
      const boost::intrusive_ptr<Owner> owner = owner_;
      owner->cancel(*this);
    }
  }

private:
  friend class pending_op_queue<Owner, Results...>;
  const boost::intrusive_ptr<Owner> owner_;
  pending_op* op_; // guarded by the owner's lock
};

// The operations that wait in a part, the oldest first. All under its lock.
template <typename Owner, typename... Results> class pending_op_queue {
public:
  using op = pending_op<Owner, Results...>;
  using link = typename op::link;
  using list = boost::intrusive::list<op>;

  bool empty() const noexcept { return ops_.empty(); }
  std::size_t size() const noexcept { return ops_.size(); }
  op& front() noexcept { return ops_.front(); }
  void push_back(op& o) noexcept { ops_.push_back(o); }

  // Take one out, to be completed or discarded.
  op& take_front() noexcept { return take(ops_.front()); }

  // The one that a slot refers to; null if it was taken already.
  op* take(link& l) noexcept { return l.op_ ? &take(*l.op_) : nullptr; }

  // Take all out.
  list take_all() noexcept {
    list all;
    while (!ops_.empty())
      all.push_back(take_front());
    return all;
  }

  static void forget(link& l) noexcept {
    if (l.op_)
      l.op_->link_ = nullptr;
  }

  // The slot is no longer to reach an operation that is in no queue.
  static void release(op& o) noexcept {
    if (o.link_) {
      o.link_->op_ = nullptr;
      o.link_ = nullptr;
      o.clears_slot_ = true;
    }
  }

private:
  op& take(op& o) noexcept {
    ops_.erase(ops_.iterator_to(o));
    release(o);
    return o;
  }

  list ops_;
};

// The operation with its handler. Executor: where the handler is called if it
// has none of its own.
template <typename Handler, typename Executor, typename Owner,
          typename... Results>
class pending_handler final : public pending_op<Owner, Results...> {
  using base = pending_op<Owner, Results...>;
  using memory = op_memory<pending_handler, Handler>;
  using work = executor_work<asio::associated_executor_t<Handler, Executor>>;

public:
  // Not in a queue yet, but its slot is connected: who does not put it into one
  // has to release() it, and then to complete or to discard it.
  static base& make(Handler h, const Executor& ex, Owner& owner) {
    const auto slot = slot_of(h);
    pending_handler* const op = memory::make(h, ex);
    if (slot.is_connected()) {
      struct guard {
        pending_handler* op;
        ~guard() {
          if (op)
            op->discard();
        }
      } g{op};
      auto s = slot;
      s.template emplace<typename base::link>(
          boost::intrusive_ptr<Owner>(&owner), *op);
      g.op = nullptr;
    }
    return *op;
  }

private:
  friend class op_memory<pending_handler, Handler>;

  pending_handler(Handler&& h, const Executor& ex)
      : base(&pending_handler::perform), owners_(ex),
        work_(asio::get_associated_executor(h, ex)), handler_(std::move(h)) {}

  // The owner's executor, which a handler passes that has one of its own.
  struct no_need {
    explicit no_need(const Executor&) noexcept {}
  };
  using owners_work = std::conditional_t<has_own_executor<Handler>,
                                         executor_work<Executor>, no_need>;

  // What is called where the handler is to be.
  class completion {
  public:
    using allocator_type =
        asio::associated_allocator_t<Handler, recycling_allocator<void>>;

    completion(Handler&& h, work&& w, bool clear_slot, const error_code& ec,
               std::tuple<Results...>&& results)
        : handler_(std::move(h)), work_(std::move(w)), clear_slot_(clear_slot),
          ec_(ec), results_(std::move(results)) {}

    allocator_type get_allocator() const noexcept {
      return asio::get_associated_allocator(handler_,
                                            recycling_allocator<void>());
    }

    auto get_work_executor() const noexcept { return work_.get_executor(); }

    void operator()() {
      if (clear_slot_)
        clear_slot_of(handler_);
      std::apply(
          [this](Results&... r) { std::move(handler_)(ec_, std::move(r)...); },
          results_);
    }

  private:
    Handler handler_;
    work work_; // until the handler has been called
    bool clear_slot_;
    error_code ec_;
    std::tuple<Results...> results_;
  };

  // What is posted if that is elsewhere: like Asio's own operations, it goes
  // from the owner's executor to the handler's by way of dispatch. (Some, like
  // use_future's and any_completion_executor, are not to be posted on.)
  class dispatch_completion {
  public:
    using allocator_type = typename completion::allocator_type;

    explicit dispatch_completion(completion&& c) : completion_(std::move(c)) {}

    allocator_type get_allocator() const noexcept {
      return completion_.get_allocator();
    }

    void operator()() {
      const auto ex = completion_.get_work_executor();
      asio::dispatch(ex, std::move(completion_));
    }

  private:
    completion completion_;
  };

  static void perform(base* b, const error_code* ec,
                      std::tuple<Results...>* results) {
    auto* const op = static_cast<pending_handler*>(b);
    memory m(op->handler_);
    const bool clear_slot = op->clears_slot();
    [[maybe_unused]] const owners_work owners(std::move(op->owners_));
    work w(std::move(op->work_));
    Handler handler(std::move(op->handler_));
    m.free(op);
    if (!ec)
      return;
    [[maybe_unused]] const auto ex = w.get_executor();
    completion c(std::move(handler), std::move(w), clear_slot, *ec,
                 std::move(*results));
    if constexpr (has_own_executor<Handler>)
      asio::post(owners.get_executor(), dispatch_completion(std::move(c)));
    else
      asio::post(ex, std::move(c));
  }

  owners_work owners_;
  work work_;
  Handler handler_;
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_PENDING_OP_HPP
