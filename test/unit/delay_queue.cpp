//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/delay_queue.hpp>

#define BOOST_TEST_MODULE unit_delay_queue
#include <boost/test/unit_test.hpp>

#include <test/manual_context.hpp>
#include <test/outcome.hpp>
#include <test/queue_context.hpp>

#include <asio_wheel/error.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::delay_key;
using asio_wheel::delay_queue;
using asio_wheel::delay_queue_options;
using boost::system::error_code;
using boost::system::system_error;
using test::fate;
using test::manual_context;
using test::outcome;
using test::quietly;

using int_queue = delay_queue<int>;
using duration = int_queue::duration;
using time_point = int_queue::time_point;

delay_queue_options room_for(std::size_t n) {
  delay_queue_options o;
  o.capacity = n;
  return o;
}

// A consumer: an outcome, and the value that it got.
struct consumer {
  outcome o;
  int value = -1;

  auto handler() {
    return [this, h = o.tracked()](error_code ec, int v) mutable {
      value = v;
      h(ec);
    };
  }
};

// A producer: an outcome, and the key that it got.
struct producer {
  outcome o;
  delay_key key;

  auto handler() {
    return [this, h = o.tracked()](error_code ec, delay_key k) mutable {
      key = k;
      h(ec);
    };
  }
};

template <typename Queue> std::vector<int> take_due(Queue& q) {
  std::vector<int> all;
  while (auto v = q.try_pop())
    all.push_back(*v);
  return all;
}

void check_order(const std::vector<int>& got, const std::vector<int>& right) {
  BOOST_CHECK_EQUAL_COLLECTIONS(got.begin(), got.end(), right.begin(),
                                right.end());
}

} // namespace

// --- Order and time

BOOST_AUTO_TEST_CASE(a_waiting_consumer_gets_an_item_when_it_is_due) {
  manual_context c;
  int_queue q(c.io);
  consumer a;
  q.async_pop(a.handler());
  q.push(7, 30s);
  c.poll();
  c.advance(30s - 1ns);
  BOOST_TEST((a.o.fate() == fate::waiting));
  c.advance(1ns);
  BOOST_TEST((a.o.fate() == fate::fired));
  BOOST_TEST(a.value == 7);
  BOOST_TEST(q.empty());
}

BOOST_AUTO_TEST_CASE(a_consumer_that_comes_later_completes_on_the_next_turn) {
  manual_context c;
  int_queue q(c.io);
  consumer a;
  q.push(7, 0s);
  quietly([&] { q.async_pop(a.handler()); });
  BOOST_TEST((a.o.fate() == fate::waiting));
  BOOST_TEST(q.size() == 0u); // it is the consumer's already
  c.poll();
  BOOST_TEST(a.value == 7);
}

BOOST_AUTO_TEST_CASE(items_come_in_order_of_time_to_the_nanosecond) {
  manual_context c;
  int_queue q(c.io);
  q.push(3, 1ms + 3ns);
  q.push(1, 1ms + 1ns);
  q.push(4, 2ms);
  q.push(2, 1ms + 2ns);
  q.push(0, 1ms);
  c.clock.advance(1ms + 1ns);
  check_order(take_due(q), {0, 1});
  c.clock.advance(1ns);
  check_order(take_due(q), {2});
  c.clock.advance(1h);
  check_order(take_due(q), {3, 4});
}

BOOST_AUTO_TEST_CASE(items_of_equal_time_come_in_the_order_of_their_pushes) {
  manual_context c;
  int_queue q(c.io);
  std::vector<int> right;
  for (int i = 0; i != 300; ++i) {
    q.push_at(i, c.now() + 5s);
    right.push_back(i);
  }
  c.clock.advance(5s);
  check_order(take_due(q), right);
}

BOOST_AUTO_TEST_CASE(items_from_the_past_are_in_order_too) {
  manual_context c;
  c.clock.advance(1h);
  int_queue q(c.io);
  for (int i = 0; i != 100; ++i)
    q.push_at(i * 37 % 100, c.now() - 1h + (i * 37 % 100) * 1ms);
  q.push_at(-1, time_point::min());
  std::vector<int> right{-1};
  for (int i = 0; i != 100; ++i)
    right.push_back(i);
  check_order(take_due(q), right);
}

