//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_WHEEL_SERVICE_HPP
#define ASIO_WHEEL_WHEEL_SERVICE_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/native_executor.hpp>
#include <asio_wheel/detail/shard.hpp>
#include <asio_wheel/wheel_options.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/execution_context.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace detail {
class drain_end;

// Of the calling thread: they are numbered as they come, so that what is shared
// out by number spreads evenly.
std::size_t thread_number() noexcept;
} // namespace detail

/// Counts of a wheel_service since it was made.
struct wheel_stats {
  /// Waits accepted; a watchdog's check that finds a kick and waits on counts
  /// again.
  std::uint64_t scheduled = 0;
  /// Waits whose handler was started with success.
  std::uint64_t fired = 0;
  /// Waits that were cancelled: by the user, a slot, a destructor or stop().
  std::uint64_t cancelled = 0;
  /// Waits whose deadline was moved by rearm_after() or rearm_at().
  std::uint64_t moved = 0;
  /// Waits refused: too many pending, or the wheel stopped.
  std::uint64_t rejected = 0;
  /// Waits whose handler was destroyed uncalled: pending when the context was
  /// destroyed, or their executor's context was.
  std::uint64_t abandoned = 0;
  /// How often the wheel's steady_timer woke it.
  std::uint64_t wakeups = 0;
  /// Those that found nothing to complete: a deadline had been put off, or a
  /// wait cancelled, since the timer was set.
  std::uint64_t spurious_wakeups = 0;
  /// The most waits that were pending at once. With several shards: the sum of
  /// the shards' own peaks.
  std::uint64_t peak_pending = 0;
  /// The longest from a wait's expiry to the moment the wheel took it up.
  std::chrono::steady_clock::duration max_lateness{0};
};

/// The timing wheel of an execution context.
/**
 * Lives in the context as an Asio service: made by make_wheel() or, with
 * default options, by the first use; destroyed with the context. Programs
 * reach it through use_wheel() to ask it things; timers find it themselves.
 *
 * Works in io_context, thread_pool, system_context and any other
 * execution_context. Ticks from one steady_timer per shard, which is armed
 * only while waits are pending, for the next occupied slot: an idle wheel
 * costs nothing, and `run()` returns when no wait is unfinished.
 *
 * @par Thread Safety
 * Safe, unless wheel_options::single_threaded.
 */
class wheel_service : public asio::execution_context::service {
public:
  using key_type = wheel_service;
  using duration = std::chrono::steady_clock::duration;
  using time_point = std::chrono::steady_clock::time_point;

  static asio::execution_context::id id;

  /// For Asio's use; call use_wheel() or make_wheel().
  explicit wheel_service(asio::execution_context& context);
  /// For Asio's use; call use_wheel() or make_wheel().
  wheel_service(asio::execution_context& context, const wheel_options& options);
  ~wheel_service() override;

  /// The options it was made with.
  const wheel_options& options() const noexcept { return options_; }

  /// The time by this wheel's clock: what absolute deadlines refer to.
  time_point now() const noexcept;

  /// How many waits are pending: not yet started and not yet cancelled.
  std::size_t pending() const;

  /// A time before which no pending wait is due; empty if there is none.
  /** It may stem from a wait that was cancelled or put off since. */
  std::optional<time_point> next_expiry() const;

  /// Counts since the wheel was made.
  wheel_stats stats() const;

  /// Stop the wheel, for good.
  /**
   * Pending waits complete with operation_aborted; later ones with
   * error::wheel_stopped. May be called from a handler and from any thread,
   * and again: then it does nothing.
   *
   * @returns How many waits it cancelled.
   */
  std::size_t stop();

  /// True once stop() was called.
  bool stopped() const;

  /// Let the context's open timeout_streams come to an end: graceful drain.
  /**
   * From now on each of them may stay idle for a share of the duration at most,
   * whatever its own idle timeout; the shares spread evenly over the duration,
   * so that peers do not all reconnect at once, and none goes beyond its end.
   * One without an idle timeout of its own (a server at work on a request sets
   * none) has at least half of it, and what passed without an operation pending
   * ends the next read only: an answer still goes out.
   * It is an idle timeout like any other: it ends pending operations with
   * error::idle_timeout and does what timeout_action says. Streams that are
   * made or used meanwhile have what is left; one that has an operation
   * pending and no timeout at all is noticed at its next operation. There is no
   * way back.
   *
   * Completes when no open timeout_stream is left, or when the time is up. May
   * be called again, with a shorter or a longer duration: that counts for the
   * streams, while each call completes at its own end.
   *
   * @param d Any value; zero and negative ones are up at once.
   *
   * @par Completion Signature
   * @code void(boost::system::error_code, std::size_t) @endcode
   * How many timeout_streams are left open. The default executor is the
   * context: the handler is called where it runs.
   *
   * @par Errors
   * As basic_wheel_timer::async_wait(). Success also if streams are left.
   *
   * @par Per-Operation Cancellation
   * terminal, partial and total: end this wait. The streams go on draining.
   *
   * @par Complexity
   * Linear in the number of streams.
   */
  template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code,
                                                 std::size_t)) Token>
  auto async_drain(const duration& d, Token&& token);

  /// How many timeout_streams are open on the context.
  std::size_t streams() const noexcept;

  /// For the library's own use: the shard of the calling thread.
  detail::shard& local_shard() const noexcept;

  /// For the library's own use: learn the context's executor from one of its.
  void learn_native(const detail::native_executor& native) noexcept;

private:
  class initiate_async_drain;

  void shutdown() override;
  std::shared_ptr<detail::drain_end> begin_drain(const duration& d);

  wheel_options options_;
  std::shared_ptr<detail::stream_registry> streams_;
  std::vector<detail::shard_ptr> shards_;
  std::atomic<bool> native_known_{false};
};

/// The wheel of a context; made with default options if there is none yet.
/**
 * @par Thread Safety
 * Safe.
 * @throws std::bad_alloc, and what making a steady_timer in the context may
 * throw.
 */
template <typename ExecutionContext>
wheel_service& use_wheel(ExecutionContext& context);

/// Make the wheel of a context with options of your own.
/**
 * To be called before anything else uses the context's wheel.
 *
 * @throws std::invalid_argument if an option is out of range; what() names the
 * field and the legal range.
 * @throws asio::service_already_exists if the context has a wheel already.
 *
 * @par Example
 * @code
 * asio_wheel::wheel_options options;
 * options.tick = std::chrono::milliseconds(10);
 * asio_wheel::make_wheel(io, options);
 * @endcode
 */
template <typename ExecutionContext>
wheel_service& make_wheel(ExecutionContext& context,
                          const wheel_options& options);

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#include <asio_wheel/impl/wheel_service.hpp>

#endif // ASIO_WHEEL_WHEEL_SERVICE_HPP
