//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_IMPL_WATCHDOG_HPP
#define ASIO_WHEEL_IMPL_WATCHDOG_HPP

#include <asio_wheel/detail/executor_work.hpp>
#include <asio_wheel/detail/start_wait.hpp>
#include <asio_wheel/detail/time_scale.hpp>
#include <asio_wheel/watchdog.hpp>

#include <boost/asio/associator.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/prepend.hpp>

#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace detail {

// Work on a handler's own executor for as long as the handler waits; nothing
// if it has none.
template <typename Handler, typename Executor,
          bool HasOwn = has_own_executor<Handler>>
struct own_work {
  own_work(const Handler&, const Executor&) noexcept {}
};

template <typename Handler, typename Executor>
struct own_work<Handler, Executor, true> {
  using executor_type = asio::associated_executor_t<Handler, Executor>;
  own_work(const Handler& h, const Executor& ex)
      : work(asio::get_associated_executor(h, ex)) {}
  executor_work<executor_type> work;
};

// The handler of a watchdog's timer. Runs on the watchdog's executor, whatever
// the user's handler is bound to, since it reads what kick() writes.
//
// The watchdog may be gone when it runs, but then the wait was aborted: a
// cancelled wait never reports success.
template <typename Handler, typename Executor> class watchdog_check {
public:
  using executor_type = Executor;

  watchdog_check(basic_watchdog<Executor>& dog, Handler&& h)
      : dog_(&dog), executor_(dog.get_executor()), work_(h, executor_),
        handler_(std::move(h)) {}

  executor_type get_executor() const noexcept { return executor_; }
  const Handler& handler() const noexcept { return handler_; }

  void operator()(const error_code& ec) {
    if (!ec && !dog_->expired()) {
      dog_->wait_on(std::move(*this));
      return;
    }
    if constexpr (has_own_executor<Handler>)
      asio::dispatch(asio::prepend(std::move(handler_), ec));
    else
      std::move(handler_)(ec);
  }

private:
  basic_watchdog<Executor>* dog_;
  Executor executor_;
  own_work<Handler, Executor> work_;
  Handler handler_;
};

// How many watchdogs exist for which kick() has to look at the watchdog: with
// a slack, or on a wheel with a manual clock.
extern std::atomic<std::size_t> watchdogs_to_look_at;

} // namespace detail

template <typename Executor>
basic_watchdog<Executor>::basic_watchdog(const executor_type& ex,
                                         const duration& period,
                                         const duration& slack)
    : period_(period), slack_(slack), timer_(ex) {
  last_ = now();
  if (slack_ > period_)
    slack_ = period_;
  // Looking more often than once a tick is no use, and no end.
  if (slack_ < 2 * timer_.alarm_.owner().tick())
    slack_ = duration::zero();
  manual_ = timer_.alarm_.owner().has_manual_clock();
  if (manual_ || slack_ > duration::zero())
    detail::watchdogs_to_look_at.fetch_add(1, std::memory_order_relaxed);
}

template <typename Executor>
template <typename ExecutionContext>
basic_watchdog<Executor>::basic_watchdog(
    ExecutionContext& context, const duration& period, const duration& slack,
    std::enable_if_t<
        std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
        int>)
    : basic_watchdog(executor_type(context.get_executor()), period, slack) {}

template <typename Executor> basic_watchdog<Executor>::~basic_watchdog() {
  if (manual_ || slack_ > duration::zero())
    detail::watchdogs_to_look_at.fetch_sub(1, std::memory_order_relaxed);
}

// The usual kick reads nothing of the watchdog and so does not wait for its
// cache line: one global that is hot, the clock, and a store.
template <typename Executor> void basic_watchdog<Executor>::kick() noexcept {
  if (detail::watchdogs_to_look_at.load(std::memory_order_relaxed) == 0)
    last_ = clock_type::now();
  else if (slack_ > duration::zero())
    marked_ = true;
  else
    last_ = now();
}

template <typename Executor>
typename basic_watchdog<Executor>::time_point
basic_watchdog<Executor>::now() const noexcept {
  return timer_.alarm_.owner().now();
}

