//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_RATE_LIMITED_STREAM_HPP
#define ASIO_WHEEL_RATE_LIMITED_STREAM_HPP

#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/limited_op.hpp>
#include <asio_wheel/error.hpp>
#include <asio_wheel/rate_limiter.hpp>

#include <boost/asio/async_result.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

/// A stream whose bytes have to pass a rate_limiter, one token for each.
/**
 * Wraps a stream, by default a TCP socket, and models AsyncReadStream and
 * AsyncWriteStream. Each direction has a limiter of its own, or none. A limiter
 * may serve any number of streams, on any number of threads: they stand in one
 * line, and share its rate fairly. For a limit per connection and one for all
 * of them, wrap the stream twice: each layer asks its own.
 *
 * A write first waits for tokens, for as many bytes as there are but not for
 * more than the burst, then writes so much at most, and gives back what the
 * next layer did not take. A read reads first, not more bytes than the burst,
 * and completes when those have been paid for: so a connection on which nothing
 * comes takes no tokens from the others, and a peer that sends too fast is
 * slowed down by the protocol's own flow control.
 *
 * Goes on top of a timeout_stream, as in
 * `rate_limited_stream<timeout_stream<>>`: a wait for tokens is then no part of
 * a read or a write, and counts towards neither's timeout. (It does count
 * towards the idle timeout, since no bytes move. Let the idle timeout be longer
 * than the burst takes at the rate.)
 *
 * @par Timing
 * That of basic_rate_limiter.
 *
 * @par Thread Safety
 * Distinct objects: safe. Shared objects: unsafe; with several threads the
 * stream's executor has to be a strand, and the stream be used from there only.
 * A handler bound to another executor is dispatched to it from there.
 *
 * @par Complexity
 * One allocation per stream. An operation allocates nothing besides what the
 * next layer does, unless it has to wait for tokens: then as
 * basic_rate_limiter::async_acquire().
 *
 * @tparam NextLayer A stream whose operations support per-operation
 * cancellation.
 *
 * @par Example
 * @code
 * using stream = asio_wheel::rate_limited_stream<asio_wheel::timeout_stream<>>;
 *
 * auto all = std::make_shared<asio_wheel::rate_limiter>(io, 10e6, 256 * 1024);
 * stream s(std::move(socket));
 * s.next_layer().timeouts({.write = 10s});
 * s.write_limiter(all); // 10 MB per second, for all connections together
 * co_await asio::async_write(s, asio::buffer(data), use_awaitable);
 * @endcode
 */
template <typename NextLayer = asio::ip::tcp::socket>
class rate_limited_stream {
public:
  using next_layer_type = NextLayer;
  using lowest_layer_type = detail::lowest_layer_t<NextLayer>;
  using executor_type = typename NextLayer::executor_type;

  /// The stream type for another executor.
  template <typename Executor1> struct rebind_executor {
    using other = rate_limited_stream<
        typename NextLayer::template rebind_executor<Executor1>::other>;
  };

  /// Construct the next layer from arguments, without limiters.
  template <typename Arg, typename... Args,
            typename = std::enable_if_t<
                std::is_constructible_v<NextLayer, Arg, Args...> &&
                !std::is_same_v<std::decay_t<Arg>, rate_limited_stream>>>
  explicit rate_limited_stream(Arg&& arg, Args&&... args);

  /// Take over a stream, its limiters, and its pending operations.
  /** The other may then only be destroyed or assigned to. */
  rate_limited_stream(rate_limited_stream&& other) noexcept = default;

  /// As if destroyed, then take over another stream.
  rate_limited_stream& operator=(rate_limited_stream&& other) noexcept;

  /// Destroys the next layer. Pending operations are aborted, those that wait
  /// for tokens, too: as cancel().
  ~rate_limited_stream();

  /// The executor of the next layer.
  executor_type get_executor() noexcept { return next_layer().get_executor(); }

  /// The wrapped stream. What is done with it directly is not limited.
  next_layer_type& next_layer() noexcept { return state_->next_layer(); }
  const next_layer_type& next_layer() const noexcept {
    return state_->next_layer();
  }

