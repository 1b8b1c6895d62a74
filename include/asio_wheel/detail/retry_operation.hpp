//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_RETRY_OPERATION_HPP
#define ASIO_WHEEL_DETAIL_RETRY_OPERATION_HPP

#include <asio_wheel/backoff.hpp>
#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/time_scale.hpp>
#include <asio_wheel/detail/timed_operation.hpp>
#include <asio_wheel/detail/timed_token.hpp>
#include <asio_wheel/error.hpp>
#include <asio_wheel/retry_options.hpp>
#include <asio_wheel/timeout_after.hpp>

#include <boost/asio/associator.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// The state behind async_retry().

// ---------------------------------------------------------------------------
// Operations that are made anew for each attempt

// Make one: with the number of the attempt, if it wants to know.
template <typename Operation>
auto make_attempt(Operation& operation, std::size_t number) {
  if constexpr (std::is_invocable_v<Operation&, std::size_t>)
    return operation(number);
  else
    return operation();
}

template <typename Operation>
using attempt_t = decltype(make_attempt(std::declval<Operation&>(), 0));

// What a completion signature makes of the retry's.
template <typename Signature> struct retry_signature {
  static_assert(result_of_signature<Signature>::has_error,
                "asio_wheel: an operation for async_retry must have a "
                "completion signature that begins with "
                "boost::system::error_code or std::exception_ptr");
};

template <typename First, typename... Rest>
struct retry_signature<void(First, Rest...)> {
  static_assert(result_of_signature<void(First, Rest...)>::has_error,
                "asio_wheel: an operation for async_retry must have a "
                "completion signature that begins with "
                "boost::system::error_code or std::exception_ptr");
  using first_type = std::decay_t<First>;
  using results_type = std::tuple<first_type, std::decay_t<Rest>...>;
  using type = void(first_type, std::size_t, std::decay_t<Rest>...);
};

template <typename Operation>
using retry_signature_of =
    retry_signature<asio::completion_signature_of_t<attempt_t<Operation>>>;

// The error that a result tells; none if it is an exception of another kind.
inline error_code code_of(const error_code& ec) noexcept { return ec; }

inline error_code code_of(const std::exception_ptr& e) {
  try {
    std::rethrow_exception(e);
  } catch (const boost::system::system_error& error) {
    return error.code();
  } catch (...) {
    return {};
  }
}

inline void set_code(error_code& result, const error_code& ec) noexcept {
  result = ec;
}

inline void set_code(std::exception_ptr& result, const error_code& ec) {
  result = std::make_exception_ptr(boost::system::system_error(ec));
}

// The executor of what an initiation initiates.
template <typename Initiation>
auto executor_of_initiation(const Initiation& initiation) {
  if constexpr (has_own_executor<Initiation>)
    return asio::get_associated_executor(initiation);
  else if constexpr (wraps_initiation<Initiation>)
    return executor_of_initiation(initiation.initiation_);
  else
    return no_executor();
}

// A token that is handed what an operation is started with: its initiation, and
// the arguments of that.
template <typename Function> struct initiation_taker { Function function; };

// A token whose result has the type of the operation's executor. For that only.
struct executor_probe {};

template <typename Operation>
using executor_of_attempt =
    decltype(std::declval<attempt_t<Operation>>()(executor_probe()));

// Whether the deferred operation is bound to an executor of its own.
template <typename Initiation> constexpr bool is_bound_to_executor() {
  if constexpr (!wraps_initiation<Initiation>)
    return false;
  else
    return binds_executor<Initiation> ||
           is_bound_to_executor<std::decay_t<
               decltype(std::declval<Initiation&>().initiation_)>>();
}

// ---------------------------------------------------------------------------
// The state

// What holds the state: the attempt, the wait, or what is on its way from one
// to the other. Destroyed with it in hand, the handler is not called.
template <typename State> class retry_owner {
public:
  explicit retry_owner(State* s) noexcept : state_(s) {}
  retry_owner(retry_owner&& other) noexcept : state_(other.release()) {}
  ~retry_owner() {
    if (state_)
      state_->free();
  }

  State* get() const noexcept { return state_; }
  State* operator->() const noexcept { return state_; }
  State* release() noexcept { return std::exchange(state_, nullptr); }

private:
  State* state_;
};

// The handler of an attempt.
template <typename State>
class attempt_handler : public own_allocator<typename State::handler_type> {
public:
  using executor_type = typename State::executor_type;
  using cancellation_slot_type = asio::cancellation_slot;

