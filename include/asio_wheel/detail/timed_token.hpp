//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_TIMED_TOKEN_HPP
#define ASIO_WHEEL_DETAIL_TIMED_TOKEN_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/time_scale.hpp>
#include <asio_wheel/detail/timed_operation.hpp>

#include <boost/asio/associator.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/system_executor.hpp>

#include <chrono>
#include <type_traits>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// From a completion token to a timed_operation.

// ---------------------------------------------------------------------------
// Limits

template <bool Translates> class limit_after {
public:
  static constexpr bool has_timeout = true;
  static constexpr bool is_deadline = false;
  static constexpr bool translates = Translates;

  limit_after(std::chrono::steady_clock::duration d,
              asio::cancellation_type_t type) noexcept
      : duration_(d), type_(type) {}

  asio::cancellation_type_t type() const noexcept { return type_; }
  bool never() const noexcept {
    return duration_ == std::chrono::steady_clock::duration::max();
  }
  std::chrono::steady_clock::time_point end(const shard& s) const noexcept {
    return time_scale::add(s.now(), duration_);
  }

private:
  std::chrono::steady_clock::duration duration_;
  asio::cancellation_type_t type_;
};

template <bool Translates> class limit_at {
public:
  static constexpr bool has_timeout = true;
  static constexpr bool is_deadline = false;
  static constexpr bool translates = Translates;

  limit_at(std::chrono::steady_clock::time_point t,
           asio::cancellation_type_t type) noexcept
      : time_(t), type_(type) {}

  asio::cancellation_type_t type() const noexcept { return type_; }
  bool never() const noexcept {
    return time_ == std::chrono::steady_clock::time_point::max();
  }
  std::chrono::steady_clock::time_point end(const shard&) const noexcept {
    return time_;
  }

private:
  std::chrono::steady_clock::time_point time_;
  asio::cancellation_type_t type_;
};

class limit_deadline {
public:
  static constexpr bool has_timeout = false;
  static constexpr bool is_deadline = true;
  static constexpr bool translates = true;

  explicit limit_deadline(deadline_core_ptr core) noexcept
      : core_(std::move(core)) {}

  static asio::cancellation_type_t type() noexcept {
    return asio::cancellation_type::terminal;
  }
  const deadline_core_ptr& core() const noexcept { return core_; }

private:
  deadline_core_ptr core_;
};

// ---------------------------------------------------------------------------
// The handler that the operation is given

template <typename Operation>
class timed_handler : public own_allocator<typename Operation::handler_type> {
  using handler_type = typename Operation::handler_type;

public:
  using executor_type = typename Operation::executor_type;
  using cancellation_slot_type = asio::cancellation_slot;

  explicit timed_handler(Operation* op)
      : own_allocator<handler_type>(op->handler()), op_(op) {}

  const executor_type& get_executor() const noexcept {
    return op_->get_executor();
  }
  asio::cancellation_slot get_cancellation_slot() const noexcept {
    return op_->slot();
  }
  Operation* operation() const noexcept { return op_.get(); }

  template <typename... Args> void operator()(Args&&... args) {
    op_->stop();
    Operation::complete(std::move(op_), std::forward<Args>(args)...);
  }

private:
  operation_owner<Operation> op_;
};

// ---------------------------------------------------------------------------
// The initiation

// What Asio's adapters make of an initiation. They say nothing of its executor,
// and those that bind something put it before what is found in our handler,
// where it would take the place of our cancellation slot and executor.
template <typename T, typename = void>
inline constexpr bool wraps_initiation = false;
template <typename T>
inline constexpr bool
    wraps_initiation<T, std::void_t<decltype(std::declval<T&>().initiation_)>> =
        true;

template <typename T, typename = void> inline constexpr bool binds_slot = false;
template <typename T>
inline constexpr bool
    binds_slot<T, std::void_t<decltype(std::declval<T&>().slot_)>> = true;

template <typename T, typename = void>
inline constexpr bool binds_executor = false;
template <typename T>
inline constexpr bool
    binds_executor<T, std::void_t<decltype(std::declval<T&>().ex_)>> = true;

template <typename T, typename = void>
inline constexpr bool binds_allocator = false;
template <typename T>
inline constexpr bool
    binds_allocator<T, std::void_t<decltype(std::declval<T&>().allocator_)>> =
        true;

// The executor of what an initiation initiates; if it does not say, that of the
// handler.
template <typename Initiation, typename Handler>
auto executor_of_operation(const Initiation& initiation, const Handler& h) {
  if constexpr (has_own_executor<Initiation>)
    return asio::get_associated_executor(initiation);
  else if constexpr (wraps_initiation<Initiation>)
    return executor_of_operation(initiation.initiation_, h);
  else
    return asio::get_associated_executor(h, asio::system_executor());
}

// Why an operation is not even to be started.
template <typename Limit, typename Handler>
int refusal_of(const Limit& limit, const Handler& h) {
  if constexpr (Limit::is_deadline) {
    return limit.core() ? limit.core()->refusal() : by_nobody;
  } else if constexpr (asks_deadline<Handler, Limit>) {
    const deadline_ref d = get_associated_deadline(h, deadline_ref());
    return d ? d.core()->refusal() : by_nobody;
  } else {
    return by_nobody;
  }
}

