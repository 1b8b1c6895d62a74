//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_TIMED_OPERATION_HPP
#define ASIO_WHEEL_DETAIL_TIMED_OPERATION_HPP

#include <asio_wheel/associated_deadline.hpp>
#include <asio_wheel/detail/alarm.hpp>
#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/deadline_core.hpp>
#include <asio_wheel/detail/native_executor.hpp>
#include <asio_wheel/detail/other_executor.hpp>
#include <asio_wheel/detail/recycling.hpp>
#include <asio_wheel/detail/shard.hpp>
#include <asio_wheel/detail/start_wait.hpp>
#include <asio_wheel/detail/wait_op.hpp>
#include <asio_wheel/error.hpp>
#include <asio_wheel/wheel_service.hpp>

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/system/system_error.hpp>

#include <atomic>
#include <chrono>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// An asynchronous operation of anybody's that is cancelled, through its
// cancellation slot, when its time is up: the state behind timeout_after(),
// cancel_after(), bind_deadline() and their like.
//
// A Limit says how long, and what then:
//   has_timeout    there is a point in time of its own, end(shard)
//   is_deadline    it is core(), a deadline shared with others
//   translates     the operation's result says that time was up
//   type()         what kind of cancellation

// ---------------------------------------------------------------------------
// What to do with a handler

// Post on any executor: also on one that can only be asked, not required, never
// to call in place (any_completion_executor).
template <typename Executor, typename Function>
void post_on(const Executor& ex, Function&& f) {
  if constexpr (asio::execution::is_executor<Executor>::value &&
                !asio::can_require<Executor,
                                   asio::execution::blocking_t::never_t>::value)
    asio::prefer(ex, asio::execution::blocking.never)
        .execute(std::forward<Function>(f));
  else
    asio::post(ex, std::forward<Function>(f));
}

// The shard of the wheel of an executor's context. Some executors do not tell
// theirs (any_completion_executor): if it cannot be found out, system_context.
template <typename Executor> shard& shard_of(const Executor& ex) {
  native_executor native = native_executor::behind(ex);
  asio::execution_context* context = context_if_known(ex);
  if (!context && !native)
    native = native_executor::of(asio::system_executor());
  if (!context)
    context = native.context();
  auto& service = asio::use_service<wheel_service>(*context);
  service.learn_native(native);
  return service.local_shard();
}

// A new alarm there.
template <typename Executor> alarm alarm_on(const Executor& ex) {
  shard& s = shard_of(ex);
  return alarm(s, native_executor::of(ex).context() == &s.context());
}

// A copy of a handler's allocator, if it has one: Asio asks also a handler that
// was moved from, when starting an operation fails.
struct no_allocator {};

template <typename Handler>
inline constexpr bool has_own_allocator =
    !std::is_same_v<asio::associated_allocator_t<Handler, no_allocator>,
                    no_allocator>;

template <typename Handler, bool HasOwn = has_own_allocator<Handler>>
class own_allocator {
public:
  explicit own_allocator(const Handler&) noexcept {}
};

template <typename Handler> class own_allocator<Handler, true> {
public:
  using allocator_type = asio::associated_allocator_t<Handler>;
  explicit own_allocator(const Handler& h)
      : allocator_(asio::get_associated_allocator(h)) {}
  allocator_type get_allocator() const noexcept { return allocator_; }

private:
  allocator_type allocator_;
};

struct no_deadline {};

template <typename Handler>
inline constexpr bool has_own_deadline =
    !std::is_same_v<associated_deadline_t<Handler, no_deadline>, no_deadline>;

// ---------------------------------------------------------------------------
// Results

inline error_code error_to_report(int why) noexcept {
  if (why == by_user)
    return asio::error::operation_aborted;
  return static_cast<error>(why);
}