  explicit attempt_handler(State* s) noexcept
      : own_allocator<typename State::handler_type>(s->handler()), state_(s) {}
  attempt_handler(attempt_handler&& other) noexcept
      : own_allocator<typename State::handler_type>(other),
        state_(std::exchange(other.state_, nullptr)) {}
  ~attempt_handler() {
    if (state_)
      State::attempt_dropped(state_);
  }

  executor_type get_executor() const noexcept { return state_->get_executor(); }
  asio::cancellation_slot get_cancellation_slot() const noexcept {
    return state_->slot();
  }
  State* state() const noexcept { return state_; }

  template <typename... Results> void operator()(Results&&... results) {
    State::attempt_completed(std::exchange(state_, nullptr),
                             std::forward<Results>(results)...);
  }

private:
  State* state_;
};

// IoExecutor is the operation's executor, no_executor if it does not tell it.
//
// Ground rules. executor_ is the handler's. There runs everything but the first
// attempt's start, which the initiating function does, and user code with it;
// so does the user's slot. One after the other have the state: an attempt, a
// wait. Only while an attempt is being started, which may complete meanwhile,
// on another thread or inside its initiation, both have it: whoever is done
// last (met_) goes on.
template <typename Handler, typename IoExecutor, typename Operation>
class retry_operation {
  using signature = retry_signature_of<Operation>;
  using first_type = typename signature::first_type;
  using results_type = typename signature::results_type;
  using time_point = std::chrono::steady_clock::time_point;
  using duration = std::chrono::steady_clock::duration;

  static_assert(!std::is_same_v<IoExecutor, no_executor> ||
                    has_own_executor<Handler>,
                "asio_wheel: neither the operation nor the handler of this "
                "async_retry tells an executor: give one as the first "
                "argument");

public:
  using handler_type = Handler;
  using executor_type = asio::associated_executor_t<Handler, IoExecutor>;
  using owner = retry_owner<retry_operation>;

  retry_operation(Handler&& h, Operation&& operation, const backoff& b,
                  retry_options&& options)
      : operation_(std::move(operation)), backoff_(b),
        options_(std::move(options)), handler_(std::move(h)) {
    if (auto slot = slot_of(handler_); slot.is_connected())
      slot.template emplace<user_cancellation>(*this);
  }

  // Once, before or at the first attempt.
  void set_executor(const IoExecutor& io) {
    executor_.emplace(asio::get_associated_executor(handler_, io));
    if constexpr (std::is_same_v<IoExecutor, no_executor>)
      alarm_.emplace(shard_of(*executor_), false);
    else
      alarm_.emplace(shard_of(io), false);
    if (options_.time_limit != duration::max())
      end_ = time_scale::add(now(), options_.time_limit);
  }

  // Make the attempt, from where it is known; operation_ does not move while
  // there are attempts, which may refer to what it has.
  static void make(owner self) {
    retry_operation& s = *self.get();
    auto attempt = make_attempt(s.operation_, s.attempts_ + 1);
    auto take = [self = std::move(self)](auto&& initiation,
                                         auto&&... args) mutable -> void {
      start(std::move(self), std::forward<decltype(initiation)>(initiation),
            std::forward<decltype(args)>(args)...);
    };
    std::move(attempt)(initiation_taker<decltype(take)>{std::move(take)});
  }

  const executor_type& get_executor() const noexcept { return *executor_; }
  const Handler& handler() const noexcept { return handler_; }

  // Nobody emits without a slot of the user's.
  asio::cancellation_slot slot() noexcept {
    return user_cancellation_ ? signal_.slot() : asio::cancellation_slot();
  }

  template <typename... Results>
  static void attempt_completed(retry_operation* s, Results&&... results) {
    s->results_.emplace(std::forward<Results>(results)...);
    if (!s->meet())
      return;
    owner self(s);
    if (s->elsewhere_) {
      const executor_type ex = *s->executor_;
      asio::dispatch(ex, going_on(std::move(self)));
    } else {
      go_on(std::move(self));
    }
  }

  static void attempt_dropped(retry_operation* s) noexcept {
    if (s->meet())
      s->free();
  }

  // The handler is destroyed uncalled.
  void free() noexcept {
    op_memory<retry_operation, Handler> memory(handler_);
    [[maybe_unused]] const Handler handler(std::move(handler_));
    memory.free(this);
  }

private:
  template <typename, typename> friend class op_memory;

  using attempt_signature =
      asio::completion_signature_of_t<attempt_t<Operation>>;

