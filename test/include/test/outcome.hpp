//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_TEST_OUTCOME_HPP
#define ASIO_WHEEL_TEST_OUTCOME_HPP

#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <ostream>
#include <thread>
#include <type_traits>
#include <utility>

namespace test {

using boost::system::error_code;

/// What became of a handler.
enum class fate {
  waiting, ///< neither called nor destroyed yet
  fired,   ///< called once, with success
  aborted, ///< called once, with operation_aborted
  failed,  ///< called once, with another error: see outcome::ec()
  dropped, ///< destroyed without being called
  broken   ///< called twice, or inside a no_upcalls, or called and dropped
};

inline std::ostream& operator<<(std::ostream& o, fate f) {
  switch (f) {
  case fate::waiting:
    return o << "waiting";
  case fate::fired:
    return o << "fired";
  case fate::aborted:
    return o << "aborted";
  case fate::failed:
    return o << "failed";
  case fate::dropped:
    return o << "dropped";
  case fate::broken:
    break;
  }
  return o << "broken";
}

/// While one of these lives, no handler of an outcome may run on this thread.
class no_upcalls {
public:
  no_upcalls() noexcept { ++depth(); }
  ~no_upcalls() { --depth(); }
  no_upcalls(const no_upcalls&) = delete;
  no_upcalls& operator=(const no_upcalls&) = delete;

  static bool active() noexcept { return depth() != 0; }

private:
  static int& depth() noexcept {
    static thread_local int value = 0;
    return value;
  }
};

/// Calls @c f, inside which no handler of an outcome may run.
template <typename F> decltype(auto) quietly(F&& f) {
  no_upcalls guard;
  return std::forward<F>(f)();
}

/// The test's end of one handler. Copies refer to the same handler.
class outcome {
  struct state {
    std::atomic<int> calls{0};
    std::atomic<int> drops{0};
    std::atomic<bool> inlined{false};
    error_code ec;
    std::thread::id thread;
    std::function<void(error_code)> then;

    void call(error_code e) {
      if (no_upcalls::active())
        inlined = true;
      ec = e;
      thread = std::this_thread::get_id();
      ++calls;
      if (then)
        then(e);
    }
  };

public:
  /// @c then is called from within the handler.
  explicit outcome(std::function<void(error_code)> then = {})
      : state_(std::make_shared<state>()) {
    state_->then = std::move(then);
  }

  /// Move-only, and knows when it is destroyed without having been called.
  class tracked_handler {
  public:
    tracked_handler(tracked_handler&& other) noexcept = default;

    ~tracked_handler() {
      if (state_ && !called_)
        ++state_->drops;
    }

    void operator()(error_code ec) {
      called_ = true;
      // As handlers are wont to do, let go of what it holds only afterwards.
      state_->call(ec);
    }

  private:
    friend class outcome;
    explicit tracked_handler(std::shared_ptr<state> s) noexcept
        : state_(std::move(s)) {}

    std::shared_ptr<state> state_;
    bool called_ = false;
  };

  /// Trivially copyable, one pointer: what a timer can store in itself. The
  /// outcome must outlive it.
  struct small_handler {
    state* self;
    void operator()(error_code ec) const { self->call(ec); }
  };
  static_assert(std::is_trivially_copyable_v<small_handler>);

  tracked_handler tracked() const { return tracked_handler(state_); }
  small_handler small() const noexcept { return {state_.get()}; }

  test::fate fate() const noexcept {
    const int calls = state_->calls;
    const int drops = state_->drops;
    if (calls + drops > 1 || state_->inlined)
      return fate::broken;
    if (drops)
      return fate::dropped;
    if (!calls)
      return fate::waiting;
    if (!state_->ec)
      return fate::fired;
    return state_->ec == boost::asio::error::operation_aborted ? fate::aborted
                                                               : fate::failed;
  }

  error_code ec() const noexcept { return state_->ec; }
  std::thread::id thread() const noexcept { return state_->thread; }
  int calls() const noexcept { return state_->calls; }

  /// For a chain whose handler is armed again and again.
  void forget() noexcept {
    state_->calls = 0;
    state_->drops = 0;
    state_->inlined = false;
  }

private:
  std::shared_ptr<state> state_;
};

} // namespace test

#endif // ASIO_WHEEL_TEST_OUTCOME_HPP
