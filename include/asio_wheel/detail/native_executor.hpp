//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_NATIVE_EXECUTOR_HPP
#define ASIO_WHEEL_DETAIL_NATIVE_EXECUTOR_HPP

#include <asio_wheel/detail/config.hpp>

#include <boost/asio/any_completion_executor.hpp>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/execution.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>

#include <cstdint>
#include <type_traits>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// The context of an executor, of the standard or of the Networking TS kind.
template <typename Executor>
asio::execution_context& context_of(const Executor& ex) {
  if constexpr (asio::execution::is_executor<Executor>::value)
    return asio::query(ex, asio::execution::context);
  else
    return ex.context();
}

// The same, null if the executor does not say (any_completion_executor).
template <typename Executor>
asio::execution_context* context_if_known(const Executor& ex) noexcept {
  if constexpr (asio::execution::is_executor<Executor>::value &&
                !asio::can_query<Executor, asio::execution::context_t>::value)
    return nullptr;
  else
    return &context_of(ex);
}

template <typename Executor>
inline constexpr bool is_io_context_executor = false;
template <typename Allocator, std::uintptr_t Bits>
inline constexpr bool is_io_context_executor<
    asio::io_context::basic_executor_type<Allocator, Bits>> = true;

template <typename Executor>
inline constexpr bool is_thread_pool_executor = false;
template <typename Allocator, unsigned int Bits>
inline constexpr bool is_thread_pool_executor<
    asio::thread_pool::basic_executor_type<Allocator, Bits>> = true;

template <typename Executor> inline constexpr bool is_system_executor = false;
template <typename Blocking, typename Relationship, typename Allocator>
inline constexpr bool is_system_executor<
    asio::basic_system_executor<Blocking, Relationship, Allocator>> = true;

// Its context's own: only its context decides whether it is ours.
template <typename Executor>
inline constexpr bool is_native_executor =
    is_io_context_executor<Executor> || is_thread_pool_executor<Executor> ||
    is_system_executor<Executor>;

template <typename Executor> inline constexpr bool is_strand = false;
template <typename Inner>
inline constexpr bool is_strand<asio::strand<Inner>> = true;

// Type erased: has target<>().
template <typename Executor> inline constexpr bool is_any_executor = false;
template <> inline constexpr bool is_any_executor<asio::any_io_executor> = true;
template <>
inline constexpr bool is_any_executor<asio::any_completion_executor> = true;
template <typename... Properties>
inline constexpr bool
    is_any_executor<asio::execution::any_executor<Properties...>> = true;

// A context's own executor, if its type is one we know: what drains are posted
// on, and on which a handler may be called directly by a drain.
class native_executor {
public:
  constexpr native_executor() noexcept = default;

  // The native executor behind ex: ex itself, or inside a type-erasing one.
  // Empty if there is none.
  template <typename Executor>
  static native_executor of(const Executor& ex) noexcept {
    if constexpr (is_native_executor<Executor>) {
      return of_context(asio::query(ex, asio::execution::context));
    } else if constexpr (is_any_executor<Executor>) {
      if (native_executor n = of_target<asio::io_context::executor_type>(ex))
        return n;
      if (native_executor n = of_target<asio::thread_pool::executor_type>(ex))
        return n;
      return of_target<asio::system_executor>(ex);
    } else {
      return {};
    }
  }

  // The native executor that ex is built on: of(ex), or inside a strand.
  template <typename Executor>
  static native_executor behind(const Executor& ex) noexcept {
    if constexpr (is_strand<Executor>)
      return behind(ex.get_inner_executor());
    if constexpr (is_any_executor<Executor>) {
      if (auto* s = ex.template target<
                    asio::strand<asio::io_context::executor_type>>())
        return of(s->get_inner_executor());
      if (auto* s = ex.template target<
                    asio::strand<asio::thread_pool::executor_type>>())
        return of(s->get_inner_executor());
      if (auto* s = ex.template target<asio::strand<asio::any_io_executor>>())
        return of(s->get_inner_executor());
    }
    return of(ex);
  }

  static native_executor of_context(asio::io_context& context) noexcept {
    return {kind::io_context, &context};
  }
  static native_executor of_context(asio::thread_pool& context) noexcept {
    return {kind::thread_pool, &context};
  }
  static native_executor of_context(asio::system_context& context) noexcept {
    return {kind::system, &context};
  }
  // Only the static type tells which context it is.
  static native_executor of_context(asio::execution_context&) noexcept {
    return {};
  }

  explicit operator bool() const noexcept { return context_ != nullptr; }

  asio::execution_context* context() const noexcept { return context_; }

  // True if the context is an io_context that was told to stop.
  bool context_stopped() const {
    return kind_ == kind::io_context &&
           static_cast<asio::io_context*>(context_)->stopped();
  }

  // Have f called soon on the context, never from within.
  template <typename Allocator, typename Function>
  void post(const Allocator& allocator, Function f) const {
    switch (kind_) {
    case kind::io_context:
      return post_on(static_cast<asio::io_context*>(context_)->get_executor(),
                     allocator, std::move(f));
    case kind::thread_pool:
      return post_on(static_cast<asio::thread_pool*>(context_)->get_executor(),
                     allocator, std::move(f));
    case kind::system:
      return post_on(asio::system_executor(), allocator, std::move(f));
    case kind::none:
      ASIO_WHEEL_ASSERT(false);
    }
  }

private:
  enum class kind : unsigned char { none, io_context, thread_pool, system };

  native_executor(kind k, asio::execution_context* c) noexcept
      : context_(c), kind_(k) {}

  // Asked of a type-erased executor: Target, or Target that tracks work.
  template <typename Target, typename Executor>
  static native_executor of_target(const Executor& ex) noexcept {
    using tracked = std::decay_t<decltype(asio::prefer(
        std::declval<const Target&>(),
        asio::execution::outstanding_work_t::tracked_t()))>;
    if (auto* target = ex.template target<Target>())
      return of(*target);
    if constexpr (!std::is_same_v<tracked, Target>)
      if (auto* target = ex.template target<tracked>())
        return of(*target);
    return {};
  }

  template <typename Executor, typename Allocator, typename Function>
  static void post_on(const Executor& ex, const Allocator& allocator,
                      Function f) {
    asio::require(ex, asio::execution::blocking.never,
                  asio::execution::allocator(allocator))
        .execute(std::move(f));
  }

  asio::execution_context* context_ = nullptr;
  kind kind_ = kind::none;
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_NATIVE_EXECUTOR_HPP