BOOST_AUTO_TEST_CASE(a_reset_counts_as_a_push) {
  manual_context c;
  int_queue q(c.io);
  const auto first = q.push(1, 5s);
  q.push(2, 5s);
  BOOST_TEST(q.reset(first, 5s));
  c.clock.advance(5s);
  check_order(take_due(q), {2, 1});
}

BOOST_AUTO_TEST_CASE(several_consumers_are_served_in_their_order) {
  manual_context c;
  int_queue q(c.io);
  consumer a, b, d;
  q.async_pop(a.handler());
  q.async_pop(b.handler());
  q.async_pop(d.handler());
  q.push(2, 2s);
  q.push(1, 1s);
  c.poll();
  c.advance(1s);
  BOOST_TEST(a.value == 1);
  c.advance(1s);
  BOOST_TEST(b.value == 2);
  BOOST_TEST((d.o.fate() == fate::waiting));
}

BOOST_AUTO_TEST_CASE(a_nearer_item_wakes_a_consumer_that_waits_for_a_far_one) {
  manual_context c;
  int_queue q(c.io);
  consumer a;
  q.push(1, 1h);
  q.async_pop(a.handler());
  c.poll();
  q.push(2, 1s);
  c.advance(1s);
  BOOST_TEST(a.value == 2);
}

BOOST_AUTO_TEST_CASE(a1_delays_without_end_are_never_due) {
  manual_context c;
  int_queue q(c.io);
  const auto k = q.push(1, duration::max());
  q.push(2, duration::max() - 1ns);
  q.push_at(3, time_point::max());
  consumer a;
  q.async_pop(a.handler());
  BOOST_TEST((*q.peek() == time_point::max() || *q.peek() > c.now() + 24h));
  c.poll();
  c.advance(24h * 365 * 100);
  BOOST_TEST((a.o.fate() == fate::waiting));
  BOOST_TEST(q.size() == 3u);
  BOOST_TEST(q.reset(k, 1s));
  c.advance(1s);
  BOOST_TEST(a.value == 1);
}

BOOST_AUTO_TEST_CASE(a2_negative_delays_are_due_at_once) {
  for (const duration d : {duration(0), duration(-1ns), duration(-1h),
                           duration::min(), duration::min() + 1ns}) {
    manual_context c;
    int_queue q(c.io);
    consumer a;
    q.async_pop(a.handler());
    quietly([&] { q.push(1, d); });
    c.poll();
    BOOST_TEST(a.value == 1);
    q.push(2, d);
    check_order(take_due(q), {2});
  }
}

BOOST_AUTO_TEST_CASE(a3_a_chain_that_pushes_anew_does_not_drift) {
  manual_context c;
  int_queue q(c.io);
  time_point due = c.now();
  std::size_t n = 0;
  struct next {
    int_queue& q;
    manual_context& c;
    time_point& due;
    std::size_t& n;
    void operator()(error_code ec, int) const {
      BOOST_TEST(!ec);
      BOOST_TEST((c.now() >= due && c.now() <= due + 1ms));
      if (++n == 700)
        return;
      due += 1001us;
      q.push_at(0, due);
      q.async_pop(*this);
    }
  };
  q.push_at(0, due);
  q.async_pop(next{q, c, due, n});
  for (int i = 0; i != 800; ++i)
    c.advance(1ms);
  BOOST_TEST(n == 700u);
}

// --- Keys

BOOST_AUTO_TEST_CASE(an_item_can_be_taken_back_once) {
  manual_context c;
  delay_queue<std::string> q(c.io);
  const delay_key k = q.push("seven", 30s);
  BOOST_TEST(q.contains(k));
  BOOST_TEST(q.remove(k).value() == "seven");
  BOOST_TEST(!q.contains(k));
  BOOST_TEST(!q.remove(k).has_value());
  BOOST_TEST(!q.reset(k, 1s));
  BOOST_TEST(q.empty());
}

