//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_IMPL_WHEEL_TIMER_HPP
#define ASIO_WHEEL_IMPL_WHEEL_TIMER_HPP

#include <asio_wheel/detail/native_executor.hpp>
#include <asio_wheel/detail/start_wait.hpp>
#include <asio_wheel/detail/time_scale.hpp>
#include <asio_wheel/wheel_timer.hpp>

#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include <thread>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace detail {

// A new alarm on the wheel of an executor's context.
template <typename Executor> alarm make_alarm(const Executor& ex) {
  asio::execution_context& context = context_of(ex);
  auto& service = asio::use_service<wheel_service>(context);
  service.learn_native(native_executor::behind(ex));
  return alarm(service.local_shard(),
               native_executor::of(ex).context() == &context);
}

} // namespace detail

template <typename Executor>
basic_wheel_timer<Executor>::basic_wheel_timer(const executor_type& ex)
    : alarm_(detail::make_alarm(ex)), executor_(ex) {}

template <typename Executor>
template <typename ExecutionContext>
basic_wheel_timer<Executor>::basic_wheel_timer(
    ExecutionContext& context,
    std::enable_if_t<
        std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
        int>)
    : basic_wheel_timer(executor_type(context.get_executor())) {}

template <typename Executor>
basic_wheel_timer<Executor>::basic_wheel_timer(const executor_type& ex,
                                               const time_point& expiry_time)
    : basic_wheel_timer(ex) {
  expires_at(expiry_time);
}

template <typename Executor>
template <typename ExecutionContext>
basic_wheel_timer<Executor>::basic_wheel_timer(
    ExecutionContext& context, const time_point& expiry_time,
    std::enable_if_t<
        std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
        int>)
    : basic_wheel_timer(context) {
  expires_at(expiry_time);
}

template <typename Executor>
basic_wheel_timer<Executor>::basic_wheel_timer(const executor_type& ex,
                                               const duration& expiry_time)
    : basic_wheel_timer(ex) {
  expires_after(expiry_time);
}

template <typename Executor>
template <typename ExecutionContext>
basic_wheel_timer<Executor>::basic_wheel_timer(
    ExecutionContext& context, const duration& expiry_time,
    std::enable_if_t<
        std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
        int>)
    : basic_wheel_timer(context) {
  expires_after(expiry_time);
}

// The executor is copied: the other timer is to be usable afterwards.
template <typename Executor>
basic_wheel_timer<Executor>::basic_wheel_timer(
    basic_wheel_timer&& other) noexcept
    : alarm_(std::move(other.alarm_)), executor_(other.executor_) {}

template <typename Executor>
basic_wheel_timer<Executor>&
basic_wheel_timer<Executor>::operator=(basic_wheel_timer&& other) noexcept {
  if (this != &other) {
    alarm_ = std::move(other.alarm_);
    executor_ = other.executor_;
  }
  return *this;
}

template <typename Executor>
template <typename Executor1, typename>
basic_wheel_timer<Executor>::basic_wheel_timer(
    basic_wheel_timer<Executor1>&& other)
    : alarm_(std::move(other.alarm_)), executor_(other.executor_) {}

template <typename Executor>
template <typename Executor1>
std::enable_if_t<std::is_convertible_v<Executor1, Executor> &&
                     !std::is_same_v<Executor1, Executor>,
                 basic_wheel_timer<Executor>&>
basic_wheel_timer<Executor>::operator=(basic_wheel_timer<Executor1>&& other) {
  executor_ = executor_type(other.executor_);
  alarm_ = std::move(other.alarm_);
  return *this;
}

template <typename Executor>
std::size_t basic_wheel_timer<Executor>::cancel() noexcept {
  return alarm_.owner().cancel(alarm_);
}

template <typename Executor>
std::size_t basic_wheel_timer<Executor>::cancel_one() noexcept {
  return alarm_.owner().cancel_one(alarm_);
}

template <typename Executor>
typename basic_wheel_timer<Executor>::time_point
basic_wheel_timer<Executor>::expiry() const noexcept {
  return alarm_.expiry();
}

template <typename Executor>
typename basic_wheel_timer<Executor>::duration
basic_wheel_timer<Executor>::remaining() const noexcept {
  if (expiry() == time_point::max())
    return duration::max();
  const duration d = detail::time_scale::subtract(expiry(), alarm_.now());
  return d > duration::zero() ? d : duration::zero();
}

template <typename Executor>
std::size_t basic_wheel_timer<Executor>::pending() const noexcept {
  return alarm_.open_waits();
}

template <typename Executor>
std::size_t
basic_wheel_timer<Executor>::expires_at(const time_point& expiry_time,
                                        const duration& slack) noexcept {
  return alarm_.owner().expires_at(alarm_, expiry_time, slack);
}

template <typename Executor>
std::size_t
basic_wheel_timer<Executor>::expires_after(const duration& expiry_time,
                                           const duration& slack) noexcept {
  return expires_at(detail::time_scale::add(alarm_.now(), expiry_time), slack);
}

template <typename Executor>
std::size_t basic_wheel_timer<Executor>::rearm_at(const time_point& expiry_time,
                                                  const duration& slack) {
  return alarm_.owner().rearm_at(alarm_, expiry_time, slack);
}

template <typename Executor>
std::size_t
basic_wheel_timer<Executor>::rearm_after(const duration& expiry_time,
                                         const duration& slack) {
  return rearm_at(detail::time_scale::add(alarm_.now(), expiry_time), slack);
}

template <typename Executor> void basic_wheel_timer<Executor>::wait() {
  error_code ec;
  wait(ec);
  if (ec)
    throw boost::system::system_error(ec, "wait");
}

template <typename Executor>
void basic_wheel_timer<Executor>::wait(error_code& ec) {
  if (alarm_.owner().has_manual_clock()) {
    ec = asio::error::operation_not_supported;
    return;
  }
  ec.clear();
  // In steps, since sleeping until time_point::max() overflows somewhere.
  for (auto now = clock_type::now(); now < expiry(); now = clock_type::now()) {
    constexpr duration step = std::chrono::hours(1);
    const duration left = detail::time_scale::subtract(expiry(), now);
    std::this_thread::sleep_for(left < step ? left : step);
  }
}

template <typename Executor>
class basic_wheel_timer<Executor>::initiate_async_wait {
public:
  using executor_type = Executor;

  explicit initiate_async_wait(basic_wheel_timer* self) noexcept
      : self_(self) {}

  const executor_type& get_executor() const noexcept {
    return self_->get_executor();
  }

  template <typename Handler> void operator()(Handler&& handler) const {
    detail::start_wait<std::decay_t<Handler>>(
        self_->alarm_, std::forward<Handler>(handler), self_->executor_);
  }

private:
  basic_wheel_timer* self_;
};

template <typename Executor>
template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code))
              WaitToken>
auto basic_wheel_timer<Executor>::async_wait(WaitToken&& token) {
  return asio::async_initiate<WaitToken, void(error_code)>(
      initiate_async_wait(this), token);
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_IMPL_WHEEL_TIMER_HPP