template <typename Executor>
typename basic_watchdog<Executor>::time_point
basic_watchdog<Executor>::last_kick() const noexcept {
  return marked_ ? now() : last_;
}

// When the wait is over if nobody kicks any more.
template <typename Executor>
typename basic_watchdog<Executor>::time_point
basic_watchdog<Executor>::due() const noexcept {
  return paused_ || period_ == duration::max()
             ? time_point::max()
             : detail::time_scale::add(last_, period_);
}

// A mark is taken for a kick at this moment: never too early.
template <typename Executor>
void basic_watchdog<Executor>::take_mark() noexcept {
  if (marked_) {
    marked_ = false;
    last_ = now();
  }
}

template <typename Executor> bool basic_watchdog<Executor>::expired() {
  take_mark();
  return due() <= now();
}

// Set the timer to the next check, for all pending waits.
template <typename Executor> void basic_watchdog<Executor>::set_timer() {
  const time_point last_check = due();
  if (slack_ > duration::zero() && last_check != time_point::max()) {
    // Marks are looked at at least once per slack: half of it, and the other
    // half to share the wake-up with others.
    const time_point t = now();
    if (last_check > detail::time_scale::add(t, slack_)) {
      timer_.rearm_at(detail::time_scale::add(t, slack_ / 2), slack_ / 2);
      return;
    }
  }
  timer_.rearm_at(last_check);
}

template <typename Executor>
template <typename Check>
void basic_watchdog<Executor>::wait_on(Check&& check) {
  set_timer();
  detail::start_wait<std::decay_t<Check>>(
      timer_.alarm_, std::forward<Check>(check), timer_.executor_);
}

template <typename Executor>
void basic_watchdog<Executor>::period(const duration& p) {
  take_mark();
  period_ = p;
  set_timer();
}

template <typename Executor> void basic_watchdog<Executor>::pause() {
  if (paused_)
    return;
  paused_ = true;
  set_timer();
}

template <typename Executor> void basic_watchdog<Executor>::resume() {
  if (!paused_)
    return;
  paused_ = false;
  marked_ = false;
  last_ = now();
  set_timer();
}

template <typename Executor>
std::size_t basic_watchdog<Executor>::cancel() noexcept {
  return timer_.cancel();
}

template <typename Executor>
class basic_watchdog<Executor>::initiate_async_wait {
public:
  using executor_type = Executor;

  explicit initiate_async_wait(basic_watchdog* self) noexcept : self_(self) {}

  const executor_type& get_executor() const noexcept {
    return self_->get_executor();
  }

  template <typename Handler> void operator()(Handler&& handler) const {
    using handler_type = std::decay_t<Handler>;
    handler_type h(std::forward<Handler>(handler));
    self_->take_mark();
    self_->wait_on(
        detail::watchdog_check<handler_type, Executor>(*self_, std::move(h)));
  }

private:
  basic_watchdog* self_;
};

template <typename Executor>
template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code))
              WaitToken>
auto basic_watchdog<Executor>::async_wait(WaitToken&& token) {
  return asio::async_initiate<WaitToken, void(error_code)>(
      initiate_async_wait(this), token);
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

namespace boost {
namespace asio {

// Allocator and cancellation slot are the user's handler's; the executor is
// the watchdog's (the nested executor_type comes first).
template <template <typename, typename> class Associator, typename Handler,
          typename Executor, typename Default>
struct associator<
    Associator, asio_wheel::detail::watchdog_check<Handler, Executor>, Default>
    : Associator<Handler, Default> {
  static auto
  get(const asio_wheel::detail::watchdog_check<Handler, Executor>& c) noexcept {
    return Associator<Handler, Default>::get(c.handler());
  }
  static auto
  get(const asio_wheel::detail::watchdog_check<Handler, Executor>& c,
      const Default& d) noexcept {
    return Associator<Handler, Default>::get(c.handler(), d);
  }
};

} // namespace asio
} // namespace boost

#endif // ASIO_WHEEL_IMPL_WATCHDOG_HPP
