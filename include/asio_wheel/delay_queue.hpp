//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DELAY_QUEUE_HPP
#define ASIO_WHEEL_DELAY_QUEUE_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/delay_queue_core.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/execution_context.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <chrono>
#include <cstddef>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// How a delay_queue is built.
struct delay_queue_options {
  /// The most items that it holds: at least 1. The default: no limit.
  std::size_t capacity = std::numeric_limits<std::size_t>::max();
};

/// A queue whose items come out when their time has come.
/**
 * Put an item in with a delay, and take it out, with async_pop(), when it is
 * due: delayed messages, retries, orders that end unless paid. Until then it
 * can be taken back (remove()) or put off (reset()) by the key that push()
 * gave. Any number of producers and consumers.
 *
 * Items come out in order of time, to the nanosecond, and those of equal time
 * in the order in which they were put in; a waiting consumer gets the next
 * item, and several are served in the order in which they came. reset() counts
 * as putting in anew.
 *
 * What is due can also be taken without waiting: try_pop(), which does not ask
 * whether consumers wait.
 *
 * Items alone do not hold `run()`: a waiting consumer does, and so does a
 * producer that waits for room. Items stay in the queue when its context is
 * destroyed; waiting operations are then destroyed uncalled.
 *
 * @tparam T The items. Movable or copyable, as far as they are put in by moving
 * or copying; async_pop() needs a default constructor besides, since it
 * completes with a value even when it fails.
 *
 * @par Timing
 * An item is never given out before its time. A consumer that waits gets it at
 * most one wheel_options::tick late, plus the time the loop needs; try_pop()
 * gives it out exactly from its time on.
 *
 * @par When Values Throw
 * Values are made in the queue, by the constructor that push() was given the
 * arguments for, and never move there. If that throws, the queue is as before.
 * try_pop() and remove() move the value out: if that throws, the item stays in
 * its place. A consumer's handler gets the value as an rvalue, without a move:
 * what a handler throws, and what its parameter's constructor throws, leaves
 * `run()`, and the item is gone.
 *
 * @par Thread Safety
 * Distinct objects: safe. Shared objects: safe, save for construction and
 * destruction. Every function may be called from inside handlers. No code of
 * the user's runs under the queue's lock.
 *
 * @par Complexity
 * Putting in, putting off and removing are constant; taking out is constant
 * plus sorting of what is due within one tick. Putting in what is due before
 * the first item that was ever looked at, that is, in the past mostly, is
 * logarithmic in the number of such items. 56 bytes per item besides its value,
 * and 25 KiB per queue, given back when the queue is destroyed; nothing else
 * allocates, save operations that wait: those use recycled memory, or the
 * handler's associated allocator.
 *
 * @par Example
 * @code
 * asio_wheel::delay_queue<order> unpaid(io);
 * auto key = unpaid.push(order{42}, 30min);
 *
 * // when it is paid:
 * if (unpaid.remove(key))
 *   ship();
 *
 * // a consumer:
 * for (;;) {
 *   order o = co_await unpaid.async_pop(asio::use_awaitable);
 *   cancel(o);
 * }
 * @endcode
 */
template <typename T, typename Executor = asio::any_io_executor>
class delay_queue {
public:
  using value_type = T;

  /// Names an item.
  using key_type = delay_key;

  /// The type of the executor associated with the queue.
  using executor_type = Executor;

  /// The queue type for another executor.
  template <typename Executor1> struct rebind_executor {
    using other = delay_queue<T, Executor1>;
  };

  using clock_type = std::chrono::steady_clock;
  using duration = clock_type::duration;
  using time_point = clock_type::time_point;

  /// Construct an empty queue.
  /**
   * @param ex Its context's wheel is used. Where handlers run that have no
   * executor of their own.
   * @param options See there.
   * @throws std::invalid_argument if the capacity is zero; std::bad_alloc.
   */
  explicit delay_queue(
      const executor_type& ex,
      const delay_queue_options& options = delay_queue_options());

  /// As above, on a context's executor.
  template <typename ExecutionContext>
  explicit delay_queue(
      ExecutionContext& context,
      const delay_queue_options& options = delay_queue_options(),
      std::enable_if_t<
          std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
          int> = 0);

  delay_queue(const delay_queue&) = delete;
  delay_queue& operator=(const delay_queue&) = delete;

  /// Destroy the items; waiting operations complete with operation_aborted.
  /** Their handlers are called later, never from here. */
  ~delay_queue() { core_->end(); }

  const executor_type& get_executor() const noexcept {
    return core_->get_executor();
  }

  /// Put an item in, due after a time from now.
  /**
   * @param value What the item is made of: an argument for a constructor of T.
   * @param delay Any value. Zero and negative: due now. duration::max(), and
   * what does not fit the clock: never due, but it can be removed and reset.
   *
   * @returns The item's key.
   *
   * @throws boost::system::system_error: error::too_many_pending if the queue
   * is full, asio::error::shut_down after close(). Nothing was done with the
   * value.
   * @throws std::bad_alloc, or what the constructor throws; the queue is as
   * before.
   */
  template <typename U = T> key_type push(U&& value, const duration& delay);

  /// Put an item in, due at a point in time.
  /**
   * As push().
   * @param due By the wheel's clock (wheel_service::now()). Any value; the past
   * counts for the order.
   */
  template <typename U = T> key_type push_at(U&& value, const time_point& due);

