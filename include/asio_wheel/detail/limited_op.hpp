//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_LIMITED_OP_HPP
#define ASIO_WHEEL_DETAIL_LIMITED_OP_HPP

#include <asio_wheel/detail/bounded_op.hpp>
#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/rate_limiter.hpp>

#include <boost/asio/associator.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// The first bytes of a buffer sequence: what is in its first buffers, like what
// Asio's composed operations hand on at a time.
template <typename Buffer> class buffers_prefix {
public:
  template <typename Buffers>
  buffers_prefix(const Buffers& buffers, std::size_t size) {
    const auto end = asio::buffer_sequence_end(buffers);
    for (auto i = asio::buffer_sequence_begin(buffers);
         i != end && size != 0 && count_ != buffers_.size(); ++i) {
      const Buffer b = asio::buffer(Buffer(*i), size);
      if (b.size() != 0)
        buffers_[count_++] = b;
      size -= b.size();
    }
  }

  using value_type = Buffer;
  using const_iterator = const Buffer*;
  const_iterator begin() const noexcept { return buffers_.data(); }
  const_iterator end() const noexcept { return buffers_.data() + count_; }

private:
  std::array<Buffer, 16> buffers_;
  std::size_t count_ = 0;
};

// The stream itself, with its limiters. On the heap, so that a
// rate_limited_stream can be moved while operations are pending on it, and can
// be destroyed while they wait for tokens.
//
// Both phases of an operation can be cancelled by way of its direction's
// signal, to which the user's slot is forwarded; what comes between the two is
// remembered.
template <typename NextLayer> class limited_stream {
public:
  template <typename... Args>
  explicit limited_stream(Args&&... args)
      : next_(std::in_place, std::forward<Args>(args)...) {}

  NextLayer& next_layer() noexcept { return *next_; }
  const NextLayer& next_layer() const noexcept { return *next_; }

  const std::shared_ptr<rate_limiter>& limiter(direction d) const noexcept {
    return of(d).limiter;
  }
  void limiter(direction d, std::shared_ptr<rate_limiter> l) noexcept {
    of(d).limiter = std::move(l);
  }

  bool pending(direction d) const noexcept { return of(d).pending; }
  void begin(direction d) noexcept {
    of(d).pending = true;
    of(d).cancelled = false;
  }
  void end(direction d) noexcept { of(d).pending = false; }

  asio::cancellation_slot slot(direction d) noexcept {
    return of(d).signal.slot();
  }
  bool cancelled(direction d) const noexcept { return of(d).cancelled; }
  void cancel(direction d, asio::cancellation_type_t type) {
    if (type == asio::cancellation_type::none)
      return;
    of(d).cancelled = true;
    of(d).signal.emit(type);
  }
  void cancel_all() {
    cancel(direction::reading, asio::cancellation_type::terminal);
    cancel(direction::writing, asio::cancellation_type::terminal);
  }

  void close(error_code& ec) {
    cancel_all();
    if constexpr (can_close<NextLayer>)
      next_->close(ec);
    else
      lowest_layer(*next_).close(ec);
  }

  // The rate_limited_stream has gone. No operation touches the next layer any
  // more: each has been cancelled.
  void disown() {
    cancel_all();
    next_.reset();
  }

private:
  struct side {
    std::shared_ptr<rate_limiter> limiter;
    asio::cancellation_signal signal;
    bool pending = false;
    bool cancelled = false;
  };

  side& of(direction d) noexcept { return sides_[static_cast<int>(d)]; }
  const side& of(direction d) const noexcept {
    return sides_[static_cast<int>(d)];
  }

  side sides_[2];
  std::optional<NextLayer> next_;
};

// What a read and a write have in common. Op, derived from it, is the handler
// of both phases:
//
//   operator()(ec)      the tokens came, or did not
//   operator()(ec, n)   the next layer is done
template <typename Op, typename NextLayer, typename Handler>
class limited_op : public upcall<Handler, typename NextLayer::executor_type> {
  using stream = limited_stream<NextLayer>;
  using upcall_type = upcall<Handler, typename NextLayer::executor_type>;

public:
  using cancellation_slot_type = asio::cancellation_slot;

  asio::cancellation_slot get_cancellation_slot() const noexcept {
    return begun_.self->slot(begun_.where);
  }
  const Handler& handler() const noexcept { return handler_; }

protected:
  limited_op(std::shared_ptr<stream> s, direction d, Handler&& h)
      : upcall_type(h, s->next_layer()), limiter_(s->limiter(d)),
        begun_(std::move(s), d), handler_(std::move(h)) {
    if (auto slot = slot_of(handler_); slot.is_connected())
      slot.template emplace<forward_cancellation>(
          forward_cancellation{begun_.self, d});
  }

  NextLayer& next_layer() noexcept { return begun_.self->next_layer(); }
  bool cancelled() const noexcept {
    return begun_.self->cancelled(begun_.where);
  }

  // How many of so many bytes may be moved at a time.
  std::size_t at_most(std::size_t size) const {
    return limiter_ ? static_cast<std::size_t>(
                          std::min<std::uint64_t>(size, limiter_->burst()))
                    : size;
  }

  bool paid(std::size_t n) {
    return n == 0 || !limiter_ || limiter_->try_acquire(n);
  }
  // Moves the operation.
  void pay(std::size_t n) {
    const auto ex = next_layer().get_executor();
    const std::shared_ptr<rate_limiter> limiter = limiter_;
    limiter->async_acquire(
        n, asio::bind_executor(ex, std::move(static_cast<Op&>(*this))));
  }
  void owe(std::size_t n) { limiter_->spend(n); }
  void give_back(std::size_t n) {
    if (n != 0 && limiter_)
      limiter_->give_back(n);
  }

