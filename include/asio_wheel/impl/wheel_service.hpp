//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_IMPL_WHEEL_SERVICE_HPP
#define ASIO_WHEEL_IMPL_WHEEL_SERVICE_HPP

#include <asio_wheel/wheel_service.hpp>

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

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_IMPL_WHEEL_SERVICE_HPP