BOOST_AUTO_TEST_CASE(the_key_of_an_item_that_has_gone_is_never_another_items) {
  manual_context c;
  int_queue q(c.io);
  std::vector<delay_key> old;
  for (int i = 0; i != 500; ++i) { // all in the same node
    old.push_back(q.push(i, i % 2 == 0 ? 0s : 1h));
    if (i % 2 == 0)
      BOOST_TEST(q.try_pop().value() == i);
    else
      BOOST_TEST(q.remove(old.back()).value() == i);
  }
  const delay_key k = q.push(-1, 1h);
  for (const delay_key o : old) {
    BOOST_TEST(!q.contains(o));
    BOOST_TEST(!q.reset(o, 0s));
    BOOST_TEST(!q.remove(o).has_value());
    BOOST_TEST((o != k));
  }
  BOOST_TEST(q.contains(k));
}

BOOST_AUTO_TEST_CASE(an_empty_key_names_nothing) {
  manual_context c;
  int_queue q(c.io);
  BOOST_TEST(!delay_key());
  BOOST_TEST((delay_key() == delay_key()));
  BOOST_TEST(!q.contains({}));
  q.push(1, 1s);
  BOOST_TEST(!q.contains({}));
  BOOST_TEST(!q.remove({}).has_value());
}

BOOST_AUTO_TEST_CASE(b9_put_off_then_drawn_near_an_item_comes_once) {
  manual_context c;
  int_queue q(c.io);
  consumer a, b;
  q.async_pop(a.handler());
  q.async_pop(b.handler());
  const auto k = q.push(1, 10s);
  c.poll();
  BOOST_TEST(q.reset(k, 1h));
  c.advance(10s);
  BOOST_TEST((a.o.fate() == fate::waiting));
  BOOST_TEST(q.reset_at(k, c.now() + 5s));
  c.advance(5s);
  BOOST_TEST(a.value == 1);
  c.advance(2h);
  BOOST_TEST((b.o.fate() == fate::waiting));
}

BOOST_AUTO_TEST_CASE(peek_tells_when_the_next_is_due) {
  manual_context c;
  int_queue q(c.io);
  BOOST_TEST(!q.peek().has_value());
  q.push(1, 1h);
  BOOST_TEST((*q.peek() <= c.now() + 1h && *q.peek() > c.now() + 1h - 1ms));
  const auto k = q.push(2, 20ms + 1ns);
  BOOST_TEST((*q.peek() == c.now() + 20ms + 1ns));
  q.remove(k);
  q.push_at(3, c.now() - 5s);
  BOOST_TEST((*q.peek() == c.now() - 5s));
}

// --- Capacity

BOOST_AUTO_TEST_CASE(a_full_queue_refuses_and_leaves_the_value) {
  manual_context c;
  delay_queue<std::unique_ptr<int>> q(c.io, room_for(1));
  BOOST_TEST(q.capacity() == 1u);
  q.push(std::make_unique<int>(1), 1s);
  auto v = std::make_unique<int>(2);
  BOOST_CHECK_EXCEPTION(
      q.push(std::move(v), 1s), system_error, [](const system_error& e) {
        return e.code() == asio_wheel::error::too_many_pending;
      });
  BOOST_TEST(v.get() != nullptr);
  BOOST_TEST(!q.try_push(std::move(v), 1s));
  BOOST_TEST(!q.try_push_at(std::move(v), c.now()));
  BOOST_TEST(v.get() != nullptr);
  BOOST_TEST(q.size() == 1u);
  c.clock.advance(1s);
  BOOST_TEST(**q.try_pop() == 1);
  BOOST_TEST(bool(q.try_push(std::move(v), 1s)));
  BOOST_TEST(v.get() == nullptr);
}