  // The next layer may leave in the slot what no longer is to be called.
  void leave_next_layer() { get_cancellation_slot().clear(); }

  void finish(const error_code& ec, std::size_t n) {
    clear_slot_of(handler_);
    begun_.end();
    upcall_type::operator()(std::move(handler_), ec, n);
  }

private:
  // What the user's slot calls.
  struct forward_cancellation {
    std::shared_ptr<stream> self;
    direction where;
    void operator()(asio::cancellation_type_t type) const {
      self->cancel(where, type);
    }
  };

  // Ended even if the operation is not completed.
  struct begun {
    std::shared_ptr<stream> self;
    direction where;

    begun(std::shared_ptr<stream> s, direction d) noexcept
        : self(std::move(s)), where(d) {
      self->begin(d);
    }
    begun(begun&& other) noexcept = default;
    ~begun() { end(); }
    void end() noexcept {
      if (self)
        std::exchange(self, nullptr)->end(where);
    }
  };

  std::shared_ptr<rate_limiter> limiter_;
  begun begun_;
  Handler handler_;
};

// Tokens first, then bytes.
template <typename NextLayer, typename Buffers, typename Handler>
class limited_write
    : public limited_op<limited_write<NextLayer, Buffers, Handler>, NextLayer,
                        Handler> {
  using base = limited_op<limited_write, NextLayer, Handler>;

public:
  static constexpr direction where = direction::writing;

  limited_write(std::shared_ptr<limited_stream<NextLayer>> s,
                const Buffers& buffers, Handler&& h)
      : base(std::move(s), where, std::move(h)), buffers_(buffers) {}

  void start() {
    size_ = this->at_most(asio::buffer_size(buffers_));
    if (this->paid(size_))
      transfer();
    else
      this->pay(size_);
  }

  void operator()(const error_code& ec) {
    if (this->cancelled()) {
      if (!ec)
        this->give_back(size_);
      this->finish(asio::error::operation_aborted, 0);
    } else if (ec == asio::error::invalid_argument) {
      start(); // there is a smaller burst now
    } else if (ec) {
      this->finish(ec, 0);
    } else {
      transfer();
    }
  }

  void operator()(const error_code& ec, std::size_t n) {
    this->leave_next_layer();
    this->give_back(size_ - n);
    this->finish(ec, n);
  }

private:
  void transfer() {
    const buffers_prefix<asio::const_buffer> first(buffers_, size_);
    this->next_layer().async_write_some(first, std::move(*this));
  }

  Buffers buffers_;
  std::size_t size_ = 0;
};

// Bytes first, then tokens.
template <typename NextLayer, typename Buffers, typename Handler>
class limited_read
    : public limited_op<limited_read<NextLayer, Buffers, Handler>, NextLayer,
                        Handler> {
  using base = limited_op<limited_read, NextLayer, Handler>;

public:
  static constexpr direction where = direction::reading;

  limited_read(std::shared_ptr<limited_stream<NextLayer>> s,
               const Buffers& buffers, Handler&& h)
      : base(std::move(s), where, std::move(h)), buffers_(buffers) {}

  void start() {
    const buffers_prefix<asio::mutable_buffer> first(
        buffers_, this->at_most(asio::buffer_size(buffers_)));
    this->next_layer().async_read_some(first, std::move(*this));
  }

  void operator()(const error_code& ec, std::size_t n) {
    this->leave_next_layer();
    if (this->paid(n))
      return this->finish(ec, n);
    result_ = ec;
    size_ = n;
    if (this->cancelled())
      (*this)(asio::error::operation_aborted);
    else
      this->pay(n);
  }

  void operator()(const error_code& ec) {
    if (ec)
      this->owe(size_);
    this->finish(ec == error::wheel_stopped ? ec : result_, size_);
  }

private:
  Buffers buffers_;
  error_code result_;
  std::size_t size_ = 0;
};

// All but executor and cancellation slot is the user's handler's.
template <template <typename, typename> class Associator, typename Op,
          typename Handler, typename Default>
struct limited_associator : Associator<Handler, Default> {
  static auto get(const Op& o) noexcept {
    return Associator<Handler, Default>::get(o.handler());
  }
  static auto get(const Op& o, const Default& d) noexcept {
    return Associator<Handler, Default>::get(o.handler(), d);
  }
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

namespace boost {
namespace asio {

template <template <typename, typename> class Associator, typename NextLayer,
          typename Buffers, typename Handler, typename Default>
struct associator<Associator,
                  asio_wheel::detail::limited_read<NextLayer, Buffers, Handler>,
                  Default>
    : asio_wheel::detail::limited_associator<
          Associator,
          asio_wheel::detail::limited_read<NextLayer, Buffers, Handler>,
          Handler, Default> {};

template <template <typename, typename> class Associator, typename NextLayer,
          typename Buffers, typename Handler, typename Default>
struct associator<
    Associator, asio_wheel::detail::limited_write<NextLayer, Buffers, Handler>,
    Default>
    : asio_wheel::detail::limited_associator<
          Associator,
          asio_wheel::detail::limited_write<NextLayer, Buffers, Handler>,
          Handler, Default> {};

} // namespace asio
} // namespace boost

#endif // ASIO_WHEEL_DETAIL_LIMITED_OP_HPP
