//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_RATE_LIMITER_HPP
#define ASIO_WHEEL_RATE_LIMITER_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/rate_limiter_core.hpp>
#include <asio_wheel/error.hpp>
#include <asio_wheel/token_rate.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// Lets so many through in so much time: a token bucket with a line before it.
/**
 * Tokens arrive at a constant rate and are gathered up to a number, the burst.
 * Whoever wants to do something takes tokens for it: try_acquire() if they are
 * there, async_acquire() as soon as they are. What a token stands for, a
 * request or a byte, is the program's business. The bucket is full at first.
 *
 * Those who wait stand in line, strictly: the first gets its tokens first, and
 * a small request behind a big one waits for it, so that nobody starves.
 * try_acquire() does not overtake those who wait.
 *
 * The reckoning is exact, to the token, for every rate: nothing is rounded, and
 * nothing drifts. In a time T since the construction no more than
 * rate * T + burst tokens are given, and, if there is somebody in line all the
 * time, no less. (One wake-up of the loop gives all the tokens that have
 * arrived since the last, each in its turn, so that neither a rate above one in
 * a tick of the wheel nor a small burst slows it down. So in a time T from
 * anywhere they may be as many as arrive in T and a tick, and the burst.)
 *
 * Does nothing while nobody waits: there is no timer for the tokens, and
 * `run()` is not kept from returning.
 *
 * @par Timing
 * Who waits gets tokens never before they have arrived, and at most one
 * wheel_options::tick later, plus the time the loop needs.
 *
 * @par Thread Safety
 * Distinct objects: safe. Shared objects: safe, save for construction and
 * destruction. All functions may be called from handlers.
 *
 * @par Complexity
 * Constant, under a lock, plus what those cost who can go ahead because of a
 * call. All who wait have one wait on the wheel together, which is not subject
 * to wheel_options::max_pending. A wait allocates its operation, from the
 * handler's allocator or from recycled memory; nothing else does.
 *
 * @par Example
 * @code
 * asio_wheel::rate_limiter limiter(io, 100, 20); // per second; at once
 * for (auto& message : messages) {
 *   co_await limiter.async_acquire(1, asio::use_awaitable);
 *   co_await send(message);
 * }
 * @endcode
 */
