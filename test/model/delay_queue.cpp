//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/delay_queue.hpp>

#define BOOST_TEST_MODULE model_delay_queue
#include <boost/test/unit_test.hpp>

#include <test/manual_context.hpp>

#include <asio_wheel/error.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/strand.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

// Random operations on a delay_queue against a std::multimap and two queues of
// operations, which know what has to come of each. A failure names its seed:
// ASIO_WHEEL_SEED, ASIO_WHEEL_STEPS and ASIO_WHEEL_RUNS run it again, for
// longer, and more of them.

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::delay_key;
using boost::system::error_code;
using test::manual_context;

namespace {

// A value that counts how many there are, and is not trivial.
class value {
public:
  static std::size_t live;

  value() : value(0) {}
  explicit value(std::size_t id) : id_(std::make_unique<std::size_t>(id)) {
    ++live;
  }
  value(value&& other) noexcept : id_(std::move(other.id_)) { ++live; }
  value& operator=(value&&) = delete;
  ~value() { --live; }
  std::size_t id() const { return id_ ? *id_ : 0; }

private:
  std::unique_ptr<std::size_t> id_;
};
std::size_t value::live = 0;

class world {
public:
  using queue = asio_wheel::delay_queue<value>;
  using duration = queue::duration;
  using time_point = queue::time_point;

  world(std::uint64_t seed, std::size_t capacity, duration tick)
      : random_(seed), capacity_(capacity), tick_(tick) {
    asio_wheel::wheel_options wheel;
    wheel.tick = tick;
    m_ = std::make_unique<manual_context>(wheel);
    strand_.emplace(asio::make_strand(m_->io));
    asio_wheel::delay_queue_options options;
    options.capacity = capacity;
    if (on_strand_)
      queue_ = std::make_unique<queue>(*strand_, options);
    else
      queue_ = std::make_unique<queue>(m_->io, options);
  }

  void run(std::size_t steps) {
    for (std::size_t i = 0; i != steps && !failed_; ++i) {
      step();
      compare();
    }
    finish();
    check(value::live == 0, "values are left");
  }

  bool failed() const noexcept { return failed_; }

private:
  struct item {
    std::size_t id;
    delay_key key;
  };
  using items =
      std::multimap<time_point, item>; // equal times: the oldest first

  struct operation {
    bool called = false;
    bool expected = false; // has to complete, with:
    error_code ec;
    std::size_t id = 0;
    // A push that waits: what it puts in, and what it got.
    time_point due{};
    delay_key key;
    std::unique_ptr<asio::cancellation_signal> signal;
  };

  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

  void check(bool ok, const char* what) {
    if (!ok && !failed_) {
      BOOST_ERROR(what);
      failed_ = true;
    }
  }

  time_point now() const { return m_->now(); }

