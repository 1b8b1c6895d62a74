//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_IMPL_DEADLINE_HPP
#define ASIO_WHEEL_IMPL_DEADLINE_HPP

#include <asio_wheel/deadline.hpp>
#include <asio_wheel/detail/timed_operation.hpp>

#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

template <typename Executor>
basic_deadline<Executor>::basic_deadline(const executor_type& ex)
    : basic_deadline(ex, time_point::max()) {}

template <typename Executor>
template <typename ExecutionContext>
basic_deadline<Executor>::basic_deadline(
    ExecutionContext& context,
    std::enable_if_t<
        std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
        int>)
    : basic_deadline(executor_type(context.get_executor())) {}

template <typename Executor>
basic_deadline<Executor>::basic_deadline(const executor_type& ex,
                                         const time_point& expiry_time)
    : executor_(ex),
      core_(detail::deadline_core::make(detail::shard_of(ex), expiry_time)) {}

template <typename Executor>
template <typename ExecutionContext>
basic_deadline<Executor>::basic_deadline(
    ExecutionContext& context, const time_point& expiry_time,
    std::enable_if_t<
        std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
        int>)
    : basic_deadline(executor_type(context.get_executor()), expiry_time) {}

template <typename Executor>
basic_deadline<Executor>::basic_deadline(const executor_type& ex,
                                         const duration& expiry_time)
    : basic_deadline(ex) {
  expires_after(expiry_time);
}

template <typename Executor>
template <typename ExecutionContext>
basic_deadline<Executor>::basic_deadline(
    ExecutionContext& context, const duration& expiry_time,
    std::enable_if_t<
        std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
        int>)
    : basic_deadline(executor_type(context.get_executor()), expiry_time) {}

template <typename Executor>
basic_deadline<Executor>&
basic_deadline<Executor>::operator=(basic_deadline&& other) noexcept {
  if (this != &other) {
    if (core_)
      core_->close();
    executor_ = other.executor_;
    core_ = std::move(other.core_);
  }
  return *this;
}

template <typename Executor> basic_deadline<Executor>::~basic_deadline() {
  if (core_)
    core_->close();
}

template <typename Executor>
void basic_deadline<Executor>::expires_at(const time_point& expiry_time) {
  core_->expires_at(expiry_time);
}

template <typename Executor>
void basic_deadline<Executor>::expires_after(const duration& expiry_time) {
  core_->expires_at(core_->after(expiry_time));
}

template <typename Executor, typename CompletionToken>
bind_deadline_t<std::decay_t<CompletionToken>>
bind_deadline(const basic_deadline<Executor>& d, CompletionToken&& token) {
  return bind_deadline(d)(std::forward<CompletionToken>(token));
}

template <typename CompletionToken>
bind_deadline_t<std::decay_t<CompletionToken>>
bind_deadline(const deadline_ref& d, CompletionToken&& token) {
  return bind_deadline(d)(std::forward<CompletionToken>(token));
}

template <typename Executor>
partial_bind_deadline bind_deadline(const basic_deadline<Executor>& d) {
  return bind_deadline(d.ref());
}

inline partial_bind_deadline bind_deadline(const deadline_ref& d) {
  return partial_bind_deadline(detail::limit_deadline(d.core()));
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_IMPL_DEADLINE_HPP
