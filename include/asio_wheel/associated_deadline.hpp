//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_ASSOCIATED_DEADLINE_HPP
#define ASIO_WHEEL_ASSOCIATED_DEADLINE_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/deadline_core.hpp>

#include <boost/asio/associator.hpp>

#include <chrono>
#include <functional>
#include <type_traits>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// A deadline that somebody else set: refers to one, or to none.
/**
 * What get_associated_deadline() finds. Copies refer to the same deadline. It
 * may outlive the deadline, which it then shows as it was at the end.
 *
 * @par Thread Safety
 * Distinct objects: safe, also if they refer to the same deadline. Shared
 * objects: unsafe.
 */
class deadline_ref {
public:
  using duration = std::chrono::steady_clock::duration;
  using time_point = std::chrono::steady_clock::time_point;

  /// Refers to none.
  deadline_ref() = default;

  /// Whether it refers to a deadline.
  explicit operator bool() const noexcept { return core_ != nullptr; }

  /// When it passes; time_point::max() if never, or if there is none.
  time_point expiry() const noexcept {
    return core_ ? core_->expiry() : time_point::max();
  }

  /// How long until then: zero if it has passed, duration::max() if never.
  duration remaining() const noexcept {
    return core_ ? core_->remaining() : duration::max();
  }

  /// Whether it has passed.
  bool expired() const noexcept { return core_ && core_->expired(); }

  friend bool operator==(const deadline_ref& a,
                         const deadline_ref& b) noexcept {
    return a.core_ == b.core_;
  }
  friend bool operator!=(const deadline_ref& a,
                         const deadline_ref& b) noexcept {
    return !(a == b);
  }

  /// For the library's own use.
  explicit deadline_ref(detail::deadline_core_ptr c) noexcept
      : core_(std::move(c)) {}
  /// For the library's own use.
  const detail::deadline_core_ptr& core() const noexcept { return core_; }

private:
  detail::deadline_core_ptr core_;
};

template <typename T, typename Default> struct associated_deadline;

namespace detail {

template <typename T, typename Default, typename = void, typename = void>
struct associated_deadline_impl {
  using type = Default;
  static type get(const T&) noexcept { return type(); }
  static const type& get(const T&, const Default& d) noexcept { return d; }
};

template <typename T, typename Default>
struct associated_deadline_impl<T, Default,
                                std::void_t<typename T::deadline_type>> {
  using type = typename T::deadline_type;
  static auto get(const T& t) noexcept -> decltype(t.get_deadline()) {
    return t.get_deadline();
  }
  static auto get(const T& t, const Default&) noexcept
      -> decltype(t.get_deadline()) {
    return t.get_deadline();
  }
};

template <typename T, typename = void>
inline constexpr bool has_deadline_type = false;
template <typename T>
inline constexpr bool
    has_deadline_type<T, std::void_t<typename T::deadline_type>> = true;

template <typename T, typename Default>
struct associated_deadline_impl<
    T, Default, std::enable_if_t<!has_deadline_type<T>>,
    std::void_t<
        typename asio::associator<associated_deadline, T, Default>::type>>
    : asio::associator<associated_deadline, T, Default> {};

} // namespace detail

/// An associator, like Asio's: the deadline that an object runs under.
/**
 * A handler made with bind_deadline() has one. Asio's composed operations, and
 * whatever else specialises boost::asio::associator to forward what its handler
 * is associated with, hand it on to the operations they start, so that those
 * which ask for it run under it as well: timeout_after() and timeout_at() do.
 *
 * `type` is T::deadline_type if there is such a type, and then `get(t)` is
 * `t.get_deadline()`; otherwise it is @c Default, and `get(t, d)` is @c d. It
 * is deadline_ref or convertible to it. May be specialised for types of a
 * program's own.
 *
 * Asio's coroutines do not hand it on: bound one as a whole, with co_spawn and
 * bind_deadline(), or hand it the deadline.
 */
template <typename T, typename Default = deadline_ref>
struct associated_deadline : detail::associated_deadline_impl<T, Default> {};

template <typename T, typename Default>
struct associated_deadline<std::reference_wrapper<T>, Default> {
  using type = typename associated_deadline<T, Default>::type;
  static type get(std::reference_wrapper<T> t) noexcept {
    return associated_deadline<T, Default>::get(t.get());
  }
  static type get(std::reference_wrapper<T> t, const Default& d) noexcept {
    return associated_deadline<T, Default>::get(t.get(), d);
  }
};

/// The type of the deadline that a T runs under.
template <typename T, typename Default = deadline_ref>
using associated_deadline_t = typename associated_deadline<T, Default>::type;

/// The deadline that an object runs under, typically a handler: none if none.
template <typename T>
[[nodiscard]] associated_deadline_t<T>
get_associated_deadline(const T& t) noexcept {
  return associated_deadline<T>::get(t);
}

/// The deadline that an object runs under; @c d if none.
template <typename T, typename Default>
[[nodiscard]] associated_deadline_t<T, Default>
get_associated_deadline(const T& t, const Default& d) noexcept {
  return associated_deadline<T, Default>::get(t, d);
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_ASSOCIATED_DEADLINE_HPP