BOOST_AUTO_TEST_CASE(a_producer_waits_for_room) {
  manual_context c;
  int_queue q(c.io, room_for(1));
  producer a, b, d;
  const auto k = q.push(0, 1h);
  quietly([&] {
    q.async_push(1, 1s, a.handler());
    q.async_push(2, 1s, b.handler());
  });
  c.poll();
  BOOST_TEST((a.o.fate() == fate::waiting));
  BOOST_TEST(q.size() == 1u);
  q.remove(k);
  c.poll();
  BOOST_TEST((a.o.fate() == fate::fired));
  BOOST_TEST(q.contains(a.key));
  BOOST_TEST((b.o.fate() == fate::waiting));
  c.clock.advance(1s);
  BOOST_TEST(q.try_pop().value() == 1);
  c.poll();
  BOOST_TEST((b.o.fate() == fate::fired));
  BOOST_TEST(q.try_pop().value() == 2);     // its delay counted from the call
  q.async_push_at(3, c.now(), d.handler()); // and with room at once
  c.poll();
  BOOST_TEST((d.o.fate() == fate::fired));
  BOOST_TEST(q.contains(d.key));
}

BOOST_AUTO_TEST_CASE(producers_and_consumers_that_wait_serve_each_other) {
  manual_context c;
  int_queue q(c.io, room_for(1));
  std::vector<int> got;
  const std::function<void(error_code, int)> take = [&](error_code ec, int v) {
    if (ec)
      return;
    got.push_back(v);
    q.async_pop(take);
  };
  for (int i = 0; i != 20; ++i)
    q.async_push(i, 0s, [](error_code, delay_key) {});
  q.async_pop(take);
  c.poll();
  BOOST_TEST(got.size() == 20u);
}

BOOST_AUTO_TEST_CASE(a_capacity_of_zero_is_refused) {
  manual_context c;
  BOOST_CHECK_EXCEPTION(int_queue(c.io, room_for(0)), std::invalid_argument,
                        [](const std::invalid_argument& e) {
                          return std::string(e.what()).find("capacity") !=
                                 std::string::npos;
                        });
}

// --- The end

BOOST_AUTO_TEST_CASE(close_gives_out_what_is_left_and_then_an_end) {
  manual_context c;
  int_queue q(c.io, room_for(2));
  consumer a, b, d;
  producer p;
  q.push(1, 1s);
  q.push(2, 2s);
  q.async_push(3, 1s, p.handler());
  q.async_pop(a.handler());
  q.close();
  q.close();
  BOOST_TEST(q.is_closed());
  c.poll();
  BOOST_TEST((p.o.ec() == asio::error::shut_down));
  BOOST_TEST(!p.key);
  BOOST_TEST((a.o.fate() == fate::waiting));
  BOOST_CHECK_EXCEPTION(q.push(4, 1s), system_error, [](const auto& e) {
    return e.code() == asio::error::shut_down;
  });
  BOOST_TEST(!q.try_push(4, 1s));
  q.async_pop(b.handler());
  q.async_pop(d.handler());
  c.advance(1s);
  BOOST_TEST(a.value == 1);
  c.advance(1s);
  BOOST_TEST(b.value == 2);
  BOOST_TEST((d.o.ec() == asio::error::eof));
  consumer late;
  producer refused;
  quietly([&] {
    q.async_pop(late.handler());
    q.async_push(5, 1s, refused.handler());
  });
  c.poll();
  BOOST_TEST((late.o.ec() == asio::error::eof));
  BOOST_TEST((refused.o.ec() == asio::error::shut_down));
}

BOOST_AUTO_TEST_CASE(close_and_clear_end_at_once) {
  manual_context c;
  int_queue q(c.io);
  consumer a;
  q.async_pop(a.handler());
  q.push(1, 1h);
  q.push(2, 2h);
  q.close();
  BOOST_TEST(q.clear() == 2u);
  BOOST_TEST(q.clear() == 0u);
  c.poll();
  BOOST_TEST((a.o.ec() == asio::error::eof));
}

BOOST_AUTO_TEST_CASE(clear_makes_room) {
  manual_context c;
  int_queue q(c.io, room_for(1));
  producer p;
  q.push(1, 1h);
  q.async_push(2, 1h, p.handler());
  q.clear();
  c.poll();
  BOOST_TEST(q.contains(p.key));
}