  time_point any_time() {
    switch (below(12)) {
    case 0:
      return now();
    case 1:
      return now() - duration(below(5'000'000));
    case 2:
      return time_point::min();
    case 3:
      return time_point::max();
    case 4:
      return now() + duration(below(100'000'000'000));
    case 5:
      return now() + tick_ * below(300);
    case 6: // equal to another's
      return items_.empty() ? now() : items_.begin()->first;
    default:
      return now() + duration(below(20'000'000));
    }
  }

  // --- What the queue has to do

  items::iterator find(std::size_t id) {
    auto i = items_.begin();
    while (i != items_.end() && i->second.id != id)
      ++i;
    return i;
  }
  bool due() const { return !items_.empty() && items_.begin()->first <= now(); }
  bool at_end() const { return closed_ && items_.empty(); }

  static void expect(operation& op, error_code ec, std::size_t id = 0) {
    op.expected = true;
    op.ec = ec;
    op.id = id;
  }
  void give(operation& op) {
    expect(op, {}, items_.begin()->second.id);
    items_.erase(items_.begin());
  }

  // What wake() does, until there is nothing to do.
  void serve(error_code failure = {}) {
    for (;;) {
      if (!pops_.empty() && (failure || due() || at_end())) {
        operation& op = *pops_.front();
        pops_.pop_front();
        if (failure)
          expect(op, failure);
        else if (due())
          give(op);
        else
          expect(op, asio::error::eof);
      } else if (!pushes_.empty() &&
                 (failure || closed_ || items_.size() < capacity_)) {
        operation& op = *pushes_.front();
        pushes_.pop_front();
        if (failure || closed_) {
          expect(op, failure ? failure : error_code(asio::error::shut_down));
        } else {
          const std::size_t id = op.id;
          expect(op, {}, id);
          // Its key is known when it has completed.
          items_.emplace(op.due, item{id, {}});
          admitted_.push_back(&op);
        }
      } else {
        return;
      }
    }
  }

  // --- Operations

  void pop() {
    operation& op = operations_.emplace_back();
    if (pops_.empty() && due())
      give(op);
    else if (at_end())
      expect(op, asio::error::eof);
    else if (stopped_)
      expect(op, asio_wheel::error::wheel_stopped);
    else
      pops_.push_back(&op);
    start(op, [this](auto&& h) {
      queue_->async_pop(std::forward<decltype(h)>(h));
    });
  }

  void push_later() {
    operation& op = operations_.emplace_back();
    op.id = ++last_id_;
    op.due = any_time();
    const std::size_t id = op.id;
    if (closed_) {
      expect(op, asio::error::shut_down);
    } else if (items_.size() < capacity_) {
      expect(op, {}, id);
      items_.emplace(op.due, item{id, {}});
      admitted_.push_back(&op);
    } else if (stopped_) {
      expect(op, asio_wheel::error::wheel_stopped);
    } else {
      pushes_.push_back(&op);
    }
    start(op, [this, id, due = op.due](auto&& h) {
      queue_->async_push_at(value(id), due, std::forward<decltype(h)>(h));
    });
  }

  struct handler {
    world* w;
    operation* op;
    void operator()(error_code ec, const value& v) const {
      w->called(*op, ec, v.id());
    }
    void operator()(error_code ec, delay_key key) const {
      op->key = key;
      w->called(*op, ec, ec ? 0 : op->id);
    }
  };

  template <typename Start> void start(operation& op, Start go) {
    quiet_ = true;
    const handler h{this, &op};
    if (one_in(2)) {
      op.signal = std::make_unique<asio::cancellation_signal>();
      go(asio::bind_cancellation_slot(op.signal->slot(), h));
    } else if (one_in(2)) {
      go(asio::bind_executor(*strand_, h));
    } else {
      go(h);
    }
    quiet_ = false;
  }

  void called(operation& op, error_code ec, std::size_t id) {
    check(!quiet_, "a handler ran inside a function of the queue's");
    check(!op.called, "a handler was called twice");
    op.called = true;
    check(op.expected, "an operation completed that should wait");
    check(ec == op.ec, "an operation completed with another error");
    if (!ec)
      check(id == op.id, "a consumer got another item");
    if (op.signal)
      check(!op.signal->slot().has_handler(), "the slot was not cleared");
  }

  void cancel() {
    for (operation& op : operations_)
      if (op.signal && !op.called && one_in(3)) {
        for (auto* ops : {&pops_, &pushes_})
          for (auto i = ops->begin(); i != ops->end(); ++i)
            if (*i == &op) {
              ops->erase(i);
              expect(op, asio::error::operation_aborted);
              break;
            }
        op.signal->emit(asio::cancellation_type::total);
        return;
      }
  }

  void push() {
    const std::size_t id = last_id_ + 1;
    const time_point t = any_time();
    value v(id);
    const bool refused = closed_ || items_.size() >= capacity_;
    delay_key key;
    if (one_in(2)) {
      key = queue_->try_push_at(std::move(v), t);
    } else {
      try {
        key = queue_->push_at(std::move(v), t);
      } catch (const boost::system::system_error& e) {
        check(e.code() == (closed_ ? error_code(asio::error::shut_down)
                                   : asio_wheel::error::too_many_pending),
              "push() failed with another error");
      }
    }
    check(bool(key) != refused, "push() took or refused wrongly");
    check((v.id() == id) == refused, "a refused value was touched");
    if (!refused) {
      ++last_id_;
      items_.emplace(t, item{id, key});
      keys_.push_back({id, key});
    }
  }

  item any_key() {
    return keys_.empty()
               ? item{0, {}}
               : keys_[keys_.size() - 1 -
                       below(std::min<std::size_t>(keys_.size(), 40))];
  }

  void step() {
    switch (below(24)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
      return push();
    case 6:
    case 7:
      return push_later();
    case 8:
    case 9:
    case 10:
      return pop();
    case 11: {
      const auto v = queue_->try_pop();
      check(v.has_value() == due(), "try_pop() took or left wrongly");
      if (v && due()) {
        check(v->id() == items_.begin()->second.id, "not the next item");
        items_.erase(items_.begin());
      }
      return;
    }
    case 12:
    case 13: {
      const item k = any_key();
      const auto i = find(k.id);
      const auto v = queue_->remove(k.key);
      check(v.has_value() == (i != items_.end()), "remove() found wrongly");
      if (v)
        check(v->id() == k.id, "remove() took another item");
      if (i != items_.end())
        items_.erase(i);
      return;
    }
    case 14:
    case 15:
    case 16: {
      const item k = any_key();
      const auto i = find(k.id);
      const time_point t = any_time();
      check(queue_->reset_at(k.key, t) == (i != items_.end()),
            "reset() found wrongly");
      if (i != items_.end()) {
        const item same = i->second;
        items_.erase(i);
        items_.emplace(t, same);
      }
      return;
    }
    case 17:
      return cancel();
    case 18:
      m_->clock.advance(duration(below(3'000'000)));
      return;
    case 19:
      m_->clock.advance(tick_ * (1 << below(14)));
      return;
    case 20:
      if (one_in(30)) {
        check(queue_->clear() == items_.size(), "clear() miscounted");
        items_.clear();
      }
      return;
    case 21:
      if (one_in(600)) {
        queue_->close();
        closed_ = true;
      } else if (one_in(600)) {
        m_->wheel.stop();
        stopped_ = true;
      }
      return;
    default:
      return poll();
    }
  }

  void poll() {
    // To the next tick, at which at the latest a wait is over.
    const auto part = now().time_since_epoch() % tick_;
    if (part.count() != 0)
      m_->clock.advance(tick_ - part);
    serve();
    if (stopped_)
      serve(asio::error::operation_aborted);
    m_->poll();
    for (operation& op : operations_)
      check(op.called == op.expected, "an operation did not complete");
    for (operation* op : admitted_) {
      check(bool(op->key), "a push completed without a key");
      const auto i = find(op->id);
      if (i != items_.end())
        i->second.key = op->key;
      keys_.push_back({op->id, op->key});
    }
    admitted_.clear();
    while (!operations_.empty() && operations_.front().called)
      operations_.pop_front();
    check(m_->io.stopped() == (pops_.empty() && pushes_.empty()),
          "run() is held wrongly");
  }

  void compare() {
    check(queue_->size() == items_.size(), "size() is another");
    const item k = any_key();
    check(queue_->contains(k.key) == (find(k.id) != items_.end()),
          "contains() is wrong");
    const auto next = queue_->peek();
    check(next.has_value() == !items_.empty(), "peek() is wrong about nothing");
    if (next && !items_.empty()) {
      const time_point first = items_.begin()->first;
      check(*next <= first, "peek() is late");
      if (first <= now() + 60 * tick_ || first == time_point::max())
        check(*next == first || first == time_point::max(),
              "peek() is not exact");
    }
  }

  void finish() {
    // A queue on a strand must not outlive the strand's context.
    if (on_strand_ || one_in(2)) { // the queue first
      for (auto* ops : {&pops_, &pushes_})
        while (!ops->empty()) {
          expect(*ops->front(), asio::error::operation_aborted);
          ops->pop_front();
        }
      queue_.reset();
      if (one_in(2)) {
        m_->poll();
        for (operation& op : operations_)
          check(op.called, "an operation outlived its queue");
      }
    }
    // Operations are dropped with the context; items stay.
    strand_.reset();
    m_.reset();
    if (queue_) {
      check(queue_->size() == items_.size(), "items went with the context");
      queue_.reset();
    }
  }

  std::mt19937_64 random_;
  const std::size_t capacity_;
  const duration tick_;
  const bool on_strand_ = one_in(3);
  std::unique_ptr<manual_context> m_;
  std::optional<asio::strand<asio::io_context::executor_type>> strand_;
  std::unique_ptr<queue> queue_;

  items items_;
  std::deque<operation> operations_; // not yet completed
  std::deque<operation*> pops_, pushes_;
  std::vector<operation*> admitted_;
  std::vector<item> keys_;
  std::size_t last_id_ = 0;
  bool closed_ = false;
  bool stopped_ = false;
  bool quiet_ = false;
  bool failed_ = false;
};

std::uint64_t number_from(const char* name, std::uint64_t otherwise) {
  const char* const s = std::getenv(name);
  return s ? std::strtoull(s, nullptr, 10) : otherwise;
}

void run(std::size_t capacity, world::duration tick = 1ms) {
  const auto steps = number_from("ASIO_WHEEL_STEPS", 5000);
  const auto first = number_from("ASIO_WHEEL_SEED", std::random_device()());
  const auto runs = number_from("ASIO_WHEEL_RUNS", 20);
  for (std::uint64_t seed = first; seed != first + runs; ++seed)
    BOOST_TEST_CONTEXT("ASIO_WHEEL_SEED=" << seed) {
      world w(seed, capacity, tick);
      w.run(steps);
      if (w.failed())
        return;
    }
}

} // namespace

BOOST_AUTO_TEST_CASE(without_a_limit_it_does_as_the_model) {
  run(std::numeric_limits<std::size_t>::max());
}

BOOST_AUTO_TEST_CASE(with_a_small_capacity_it_does_as_the_model) { run(5); }

BOOST_AUTO_TEST_CASE(with_room_for_one_it_does_as_the_model) { run(1); }

BOOST_AUTO_TEST_CASE(with_a_coarse_tick_it_does_as_the_model) {
  run(100, 20ms);
}