template <typename... Signatures, typename Limit, typename Initiation,
          typename Handler, typename... Args>
void initiate_timed(const Limit& limit, Initiation&& initiation,
                    Handler&& handler, Args&&... args) {
  using initiation_type = std::decay_t<Initiation>;
  using handler_type = std::decay_t<Handler>;
  if constexpr (wraps_initiation<initiation_type> &&
                binds_slot<initiation_type>) {
    auto bound = asio::bind_cancellation_slot(initiation.slot_,
                                              std::forward<Handler>(handler));
    initiate_timed<Signatures...>(
        limit, std::forward<Initiation>(initiation).initiation_,
        std::move(bound), std::forward<Args>(args)...);
  } else if constexpr (wraps_initiation<initiation_type> &&
                       binds_executor<initiation_type>) {
    auto bound =
        asio::bind_executor(initiation.ex_, std::forward<Handler>(handler));
    initiate_timed<Signatures...>(
        limit, std::forward<Initiation>(initiation).initiation_,
        std::move(bound), std::forward<Args>(args)...);
  } else if constexpr (wraps_initiation<initiation_type> &&
                       binds_allocator<initiation_type>) {
    auto bound = asio::bind_allocator(initiation.allocator_,
                                      std::forward<Handler>(handler));
    initiate_timed<Signatures...>(
        limit, std::forward<Initiation>(initiation).initiation_,
        std::move(bound), std::forward<Args>(args)...);
  } else {
    handler_type h(std::forward<Handler>(handler));
    const auto ex = executor_of_operation(initiation, h);
    using operation =
        timed_operation<handler_type, std::decay_t<decltype(ex)>, Limit>;

    if constexpr (operation::has_deadline && refusable<Signatures...>::value) {
      if (const int why = refusal_of(limit, h); why != by_nobody) {
        auto results = refusable<Signatures...>::refused(why);
        post_on(ex, handler_with_results<handler_type, decltype(results)>(
                        std::move(h), std::move(results)));
        return;
      }
    }
    operation* const op =
        op_memory<operation, handler_type>::make(h, ex, limit);
    timed_handler<operation> timed(op);
    struct launch {
      typename operation::ref op;
      ~launch() { op->launched(); }
    } guard{typename operation::ref(op)};
    if (const int why = op->arm(limit); why != by_nobody)
      // Too late, and it has to be started for want of results: once it is.
      operation::end(typename operation::ref(op), why);
    std::forward<Initiation>(initiation)(std::move(timed),
                                         std::forward<Args>(args)...);
  }
}

template <typename Initiation, typename Limit, typename... Signatures>
class timed_initiation {
public:
  template <typename I>
  timed_initiation(I&& initiation, const Limit& limit)
      : initiation_(std::forward<I>(initiation)), limit_(limit) {}

  template <typename Handler, typename... Args>
  void operator()(Handler&& handler, Args&&... args) && {
    initiate_timed<Signatures...>(limit_, std::move(initiation_),
                                  std::forward<Handler>(handler),
                                  std::forward<Args>(args)...);
  }
  template <typename Handler, typename... Args>
  void operator()(Handler&& handler, Args&&... args) const& {
    initiate_timed<Signatures...>(limit_, initiation_,
                                  std::forward<Handler>(handler),
                                  std::forward<Args>(args)...);
  }

  const Initiation& initiation() const noexcept { return initiation_; }

private:
  Initiation initiation_;
  Limit limit_;
};

// ---------------------------------------------------------------------------
// The tokens

template <typename CompletionToken, typename Limit> class timed_token {
public:
  template <typename Token>
  timed_token(Token&& token, const Limit& limit)
      : token_(std::forward<Token>(token)), limit_(limit) {}

  // For the async_result below.
  CompletionToken token_;
  Limit limit_;
};

// Lacks a token. Given one it is a timed_token; used as one it makes a deferred
// operation.
template <typename Limit> class partial_timed_token {
public:
  explicit partial_timed_token(const Limit& limit) : limit_(limit) {}

  template <typename CompletionToken>
  auto operator()(CompletionToken&& token) const {
    return timed_token<std::decay_t<CompletionToken>, Limit>(
        std::forward<CompletionToken>(token), limit_);
  }

  // For the async_result below.
  Limit limit_;
};

template <typename Limit, typename... Signatures>
inline constexpr bool fit_to_limit =
    !Limit::translates || (result_of_signature<Signatures>::has_error && ...);

template <typename T>
inline constexpr bool is_cancellation_type =
    std::is_same_v<std::decay_t<T>, asio::cancellation_type_t>;

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

