//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_TIMEOUT_STREAM_HPP
#define ASIO_WHEEL_TIMEOUT_STREAM_HPP

#include <asio_wheel/detail/bounded_stream.hpp>
#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/error.hpp>
#include <asio_wheel/stream_timeouts.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// A stream whose every read, write, connect and silence is bounded.
/**
 * Wraps a stream, by default a TCP socket, and models AsyncReadStream and
 * AsyncWriteStream, so that it goes wherever the socket went: into
 * `asio::async_read`, under `asio::ssl::stream`, under
 * `beast::websocket::stream` (with asio_wheel/beast.hpp), into Beast's HTTP
 * functions. An operation that takes too long ends with an error that says
 * which timeout it was (enum error); all of them equal condition::timeout, save
 * error::too_slow.
 *
 * Each direction has its own clock. By default a timeout only cancels the
 * operation: no byte is lost, and the stream can be used again.
 *
 * What comes first decides: an operation that completed before its timeout
 * reports its own result, one that the program cancelled first reports
 * asio::error::operation_aborted.
 *
 * After an idle timeout for which no operation was pending, the next operation
 * completes with error::idle_timeout at once, without having been started, and
 * the idle time starts anew. After the deadline each operation does, with
 * error::deadline_exceeded, until there is another deadline.
 *
 * @par Timing
 * See stream_timeouts. A timeout with nothing pending keeps `run()` from
 * returning only if it will act (timeout_action::shutdown or close).
 *
 * @par Thread Safety
 * Distinct objects: safe. Shared objects: unsafe; with several threads the
 * stream's executor has to be a strand, and the stream be used from there only,
 * which is also where its checks run. A handler bound to another executor is
 * dispatched to it from there.
 *
 * @par Complexity
 * Per operation two reads of the clock and a few stores: no lock, no atomic, no
 * timer operation, no allocation of its own. One allocation per stream, one
 * more if a deadline, a connect timeout, a minimum rate or async_wait_idle() is
 * used.
 *
 * @par The Wheel
 * Checks are waits on the wheel of the executor's context. If it refuses one
 * (wheel_options::max_pending, wheel_service::stop()), the operation ends with
 * error::too_many_pending or error::wheel_stopped at once: nothing begins
 * unbounded. What is pending when the wheel is stopped stays so.
 *
 * @tparam NextLayer A stream whose operations support per-operation
 * cancellation. A socket's are cancelled with
 * asio::cancellation_type::total, which loses nothing; those of any other
 * stream with terminal, after which, depending on the stream (a TLS stream, for
 * one), it may only be closed.
 *
 * @par Example
 * @code
 * asio_wheel::timeout_stream<> s(std::move(socket));
 * s.timeouts({.read = 10s, .write = 10s, .idle = 60s});
 * auto n = co_await s.async_read_some(asio::buffer(data), use_awaitable);
 * @endcode
 */