BOOST_AUTO_TEST_CASE(destruction_aborts_what_waits_later) {
  manual_context c;
  consumer a;
  producer p;
  const auto owned = std::make_shared<int>(1);
  {
    delay_queue<std::shared_ptr<int>> q(c.io, room_for(1));
    q.push(owned, 1h);
    q.async_push(owned, 1h, p.handler());
    q.async_pop([h = a.o.tracked()](error_code ec, auto) mutable { h(ec); });
    BOOST_TEST(owned.use_count() == 3);
    test::no_upcalls quiet;
    q.close(); // does not matter any more
    q.clear();
  }
  BOOST_TEST((a.o.fate() == fate::waiting));
  c.poll();
  BOOST_TEST((a.o.fate() == fate::aborted));
  BOOST_TEST((p.o.fate() == fate::aborted));
  BOOST_TEST(owned.use_count() == 1);
}

BOOST_AUTO_TEST_CASE(b10_after_the_wheels_stop_nothing_waits) {
  manual_context c;
  int_queue q(c.io, room_for(1));
  consumer a, b, due;
  producer p, r;
  const auto k = q.push(1, 1h);
  q.async_pop(a.handler());
  q.async_push(2, 1h, p.handler());
  c.wheel.stop();
  quietly([&] {
    q.async_pop(b.handler());
    q.async_push(3, 1h, r.handler());
  });
  c.poll();
  BOOST_TEST((a.o.fate() == fate::aborted));
  BOOST_TEST((p.o.fate() == fate::aborted));
  BOOST_TEST((b.o.ec() == asio_wheel::error::wheel_stopped));
  BOOST_TEST((r.o.ec() == asio_wheel::error::wheel_stopped));
  // What need not wait goes on.
  BOOST_TEST(q.remove(k).value() == 1);
  q.push(4, 0s);
  q.async_pop(due.handler());
  c.poll();
  BOOST_TEST(due.value == 4);
}

BOOST_AUTO_TEST_CASE(d1_the_context_goes_first_and_items_stay) {
  consumer a;
  producer p;
  std::optional<int_queue> q;
  {
    manual_context c;
    q.emplace(c.io, room_for(2));
    q->async_pop(a.handler());
    q->push(1, 1h);
    q->push(2, 1h);
    q->async_push(3, 1h, p.handler());
    c.poll();
  }
  BOOST_TEST((a.o.fate() == fate::dropped));
  BOOST_TEST((p.o.fate() == fate::dropped));
  BOOST_TEST(q->size() == 2u);
  BOOST_TEST(q->clear() == 2u);
}

BOOST_AUTO_TEST_CASE(a_slot_may_outlive_a_queue_on_a_strand_and_its_context) {
  asio::cancellation_signal signal;
  consumer a;
  {
    manual_context c;
    int_queue q(asio::make_strand(c.io));
    q.async_pop(asio::bind_cancellation_slot(signal.slot(), a.handler()));
  }
  BOOST_TEST((a.o.fate() == fate::dropped));
  signal.emit(asio::cancellation_type::total); // reaches nothing
}

BOOST_AUTO_TEST_CASE(items_do_not_hold_run_but_consumers_do) {
  manual_context c;
  int_queue q(c.io);
  q.push(1, 1s);
  BOOST_TEST(c.io.run() == 0u);
  consumer a;
  q.async_pop(a.handler());
  c.poll();
  BOOST_TEST(!c.io.stopped());
  c.advance(1s);
  BOOST_TEST(a.value == 1);
  BOOST_TEST(c.io.stopped());
}

// --- Cancellation

BOOST_AUTO_TEST_CASE(b1_a_cancelled_pop_loses_no_item) {
  for (const auto type :
       {asio::cancellation_type::terminal, asio::cancellation_type::partial,
        asio::cancellation_type::total}) {
    manual_context c;
    int_queue q(c.io);
    asio::cancellation_signal signal;
    consumer a, b;
    q.async_pop(asio::bind_cancellation_slot(signal.slot(), a.handler()));
    q.async_pop(b.handler());
    q.push(1, 1s);
    c.poll();
    c.clock.advance(1s); // due, but not given out yet
    signal.emit(asio::cancellation_type::none);
    quietly([&] { signal.emit(type); });
    c.poll();
    BOOST_TEST((a.o.fate() == fate::aborted));
    BOOST_TEST(b.value == 1);
    signal.emit(type);
  }
}

