//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_TEST_MEMORY_STREAM_HPP
#define ASIO_WHEEL_TEST_MEMORY_STREAM_HPP

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/append.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/system/error_code.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace test {

/// A stream in memory whose peer is the test: no socket, no real time.
/**
 * A read completes when the peer has fed bytes; a write when the peer has room
 * for some. Both can be cancelled per operation (terminal, partial, total),
 * without losing a byte. Like a socket's, its operations are aborted when it is
 * closed or destroyed. One thread.
 */
class memory_stream {
  using error_code = boost::system::error_code;

  struct completion {
    virtual ~completion() = default;
    virtual void post(const boost::asio::any_io_executor& ex, error_code ec,
                      std::size_t n) = 0;
  };

  template <typename Handler> struct completion_of final : completion {
    explicit completion_of(Handler&& h) : handler(std::move(h)) {}

    void post(const boost::asio::any_io_executor& ex, error_code ec,
              std::size_t n) override {
      auto slot = boost::asio::get_associated_cancellation_slot(handler);
      if (slot.is_connected())
        slot.clear();
      boost::asio::post(ex, boost::asio::append(std::move(handler), ec, n));
    }

    Handler handler;
  };

  struct operation {
    std::unique_ptr<completion> handler;
    void* data = nullptr;
    std::size_t size = 0;

    explicit operator bool() const { return handler != nullptr; }
  };

  struct state {
    explicit state(const boost::asio::any_io_executor& e) : ex(e) {}

    boost::asio::any_io_executor ex;
    std::string incoming; // fed, and not read yet
    std::string outgoing; // written
    std::size_t room = 0; // for writes
    bool eof = false;
    bool open = true;
    bool down = false; // shut down, both directions
    operation read, write;
    int cancelled = 0;

    void finish(operation& op, error_code ec, std::size_t n) {
      const operation done = std::move(op);
      done.handler->post(ex, ec, n);
    }

    void look() {
      if (read) {
        if (!incoming.empty()) {
          const std::size_t n = boost::asio::buffer_copy(
              boost::asio::buffer(read.data, read.size),
              boost::asio::buffer(incoming));
          incoming.erase(0, n);
          finish(read, {}, n);
        } else if (eof) {
          finish(read, boost::asio::error::eof, 0);
        }
      }
      if (write && down) {
        finish(write, boost::asio::error::broken_pipe, 0);
      } else if (write && room != 0) {
        const std::size_t n = room < write.size ? room : write.size;
        outgoing.append(static_cast<const char*>(write.data), n);
        room -= n;
        finish(write, {}, n);
      }
    }

    void abort(operation& op) {
      if (op)
        finish(op, boost::asio::error::operation_aborted, 0);
    }
  };

public:
  using executor_type = boost::asio::any_io_executor;

  /// What the test holds: the other end.
  class peer {
  public:
    /// Bytes arrive.
    void feed(const std::string& bytes) {
      state_->incoming += bytes;
      state_->look();
    }
    /// No more bytes will.
    void end() {
      state_->eof = true;
      state_->look();
    }
    /// Take n more bytes of what is written.
    void accept(std::size_t n) {
      state_->room += n;
      state_->look();
    }
    const std::string& received() const { return state_->outgoing; }
    bool reading() const { return static_cast<bool>(state_->read); }
    bool writing() const { return static_cast<bool>(state_->write); }
    bool closed() const { return !state_->open; }
    bool shut_down() const { return state_->down; }
    /// How many operations were cancelled through their slot.
    int cancelled() const { return state_->cancelled; }

  private:
    friend class memory_stream;
    explicit peer(std::shared_ptr<state> s) : state_(std::move(s)) {}
    std::shared_ptr<state> state_;
  };

  explicit memory_stream(const executor_type& ex)
      : state_(std::make_shared<state>(ex)) {}
  memory_stream(memory_stream&&) = default;
  memory_stream& operator=(memory_stream&&) = default;
  ~memory_stream() {
    error_code ignored;
    if (state_)
      close(ignored);
  }

  executor_type get_executor() const noexcept { return state_->ex; }
  memory_stream::peer other_end() const { return peer(state_); }

  bool is_open() const { return state_->open; }
  void close(error_code& ec) {
    ec.clear();
    state_->open = false;
    state_->abort(state_->read);
    state_->abort(state_->write);
  }

  enum shutdown_type { shutdown_both };
  /// What has not been read is lost.
  void shutdown(shutdown_type, error_code& ec) {
    ec.clear();
    state_->down = true;
    state_->eof = true;
    state_->incoming.clear();
    state_->look();
  }

  template <typename Buffers, typename Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    const boost::asio::mutable_buffer b =
        *boost::asio::buffer_sequence_begin(buffers);
    return boost::asio::async_initiate<Token, void(error_code, std::size_t)>(
        [s = state_](auto&& handler, void* data, std::size_t size) {
          start(s, s->read, std::move(handler), data, size);
        },
        token, b.data(), b.size());
  }

  template <typename Buffers, typename Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    const boost::asio::const_buffer b =
        *boost::asio::buffer_sequence_begin(buffers);
    return boost::asio::async_initiate<Token, void(error_code, std::size_t)>(
        [s = state_](auto&& handler, const void* data, std::size_t size) {
          start(s, s->write, std::move(handler), const_cast<void*>(data), size);
        },
        token, b.data(), b.size());
  }

private:
  template <typename Handler>
  static void start(const std::shared_ptr<state>& s, operation& op,
                    Handler handler, void* data, std::size_t size) {
    auto slot = boost::asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected())
      slot.assign([s, &op](boost::asio::cancellation_type_t type) {
        if (op && type != boost::asio::cancellation_type::none) {
          ++s->cancelled;
          s->abort(op);
        }
      });
    op.handler = std::make_unique<completion_of<Handler>>(std::move(handler));
    op.data = data;
    op.size = size;
    if (!s->open)
      s->finish(op, boost::asio::error::bad_descriptor, 0);
    else
      s->look();
  }

  std::shared_ptr<state> state_;
};

} // namespace test

#endif // ASIO_WHEEL_TEST_MEMORY_STREAM_HPP