template <typename Executor = asio::any_io_executor> class basic_rate_limiter {
public:
  /// The type of the executor associated with the limiter.
  using executor_type = Executor;

  /// The limiter type for another executor.
  template <typename Executor1> struct rebind_executor {
    using other = basic_rate_limiter<Executor1>;
  };

  using clock_type = std::chrono::steady_clock;
  using duration = clock_type::duration;
  using time_point = clock_type::time_point;

  /// A full bucket.
  /**
   * @param ex Where handlers run that have no executor of their own. Its
   * context's wheel is used.
   * @param rate How many tokens arrive: per second if it is a number, or for
   * instance `{3, 7ms}`.
   * @param burst How many tokens are gathered at most: from 1 on. A fraction is
   * cut off; more than 2^53 counts as that.
   * @throws std::invalid_argument if the rate or the burst is not positive or
   * not finite, or the burst is less than 1.
   */
  basic_rate_limiter(const executor_type& ex, const token_rate& rate,
                     double burst);

  /// As above, on a context's executor.
  template <typename ExecutionContext>
  basic_rate_limiter(
      ExecutionContext& context, const token_rate& rate, double burst,
      std::enable_if_t<
          std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
          int> = 0);

  basic_rate_limiter(const basic_rate_limiter&) = delete;
  basic_rate_limiter& operator=(const basic_rate_limiter&) = delete;

  /// Who waits gets operation_aborted, later, never from here.
  ~basic_rate_limiter();

  /// The executor associated with the limiter.
  const executor_type& get_executor() const noexcept {
    return core_->get_executor();
  }

  /// Take tokens if they are there and nobody waits for any.
  /**
   * @param n How many. Zero: always there. More than the burst: never there.
   * @returns Whether it took them.
   */
  bool try_acquire(std::uint64_t n = 1) { return core_->try_acquire(n); }

  /// Wait in line for tokens, and take them.
  /**
   * Completes on the next turn if they are there and nobody waits. Those who
   * get theirs at the same time complete in the order of the line.
   *
   * @param n How many. Zero: completes on the next turn, whoever waits.
   *
   * @par Completion Signature
   * @code void(boost::system::error_code) @endcode
   *
   * @par Errors
   * Whoever gets an error has taken nothing.
   * @li asio::error::invalid_argument: n is more than the burst, or was when
   * its turn came, the burst having been changed. To take more than fits at a
   * time: in parts, or afterwards with spend().
   * @li asio::error::operation_aborted: cancel(), a slot, the limiter was
   * destroyed, or wheel_service::stop().
   * @li error::wheel_stopped: the wheel was stopped before.
   *
   * If the context is destroyed first, handlers are destroyed uncalled.
   *
   * @par Per-Operation Cancellation
   * terminal, partial and total: it leaves the line, having taken nothing, and
   * who is behind it goes ahead if it can. Cancelled or not is decided when the
   * tokens are given: after that the handler gets success, and what it does not
   * use can be given back (give_back()).
   *
   * @throws std::bad_alloc
   */
  template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code))
                AcquireToken = asio::default_completion_token_t<executor_type>>
  auto async_acquire(
      std::uint64_t n,
      AcquireToken&& token = asio::default_completion_token_t<executor_type>());

  /// Return tokens that were taken and not used.
  /** What does not fit in the bucket is lost. Who waits goes ahead if it can.
   */
  void give_back(std::uint64_t n) { core_->give_back(n); }

  /// Take tokens whether they are there or not.
  /**
   * For what is known only after the event. The bucket may get into debt: who
   * waits, waits until that has been paid. More than about 4e18 are forgiven.
   */
  void spend(std::uint64_t n) { core_->spend(n); }

  /// Fill the bucket. Who waits goes ahead if it can.
  void reset() { core_->reset(); }

  /// Those who wait get operation_aborted.
  /** @returns How many. */
  std::size_t cancel() { return core_->cancel(); }

  /// The tokens that arrive.
  token_rate rate() const { return core_->rate(); }

  /// Change the tokens that arrive: from now on.
  /**
   * What has been gathered up to now stays, and counts for those who wait. If a
   * part of a token has been, it is rounded down to the new rate's nanoseconds.
   *
   * @param r As for the constructor.
   */
  void rate(const token_rate& r) { core_->rate(r); }

  /// The most that is gathered, whole tokens.
  std::uint64_t burst() const { return core_->burst(); }

  /// Change the most that is gathered.
  /**
   * What has been gathered stays as far as it fits. Who waits for more than the
   * new burst gets asio::error::invalid_argument when its turn comes.
   *
   * @param b As for the constructor.
   * @throws std::invalid_argument as the constructor; nothing has changed.
   */
  void burst(double b) { core_->burst(b); }

  /// How many tokens are there; zero if it is in debt.
  /** Those who wait have the first claim to them. */
  std::uint64_t available() const { return core_->available(); }

  /// How many wait.
  std::size_t waiting() const { return core_->waiting(); }

  /// How long until try_acquire(n) will succeed, if nobody comes before.
  /**
   * Behind all who wait now. What to tell a client that is to come again.
   *
   * @returns Zero if it would succeed now, duration::max() if n is more than
   * the burst.
   */
  duration time_until(std::uint64_t n = 1) const {
    return core_->time_until(n);
  }

private:
  using core_type = detail::rate_limiter_core<Executor>;
  class initiate_async_acquire;

  const boost::intrusive_ptr<core_type> core_;
};

/// The usual rate limiter.
using rate_limiter = basic_rate_limiter<>;

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#include <asio_wheel/impl/rate_limiter.hpp>

#endif // ASIO_WHEEL_RATE_LIMITER_HPP