inline bool is_aborted(const std::exception_ptr& e) {
  try {
    if (e)
      std::rethrow_exception(e);
  } catch (const boost::system::system_error& error) {
    return error.code() == asio::error::operation_aborted;
  } catch (...) {
  }
  return false;
}

inline std::exception_ptr exception_to_report(int why) {
  return std::make_exception_ptr(
      boost::system::system_error(error_to_report(why)));
}

// An operation that was ended because of `why` has come to an end: its first
// result, what it is to be instead.
template <typename Result> decltype(auto) translated(Result&& r, int why) {
  using type = std::decay_t<Result>;
  if constexpr (std::is_same_v<type, error_code> ||
                std::is_convertible_v<type, error_code>) {
    const error_code ec = r;
    return why > by_nobody && ec == asio::error::operation_aborted
               ? error_to_report(why)
               : ec;
  } else if constexpr (std::is_convertible_v<type, std::exception_ptr>) {
    std::exception_ptr e(std::forward<Result>(r));
    return why > by_nobody && is_aborted(e) ? exception_to_report(why) : e;
  } else {
    return std::forward<Result>(r);
  }
}

// Whether a completion signature's first argument can tell an error, and
// whether such a result can be made up without the operation.
template <typename Signature> struct result_of_signature;

template <typename R, typename... Args> struct result_of_signature<R(Args...)> {
  static constexpr bool has_error = false;
  static constexpr bool can_refuse = false;
};

template <typename R, typename First, typename... Args>
struct result_of_signature<R(First, Args...)> {
  using first_type = std::decay_t<First>;
  static constexpr bool has_error =
      std::is_same_v<first_type, error_code> ||
      std::is_same_v<first_type, std::exception_ptr>;
  static constexpr bool can_refuse =
      has_error && (std::is_default_constructible_v<std::decay_t<Args>> && ...);

  static auto refused(int why) {
    if constexpr (std::is_same_v<first_type, error_code>)
      return std::tuple<error_code, std::decay_t<Args>...>(
          error_to_report(why), std::decay_t<Args>()...);
    else
      return std::tuple<std::exception_ptr, std::decay_t<Args>...>(
          exception_to_report(why), std::decay_t<Args>()...);
  }
};

template <typename R, typename... Args>
struct result_of_signature<R(Args...)&> : result_of_signature<R(Args...)> {};
template <typename R, typename... Args>
struct result_of_signature<R(Args...) &&> : result_of_signature<R(Args...)> {};
template <typename R, typename... Args>
struct result_of_signature<R(Args...) noexcept>
    : result_of_signature<R(Args...)> {};
template <typename R, typename... Args>
struct result_of_signature<R(Args...)& noexcept>
    : result_of_signature<R(Args...)> {};
template <typename R, typename... Args>
struct result_of_signature<R(Args...)&& noexcept>
    : result_of_signature<R(Args...)> {};

// The first of the signatures with which an operation can be refused.
template <typename... Signatures> struct refusable {
  static constexpr bool value = false;
};

template <typename Signature, typename... Signatures>
struct refusable<Signature, Signatures...>
    : std::conditional_t<result_of_signature<Signature>::can_refuse,
                         result_of_signature<Signature>,
                         refusable<Signatures...>> {
  static constexpr bool value = result_of_signature<Signature>::can_refuse ||
                                refusable<Signatures...>::value;
};

// A handler with its results. Has the handler's associations.
template <typename Handler, typename Results> class handler_with_results {
public:
  handler_with_results(Handler&& h, Results&& r)
      : handler_(std::move(h)), results_(std::move(r)) {}

  const Handler& handler() const noexcept { return handler_; }

  void operator()() { std::apply(std::move(handler_), std::move(results_)); }

private:
  Handler handler_;
  Results results_;
};

// ---------------------------------------------------------------------------
// The state of an operation

