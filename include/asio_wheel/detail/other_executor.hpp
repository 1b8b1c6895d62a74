//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_OTHER_EXECUTOR_HPP
#define ASIO_WHEEL_DETAIL_OTHER_EXECUTOR_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/executor_work.hpp>
#include <asio_wheel/detail/wait_op.hpp>

#include <boost/asio/associated_executor.hpp>

#include <optional>
#include <type_traits>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// Whether two executors, of whatever types, are known to be the same.
template <typename A, typename B>
bool same_executor(const A& a, const B& b) noexcept {
  if constexpr (std::is_same_v<A, B>)
    return a == b;
  else if constexpr (std::is_convertible_v<const A&, B>)
    return B(a) == b;
  else if constexpr (std::is_convertible_v<const B&, A>)
    return a == A(b);
  else
    return false;
}

// A handler's executor if it is another than the operation's, with work on it;
// otherwise the handler is called where the operation completes.
template <typename Handler, typename Executor,
          bool HasOwn = has_own_executor<Handler>>
class other_executor {
public:
  other_executor(const Handler&, const Executor&) noexcept {}
  static constexpr bool any() noexcept { return false; }
};

template <typename Handler, typename Executor>
class other_executor<Handler, Executor, true> {
  using own_type = asio::associated_executor_t<Handler, Executor>;

public:
  other_executor(const Handler& h, const Executor& ex) {
    const own_type own = asio::get_associated_executor(h, ex);
    if (!same_executor(own, ex))
      work_.emplace(own);
  }
  bool any() const noexcept { return work_.has_value(); }
  const auto& get() const noexcept { return work_->get_executor(); }

private:
  std::optional<executor_work<own_type>> work_;
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_OTHER_EXECUTOR_HPP
