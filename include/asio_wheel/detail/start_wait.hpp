//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_START_WAIT_HPP
#define ASIO_WHEEL_DETAIL_START_WAIT_HPP

#include <asio_wheel/detail/alarm.hpp>
#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/detail/native_executor.hpp>
#include <asio_wheel/detail/shard.hpp>
#include <asio_wheel/detail/wait_op.hpp>

#include <boost/asio/associated_executor.hpp>

#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// From a handler to a wait: chooses the kind of operation and starts it. With a
// `why`, a wait that is refused sets it, and the handler is destroyed uncalled.

// Start a new operation. If that fails, the handler is destroyed uncalled.
template <typename Slot>
void start_op(alarm& a, wait_op* op, const Slot& slot, outcome* why,
              outcome refused = outcome::none) {
  struct guard {
    wait_op* op;
    Slot slot;
    ~guard() {
      if (op) {
        if (slot.is_connected())
          slot.clear();
        op->discard();
      }
    }
  } g{op, slot};
  shard& s = a.owner();
  if (g.slot.is_connected())
    g.slot.template emplace<wait_op::slot_link>(*op, s);
  if (s.start(a, *op, refused, why) == shard::start_result::started)
    g.op = nullptr;
}

// The handler may be called directly by a drain.
template <typename Handler>
void start_direct(alarm& a, Handler& handler, outcome* why) {
  const auto slot = slot_of(handler);
  if constexpr (small_wait::fits<Handler>()) {
    if (!slot.is_connected() &&
        a.owner().start(a, small_wait::make(handler), why) !=
            shard::start_result::no_room)
      return;
  }
  start_op(a, op_memory<direct_op<Handler>, Handler>::make(handler), slot, why);
}

// The handler has to be called through an executor.
template <typename Handler, typename Executor>
void start_foreign(alarm& a, Handler& handler, const Executor& ex,
                   outcome* why) {
  shard& s = a.owner();
  outcome refused = outcome::none;
  const auto* const context = context_if_known(ex);
  if (s.single_threaded() && context && context != &s.context()) {
    ASIO_WHEEL_ASSERT(!"a handler of a single_threaded wheel is bound to "
                       "another context");
    refused = outcome::not_supported;
  }
  const auto slot = slot_of(handler);
  using op = foreign_op<Handler, Executor>;
  start_op(a, op_memory<op, Handler>::make(handler, ex, s), slot, why, refused);
}

// Start a wait for a handler whose default executor is ex, the timer's.
template <typename Handler, typename Executor>
void start_wait(alarm& a, Handler handler, const Executor& ex,
                outcome* why = nullptr) {
  if constexpr (has_own_executor<Handler>) {
    const auto own = asio::get_associated_executor(handler, ex);
    if (native_executor::of(own).context() == &a.owner().context())
      start_direct(a, handler, why);
    else
      start_foreign(a, handler, own, why);
  } else if constexpr (is_native_executor<Executor>) {
    start_direct(a, handler, why); // the shard was found through it
  } else {
    if (a.on_own_context())
      start_direct(a, handler, why);
    else
      start_foreign(a, handler, ex, why);
  }
}

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_START_WAIT_HPP