template <typename NextLayer = asio::ip::tcp::socket> class timeout_stream {
public:
  using next_layer_type = NextLayer;
  using lowest_layer_type = detail::lowest_layer_t<NextLayer>;
  using endpoint_type = detail::endpoint_t<NextLayer>;
  using executor_type = typename NextLayer::executor_type;
  using clock_type = std::chrono::steady_clock;
  using duration = clock_type::duration;
  using time_point = clock_type::time_point;

  /// The stream type for another executor.
  template <typename Executor1> struct rebind_executor {
    using other = timeout_stream<
        typename NextLayer::template rebind_executor<Executor1>::other>;
  };

  /// Construct the next layer from arguments, without timeouts.
  /** The idle time counts from here. */
  template <typename Arg, typename... Args,
            typename = std::enable_if_t<
                std::is_constructible_v<NextLayer, Arg, Args...> &&
                !std::is_same_v<std::decay_t<Arg>, timeout_stream>>>
  explicit timeout_stream(Arg&& arg, Args&&... args);

  /// Take over a stream, its settings, and its pending operations.
  /** The other may then only be destroyed or assigned to. */
  timeout_stream(timeout_stream&& other) noexcept;

  /// As if destroyed, then take over another stream.
  timeout_stream& operator=(timeout_stream&& other) noexcept;

  /// Take over a stream with another type of executor, and its settings.
  /** No operation may be pending on it. */
  template <typename NextLayer1,
            typename = std::enable_if_t<
                std::is_constructible_v<NextLayer, NextLayer1> &&
                !std::is_same_v<NextLayer, NextLayer1>>>
  timeout_stream(timeout_stream<NextLayer1>&& other);

  /// Destroys the next layer; a socket's pending operations are aborted by
  /// that, and report asio::error::operation_aborted.
  ~timeout_stream();

  /// The executor of the next layer.
  executor_type get_executor() noexcept { return next_layer().get_executor(); }

  /// The wrapped stream. What is done with it directly is not bounded.
  next_layer_type& next_layer() noexcept { return state_->next_layer(); }
  const next_layer_type& next_layer() const noexcept {
    return state_->next_layer();
  }

  /// The wrapped stream, by the name that Beast has for it.
  next_layer_type& socket() noexcept { return next_layer(); }
  const next_layer_type& socket() const noexcept { return next_layer(); }

  /// The lowest layer of the wrapped stream, usually the socket.
  lowest_layer_type& lowest_layer() noexcept {
    return detail::lowest_layer(next_layer());
  }
  const lowest_layer_type& lowest_layer() const noexcept {
    return detail::lowest_layer(next_layer());
  }

  /// Cancel the pending operations and hand over the next layer.
  /** The stream may then only be destroyed or assigned to. */
  next_layer_type release();

  /// Whether the lowest layer is open.
  bool is_open() const { return lowest_layer().is_open(); }

  /// Close the lowest layer. Pending operations report operation_aborted.
  /** @throws system_error if the socket reports an error; it is closed. */
  void close();

  /// Close the lowest layer. Pending operations report operation_aborted.
  void close(error_code& ec);

  /// Cancel the pending operations. They report operation_aborted, unless a
  /// timeout came first.
  void cancel();

  /// The settings.
  stream_timeouts timeouts() const;

  /// Change the settings.
  /**
   * Also while operations are pending. All clocks, the idle time's and those
   * of the pending operations, start anew.
   *
   * @throws std::invalid_argument if a duration or a grace is zero or negative;
   * what() names it, and nothing has changed.
   */
  void timeouts(const stream_timeouts& t);

  /// Bound everything: what is pending when the time has come, and what is
  /// started after it, ends with error::deadline_exceeded.
  /** @param d Any value; zero and negative ones have come. */
  void expires_after(const duration& d);

  /// As expires_after(), for a point of time by the wheel's clock.
  void expires_at(const time_point& t);

  /// No deadline.
  void expires_never();

  /// The deadline; time_point::max() if there is none.
  time_point expiry() const noexcept;

  /// Activity of the program's own: the idle time starts anew.
  void touch() noexcept;

  /// When bytes were last read; if none were, when the stream was made, set up
  /// or connected.
  time_point last_read() const noexcept;

  /// When bytes were last written, likewise.
  time_point last_write() const noexcept;

  /// Bytes read since the construction.
  std::uint64_t bytes_read() const noexcept;

  /// Bytes written since the construction.
  std::uint64_t bytes_written() const noexcept;

  /// What would end next, and when.
  struct pending_timeout {
    error what;
    time_point when;
  };

  /// The timeout that is reached first if nothing happens before; empty if
  /// none is running.
  std::optional<pending_timeout> next_timeout() const;

  /// Wait for the idle timeout, and decide.
  /**
   * While somebody waits, an idle timeout does nothing but complete the waits,
   * and the idle time starts anew: the owner can send a ping, close, or wait
   * again. While a wait is pending `run()` does not return, if the idle timeout
   * is set.
   *
   * @par Completion Signature
   * @code void(boost::system::error_code) @endcode
   *
   * @par Errors
   * Success: the idle timeout was reached. asio::error::operation_aborted:
   * cancel(), close(), a timeout that closed or shut down, a slot, or the stream
   * was destroyed; on a stream that was closed, at once.
   *
   * @par Per-Operation Cancellation
   * terminal, partial and total.
   */
  template <BOOST_ASIO_COMPLETION_TOKEN_FOR(void(error_code))
                Token = asio::default_completion_token_t<executor_type>>
  auto async_wait_idle(
      Token&& token = asio::default_completion_token_t<executor_type>());

  /// Read some bytes.
  /**
   * The next layer's async_read_some(), bounded by read, idle, read_rate and
   * the deadline. An empty buffer is passed on, and bounded by nothing.
   *
   * @par Completion Signature
   * @code void(boost::system::error_code, std::size_t) @endcode
   *
   * @par Errors
   * @li error::read_timeout, error::idle_timeout, error::deadline_exceeded,
   * error::too_slow: what bounded it. With timeout_action::cancel the stream
   * can be used again.
   * @li error::too_many_pending, error::wheel_stopped: what the wheel said.
   * @li error::operation_in_progress: a read is pending already (asserted in
   * debug builds). That one goes on.
   * @li what the next layer reports; asio::error::operation_aborted if the
   * program cancelled.
   *
   * @par Per-Operation Cancellation
   * As the next layer.
   */
  template <typename MutableBufferSequence,
            BOOST_ASIO_COMPLETION_TOKEN_FOR(void(error_code, std::size_t))
                Token = asio::default_completion_token_t<executor_type>>
  auto async_read_some(
      const MutableBufferSequence& buffers,
      Token&& token = asio::default_completion_token_t<executor_type>());

  /// Write some bytes.
  /**
   * The next layer's async_write_some(), bounded by write, idle, write_rate and
   * the deadline. As async_read_some() for the rest, with error::write_timeout.
   */
  template <typename ConstBufferSequence,
            BOOST_ASIO_COMPLETION_TOKEN_FOR(void(error_code, std::size_t))
                Token = asio::default_completion_token_t<executor_type>>
  auto async_write_some(
      const ConstBufferSequence& buffers,
      Token&& token = asio::default_completion_token_t<executor_type>());

  /// Connect the lowest layer to an endpoint.
  /**
   * Bounded by connect and by the deadline, which close the socket. Counts as a
   * write: no write may be pending.
   *
   * @par Completion Signature
   * @code void(boost::system::error_code) @endcode
   *
   * @par Errors
   * error::connect_timeout, error::deadline_exceeded, error::too_many_pending,
   * error::operation_in_progress, and what the socket reports.
   *
   * @par Per-Operation Cancellation
   * As the socket: terminal, partial and total; the socket is to be closed
   * after it.
   */
  template <
      typename Endpoint,
      BOOST_ASIO_COMPLETION_TOKEN_FOR(void(error_code))
          Token = asio::default_completion_token_t<executor_type>,
      typename = std::enable_if_t<!asio::is_endpoint_sequence<Endpoint>::value>>
  auto async_connect(
      const Endpoint& endpoint,
      Token&& token = asio::default_completion_token_t<executor_type>());

  /// Connect the lowest layer to one endpoint of a sequence.
  /**
   * As asio::async_connect(): each is tried in turn. The timeout is for all of
   * them together.
   *
   * @par Completion Signature
   * @code void(boost::system::error_code, endpoint_type) @endcode
   *
   * @par Per-Operation Cancellation
   * terminal and partial.
   */
  template <typename EndpointSequence,
            BOOST_ASIO_COMPLETION_TOKEN_FOR(void(error_code,
                                                 detail::endpoint_t<NextLayer>))
                Token = asio::default_completion_token_t<executor_type>,
            typename = std::enable_if_t<
                asio::is_endpoint_sequence<EndpointSequence>::value>,
            typename = void>
  auto async_connect(
      const EndpointSequence& endpoints,
      Token&& token = asio::default_completion_token_t<executor_type>());

  /// Connect the lowest layer to one endpoint of a sequence, with a condition
  /// as for asio::async_connect().
  template <typename EndpointSequence, typename ConnectCondition,
            BOOST_ASIO_COMPLETION_TOKEN_FOR(
                void(error_code, detail::endpoint_t<NextLayer>)) Token,
            typename = std::enable_if_t<
                asio::is_endpoint_sequence<EndpointSequence>::value>,
            typename = void>
  auto async_connect(const EndpointSequence& endpoints,
                     ConnectCondition condition, Token&& token);

  /// Read some bytes, blocking: the next layer's read_some(), not bounded.
  template <typename MutableBufferSequence>
  std::size_t read_some(const MutableBufferSequence& buffers);
  template <typename MutableBufferSequence>
  std::size_t read_some(const MutableBufferSequence& buffers, error_code& ec);

  /// Write some bytes, blocking: the next layer's write_some(), not bounded.
  template <typename ConstBufferSequence>
  std::size_t write_some(const ConstBufferSequence& buffers);
  template <typename ConstBufferSequence>
  std::size_t write_some(const ConstBufferSequence& buffers, error_code& ec);

  /// Connect the lowest layer, blocking, not bounded.
  template <typename Endpoint> void connect(const Endpoint& endpoint);
  template <typename Endpoint>
  void connect(const Endpoint& endpoint, error_code& ec);

private:
  template <typename> friend class timeout_stream;

  using state_type = detail::bounded_stream<NextLayer>;

  template <int> class initiate_transfer;
  class initiate_connect;
  class initiate_range_connect;
  class initiate_wait_idle;

  template <typename Handler, typename Start, typename... Args>
  void begin_connect(Handler&& handler, Start&& start, Args... args);

  state_type* state_; // null after a move
};

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#include <asio_wheel/impl/timeout_stream.hpp>

#endif // ASIO_WHEEL_TIMEOUT_STREAM_HPP
