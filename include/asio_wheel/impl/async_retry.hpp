//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_IMPL_ASYNC_RETRY_HPP
#define ASIO_WHEEL_IMPL_ASYNC_RETRY_HPP

#include <asio_wheel/async_retry.hpp>

#include <type_traits>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace detail {

template <typename State, typename Operation>
typename State::owner make_retry(typename State::handler_type handler,
                                 Operation operation, const backoff& b,
                                 retry_options& options) {
  return typename State::owner(
      op_memory<State, typename State::handler_type>::make(
          handler, std::move(operation), b, std::move(options)));
}

// Executor: the operation's, which is then the initiation's.
template <typename Executor> class initiate_retry {
public:
  using executor_type = Executor;

  explicit initiate_retry(const Executor& ex) noexcept : executor_(ex) {}

  const executor_type& get_executor() const noexcept { return executor_; }

  template <typename Handler, typename Operation>
  void operator()(Handler&& handler, Operation&& operation, const backoff& b,
                  retry_options options) const {
    using state = retry_operation<std::decay_t<Handler>, Executor,
                                  std::decay_t<Operation>>;
    typename state::owner self =
        make_retry<state>(std::forward<Handler>(handler),
                          std::forward<Operation>(operation), b, options);
    self->set_executor(executor_);
    state::make(std::move(self));
  }

private:
  Executor executor_;
};

// The executor is what the first attempt tells.
template <> class initiate_retry<no_executor> {
public:
  template <typename Handler, typename Operation>
  void operator()(Handler&& handler, Operation&& operation, const backoff& b,
                  retry_options options) const {
    using operation_type = std::decay_t<Operation>;
    using state =
        retry_operation<std::decay_t<Handler>,
                        executor_of_attempt<operation_type>, operation_type>;
    state::make(make_retry<state>(std::forward<Handler>(handler),
                                  std::forward<Operation>(operation), b,
                                  options));
  }
};

} // namespace detail

template <typename Operation, typename CompletionToken>
auto async_retry(Operation&& operation, backoff b, retry_options options,
                 CompletionToken&& token) {
  using signature = detail::retry_signature_of<std::decay_t<Operation>>;
  return asio::async_initiate<CompletionToken, typename signature::type>(
      detail::initiate_retry<detail::no_executor>(), token,
      std::forward<Operation>(operation), std::move(b), std::move(options));
}

template <typename Operation, typename CompletionToken>
auto async_retry(Operation&& operation, backoff b, CompletionToken&& token) {
  return async_retry(std::forward<Operation>(operation), std::move(b),
                     retry_options(), std::forward<CompletionToken>(token));
}

template <typename Executor, typename Operation, typename CompletionToken>
auto async_retry(const Executor& ex, Operation&& operation, backoff b,
                 retry_options options, CompletionToken&& token) {
  using signature = detail::retry_signature_of<std::decay_t<Operation>>;
  return asio::async_initiate<CompletionToken, typename signature::type>(
      detail::initiate_retry<Executor>(ex), token,
      std::forward<Operation>(operation), std::move(b), std::move(options));
}

template <typename Executor, typename Operation, typename CompletionToken>
auto async_retry(const Executor& ex, Operation&& operation, backoff b,
                 CompletionToken&& token) {
  return async_retry(ex, std::forward<Operation>(operation), std::move(b),
                     retry_options(), std::forward<CompletionToken>(token));
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_IMPL_ASYNC_RETRY_HPP