BOOST_AUTO_TEST_CASE(a_pop_that_has_its_item_cannot_be_cancelled) {
  manual_context c;
  test::queue_context other;
  int_queue q(c.io);
  asio::cancellation_signal signal;
  consumer a;
  q.push(1, 0s);
  q.async_pop(asio::bind_executor(
      other.get_executor(),
      asio::bind_cancellation_slot(signal.slot(), a.handler())));
  signal.emit(asio::cancellation_type::total);
  c.poll(); // on its way to the handler's executor
  BOOST_TEST(other.size() == 1u);
  signal.emit(asio::cancellation_type::total);
  other.run();
  BOOST_TEST((a.o.fate() == fate::fired));
  BOOST_TEST(a.value == 1);
  BOOST_TEST(!signal.slot().has_handler());
}

BOOST_AUTO_TEST_CASE(a_cancelled_push_puts_nothing_in) {
  manual_context c;
  int_queue q(c.io, room_for(1));
  asio::cancellation_signal signal;
  producer a, b;
  q.push(0, 0s);
  q.async_push(1, 0s, asio::bind_cancellation_slot(signal.slot(), a.handler()));
  q.async_push(2, 0s, b.handler());
  signal.emit(asio::cancellation_type::total);
  BOOST_TEST(q.try_pop().value() == 0);
  c.poll();
  BOOST_TEST((a.o.fate() == fate::aborted));
  BOOST_TEST((b.o.fate() == fate::fired));
  check_order(take_due(q), {2});
}

// --- From inside handlers

BOOST_AUTO_TEST_CASE(b5_everything_may_be_called_from_inside_a_handler) {
  manual_context c;
  auto q = std::make_unique<int_queue>(c.io);
  consumer b;
  bool done = false;
  q->push(1, 0s);
  q->push(2, 1h);
  q->async_pop([&](error_code, int v) {
    BOOST_TEST(v == 1);
    const auto k = q->push(3, 1h);
    q->reset(k, 2h);
    q->remove(k);
    q->try_pop();
    q->async_pop(b.handler());
    q->clear();
    q->close();
    q.reset();
    done = true;
  });
  c.poll();
  BOOST_TEST(done);
  BOOST_TEST((b.o.fate() == fate::aborted));
}

BOOST_AUTO_TEST_CASE(b4_a_handler_that_pops_again_lets_others_run) {
  manual_context c;
  int_queue q(c.io);
  int depth = 0, popped = 0;
  bool posted = false;
  const std::function<void(error_code, int)> take = [&](error_code, int) {
    BOOST_TEST(depth == 0);
    ++depth;
    if (++popped == 50)
      asio::post(c.io, [&] { posted = true; });
    if (popped == 60)
      BOOST_TEST(posted);
    q.push(0, 0s);
    if (popped != 100)
      q.async_pop(take);
    --depth;
  };
  q.push(0, 0s);
  q.async_pop(take);
  c.poll();
  BOOST_TEST(popped == 100);
}

// A value of the user's may call back in.
BOOST_AUTO_TEST_CASE(d3_a_values_destructor_may_use_the_queue) {
  struct calls_back {
    delay_queue<std::shared_ptr<calls_back>>* q;
    std::size_t& size;
    calls_back(delay_queue<std::shared_ptr<calls_back>>& x, std::size_t& s)
        : q(&x), size(s) {}
    ~calls_back() { size = q->size(); }
  };
  manual_context c;
  delay_queue<std::shared_ptr<calls_back>> q(c.io);
  std::size_t size = 99;
  const auto k = q.push(std::make_shared<calls_back>(q, size), 1h);
  q.remove(k);
  BOOST_TEST(size == 0u);
  q.push(std::make_shared<calls_back>(q, size), 1h);
  size = 99;
  q.clear();
  BOOST_TEST(size <= 1u);
}

