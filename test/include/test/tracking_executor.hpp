//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_TEST_TRACKING_EXECUTOR_HPP
#define ASIO_WHEEL_TEST_TRACKING_EXECUTOR_HPP

#include <boost/asio/execution/blocking.hpp>
#include <boost/asio/execution/executor.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/query.hpp>
#include <boost/asio/require.hpp>

#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace test {

/// What the tracking_executors that refer to it have done.
class execution_log {
public:
  /// How many functions were handed in.
  std::atomic<std::size_t> executions{0};
  /// How many of the next functions to refuse with an exception.
  std::atomic<std::size_t> refuse{0};

  /// Whether the caller was called by one of the executors.
  bool running_in_this_thread() const noexcept {
    for (const frame* f = top(); f; f = f->next)
      if (f->log == this)
        return true;
    return false;
  }

private:
  template <typename> friend class tracking_executor;

  struct frame {
    const execution_log* log;
    frame* next;
    explicit frame(const execution_log* l) noexcept : log(l), next(top()) {
      top() = this;
    }
    ~frame() { top() = next; }
    frame(const frame&) = delete;
    frame& operator=(const frame&) = delete;
  };

  static frame*& top() noexcept {
    static thread_local frame* value = nullptr;
    return value;
  }
};

/// Thrown by a tracking_executor that was told to refuse.
struct refused : std::runtime_error {
  refused() : std::runtime_error("refused") {}
};

/// An executor of nobody's library: runs on another one and takes notes.
template <typename Inner> class tracking_executor {
public:
  tracking_executor(const Inner& inner, execution_log& log) noexcept
      : inner_(inner), log_(&log) {}

  template <typename Property>
  auto query(const Property& p) const
      -> std::enable_if_t<
          boost::asio::can_query<const Inner&, Property>::value,
          decltype(boost::asio::query(std::declval<const Inner&>(), p))> {
    return boost::asio::query(inner_, p);
  }

  template <typename Property>
  auto require(const Property& p) const
      -> std::enable_if_t<
          boost::asio::can_require<const Inner&, Property>::value,
          tracking_executor<std::decay_t<decltype(boost::asio::require(
              std::declval<const Inner&>(), p))>>> {
    return {boost::asio::require(inner_, p), *log_};
  }

  template <typename Property>
  auto prefer(const Property& p) const
      -> std::enable_if_t<
          boost::asio::can_prefer<const Inner&, Property>::value,
          tracking_executor<std::decay_t<decltype(boost::asio::prefer(
              std::declval<const Inner&>(), p))>>> {
    return {boost::asio::prefer(inner_, p), *log_};
  }

  template <typename F> void execute(F&& f) const {
    for (std::size_t n = log_->refuse; n != 0;)
      if (log_->refuse.compare_exchange_weak(n, n - 1))
        throw refused();
    ++log_->executions;
    inner_.execute(
        [log = log_, g = std::decay_t<F>(std::forward<F>(f))]() mutable {
          execution_log::frame here(log);
          std::move(g)();
        });
  }

  friend bool operator==(const tracking_executor& a,
                         const tracking_executor& b) noexcept {
    return a.log_ == b.log_ && a.inner_ == b.inner_;
  }
  friend bool operator!=(const tracking_executor& a,
                         const tracking_executor& b) noexcept {
    return !(a == b);
  }

private:
  template <typename> friend class tracking_executor;

  Inner inner_;
  execution_log* log_;
};

template <typename Inner>
tracking_executor(const Inner&, execution_log&) -> tracking_executor<Inner>;

} // namespace test

#endif // ASIO_WHEEL_TEST_TRACKING_EXECUTOR_HPP
