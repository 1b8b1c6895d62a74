//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_EXECUTOR_WORK_HPP
#define ASIO_WHEEL_DETAIL_EXECUTOR_WORK_HPP

#include <asio_wheel/detail/config.hpp>

#include <boost/asio/execution.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/prefer.hpp>

#include <type_traits>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// An executor that counts as having work as long as this lives. Unlike
// asio::executor_work_guard it takes an executor for a standard one if it can
// be both: a strand over a standard executor is no Networking TS executor,
// though it has the members.
template <typename Executor,
          bool Standard = asio::execution::is_executor<Executor>::value>
class executor_work {
public:
  explicit executor_work(const Executor& ex)
      : executor_(asio::prefer(ex, asio::execution::outstanding_work.tracked)) {
  }

  const auto& get_executor() const noexcept { return executor_; }

private:
  std::decay_t<decltype(asio::prefer(
      std::declval<const Executor&>(),
      asio::execution::outstanding_work_t::tracked_t()))>
      executor_;
};

template <typename Executor>
class executor_work<Executor, false>
    : public asio::executor_work_guard<Executor> {
public:
  using asio::executor_work_guard<Executor>::executor_work_guard;
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_EXECUTOR_WORK_HPP