// What keeps the state while something else than the operation itself is on
// its way to it.
template <typename Operation> class operation_ref {
public:
  struct adopt {};

  explicit operation_ref(Operation* op) noexcept : op_(op) { op->hold(); }
  operation_ref(Operation* op, adopt) noexcept : op_(op) {}
  operation_ref(operation_ref&& other) noexcept
      : op_(std::exchange(other.op_, nullptr)) {}
  ~operation_ref() {
    if (op_)
      op_->release();
  }

  Operation* operator->() const noexcept { return op_; }

private:
  Operation* op_;
};

// What the operation's handler holds. Destroyed before the handler was called,
// it ends the matter.
template <typename Operation> class operation_owner {
public:
  explicit operation_owner(Operation* op) noexcept : op_(op) {}
  operation_owner(operation_owner&& other) noexcept
      : op_(std::exchange(other.op_, nullptr)) {}
  ~operation_owner() {
    if (op_) {
      op_->stop();
      op_->release();
    }
  }

  Operation* get() const noexcept { return op_; }
  Operation* operator->() const noexcept { return op_; }
  Operation* release() noexcept { return std::exchange(op_, nullptr); }

private:
  Operation* op_;
};

class no_timeout {};
class own_timeout {
protected:
  std::optional<alarm> alarm_; // empty: never
};

class under_no_deadline {
protected:
  ~under_no_deadline() = default;
};
class under_deadline : public deadline_entry {
protected:
  ~under_deadline() = default;
  deadline_core_ptr core_; // null: none
};

template <typename Handler, typename Limit>
inline constexpr bool asks_deadline = Limit::is_deadline ||
                                      (Limit::translates &&
                                       has_own_deadline<Handler>);