// --- Values that throw

namespace {

struct thrown {};

// Throws at the n-th copy or move from now.
struct brittle {
  static int left, live;
  static void touch() {
    if (left > 0 && --left == 0)
      throw thrown();
  }
  explicit brittle(int i = 0) : id(i) { ++live; }
  brittle(const brittle& o) : id((touch(), o.id)) { ++live; }
  brittle(brittle&& o) : id((touch(), o.id)) { ++live; }
  brittle& operator=(const brittle&) = delete;
  ~brittle() { --live; }
  int id;
};
int brittle::left = 0;
int brittle::live = 0;

} // namespace

BOOST_AUTO_TEST_CASE(a_value_that_throws_is_not_put_in) {
  manual_context c;
  delay_queue<brittle> q(c.io, room_for(1));
  brittle v(1);
  producer p;
  brittle::left = 1;
  BOOST_CHECK_THROW(q.push(std::move(v), 0s), thrown);
  brittle::left = 2; // into the parameter, then into the queue
  BOOST_CHECK_THROW(q.async_push(v, 0s, p.handler()), thrown);
  BOOST_TEST((p.o.fate() == fate::dropped));
  BOOST_TEST(q.size() == 0u);
  q.push(v, 0s); // there still is room for one
  BOOST_TEST(q.try_pop()->id == 1);
}

BOOST_AUTO_TEST_CASE(a_value_that_throws_on_its_way_out_stays) {
  manual_context c;
  delay_queue<brittle> q(c.io);
  const auto first = q.push(brittle(1), 0s);
  q.push(brittle(2), 0s);
  brittle::left = 1;
  BOOST_CHECK_THROW(q.try_pop(), thrown);
  brittle::left = 1;
  BOOST_CHECK_THROW(q.remove(first), thrown);
  BOOST_TEST(q.size() == 2u);
  BOOST_TEST(q.contains(first)); // by the same key, in the same place
  BOOST_TEST(q.try_pop()->id == 1);
  BOOST_TEST(q.try_pop()->id == 2);
}

BOOST_AUTO_TEST_CASE(a_consumer_gets_the_value_without_a_move) {
  manual_context c;
  delay_queue<brittle> q(c.io);
  int got = 0;
  q.push(brittle(1), 1s);
  q.async_pop([&](error_code, brittle&& v) { got = v.id; });
  brittle::left = 1;
  c.advance(1s);
  BOOST_TEST(got == 1);
  BOOST_TEST(brittle::left == 1);
  // A handler that takes it by value makes its own, in its own call.
  q.push_at(2, c.now());
  q.push_at(3, c.now());
  q.async_pop([&](error_code, brittle v) { got = v.id; });
  BOOST_CHECK_THROW(c.poll(), thrown);
  BOOST_TEST(q.size() == 1u);
  BOOST_TEST(q.try_pop()->id == 3);
  brittle::left = 0;
  BOOST_TEST(brittle::live == 0);
}

BOOST_AUTO_TEST_CASE(values_that_throw_at_any_time_leave_the_queue_whole) {
  for (int n = 1; n != 40; ++n) {
    manual_context c;
    {
      delay_queue<brittle> q(c.io, room_for(4));
      std::size_t in = 0, out = 0;
      const auto try_to = [](auto&& f) {
        try {
          f();
        } catch (const thrown&) {
        }
      };
      brittle::left = n;
      for (int i = 0; i != 12; ++i) {
        try_to([&] {
          if (q.try_push(brittle(i), i * 1ms))
            ++in;
        });
        if (i % 3 == 2)
          try_to([&] {
            if (q.try_pop())
              ++out;
          });
        c.clock.advance(1ms);
        BOOST_TEST(q.size() == in - out);
      }
      brittle::left = 0;
      c.clock.advance(1h);
      int last = -1;
      while (auto v = q.try_pop()) {
        BOOST_TEST(v->id > last);
        last = v->id;
        ++out;
      }
      BOOST_TEST(in == out);
    }
    BOOST_TEST(brittle::live == 0);
  }
}
