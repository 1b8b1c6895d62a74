//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_IMPL_PERIODIC_TIMER_HPP
#define ASIO_WHEEL_IMPL_PERIODIC_TIMER_HPP

#include <asio_wheel/detail/shard.hpp>
#include <asio_wheel/detail/start_wait.hpp>
#include <asio_wheel/error.hpp>
#include <asio_wheel/periodic_timer.hpp>

#include <boost/asio/associator.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prepend.hpp>

#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace detail {

// The handler of a periodic_timer's alarm. Runs where the user's handler does,
// so that it is the last to know the time.
//
// The timer may be gone when it runs, but then the wait was aborted: a
// cancelled wait never reports success.
template <typename Handler, typename Executor> class periodic_wait {
public:
  periodic_wait(basic_periodic_timer<Executor>& timer, Handler&& h)
      : timer_(&timer), handler_(std::move(h)) {}

  const Handler& handler() const noexcept { return handler_; }

  void operator()(const error_code& ec) {
    const std::size_t missed = ec ? 0 : timer_->take_tick();
    std::move(handler_)(ec, missed);
  }

private:
  basic_periodic_timer<Executor>* timer_;
  Handler handler_;
};

} // namespace detail

template <typename Executor>
basic_periodic_timer<Executor>::basic_periodic_timer(
    const executor_type& ex, const duration& period,
    const periodic_options& options)
    : alarm_(detail::make_alarm(ex)), executor_(ex),
      schedule_(now(), period, options, alarm_.owner().tick()),
      slack_(options.slack) {}

template <typename Executor>
template <typename ExecutionContext>
basic_periodic_timer<Executor>::basic_periodic_timer(
    ExecutionContext& context, const duration& period,
    const periodic_options& options,
    std::enable_if_t<
        std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
        int>)
    : basic_periodic_timer(executor_type(context.get_executor()), period,
                           options) {}

template <typename Executor>
void basic_periodic_timer<Executor>::period(const duration& p) {
  detail::periodic_schedule s = schedule_;
  s.period(p, now());
  change(s);
}

template <typename Executor> void basic_periodic_timer<Executor>::reset() {
  detail::periodic_schedule s = schedule_;
  s.restart(now());
  change(s);
}

template <typename Executor>
void basic_periodic_timer<Executor>::reset_at(const time_point& t) {
  detail::periodic_schedule s = schedule_;
  s.reset_at(t);
  change(s);
}

// For the pending wait, if there is one, and for those to come.
template <typename Executor>
void basic_periodic_timer<Executor>::change(
    const detail::periodic_schedule& s) {
  alarm_.owner().rearm_at(alarm_, s.next(), slack_);
  schedule_ = s;
}

template <typename Executor>
std::size_t basic_periodic_timer<Executor>::cancel() noexcept {
  return alarm_.owner().cancel(alarm_);
}

template <typename Executor>
template <typename Handler>
void basic_periodic_timer<Executor>::start(Handler& handler) {
  detail::shard& s = alarm_.owner();
  if (alarm_.open_waits() != 0) {
    ASIO_WHEEL_ASSERT(!"a wait is pending on the periodic_timer already");
    asio::post(executor_,
               asio::prepend(std::move(handler),
                             error_code(error::operation_in_progress),
                             std::size_t{0}));
    return;
  }
  if (schedule_.at_work())
    schedule_.resume(now());
  s.expires_at(alarm_, schedule_.next(), slack_);
  detail::start_wait(
      alarm_,
      detail::periodic_wait<Handler, Executor>(*this, std::move(handler)),
      executor_);
}

template <typename Executor>
class basic_periodic_timer<Executor>::initiate_async_wait {
public:
  using executor_type = Executor;

  explicit initiate_async_wait(basic_periodic_timer* self) noexcept
      : self_(self) {}

  const executor_type& get_executor() const noexcept {
    return self_->get_executor();
  }

  template <typename Handler> void operator()(Handler&& handler) const {
    std::decay_t<Handler> h(std::forward<Handler>(handler));
    self_->start(h);
  }

private:
  basic_periodic_timer* self_;
};

template <typename Executor>
template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code,
                                               std::size_t)) WaitToken>
auto basic_periodic_timer<Executor>::async_wait(WaitToken&& token) {
  return asio::async_initiate<WaitToken, void(error_code, std::size_t)>(
      initiate_async_wait(this), token);
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

namespace boost {
namespace asio {

// Everything is the user's handler's.
template <template <typename, typename> class Associator, typename Handler,
          typename Executor, typename Default>
struct associator<Associator,
                  asio_wheel::detail::periodic_wait<Handler, Executor>, Default>
    : Associator<Handler, Default> {
  static auto
  get(const asio_wheel::detail::periodic_wait<Handler, Executor>& w) noexcept {
    return Associator<Handler, Default>::get(w.handler());
  }
  static auto get(const asio_wheel::detail::periodic_wait<Handler, Executor>& w,
                  const Default& d) noexcept {
    return Associator<Handler, Default>::get(w.handler(), d);
  }
};

} // namespace asio
} // namespace boost

#endif // ASIO_WHEEL_IMPL_PERIODIC_TIMER_HPP