  // The starting function's end of an attempt.
  class meeting {
  public:
    explicit meeting(owner self) noexcept : state_(self.release()) {}
    meeting(const meeting&) = delete;
    meeting& operator=(const meeting&) = delete;
    ~meeting() {
      if (state_ && state_->meet()) // an exception leaves the initiation
        state_->free();
    }

    retry_operation* state() const noexcept { return state_; }

    // The attempt is started. If it is over too, go on, but not from here: this
    // may be the initiating function, and a long way from the loop.
    void end() {
      retry_operation* const s = std::exchange(state_, nullptr);
      if (!s->meet())
        return;
      owner self(s);
      if (s->results_) {
        const executor_type ex = *s->executor_;
        post_on(ex, going_on(std::move(self)));
      }
    }

  private:
    retry_operation* state_;
  };

  // On its way to executor_.
  class going_on {
  public:
    using allocator_type =
        typename op_memory<retry_operation, Handler>::allocator_type;

    explicit going_on(owner self) noexcept : self_(std::move(self)) {}

    allocator_type get_allocator() const noexcept {
      return asio::get_associated_allocator(self_->handler_,
                                            recycling_allocator<void>());
    }

    void operator()() { go_on(std::move(self_)); }

  private:
    owner self_;
  };

  // What the wheel calls.
  class wait_handler {
  public:
    using executor_type = typename retry_operation::executor_type;

    explicit wait_handler(owner self) noexcept : self_(std::move(self)) {}

    executor_type get_executor() const noexcept { return *self_->executor_; }

    void operator()(const error_code& ec) {
      if (ec)
        finish(std::move(self_), ec);
      else
        make(std::move(self_));
    }

  private:
    owner self_;
  };

  // What the user's slot calls. It and the state tell each other when they go.
  class user_cancellation {
  public:
    explicit user_cancellation(retry_operation& op) noexcept : op_(&op) {
      op.user_cancellation_ = this;
    }
    ~user_cancellation() {
      if (op_)
        op_->user_cancellation_ = nullptr;
    }
    user_cancellation(const user_cancellation&) = delete;
    user_cancellation& operator=(const user_cancellation&) = delete;

    void operator()(asio::cancellation_type_t type) {
      if (op_ && type != asio::cancellation_type::none)
        op_->cancel(type);
    }

  private:
    friend class retry_operation;
    retry_operation* op_;
  };

  ~retry_operation() {
    if (user_cancellation_)
      user_cancellation_->op_ = nullptr;
  }

  bool meet() noexcept {
    return met_.exchange(true, std::memory_order_acq_rel);
  }

  time_point now() const noexcept { return alarm_->owner().now(); }

  // An attempt, or a wait, is pending, or neither if user code emits the
  // signal.
  void cancel(asio::cancellation_type_t type) {
    cancelled_ = true;
    if (alarm_)
      alarm_->owner().cancel(*alarm_);
    signal_.emit(type);
    // The attempt may be over, and this gone.
  }

  duration limit_of_attempt() const noexcept {
    if (end_ == time_point::max())
      return options_.attempt_timeout;
    return std::min(options_.attempt_timeout,
                    time_scale::subtract(end_, now()));
  }

  // Start the attempt, of which the initiation is known.
  template <typename Initiation, typename... Args>
  static void start(owner self, Initiation&& initiation, Args&&... args) {
    using initiation_type = std::decay_t<Initiation>;
    if constexpr (std::is_same_v<executor_of_attempt<Operation>, IoExecutor>)
      if (!self->executor_)
        self->set_executor(executor_of_initiation(initiation));
    ++self->attempts_;
    self->results_.reset();
    self->elsewhere_ = is_bound_to_executor<initiation_type>();
    self->met_.store(false, std::memory_order_relaxed);
    const duration limit = self->limit_of_attempt();

    meeting m(std::move(self));
    attempt_handler<retry_operation> handler(m.state());
    if (limit == duration::max()) {
      std::forward<Initiation>(initiation)(std::move(handler),
                                           std::forward<Args>(args)...);
    } else {
      auto token = timeout_after(limit, std::move(handler));
      asio::async_initiate<decltype(token), attempt_signature>(
          std::forward<Initiation>(initiation), token,
          std::forward<Args>(args)...);
    }
    m.end();
  }

