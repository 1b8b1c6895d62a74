//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_TEST_RETRY_HPP
#define ASIO_WHEEL_TEST_RETRY_HPP

#include <asio_wheel/async_retry.hpp>
#include <asio_wheel/manual_clock.hpp>
#include <asio_wheel/wheel_service.hpp>
#include <asio_wheel/wheel_timer.hpp>

#include <test/manual_context.hpp>
#include <test/outcome.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/query.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

// What the tests of async_retry share.

#define CHECK_RETRIED(r, error, n)                                             \
  do {                                                                         \
    BOOST_TEST((r).o.calls() == 1);                                            \
    BOOST_TEST(((r).ended() != test::fate::broken));                           \
    BOOST_TEST((r).ec() == test::error_code(error));                           \
    BOOST_TEST((r).attempts == std::size_t{n});                                \
  } while (false)

namespace test {

/// How an attempt goes.
struct step {
  error_code ec;
  std::chrono::steady_clock::duration takes{0};
  int value = 0;
  enum { usual, deaf, in_initiation, throws, throws_in_initiation } how = usual;
};

/// A value that cannot be made from nothing, nor copied.
struct picky {
  explicit picky(int v) : value(std::make_unique<int>(v)) {}
  std::unique_ptr<int> value;
};

/// An operation that goes as it is written; the last step is repeated. Its
/// executor is the timer's.
template <typename Executor = boost::asio::any_io_executor> struct script {
  asio_wheel::basic_wheel_timer<Executor> timer;
  std::vector<step> steps;
  std::vector<std::size_t> attempts = {};
  std::vector<asio_wheel::manual_clock::time_point> times = {};
  std::function<void()> each = [] {};

  script(const Executor& ex, std::vector<step> s)
      : timer(ex), steps(std::move(s)) {}
  script(boost::asio::io_context& io, std::vector<step> s)
      : script(Executor(io.get_executor()), std::move(s)) {}

  struct initiation {
    using executor_type = Executor;
    script* self;
    step now;

    executor_type get_executor() const noexcept {
      return self->timer.get_executor();
    }

    template <typename Handler> void operator()(Handler&& handler) {
      if (now.how == step::throws_in_initiation)
        throw std::runtime_error("at the initiation");
      std::decay_t<Handler> h(std::forward<Handler>(handler));
      if (now.how == step::in_initiation)
        return std::move(h)(now.ec, picky(now.value));
      const auto ex = boost::asio::get_associated_executor(h, get_executor());
      boost::asio::cancellation_slot slot;
      if (now.how != step::deaf)
        slot = boost::asio::get_associated_cancellation_slot(h);
      self->timer.expires_after(now.takes);
      self->timer.async_wait(boost::asio::bind_cancellation_slot(
          slot, boost::asio::bind_executor(
                    ex, [s = now, h = std::move(h)](error_code ec) mutable {
                      std::move(h)(ec ? ec : s.ec, picky(s.value));
                    })));
    }
  };

  auto make(std::size_t number) {
    times.push_back(asio_wheel::use_wheel(
                        boost::asio::query(timer.get_executor(),
                                           boost::asio::execution::context))
                        .now());
    attempts.push_back(number);
    each();
    const step& s = steps[std::min(attempts.size(), steps.size()) - 1];
    if (s.how == step::throws)
      throw std::runtime_error("at the making");
    return boost::asio::async_initiate<const boost::asio::deferred_t&,
                                       void(error_code, picky)>(
        initiation{this, s}, boost::asio::deferred);
  }

  auto operation() {
    return [this](std::size_t number) { return make(number); };
  }
};

/// What became of a retry.
struct retried {
  outcome o;
  std::size_t attempts = 99;
  int value = -1;
  std::function<void()> then = [] {};

  auto handler() {
    return
        [this, h = o.tracked()](error_code ec, std::size_t n, picky v) mutable {
          attempts = n;
          value = *v.value;
          then();
          h(ec);
        };
  }

  fate ended() const { return o.fate(); }
  error_code ec() const { return o.ec(); }
};

inline const error_code refusal = boost::asio::error::connection_refused;
inline const error_code reset = boost::asio::error::connection_reset;
inline const error_code aborted = boost::asio::error::operation_aborted;

/// A retry under a manual clock.
struct retry_fixture : manual_context {
  time_point start = now();
  retried r;

  using manual_context::manual_context;

  /// Runs up to `end` after the start.
  void run_until(duration end) {
    poll();
    while (now() - start < end)
      advance(std::chrono::milliseconds(1));
  }

  template <typename Script>
  void check_times(const Script& s, const std::vector<duration>& expected) {
    BOOST_REQUIRE(s.times.size() == expected.size());
    for (std::size_t i = 0; i != expected.size(); ++i)
      BOOST_TEST((s.times[i] - start).count() == expected[i].count(),
                 "attempt " << i + 1);
  }
};

inline asio_wheel::retry_options at_most(std::size_t n) {
  asio_wheel::retry_options o;
  o.max_attempts = n;
  return o;
}

inline asio_wheel::retry_options within(std::chrono::steady_clock::duration d) {
  asio_wheel::retry_options o;
  o.time_limit = d;
  return o;
}

inline asio_wheel::retry_options
each_within(std::chrono::steady_clock::duration d) {
  asio_wheel::retry_options o;
  o.attempt_timeout = d;
  return o;
}

/// 100 ms, 200 ms, ... 1 s.
inline asio_wheel::backoff usual() {
  return asio_wheel::backoff::exponential(std::chrono::milliseconds(100),
                                          std::chrono::seconds(1));
}

} // namespace test

#endif // ASIO_WHEEL_TEST_RETRY_HPP