// The state, in memory of the handler's allocator, which therefore is gone
// before the handler is called.
//
// Ground rules. executor_ is where the operation completes: the I/O object's,
// if the operation says so. There runs everything but the constructor, arm()
// and launched(), which the initiating function calls; the upcall, and what
// the user's slot calls, which run where the user's handler does; and ring(),
// which only finds its way to executor_. With several threads it has to be a
// strand, as ever. Where it is not one, this state at least is not touched
// after it is freed: whatever is on its way to it has a reference.
//
// The handler is called only when the operation holds the only reference, since
// after the call its allocator may be gone. Until then its completion steps
// back: it lets what is on its way to executor_ go first.
template <typename Handler, typename Executor, typename Limit>
class timed_operation final
    : private std::conditional_t<Limit::has_timeout, own_timeout, no_timeout>,
      private std::conditional_t<asks_deadline<Handler, Limit>, under_deadline,
                                 under_no_deadline> {
  static constexpr bool has_timeout = Limit::has_timeout;

public:
  static constexpr bool has_deadline = asks_deadline<Handler, Limit>;

  using handler_type = Handler;
  using executor_type = Executor;
  using ref = operation_ref<timed_operation>;
  using owner = operation_owner<timed_operation>;

  timed_operation(Handler&& h, const Executor& ex, const Limit& limit)
      : type_(limit.type()), executor_(ex), other_(h, ex),
        handler_(std::move(h)) {
    if constexpr (has_deadline)
      this->core_ = core_of(limit, handler_);
    if (auto slot = slot_of(handler_); slot.is_connected())
      slot.template emplace<user_cancellation>(*this);
  }

  // Start the clock. Says why the operation may not go on if so.
  int arm(const Limit& limit) {
    if constexpr (has_timeout) {
      if (!limit.never()) {
        this->alarm_.emplace(alarm_on(executor_));
        shard& s = this->alarm_->owner();
        s.expires_at(*this->alarm_, limit.end(s), {});
        start_wait(*this->alarm_, timeout_check(this), executor_);
      }
    }
    if constexpr (has_deadline)
      if (this->core_)
        return this->core_->join(*this);
    return by_nobody;
  }

  // The initiation has returned: from now on the operation can be cancelled.
  void launched() noexcept { launched_.store(true, std::memory_order_release); }

  const Executor& get_executor() const noexcept { return executor_; }
  asio::cancellation_slot slot() noexcept { return signal_.slot(); }
  const Handler& handler() const noexcept { return handler_; }
  deadline_ref get_deadline() const noexcept {
    if constexpr (has_deadline)
      return deadline_ref(this->core_);
    else
      return {};
  }

  // The operation is over: no clock will do anything to it any more.
  void stop() noexcept {
    over_.store(true);
    if constexpr (has_timeout)
      if (this->alarm_)
        this->alarm_->owner().withdraw(*this->alarm_);
    if constexpr (has_deadline)
      if (this->core_)
        this->core_->leave(*this);
  }

  // End the operation, on its executor.
  static void end(ref self, int why) {
    if (self->over_.load())
      return;
    if (!self->launched_.load(std::memory_order_acquire)) {
      // What is not there yet would not hear it.
      const Executor ex = self->executor_;
      post_on(ex, [self = std::move(self), why]() mutable {
        end(std::move(self), why);
      });
      return;
    }
    self->emit(why, self->type_);
  }

  // The operation has completed, and was stopped.
  template <typename... Args> static void complete(owner self, Args&&... args) {
    if (!self->alone()) {
      const Executor ex = self->executor_;
      post_on(ex, [self = std::move(self),
                   results = std::tuple<std::decay_t<Args>...>(
                       std::forward<Args>(args)...)]() mutable {
        std::apply(
            [&](auto&&... results1) {
              complete(std::move(self), std::move(results1)...);
            },
            std::move(results));
      });
      return;
    }
    if constexpr (Limit::translates && sizeof...(Args) != 0)
      finish_translated(std::move(self), std::forward<Args>(args)...);
    else
      finish(std::move(self), std::forward<Args>(args)...);
  }

  void hold() noexcept { references_.fetch_add(1); }
  void release() noexcept {
    if (references_.fetch_sub(1) == 1)
      free();
  }

private:
  template <typename, typename> friend class op_memory;

  // What the alarm calls.
  class timeout_check {
  public:
    explicit timeout_check(timed_operation* op) noexcept : op_(op) {}
    void operator()(const error_code& ec) {
      const int why = op_->why(ec);
      end(std::move(op_), why);
    }

  private:
    ref op_;
  };

  // What the user's slot calls. It and the state tell each other when they go.
  class user_cancellation {
  public:
    explicit user_cancellation(timed_operation& op) noexcept : op_(&op) {
      op.user_cancellation_ = this;
    }
    ~user_cancellation() {
      if (op_)
        op_->user_cancellation_ = nullptr;
    }
    user_cancellation(const user_cancellation&) = delete;
    user_cancellation& operator=(const user_cancellation&) = delete;

    void operator()(asio::cancellation_type_t type) {
      if (op_)
        op_->user_cancels(type);
    }

  private:
    friend class timed_operation;
    timed_operation* op_;
  };

  // The handler and the results, on their way to the handler's executor.
  template <typename... Results> class upcall {
  public:
    using allocator_type =
        typename op_memory<timed_operation, Handler>::allocator_type;

    template <typename... Args>
    explicit upcall(owner op, Args&&... args)
        : op_(std::move(op)), results_(std::forward<Args>(args)...) {}

    allocator_type get_allocator() const noexcept {
      return asio::get_associated_allocator(op_->handler_,
                                            recycling_allocator<void>());
    }

    void operator()() {
      std::apply(
          [this](auto&&... results) {
            call(std::move(op_), std::move(results)...);
          },
          std::move(results_));
    }

  private:
    owner op_;
    std::tuple<Results...> results_;
  };

  ~timed_operation() {
    if (user_cancellation_)
      user_cancellation_->op_ = nullptr;
  }

  static deadline_core_ptr core_of(const Limit& limit, const Handler& h) {
    if constexpr (Limit::is_deadline) {
      (void)h;
      return limit.core();
    } else {
      (void)limit;
      return deadline_ref(get_associated_deadline(h, deadline_ref())).core();
    }
  }

  bool alone() const noexcept { return references_.load() == 1; }

  // Why the alarm has gone off. Of two ends the earlier counts, whichever was
  // noticed first; of two that are the same, the deadline.
  int why(const error_code& ec) const noexcept {
    if (ec == asio::error::operation_aborted) // wheel_service::stop()
      return by_user;
    if (ec) // the wheel would not have it: nothing goes on unbounded
      return ec.value();
    if constexpr (has_deadline)
      if (this->core_ && this->core_->expiry() <= this->alarm_->expiry())
        return by(error::deadline_exceeded);
    return by(error::operation_timeout);
  }

  // The deadline has passed, or was cancelled.
  void ring(int why, std::chrono::steady_clock::time_point expiry) {
    ref self(this, typename ref::adopt());
    if constexpr (has_timeout)
      if (why == by(error::deadline_exceeded) && this->alarm_ &&
          this->alarm_->expiry() < expiry)
        why = by(error::operation_timeout);
    const Executor ex = executor_;
    asio::dispatch(ex, [self = std::move(self), why]() mutable {
      end(std::move(self), why);
    });
  }

  void emit(int why, asio::cancellation_type_t type) {
    int first = by_nobody;
    first_.compare_exchange_strong(first, why);
    signal_.emit(type);
    // The operation may be over, and this gone.
  }

  void user_cancels(asio::cancellation_type_t type) {
    if (type == asio::cancellation_type::none)
      return;
    if (!other_.any()) {
      if (!over_.load())
        emit(by_user, type);
      return;
    }
    if constexpr (has_own_executor<Handler>) {
      // Here is the handler's executor; the operation is elsewhere.
      ref self(this);
      if (over_.load())
        return; // and the completion may not wait for us
      const Executor ex = executor_;
      asio::dispatch(ex, [self = std::move(self), type] {
        if (!self->over_.load())
          self->emit(by_user, type);
      });
    }
  }

  template <typename First, typename... Args>
  static void finish_translated(owner self, First&& first, Args&&... args) {
    const int why = self->first_.load();
    finish(std::move(self), translated(std::forward<First>(first), why),
           std::forward<Args>(args)...);
  }

  template <typename... Args> static void finish(owner self, Args&&... args) {
    if constexpr (has_own_executor<Handler>) {
      if (self->other_.any()) {
        const auto ex = self->other_.get();
        asio::dispatch(ex, upcall<std::decay_t<Args>...>(
                               std::move(self), std::forward<Args>(args)...));
        return;
      }
    }
    call(std::move(self), std::forward<Args>(args)...);
  }

  template <typename... Args> static void call(owner self, Args&&... args) {
    timed_operation* const op = self.release();
    if (op->user_cancellation_)
      clear_slot_of(op->handler_);
    [[maybe_unused]] const auto work = std::move(op->other_);
    op_memory<timed_operation, Handler> memory(op->handler_);
    Handler handler(std::move(op->handler_));
    memory.free(op);
    std::move(handler)(std::forward<Args>(args)...);
  }

  // The handler is destroyed uncalled.
  void free() noexcept {
    op_memory<timed_operation, Handler> memory(handler_);
    [[maybe_unused]] const Handler handler(std::move(handler_));
    memory.free(this);
  }

  std::atomic<unsigned> references_{1};
  std::atomic<int> first_{by_nobody};
  std::atomic<bool> launched_{false};
  std::atomic<bool> over_{false};
  const asio::cancellation_type_t type_;
  asio::cancellation_signal signal_; // the operation's slot's
  user_cancellation* user_cancellation_ = nullptr;
  const Executor executor_;
  other_executor<Handler, Executor> other_;
  Handler handler_;
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_TIMED_OPERATION_HPP