  /// The lowest layer of the wrapped stream, usually the socket.
  lowest_layer_type& lowest_layer() noexcept {
    return detail::lowest_layer(next_layer());
  }
  const lowest_layer_type& lowest_layer() const noexcept {
    return detail::lowest_layer(next_layer());
  }

  /// What reads have to pass; null: nothing.
  const std::shared_ptr<rate_limiter>& read_limiter() const noexcept {
    return state_->limiter(detail::direction::reading);
  }

  /// Limit reads, from the next one on; null: do not.
  void read_limiter(std::shared_ptr<rate_limiter> limiter) noexcept {
    state_->limiter(detail::direction::reading, std::move(limiter));
  }

  /// What writes have to pass; null: nothing.
  const std::shared_ptr<rate_limiter>& write_limiter() const noexcept {
    return state_->limiter(detail::direction::writing);
  }

  /// Limit writes, from the next one on; null: do not.
  void write_limiter(std::shared_ptr<rate_limiter> limiter) noexcept {
    state_->limiter(detail::direction::writing, std::move(limiter));
  }

  /// Cancel the pending operations, in the next layer or in line for tokens.
  /** As a slot would, with terminal. */
  void cancel() { state_->cancel_all(); }

  /// As cancel(), and close the next layer, or else its lowest layer.
  void close(error_code& ec) {
    ec.clear();
    state_->close(ec);
  }

  /// Read some bytes.
  /**
   * The next layer's async_read_some(), of not more bytes than the limiter's
   * burst; completes when there were tokens for those that came.
   *
   * @par Completion Signature
   * @code void(boost::system::error_code, std::size_t) @endcode
   *
   * @par Errors
   * @li what the next layer reports.
   * @li error::wheel_stopped: the wheel was stopped, and the tokens were not
   * there. The bytes have been read, and are counted.
   * @li error::operation_in_progress: a read is pending already (asserted in
   * debug builds). That one goes on.
   *
   * @par Per-Operation Cancellation
   * While it reads, as the next layer. Once it has read, terminal, partial and
   * total: it completes at once, with the bytes and without an error, so that
   * nothing is lost; the tokens are paid later, by whoever comes next
   * (basic_rate_limiter::spend()). So it does if the limiter is cancelled.
   */
  template <typename MutableBufferSequence,
            BOOST_ASIO_COMPLETION_TOKEN_FOR(void(error_code, std::size_t))
                Token = asio::default_completion_token_t<executor_type>>
  auto async_read_some(
      const MutableBufferSequence& buffers,
      Token&& token = asio::default_completion_token_t<executor_type>());

  /// Write some bytes.
  /**
   * Waits for tokens, for not more bytes than the limiter's burst, and then is
   * the next layer's async_write_some() of so many.
   *
   * @par Completion Signature
   * @code void(boost::system::error_code, std::size_t) @endcode
   *
   * @par Errors
   * @li what the next layer reports.
   * @li asio::error::operation_aborted: cancelled while it waited for tokens,
   * or the limiter was (basic_rate_limiter::cancel(), wheel_service::stop()).
   * Nothing was written, nothing paid.
   * @li error::wheel_stopped: the wheel was stopped, and the tokens were not
   * there. Nothing was written.
   * @li error::operation_in_progress: a write is pending already (asserted in
   * debug builds). That one goes on.
   *
   * @par Per-Operation Cancellation
   * While it waits for tokens, terminal, partial and total: it leaves the line.
   * While it writes, as the next layer; the tokens for what was not written are
   * given back.
   */
  template <typename ConstBufferSequence,
            BOOST_ASIO_COMPLETION_TOKEN_FOR(void(error_code, std::size_t))
                Token = asio::default_completion_token_t<executor_type>>
  auto async_write_some(
      const ConstBufferSequence& buffers,
      Token&& token = asio::default_completion_token_t<executor_type>());

private:
  using state_type = detail::limited_stream<NextLayer>;

  template <template <typename...> class> class initiate;

  std::shared_ptr<state_type> state_; // null after a move
};

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#include <asio_wheel/impl/rate_limited_stream.hpp>

#endif // ASIO_WHEEL_RATE_LIMITED_STREAM_HPP