  // An attempt is over: what now?
  static void go_on(owner self) {
    retry_operation& s = *self.get();
    if (s.user_cancellation_)
      s.signal_.slot().clear(); // it may still be what the attempt put there
    const first_type& result = std::get<0>(*s.results_);
    if (!result)
      return finish(std::move(self));
    const error_code ec = code_of(result);
    const time_point t = s.now();
    const bool limited = s.end_ != time_point::max();
    if (limited && t >= s.end_ && ec == error::operation_timeout)
      return finish(std::move(self), error::deadline_exceeded);
    if (!ec || !s.is_worth_another(ec))
      return finish(std::move(self));
    if (s.cancelled_)
      return finish(std::move(self), asio::error::operation_aborted);
    if (s.attempts_ == s.options_.max_attempts)
      return finish(std::move(self));
    const duration delay = s.backoff_.next();
    const time_point next = time_scale::add(t, delay);
    if (limited && next >= s.end_)
      return finish(std::move(self));
    if (s.options_.before_wait)
      s.options_.before_wait(ec, s.attempts_, delay);
    if (s.cancelled_)
      return finish(std::move(self), asio::error::operation_aborted);
    s.alarm_->owner().expires_at(*s.alarm_, next, duration::zero());
    start_wait(*s.alarm_, wait_handler(std::move(self)), *s.executor_);
  }

  bool is_worth_another(const error_code& ec) const {
    return options_.retry_if ? options_.retry_if(ec)
                             : ec != asio::error::operation_aborted;
  }

  // With another error than the last attempt's.
  static void finish(owner self, const error_code& ec) {
    set_code(std::get<0>(*self->results_), ec);
    finish(std::move(self));
  }

  static void finish(owner self) {
    retry_operation* const s = self.release();
    if (s->user_cancellation_)
      clear_slot_of(s->handler_);
    const std::size_t attempts = s->attempts_;
    results_type results(std::move(*s->results_));
    op_memory<retry_operation, Handler> memory(s->handler_);
    Handler handler(std::move(s->handler_));
    memory.free(s);
    std::apply(
        [&](first_type&& first, auto&&... rest) {
          std::move(handler)(std::move(first), attempts, std::move(rest)...);
        },
        std::move(results));
  }

  std::optional<executor_type> executor_; // both known with the first attempt
  std::optional<alarm> alarm_;
  time_point end_ = time_point::max();
  Operation operation_;
  backoff backoff_;
  const retry_options options_;
  std::size_t attempts_ = 0;
  std::optional<results_type> results_; // of the last attempt, once it is over
  std::atomic<bool> met_{false};
  bool elsewhere_ = false; // the attempt does not complete on executor_
  bool cancelled_ = false;
  asio::cancellation_signal signal_; // the attempt's slot's
  user_cancellation* user_cancellation_ = nullptr;
  Handler handler_;
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

namespace boost {
namespace asio {

// Executor and cancellation slot are the retry's (the nested types come first),
// everything else is the user's handler's.
template <template <typename, typename> class Associator, typename State,
          typename Default>
struct associator<Associator, asio_wheel::detail::attempt_handler<State>,
                  Default> : Associator<typename State::handler_type, Default> {
  using base = Associator<typename State::handler_type, Default>;
  using handler = asio_wheel::detail::attempt_handler<State>;

  static auto get(const handler& h) noexcept {
    return base::get(h.state()->handler());
  }
  static auto get(const handler& h, const Default& d) noexcept {
    return base::get(h.state()->handler(), d);
  }
};

// (A copy of) the handler's, if it has one: then there is an allocator_type.
template <typename State, typename Default>
struct associator<associated_allocator,
                  asio_wheel::detail::attempt_handler<State>, Default> {
  using type = Default;
  using handler = asio_wheel::detail::attempt_handler<State>;

  static type get(const handler&) noexcept { return type(); }
  static const type& get(const handler&, const Default& d) noexcept {
    return d;
  }
};

template <typename... Signatures>
class async_result<asio_wheel::detail::executor_probe, Signatures...> {
public:
  template <typename Initiation, typename... Args>
  static auto initiate(Initiation&& initiation,
                       asio_wheel::detail::executor_probe, Args&&...) {
    return asio_wheel::detail::executor_of_initiation(initiation);
  }
};

template <typename Function, typename... Signatures>
class async_result<asio_wheel::detail::initiation_taker<Function>,
                   Signatures...> {
public:
  template <typename Initiation, typename Token, typename... Args>
  static void initiate(Initiation&& initiation, Token&& token, Args&&... args) {
    token.function(std::forward<Initiation>(initiation),
                   std::forward<Args>(args)...);
  }
};

} // namespace asio
} // namespace boost

#endif // ASIO_WHEEL_DETAIL_RETRY_OPERATION_HPP
