//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_IMPL_WHEEL_SERVICE_HPP
#define ASIO_WHEEL_IMPL_WHEEL_SERVICE_HPP

#include <asio_wheel/detail/drain_end.hpp>
#include <asio_wheel/detail/start_wait.hpp>
#include <asio_wheel/wheel_service.hpp>

#include <boost/asio/async_result.hpp>

#include <type_traits>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

template <typename ExecutionContext>
wheel_service& use_wheel(ExecutionContext& context) {
  auto& service = asio::use_service<wheel_service>(
      static_cast<asio::execution_context&>(context));
  service.learn_native(detail::native_executor::of_context(context));
  return service;
}

template <typename ExecutionContext>
wheel_service& make_wheel(ExecutionContext& context,
                          const wheel_options& options) {
  auto& service = asio::make_service<wheel_service>(
      static_cast<asio::execution_context&>(context), options);
  service.learn_native(detail::native_executor::of_context(context));
  return service;
}

class wheel_service::initiate_async_drain {
public:
  explicit initiate_async_drain(wheel_service* self) noexcept : self_(self) {}

  template <typename Handler>
  void operator()(Handler&& handler, const duration& d) const {
    using handler_type = std::decay_t<Handler>;
    handler_type h(std::forward<Handler>(handler));
    const std::shared_ptr<detail::drain_end> end = self_->begin_drain(d);
    detail::start_wait(end->wait_alarm(),
                       detail::drain_wait<handler_type>(end, std::move(h)),
                       detail::inline_executor(self_->context()));
    end->watch();
  }

private:
  wheel_service* self_;
};

template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code,
                                               std::size_t)) Token>
auto wheel_service::async_drain(const duration& d, Token&& token) {
  return asio::async_initiate<Token, void(error_code, std::size_t)>(
      initiate_async_drain(this), token, d);
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_IMPL_WHEEL_SERVICE_HPP