  /// As push(), if the queue is not full and not closed.
  /** @returns The key; one that is false if the item was refused. Nothing was
   * done with the value then. */
  template <typename U = T>
  [[nodiscard]] key_type try_push(U&& value, const duration& delay);

  /// As push_at(), if the queue is not full and not closed.
  template <typename U = T>
  [[nodiscard]] key_type try_push_at(U&& value, const time_point& due);

  /// Put an item in as soon as there is room.
  /**
   * Producers that wait are served in the order in which they came.
   *
   * @param value The item. It is lost if the operation fails.
   * @param delay As for push(). Counts from the start of the operation, also if
   * it waits for room longer than that.
   *
   * @par Completion Signature
   * @code void(boost::system::error_code, delay_key) @endcode
   * The item's key; false with an error.
   *
   * @par Errors
   * @li asio::error::shut_down: close(), before or meanwhile.
   * @li asio::error::operation_aborted: a cancellation slot, the queue's
   * destruction or wheel_service::stop().
   * @li error::wheel_stopped: it would have to wait, and the wheel is stopped.
   * @li asio::error::no_memory: the wait could not be continued.
   *
   * @par Per-Operation Cancellation
   * terminal, partial and total, until the item is in the queue.
   *
   * @throws std::bad_alloc, or what moving the value throws: the handler is
   * destroyed, the queue as before.
   */
  template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code,
                                                 delay_key))
                PushToken = asio::default_completion_token_t<executor_type>>
  auto async_push(
      T value, const duration& delay,
      PushToken&& token = asio::default_completion_token_t<executor_type>());

  /// As async_push(), with the time at which the item is due.
  template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code,
                                                 delay_key))
                PushToken = asio::default_completion_token_t<executor_type>>
  auto async_push_at(
      T value, const time_point& due,
      PushToken&& token = asio::default_completion_token_t<executor_type>());

  /// Take the next item, when it is due.
  /**
   * @par Completion Signature
   * @code void(boost::system::error_code, T) @endcode
   * The value is one made by default if there is an error.
   *
   * @par Errors
   * @li asio::error::eof: the queue is closed, and has no items left.
   * @li asio::error::operation_aborted: a cancellation slot, the queue's
   * destruction or wheel_service::stop().
   * @li error::wheel_stopped: no item is due, and the wheel is stopped.
   * @li asio::error::no_memory: the wait could not be continued.
   *
   * With all of them no item is taken.
   *
   * @par Per-Operation Cancellation
   * terminal, partial and total, as long as the operation has not got an item:
   * an item is taken out of the queue when it is given to an operation that can
   * be cancelled no more, so none is lost. (One whose handler's executor is
   * destroyed before it has called the handler is.)
   *
   * @throws std::bad_alloc: the handler is destroyed, the queue as before.
   */
  template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(boost::system::error_code, T))
                PopToken = asio::default_completion_token_t<executor_type>>
  auto async_pop(
      PopToken&& token = asio::default_completion_token_t<executor_type>());

  /// Take the next item, if it is due.
  /** @throws What moving the value throws; the item then stays. */
  std::optional<T> try_pop() { return core_->try_pop(); }

  /// Take an item back.
  /**
   * @returns The value; nothing if the item has gone already.
   * @throws What moving the value throws; the item then stays.
   */
  std::optional<T> remove(key_type key) { return core_->remove(key); }

  /// Change when an item is due.
  /**
   * @param key The item's; it stays the same.
   * @param delay As for push().
   * @returns false if the item has gone already.
   * @throws std::bad_alloc, only if it becomes the next while consumers wait;
   * the item is as before.
   */
  bool reset(key_type key, const duration& delay) {
    return core_->reset(key, core_->after(delay));
  }

  /// As reset(), with the time at which the item is due.
  bool reset_at(key_type key, const time_point& due) {
    return core_->reset(key, due);
  }

  /// Whether an item is in the queue, due or not.
  bool contains(key_type key) const { return core_->contains(key); }

  /// A time before which no item is due; nothing if there are no items.
  /**
   * It is that of the next item, if that is within the next 64 ticks. If it is
   * farther ahead: up to a tick less, and it may stem from an item that was
   * removed or put off since. time_point::max(): none is ever due.
   */
  std::optional<time_point> peek() const { return core_->peek(); }

  /// Destroy all items. Consumers wait on.
  /** @returns How many there were. */
  std::size_t clear() noexcept { return core_->clear(); }

  /// How many items are in the queue, due or not.
  /** One that is being put in, or moved out, in another thread counts. */
  std::size_t size() const { return core_->size(); }

  /// Whether there are none.
  bool empty() const { return size() == 0; }

  /// The most items that it holds.
  std::size_t capacity() const noexcept { return core_->capacity(); }

  /// Take no more items, and let the consumers come to an end.
  /**
   * Producers that wait for room complete with asio::error::shut_down.
   * Consumers get what is in the queue, each item when it is due, and then
   * asio::error::eof. For an end at once, clear() as well. May be called again;
   * there is no way back.
   */
  void close() noexcept { core_->close(); }

  /// Whether close() was called.
  bool is_closed() const { return core_->closed(); }

private:
  using core = detail::delay_queue_core<T, Executor>;
  class initiate_async_pop;
  class initiate_async_push;

  boost::intrusive_ptr<core> core_;
};

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#include <asio_wheel/impl/delay_queue.hpp>

#endif // ASIO_WHEEL_DELAY_QUEUE_HPP
