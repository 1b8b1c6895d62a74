//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_IMPL_SCHEDULER_HPP
#define ASIO_WHEEL_IMPL_SCHEDULER_HPP

#include <asio_wheel/detail/time_scale.hpp>
#include <asio_wheel/scheduler.hpp>

#include <iterator>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace detail {

template <typename F>
inline constexpr bool is_task_function =
    std::is_invocable_v<F&> || std::is_invocable_v<F&, const task_handle&>;

} // namespace detail

template <typename F>
task_handle scheduler::schedule_at(const time_point& expiry, F&& f,
                                   std::uintptr_t tag) {
  static_assert(detail::is_task_function<std::decay_t<F>>,
                "a task is called as f() or as f(const task_handle&)");
  return shard().schedule(expiry, tag, std::forward<F>(f));
}

template <typename F>
task_handle scheduler::schedule_after(const duration& delay, F&& f,
                                      std::uintptr_t tag) {
  return schedule_at(detail::time_scale::add(now(), delay), std::forward<F>(f),
                     tag);
}

template <typename F>
task_handle scheduler::schedule_every(const duration& period, F&& f,
                                      const periodic_options& options,
                                      std::uintptr_t tag) {
  static_assert(
      detail::is_task_function<std::decay_t<F>> ||
          std::is_invocable_v<std::decay_t<F>&, const task_handle&,
                              std::size_t>,
      "a periodic task is called as f(), as f(const task_handle&), or as "
      "f(const task_handle&, std::size_t)");
  detail::task_shard& s = shard();
  return s.schedule(
      detail::periodic_schedule(s.now(), period, options, s.tick()), tag,
      std::forward<F>(f));
}

template <typename Range, typename OutputIterator>
OutputIterator scheduler::schedule_batch(Range&& tasks,
                                         OutputIterator handles) {
  auto next = std::begin(tasks);
  using function = decltype(std::decay_t<decltype(*next)>::function);
  static_assert(detail::is_task_function<function>,
                "a task is called as f() or as f(const task_handle&)");
  const time_point t = now();
  const auto count = std::distance(next, std::end(tasks));
  shard().schedule_many<function>(
      static_cast<std::size_t>(count),
      [&](auto make) {
        auto& task = *next;
        const time_point expiry = detail::time_scale::add(t, task.delay);
        if constexpr (std::is_lvalue_reference_v<Range>)
          make(expiry, task.tag, task.function);
        else
          make(expiry, task.tag, std::move(task.function));
        ++next;
      },
      [&](task_handle&& h) {
        *handles = std::move(h);
        ++handles;
      });
  return handles;
}

template <typename Range> std::size_t scheduler::schedule_batch(Range&& tasks) {
  struct counter {
    std::size_t taken = 0;
    counter& operator*() noexcept { return *this; }
    counter& operator++() noexcept { return *this; }
    counter& operator=(const task_handle& h) noexcept {
      taken += h.state() != task_state::rejected;
      return *this;
    }
  };
  return schedule_batch(std::forward<Range>(tasks), counter()).taken;
}

class scheduler::initiate_async_drain {
public:
  using executor_type = asio::any_io_executor;

  explicit initiate_async_drain(scheduler* self) noexcept : self_(self) {}

  executor_type get_executor() const noexcept { return self_->get_executor(); }

  template <typename Handler> void operator()(Handler&& handler) const {
    using op = detail::pending_handler<std::decay_t<Handler>, executor_type,
                                       detail::task_drain>;
    const boost::intrusive_ptr<detail::task_drain> d(
        new detail::task_drain(self_->shards_.size()));
    auto& o =
        op::make(std::forward<Handler>(handler), self_->get_executor(), *d);
    d->start(o);
    self_->start_drain(*d);
  }

private:
  scheduler* self_;
};

template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code))
              Token>
auto scheduler::async_drain(Token&& token) {
  return asio::async_initiate<Token, void(error_code)>(
      initiate_async_drain(this), token);
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_IMPL_SCHEDULER_HPP
