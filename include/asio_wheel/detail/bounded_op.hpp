//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_BOUNDED_OP_HPP
#define ASIO_WHEEL_DETAIL_BOUNDED_OP_HPP

#include <asio_wheel/detail/bounded_stream.hpp>
#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/other_executor.hpp>
#include <asio_wheel/detail/wait_op.hpp>

#include <boost/asio/associator.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/prepend.hpp>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// Where a bounded operation's handler is called.
//
// The bookkeeping runs on the stream's executor. A handler without an executor
// of its own is called from there; so is one whose executor is the stream's.
// Any other is dispatched to its executor, on which there is work until then.
template <typename Handler, typename Executor,
          bool HasOwn = has_own_executor<Handler>>
class upcall {
public:
  template <typename NextLayer>
  upcall(const Handler&, NextLayer&) noexcept {} // copying an executor costs

  template <typename... Args>
  void operator()(Handler&& handler, Args&&... args) {
    std::move(handler)(std::forward<Args>(args)...);
  }
};

template <typename Handler, typename Executor>
class upcall<Handler, Executor, true> {
public:
  using executor_type = Executor;

  template <typename NextLayer>
  upcall(const Handler& h, NextLayer& next)
      : executor_(next.get_executor()), other_(h, executor_) {}

  const Executor& get_executor() const noexcept { return executor_; }

  template <typename... Args>
  void operator()(Handler&& handler, Args&&... args) {
    if (!other_.any()) {
      std::move(handler)(std::forward<Args>(args)...);
      return;
    }
    asio::dispatch(
        other_.get(),
        asio::prepend(std::move(handler), std::decay_t<Args>(args)...));
  }

private:
  Executor executor_;
  other_executor<Handler, Executor> other_;
};

// The handler of an operation on the next layer: keeps the stream's books, and
// calls the user's handler.
template <typename NextLayer, typename Handler>
class bounded_op : public upcall<Handler, typename NextLayer::executor_type> {
  using stream = bounded_stream<NextLayer>;
  using upcall_type = upcall<Handler, typename NextLayer::executor_type>;

public:
  using cancellation_slot_type = asio::cancellation_slot;

  // The operation has begun already.
  bounded_op(stream& s, direction d, Handler&& h)
      : bounded_op(begun(s, d), std::move(h)) {}

  bounded_op(bounded_op&& other) noexcept(
      std::is_nothrow_move_constructible_v<Handler>)
      : upcall_type(std::move(other)), begun_(std::move(other.begun_)),
        handler_(std::move(other.handler_)) {}

  asio::cancellation_slot get_cancellation_slot() const noexcept {
    return begun_.self->slot(begun_.where);
  }
  const Handler& handler() const noexcept { return handler_; }

  template <typename... Args>
  void operator()(const error_code& ec, Args... args) {
    stream* const s = std::exchange(begun_.self, nullptr);
    const error_code result = s->ended(begun_.where, ec, bytes(args...));
    clear_slot_of(handler_);
    // What the handler starts keeps the alarm set.
    struct release {
      stream* self;
      ~release() { self->unuse(); }
    } guard{s};
    upcall_type::operator()(std::move(handler_), result, std::move(args)...);
  }

private:
  // What the user's slot calls.
  struct forward_cancellation {
    stream* self;
    direction where;
    void operator()(asio::cancellation_type_t type) const {
      self->cancel(where, type);
    }
  };

  // Undone if the operation is not completed.
  struct begun {
    stream* self;
    direction where;

    begun(stream& s, direction d) noexcept : self(&s), where(d) {}
    begun(begun&& other) noexcept
        : self(std::exchange(other.self, nullptr)), where(other.where) {}
    ~begun() {
      if (self) {
        self->dropped(where);
        self->unuse();
      }
    }
  };

  bounded_op(begun&& b, Handler&& h)
      : upcall_type(h, b.self->next_layer()), begun_(std::move(b)),
        handler_(std::move(h)) {
    if (auto slot = slot_of(handler_); slot.is_connected())
      slot.template emplace<forward_cancellation>(
          forward_cancellation{begun_.self, begun_.where});
  }

  static std::size_t bytes() noexcept { return 0; }
  static std::size_t bytes(std::size_t n) noexcept { return n; }
  template <typename Other> static std::size_t bytes(const Other&) noexcept {
    return 0; // the endpoint of a connect
  }

  begun begun_;
  Handler handler_;
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

namespace boost {
namespace asio {

// All but executor and cancellation slot is the user's handler's.
template <template <typename, typename> class Associator, typename NextLayer,
          typename Handler, typename Default>
struct associator<Associator,
                  asio_wheel::detail::bounded_op<NextLayer, Handler>, Default>
    : Associator<Handler, Default> {
  using op = asio_wheel::detail::bounded_op<NextLayer, Handler>;

  static auto get(const op& o) noexcept {
    return Associator<Handler, Default>::get(o.handler());
  }
  static auto get(const op& o, const Default& d) noexcept {
    return Associator<Handler, Default>::get(o.handler(), d);
  }
};

} // namespace asio
} // namespace boost

#endif // ASIO_WHEEL_DETAIL_BOUNDED_OP_HPP
