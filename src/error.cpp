//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/error.hpp>
#include <boost/system/errc.hpp>

#include <string>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace {

bool is_timeout(int value) noexcept {
  switch (static_cast<error>(value)) {
  case error::idle_timeout:
  case error::read_timeout:
  case error::write_timeout:
  case error::connect_timeout:
  case error::operation_timeout:
  case error::deadline_exceeded:
    return true;
  default:
    return false;
  }
}

class error_category_impl final : public error_category {
public:
  constexpr error_category_impl() noexcept
      : error_category(0x6177'5f65'7272'0001) {}

  const char* name() const noexcept override { return "asio_wheel"; }

  const char* message(int value, char*, std::size_t) const noexcept override {
    switch (static_cast<error>(value)) {
    case error::idle_timeout:
      return "idle timeout: no bytes moved";
    case error::read_timeout:
      return "read timeout: no bytes received";
    case error::write_timeout:
      return "write timeout: no bytes accepted by the peer";
    case error::connect_timeout:
      return "connect timeout";
    case error::operation_timeout:
      return "operation timeout";
    case error::deadline_exceeded:
      return "deadline exceeded";
    case error::too_slow:
      return "peer below the minimum rate";
    case error::too_many_pending:
      return "too many waits pending on the wheel";
    case error::wheel_stopped:
      return "the wheel is stopped";
    case error::operation_in_progress:
      return "an operation of this kind is in progress";
    }
    return "unknown asio_wheel error";
  }

  std::string message(int value) const override {
    return message(value, nullptr, 0);
  }

  error_condition default_error_condition(int value) const noexcept override {
    if (is_timeout(value))
      return make_error_condition(boost::system::errc::timed_out);
    return {value, *this};
  }
};

class condition_category_impl final : public error_category {
public:
  constexpr condition_category_impl() noexcept
      : error_category(0x6177'5f63'6f6e'0001) {}

  const char* name() const noexcept override { return "asio_wheel.condition"; }

  const char* message(int value, char*, std::size_t) const noexcept override {
    return value == static_cast<int>(condition::timeout)
               ? "timeout"
               : "unknown asio_wheel condition";
  }

  std::string message(int value) const override {
    return message(value, nullptr, 0);
  }

  bool equivalent(const error_code& code, int value) const noexcept override {
    // Our own timeouts say so too, through default_error_condition().
    return value == static_cast<int>(condition::timeout) &&
           code == boost::system::errc::timed_out;
  }
};

constexpr error_category_impl error_category_instance;
constexpr condition_category_impl condition_category_instance;

} // namespace

const error_category& wheel_category() noexcept {
  return error_category_instance;
}

const error_category& wheel_condition_category() noexcept {
  return condition_category_instance;
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel
