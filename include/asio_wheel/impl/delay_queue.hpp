//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_IMPL_DELAY_QUEUE_HPP
#define ASIO_WHEEL_IMPL_DELAY_QUEUE_HPP

#include <asio_wheel/delay_queue.hpp>

#include <boost/asio/associator.hpp>
#include <boost/system/system_error.hpp>

#include <stdexcept>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace detail {

// The handler of a pop: gives the user's handler the value where it is.
template <typename Handler, typename Core> class pop_handler {
public:
  explicit pop_handler(Handler&& h) : handler_(std::move(h)) {}

  const Handler& handler() const noexcept { return handler_; }

  void operator()(const error_code& ec, typename Core::taken_item item) {
    using value_type = std::decay_t<decltype(item.value())>;
    if (item)
      std::move(handler_)(ec, std::move(item.value()));
    else
      std::move(handler_)(ec, value_type());
  }

private:
  Handler handler_;
};

inline std::size_t checked_capacity(const delay_queue_options& options) {
  if (options.capacity == 0)
    throw std::invalid_argument(
        "asio_wheel: delay_queue_options::capacity must be at least 1");
  return options.capacity;
}

} // namespace detail

template <typename T, typename Executor>
delay_queue<T, Executor>::delay_queue(const executor_type& ex,
                                      const delay_queue_options& options)
    : core_(new core(ex, detail::checked_capacity(options))) {}

template <typename T, typename Executor>
template <typename ExecutionContext>
delay_queue<T, Executor>::delay_queue(
    ExecutionContext& context, const delay_queue_options& options,
    std::enable_if_t<
        std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
        int>)
    : delay_queue(executor_type(context.get_executor()), options) {}

template <typename T, typename Executor>
template <typename U>
delay_key delay_queue<T, Executor>::push(U&& value, const duration& delay) {
  return push_at(std::forward<U>(value), core_->after(delay));
}

template <typename T, typename Executor>
template <typename U>
delay_key delay_queue<T, Executor>::push_at(U&& value, const time_point& due) {
  error_code ec;
  const delay_key key = core_->put(std::forward<U>(value), due, ec);
  if (ec)
    throw boost::system::system_error(ec, "delay_queue::push");
  return key;
}

template <typename T, typename Executor>
template <typename U>
delay_key delay_queue<T, Executor>::try_push(U&& value, const duration& delay) {
  return try_push_at(std::forward<U>(value), core_->after(delay));
}

template <typename T, typename Executor>
template <typename U>
delay_key delay_queue<T, Executor>::try_push_at(U&& value,
                                                const time_point& due) {
  error_code ec;
  return core_->put(std::forward<U>(value), due, ec);
}

template <typename T, typename Executor>
class delay_queue<T, Executor>::initiate_async_push {
public:
  using executor_type = Executor;

  explicit initiate_async_push(core* c) noexcept : core_(c) {}

  const executor_type& get_executor() const noexcept {
    return core_->get_executor();
  }

  template <typename Handler>
  void operator()(Handler&& handler, T&& value, const duration& delay) const {
    (*this)(std::forward<Handler>(handler), std::move(value),
            core_->after(delay));
  }

  template <typename Handler>
  void operator()(Handler&& handler, T&& value, const time_point& due) const {
    using handler_type = std::decay_t<Handler>;
    handler_type h(std::forward<Handler>(handler));
    core_->start(
        detail::pending_handler<handler_type, Executor, core, delay_key>::make(
            std::move(h), core_->get_executor(), *core_),
        std::move(value), due);
  }

private:
  core* core_;
};

template <typename T, typename Executor>
template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code,
                                               delay_key)) PushToken>
auto delay_queue<T, Executor>::async_push(T value, const duration& delay,
                                          PushToken&& token) {
  return asio::async_initiate<PushToken, void(error_code, delay_key)>(
      initiate_async_push(core_.get()), token, std::move(value), delay);
}

template <typename T, typename Executor>
template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code,
                                               delay_key)) PushToken>
auto delay_queue<T, Executor>::async_push_at(T value, const time_point& due,
                                             PushToken&& token) {
  return asio::async_initiate<PushToken, void(error_code, delay_key)>(
      initiate_async_push(core_.get()), token, std::move(value), due);
}

template <typename T, typename Executor>
class delay_queue<T, Executor>::initiate_async_pop {
public:
  using executor_type = Executor;

  explicit initiate_async_pop(core* c) noexcept : core_(c) {}

  const executor_type& get_executor() const noexcept {
    return core_->get_executor();
  }

  template <typename Handler> void operator()(Handler&& handler) const {
    using handler_type = detail::pop_handler<std::decay_t<Handler>, core>;
    std::decay_t<Handler> h(std::forward<Handler>(handler));
    core_->start(detail::pending_handler<
                 handler_type, Executor, core,
                 typename core::taken_item>::make(handler_type(std::move(h)),
                                                  core_->get_executor(),
                                                  *core_));
  }

private:
  core* core_;
};

template <typename T, typename Executor>
template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code, T))
              PopToken>
auto delay_queue<T, Executor>::async_pop(PopToken&& token) {
  static_assert(std::is_default_constructible_v<T>,
                "async_pop() completes with a value even when it fails: T must "
                "be default constructible (std::optional<T> always is)");
  return asio::async_initiate<PopToken, void(error_code, T)>(
      initiate_async_pop(core_.get()), token);
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

namespace boost {
namespace asio {

// Everything is the user's handler's.
template <template <typename, typename> class Associator, typename Handler,
          typename Core, typename Default>
struct associator<Associator, asio_wheel::detail::pop_handler<Handler, Core>,
                  Default> : Associator<Handler, Default> {
  static auto
  get(const asio_wheel::detail::pop_handler<Handler, Core>& h) noexcept {
    return Associator<Handler, Default>::get(h.handler());
  }
  static auto get(const asio_wheel::detail::pop_handler<Handler, Core>& h,
                  const Default& d) noexcept {
    return Associator<Handler, Default>::get(h.handler(), d);
  }
};

} // namespace asio
} // namespace boost

#endif // ASIO_WHEEL_IMPL_DELAY_QUEUE_HPP