namespace boost {
namespace asio {

// Executor and cancellation slot are the operation's (the nested types come
// first), everything else is the user's handler's.
template <template <typename, typename> class Associator, typename Operation,
          typename Default>
struct associator<Associator, asio_wheel::detail::timed_handler<Operation>,
                  Default>
    : Associator<typename Operation::handler_type, Default> {
  using base = Associator<typename Operation::handler_type, Default>;
  using handler = asio_wheel::detail::timed_handler<Operation>;

  static auto get(const handler& h) noexcept {
    return base::get(h.operation()->handler());
  }
  static auto get(const handler& h, const Default& d) noexcept {
    return base::get(h.operation()->handler(), d);
  }
};

// (A copy of) the handler's, if it has one: then there is an allocator_type.
template <typename Operation, typename Default>
struct associator<associated_allocator,
                  asio_wheel::detail::timed_handler<Operation>, Default> {
  using type = Default;
  using handler = asio_wheel::detail::timed_handler<Operation>;

  static type get(const handler&) noexcept { return type(); }
  static const type& get(const handler&, const Default& d) noexcept {
    return d;
  }
};

// The operation's, if it runs under one.
template <typename Operation, typename Default>
struct associator<asio_wheel::associated_deadline,
                  asio_wheel::detail::timed_handler<Operation>, Default> {
  using base = asio_wheel::associated_deadline<typename Operation::handler_type,
                                               Default>;
  using type =
      std::conditional_t<Operation::has_deadline, asio_wheel::deadline_ref,
                         typename base::type>;
  using handler = asio_wheel::detail::timed_handler<Operation>;

  static type get(const handler& h) noexcept {
    if constexpr (Operation::has_deadline)
      return h.operation()->get_deadline();
    else
      return base::get(h.operation()->handler());
  }
  static type get(const handler& h, const Default& d) noexcept {
    if constexpr (Operation::has_deadline)
      return h.operation()->get_deadline();
    else
      return base::get(h.operation()->handler(), d);
  }
};

template <template <typename, typename> class Associator, typename Handler,
          typename Results, typename Default>
struct associator<Associator,
                  asio_wheel::detail::handler_with_results<Handler, Results>,
                  Default> : Associator<Handler, Default> {
  using handler = asio_wheel::detail::handler_with_results<Handler, Results>;

  static auto get(const handler& h) noexcept {
    return Associator<Handler, Default>::get(h.handler());
  }
  static auto get(const handler& h, const Default& d) noexcept {
    return Associator<Handler, Default>::get(h.handler(), d);
  }
};

template <template <typename, typename> class Associator, typename Initiation,
          typename Limit, typename... Signatures, typename Default>
struct associator<
    Associator,
    asio_wheel::detail::timed_initiation<Initiation, Limit, Signatures...>,
    Default> : Associator<Initiation, Default> {
  using initiation =
      asio_wheel::detail::timed_initiation<Initiation, Limit, Signatures...>;

  static auto get(const initiation& i) noexcept {
    return Associator<Initiation, Default>::get(i.initiation());
  }
  static auto get(const initiation& i, const Default& d) noexcept {
    return Associator<Initiation, Default>::get(i.initiation(), d);
  }
};

template <typename CompletionToken, typename Limit, typename... Signatures>
class async_result<asio_wheel::detail::timed_token<CompletionToken, Limit>,
                   Signatures...>
    : public async_result<CompletionToken, Signatures...> {
  static_assert(
      asio_wheel::detail::fit_to_limit<Limit, Signatures...>,
      "asio_wheel: timeout_after, timeout_at and bind_deadline report a "
      "timeout "
      "as the operation's error: its completion signature has to begin with "
      "boost::system::error_code or std::exception_ptr. Adapters that change "
      "the signature (as_tuple, redirect_error, prepend) go inside, as in "
      "timeout_after(5s, as_tuple(use_awaitable)); for operations without an "
      "error there are cancel_after and cancel_at");

  template <typename Initiation>
  using initiation =
      asio_wheel::detail::timed_initiation<std::decay_t<Initiation>, Limit,
                                           Signatures...>;

public:
  template <typename Initiation, typename Token, typename... Args>
  static auto initiate(Initiation&& init, Token&& token, Args&&... args)
      -> decltype(async_initiate<CompletionToken, Signatures...>(
          std::declval<initiation<Initiation>>(),
          std::declval<CompletionToken&>(), std::forward<Args>(args)...)) {
    return async_initiate<CompletionToken, Signatures...>(
        initiation<Initiation>(std::forward<Initiation>(init), token.limit_),
        token.token_, std::forward<Args>(args)...);
  }
};

template <typename Limit, typename... Signatures>
class async_result<asio_wheel::detail::partial_timed_token<Limit>,
                   Signatures...> {
  using token_type = asio_wheel::detail::timed_token<deferred_t, Limit>;

public:
  template <typename Initiation, typename Token, typename... Args>
  static auto initiate(Initiation&& init, Token&& token, Args&&... args) {
    token_type whole = token(deferred);
    return async_initiate<token_type, Signatures...>(
        std::forward<Initiation>(init), whole, std::forward<Args>(args)...);
  }
};

} // namespace asio
} // namespace boost

#endif // ASIO_WHEEL_DETAIL_TIMED_TOKEN_HPP
