//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/wheel_timer.hpp>

#define BOOST_TEST_MODULE parity_timer
#include <boost/test/unit_test.hpp>

#include <test/outcome.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/system_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_future.hpp>
#if defined(BOOST_ASIO_HAS_CO_AWAIT)
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#endif

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

// One body of tests, run over Asio's timer and over ours: what passes for the
// first is what a program that changes the type relies on. Real time, short.

namespace asio = boost::asio;
using namespace std::chrono_literals;
using test::fate;
using test::outcome;
using test::quietly;

using steady = std::chrono::steady_clock;

using io_executor = asio::io_context::executor_type;

template <typename Executor>
using asio_timer =
    asio::basic_waitable_timer<steady, asio::wait_traits<steady>, Executor>;

using timers =
    std::tuple<asio::steady_timer, asio_wheel::wheel_timer,
               asio_timer<io_executor>,
               asio_wheel::basic_wheel_timer<io_executor>>;

// Nothing is waited for as long as this.
constexpr auto far = 1h;

template <typename Timer, typename Executor>
using rebound = typename Timer::template rebind_executor<Executor>::other;

BOOST_AUTO_TEST_SUITE(types)

BOOST_AUTO_TEST_CASE_TEMPLATE(member_types_are_those_of_a_steady_timer, Timer,
                              timers) {
  static_assert(std::is_same_v<typename Timer::clock_type, steady>);
  static_assert(std::is_same_v<typename Timer::duration, steady::duration>);
  static_assert(std::is_same_v<typename Timer::time_point, steady::time_point>);
  static_assert(
      std::is_same_v<rebound<Timer, typename Timer::executor_type>, Timer>);
  static_assert(
      std::is_same_v<
          typename rebound<Timer, asio::system_executor>::executor_type,
          asio::system_executor>);
  BOOST_TEST(true);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(can_be_moved_but_not_copied, Timer, timers) {
  static_assert(std::is_move_constructible_v<Timer>);
  static_assert(std::is_move_assignable_v<Timer>);
  static_assert(!std::is_copy_constructible_v<Timer>);
  static_assert(!std::is_copy_assignable_v<Timer>);
  static_assert(!std::is_default_constructible_v<Timer>);
  BOOST_TEST(true);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(constructors_from_one_argument_are_explicit,
                              Timer, timers) {
  using executor = typename Timer::executor_type;
  static_assert(std::is_constructible_v<Timer, executor>);
  static_assert(!std::is_convertible_v<executor, Timer>);
  static_assert(std::is_constructible_v<Timer, asio::io_context&>);
  static_assert(!std::is_convertible_v<asio::io_context&, Timer>);
  static_assert(!std::is_constructible_v<Timer, int>);
  BOOST_TEST(true);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(results_have_the_types_of_a_steady_timer, Timer,
                              timers) {
  using time_point = typename Timer::time_point;
  using duration = typename Timer::duration;
  Timer* t = nullptr;
  static_assert(std::is_same_v<decltype(t->cancel()), std::size_t>);
  static_assert(std::is_same_v<decltype(t->cancel_one()), std::size_t>);
  static_assert(std::is_same_v<decltype(std::as_const(*t).expiry()), time_point>);
  static_assert(
      std::is_same_v<decltype(t->expires_at(time_point())), std::size_t>);
  static_assert(
      std::is_same_v<decltype(t->expires_after(duration())), std::size_t>);
  static_assert(std::is_same_v<decltype(t->wait()), void>);
  const auto handler = [](test::error_code) {};
  static_assert(std::is_same_v<decltype(t->async_wait(handler)), void>);
  static_assert(std::is_same_v<decltype(t->async_wait(asio::use_future)),
                               std::future<void>>);
  BOOST_TEST(t == nullptr);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(construction)

BOOST_AUTO_TEST_CASE_TEMPLATE(an_executor_alone_gives_an_expired_timer, Timer,
                              timers) {
  asio::io_context io;
  Timer t(io.get_executor());
  BOOST_TEST((t.get_executor() == io.get_executor()));
  BOOST_TEST((t.expiry() == steady::time_point()));
  outcome o;
  quietly([&] { t.async_wait(o.tracked()); });
  io.run();
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_context_alone_gives_an_expired_timer, Timer,
                              timers) {
  asio::io_context io;
  Timer t(io);
  BOOST_TEST((t.get_executor() == io.get_executor()));
  BOOST_TEST((t.expiry() == steady::time_point()));
  outcome o;
  quietly([&] { t.async_wait(o.tracked()); });
  io.run();
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_executor_and_a_time_point_give_that_expiry,
                              Timer, timers) {
  asio::io_context io;
  const auto due = steady::now() + 2ms;
  Timer t(io.get_executor(), due);
  BOOST_TEST((t.expiry() == due));
  outcome o([&](auto) { BOOST_TEST((steady::now() >= due)); });
  t.async_wait(o.tracked());
  io.run();
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_context_and_a_time_point_give_that_expiry,
                              Timer, timers) {
  asio::io_context io;
  const auto due = steady::now() + 2ms;
  Timer t(io, due);
  BOOST_TEST((t.expiry() == due));
  outcome o([&](auto) { BOOST_TEST((steady::now() >= due)); });
  t.async_wait(o.tracked());
  io.run();
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_executor_and_a_duration_count_from_now, Timer,
                              timers) {
  asio::io_context io;
  const auto before = steady::now();
  Timer t(io.get_executor(), 2ms);
  const auto after = steady::now();
  BOOST_TEST((t.expiry() >= before + 2ms));
  BOOST_TEST((t.expiry() <= after + 2ms));
  outcome o([&](auto) { BOOST_TEST((steady::now() >= before + 2ms)); });
  t.async_wait(o.tracked());
  io.run();
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_context_and_a_duration_count_from_now, Timer,
                              timers) {
  asio::io_context io;
  const auto before = steady::now();
  Timer t(io, 2ms);
  const auto after = steady::now();
  BOOST_TEST((t.expiry() >= before + 2ms));
  BOOST_TEST((t.expiry() <= after + 2ms));
  outcome o([&](auto) { BOOST_TEST((steady::now() >= before + 2ms)); });
  t.async_wait(o.tracked());
  io.run();
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(move_construction_takes_the_expiry_along, Timer,
                              timers) {
  asio::io_context io;
  Timer a(io, steady::time_point(42s));
  Timer b(std::move(a));
  BOOST_TEST((b.expiry() == steady::time_point(42s)));
  BOOST_TEST((b.get_executor() == io.get_executor()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(move_construction_takes_the_waits_along, Timer,
                              timers) {
  asio::io_context io;
  outcome o1, o2;
  Timer a(io, far);
  a.async_wait(o1.tracked());
  a.async_wait(o2.small());
  Timer b(std::move(a));
  BOOST_TEST(a.cancel() == 0u);
  io.poll();
  BOOST_TEST(o1.fate() == fate::waiting);
  BOOST_TEST(o2.fate() == fate::waiting);
  BOOST_TEST(quietly([&] { return b.cancel(); }) == 2u);
  io.run();
  BOOST_TEST(o1.fate() == fate::aborted);
  BOOST_TEST(o2.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(waits_fire_after_their_timer_was_moved, Timer,
                              timers) {
  asio::io_context io;
  outcome o1, o2;
  std::optional<Timer> a(std::in_place, io, 3ms);
  a->async_wait(o1.tracked());
  a->async_wait(o2.small());
  Timer b(std::move(*a));
  a.reset();
  io.run();
  BOOST_TEST(o1.fate() == fate::fired);
  BOOST_TEST(o2.fate() == fate::fired);
  BOOST_TEST(b.cancel() == 0u);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_moved_from_timer_is_like_new, Timer, timers) {
  asio::io_context io;
  outcome o1, o2, o3;
  Timer a(io, far);
  a.async_wait(o1.tracked());
  Timer b(std::move(a));
  BOOST_TEST((a.expiry() == steady::time_point()));
  BOOST_TEST((a.get_executor() == io.get_executor()));
  BOOST_TEST(a.cancel() == 0u);
  BOOST_TEST(a.cancel_one() == 0u);
  a.async_wait(o2.tracked());
  io.run_one_for(1s);
  io.poll();
  BOOST_TEST(o2.fate() == fate::fired);
  BOOST_TEST(a.expires_after(1ms) == 0u);
  a.async_wait(o3.tracked());
  BOOST_TEST(b.cancel() == 1u);
  io.run();
  BOOST_TEST(o1.fate() == fate::aborted);
  BOOST_TEST(o3.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(move_assignment_cancels_its_own_waits, Timer,
                              timers) {
  asio::io_context io;
  outcome mine, theirs;
  Timer a(io, far), b(io, 2ms);
  const auto due = b.expiry();
  a.async_wait(mine.tracked());
  b.async_wait(theirs.tracked());
  quietly([&] { a = std::move(b); });
  BOOST_TEST((a.expiry() == due));
  BOOST_TEST((b.expiry() == steady::time_point()));
  BOOST_TEST(b.cancel() == 0u);
  io.run();
  BOOST_TEST(mine.fate() == fate::aborted);
  BOOST_TEST(theirs.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(move_assignment_from_an_idle_timer, Timer,
                              timers) {
  asio::io_context io;
  outcome o;
  Timer a(io, far), b(io, steady::time_point(7s));
  a.async_wait(o.tracked());
  a = std::move(b);
  BOOST_TEST((a.expiry() == steady::time_point(7s)));
  BOOST_TEST(a.cancel() == 0u);
  io.run();
  BOOST_TEST(o.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(move_assignment_from_another_context, Timer,
                              timers) {
  asio::io_context io1, io2;
  outcome mine, theirs;
  Timer a(io1, far), b(io2, far);
  a.async_wait(mine.tracked());
  b.async_wait(theirs.tracked());
  a = std::move(b);
  BOOST_TEST((a.get_executor() == io2.get_executor()));
  io1.run();
  BOOST_TEST(mine.fate() == fate::aborted);
  BOOST_TEST(theirs.fate() == fate::waiting);
  BOOST_TEST(a.cancel() == 1u);
  io2.run();
  BOOST_TEST(theirs.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(two_timers_can_be_swapped_while_they_wait, Timer,
                              timers) {
  asio::io_context io;
  outcome o1, o2;
  Timer a(io, far), b(io, far);
  a.async_wait(o1.tracked());
  b.async_wait(o2.small());
  using std::swap;
  swap(a, b);
  BOOST_TEST(a.cancel() == 1u);
  io.poll();
  BOOST_TEST(o1.fate() == fate::waiting);
  BOOST_TEST(o2.fate() == fate::aborted);
  BOOST_TEST(b.cancel() == 1u);
  io.run();
  BOOST_TEST(o1.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(waiting_timers_can_live_in_a_vector, Timer,
                              timers) {
  asio::io_context io;
  std::vector<Timer> v;
  std::vector<outcome> o(50);
  for (auto& x : o) {
    v.emplace_back(io, far);
    v.back().async_wait(x.small());
    v.back().async_wait(x.small());
    x.forget();
  }
  for (auto& t : v)
    BOOST_TEST(t.cancel() == 2u);
  io.run();
  for (auto& x : o)
    BOOST_TEST(x.calls() == 2);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(converts_to_a_timer_of_a_wider_executor, Timer,
                              timers) {
  asio::io_context io;
  outcome o;
  rebound<Timer, io_executor> a(io, far);
  const auto due = a.expiry();
  a.async_wait(o.tracked());
  rebound<Timer, asio::any_io_executor> b(std::move(a));
  static_assert(
      !std::is_constructible_v<rebound<Timer, io_executor>,
                               rebound<Timer, asio::any_io_executor>&&>);
  BOOST_TEST((b.expiry() == due));
  BOOST_TEST((a.expiry() == steady::time_point()));
  BOOST_TEST((b.get_executor() == io.get_executor()));
  BOOST_TEST(a.cancel() == 0u);
  BOOST_TEST(b.cancel() == 1u);
  io.run();
  BOOST_TEST(o.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(converting_assignment_cancels_its_own_waits,
                              Timer, timers) {
  asio::io_context io;
  outcome mine, theirs;
  rebound<Timer, io_executor> a(io, 2ms);
  rebound<Timer, asio::any_io_executor> b(io, far);
  b.async_wait(mine.tracked());
  a.async_wait(theirs.small());
  b = std::move(a);
  BOOST_TEST((a.expiry() == steady::time_point()));
  io.run();
  BOOST_TEST(mine.fate() == fate::aborted);
  BOOST_TEST(theirs.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(works_on_a_strand, Timer, timers) {
  asio::io_context io;
  auto strand = asio::make_strand(io);
  outcome o([&](auto) { BOOST_TEST(strand.running_in_this_thread()); });
  rebound<Timer, asio::strand<io_executor>> t(strand, 1ms);
  BOOST_TEST((t.get_executor() == strand));
  t.async_wait(o.tracked());
  io.run();
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(works_in_a_thread_pool, Timer, timers) {
  outcome o;
  asio::thread_pool pool(1);
  rebound<Timer, asio::any_io_executor> t(pool, 1ms);
  t.async_wait(o.tracked());
  pool.join();
  BOOST_TEST(o.fate() == fate::fired);
  BOOST_TEST((o.thread() != std::this_thread::get_id()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(works_in_the_system_context, Timer, timers) {
  std::promise<test::error_code> done;
  rebound<Timer, asio::system_executor> t{asio::system_executor(), 1ms};
  t.async_wait([&](test::error_code ec) { done.set_value(ec); });
  BOOST_TEST(!done.get_future().get());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(expiry)

BOOST_AUTO_TEST_CASE_TEMPLATE(expires_at_sets_it_and_counts_what_it_cancels,
                              Timer, timers) {
  asio::io_context io;
  std::vector<outcome> o(3);
  Timer t(io);
  const auto due = steady::now() + far;
  BOOST_TEST(t.expires_at(due) == 0u);
  BOOST_TEST((t.expiry() == due));
  for (auto& x : o)
    t.async_wait(x.tracked());
  BOOST_TEST(quietly([&] { return t.expires_at(due + far); }) == 3u);
  BOOST_TEST((t.expiry() == due + far));
  BOOST_TEST(t.expires_at(due) == 0u);
  io.run();
  for (auto& x : o)
    BOOST_TEST(x.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(expires_after_counts_from_now_and_what_it_cancels,
                              Timer, timers) {
  asio::io_context io;
  std::vector<outcome> o(3);
  Timer t(io);
  const auto before = steady::now();
  BOOST_TEST(t.expires_after(far) == 0u);
  BOOST_TEST((t.expiry() >= before + far));
  BOOST_TEST((t.expiry() <= steady::now() + far));
  for (auto& x : o)
    t.async_wait(x.tracked());
  BOOST_TEST(quietly([&] { return t.expires_after(2 * far); }) == 3u);
  BOOST_TEST((t.expiry() >= before + 2 * far));
  BOOST_TEST(t.expires_after(far) == 0u);
  io.run();
  for (auto& x : o)
    BOOST_TEST(x.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_new_expiry_holds_for_new_waits, Timer, timers) {
  asio::io_context io;
  outcome first, second;
  Timer t(io, far);
  t.async_wait(first.tracked());
  BOOST_TEST(t.expires_after(1ms) == 1u);
  t.async_wait(second.tracked());
  io.run();
  BOOST_TEST(first.fate() == fate::aborted);
  BOOST_TEST(second.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(expiry_stays_as_it_was_given, Timer, timers) {
  asio::io_context io;
  Timer t(io);
  for (const auto at :
       {steady::time_point(), steady::time_point::max(),
        steady::time_point(1ns), steady::time_point(12345678901ns)}) {
    t.expires_at(at);
    BOOST_TEST((t.expiry() == at));
  }
  t.expires_at(steady::time_point(5s));
  t.cancel();
  BOOST_TEST((t.expiry() == steady::time_point(5s)));
  outcome o;
  t.async_wait(o.tracked());
  t.cancel();
  io.run();
  BOOST_TEST((t.expiry() == steady::time_point(5s)));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(waiting_again_after_expiry_completes_at_once,
                              Timer, timers) {
  asio::io_context io;
  outcome first, second;
  Timer t(io, 1ms);
  t.async_wait(first.tracked());
  io.run();
  t.async_wait(second.tracked());
  io.restart();
  io.run();
  BOOST_TEST(first.fate() == fate::fired);
  BOOST_TEST(second.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(zero_negative_and_past_expire_at_once, Timer,
                              timers) {
  asio::io_context io;
  std::vector<outcome> o(4);
  Timer a(io, 0s), b(io, -5s), c(io, steady::now() - 1h);
  Timer d(io, steady::time_point(1ns));
  quietly([&] {
    a.async_wait(o[0].tracked());
    b.async_wait(o[1].tracked());
    c.async_wait(o[2].tracked());
    d.async_wait(o[3].tracked());
  });
  io.run();
  for (auto& x : o)
    BOOST_TEST(x.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(timers_fire_in_the_order_of_their_expiry, Timer,
                              timers) {
  asio::io_context io;
  std::vector<int> order;
  Timer a(io, 15ms), b(io, 5ms), c(io, 10ms);
  a.async_wait([&](auto) { order.push_back(3); });
  b.async_wait([&](auto) { order.push_back(1); });
  c.async_wait([&](auto) { order.push_back(2); });
  io.run();
  BOOST_TEST(order == (std::vector<int>{1, 2, 3}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(cancelling)

BOOST_AUTO_TEST_CASE_TEMPLATE(cancel_counts_the_waits_and_aborts_them, Timer,
                              timers) {
  asio::io_context io;
  std::vector<outcome> o(5);
  Timer t(io, far);
  BOOST_TEST(t.cancel() == 0u);
  for (auto& x : o)
    t.async_wait(x.tracked());
  BOOST_TEST(quietly([&] { return t.cancel(); }) == 5u);
  BOOST_TEST(t.cancel() == 0u);
  io.run();
  for (auto& x : o)
    BOOST_TEST(x.fate() == fate::aborted);
  BOOST_TEST(t.cancel() == 0u);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(aborted_handlers_run_in_the_order_of_their_waits,
                              Timer, timers) {
  asio::io_context io;
  std::vector<int> order;
  Timer t(io, far);
  for (int i = 0; i != 5; ++i)
    t.async_wait([&, i](auto) { order.push_back(i); });
  t.cancel();
  io.run();
  BOOST_TEST(order == (std::vector<int>{0, 1, 2, 3, 4}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancel_one_takes_the_oldest_wait, Timer, timers) {
  asio::io_context io;
  std::vector<outcome> o(3);
  Timer t(io, far);
  BOOST_TEST(t.cancel_one() == 0u);
  t.async_wait(o[0].small());
  t.async_wait(o[1].tracked());
  t.async_wait(o[2].small());
  BOOST_TEST(quietly([&] { return t.cancel_one(); }) == 1u);
  io.poll();
  BOOST_TEST(o[0].fate() == fate::aborted);
  BOOST_TEST(o[1].fate() == fate::waiting);
  BOOST_TEST(o[2].fate() == fate::waiting);
  BOOST_TEST(t.cancel_one() == 1u);
  BOOST_TEST(t.cancel_one() == 1u);
  BOOST_TEST(t.cancel_one() == 0u);
  io.run();
  BOOST_TEST(o[1].fate() == fate::aborted);
  BOOST_TEST(o[2].fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(cancel_one_before_the_handlers_ran_goes_on, Timer,
                              timers) {
  asio::io_context io;
  std::vector<outcome> o(3);
  Timer t(io, far);
  for (auto& x : o)
    t.async_wait(x.tracked());
  BOOST_TEST(t.cancel_one() == 1u);
  BOOST_TEST(t.cancel_one() == 1u);
  BOOST_TEST(t.cancel() == 1u);
  BOOST_TEST(t.cancel_one() == 0u);
  io.run();
  for (auto& x : o)
    BOOST_TEST(x.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_expiry_survives_cancel, Timer, timers) {
  asio::io_context io;
  outcome first, second;
  Timer t(io, 3ms);
  t.async_wait(first.tracked());
  t.cancel();
  t.async_wait(second.tracked());
  io.run();
  BOOST_TEST(first.fate() == fate::aborted);
  BOOST_TEST(second.fate() == fate::fired);
  BOOST_TEST((steady::now() >= t.expiry()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(waits_may_be_started_and_cancelled_from_a_handler,
                              Timer, timers) {
  asio::io_context io;
  outcome second, third;
  Timer t(io, 1ms);
  outcome first([&](auto) {
    t.expires_after(far);
    quietly([&] { t.async_wait(second.tracked()); });
    BOOST_TEST(quietly([&] { return t.cancel(); }) == 1u);
    t.expires_after(1ms);
    t.async_wait(third.tracked());
  });
  t.async_wait(first.tracked());
  io.run();
  BOOST_TEST(first.fate() == fate::fired);
  BOOST_TEST(second.fate() == fate::aborted);
  BOOST_TEST(third.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(destruction_aborts_the_waits_later, Timer,
                              timers) {
  asio::io_context io;
  outcome o1, o2;
  {
    test::no_upcalls guard;
    Timer t(io, far);
    t.async_wait(o1.tracked());
    t.async_wait(o2.small());
  }
  BOOST_TEST(o1.fate() == fate::waiting);
  io.run();
  BOOST_TEST(o1.fate() == fate::aborted);
  BOOST_TEST(o2.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_handler_may_destroy_its_timer, Timer, timers) {
  asio::io_context io;
  outcome other;
  auto t = std::make_unique<Timer>(io, 1ms);
  outcome o([&](auto) { t.reset(); });
  t->async_wait(o.tracked());
  io.run();
  BOOST_TEST(o.fate() == fate::fired);

  io.restart();
  t = std::make_unique<Timer>(io, far);
  o.forget();
  t->async_wait(o.tracked());
  t->async_wait(other.tracked());
  t->cancel_one();
  io.run();
  BOOST_TEST(o.fate() == fate::aborted);
  BOOST_TEST(other.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_handler_may_own_its_timer, Timer, timers) {
  asio::io_context io;
  outcome o;
  auto t = std::make_unique<Timer>(io, 1ms);
  Timer& r = *t;
  r.async_wait([t = std::move(t), h = o.tracked()](auto ec) mutable {
    h(ec);
  });
  io.run();
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(per_operation_cancellation)

BOOST_AUTO_TEST_CASE_TEMPLATE(each_type_cancels_that_wait_alone, Timer,
                              timers) {
  for (const auto type :
       {asio::cancellation_type::terminal, asio::cancellation_type::partial,
        asio::cancellation_type::total, asio::cancellation_type::all}) {
    asio::cancellation_signal sig;
    asio::io_context io;
    outcome before, it, after;
    Timer t(io, far);
    t.async_wait(before.tracked());
    t.async_wait(asio::bind_cancellation_slot(sig.slot(), it.tracked()));
    t.async_wait(after.tracked());
    quietly([&] { sig.emit(type); });
    io.poll();
    BOOST_TEST(before.fate() == fate::waiting);
    BOOST_TEST(it.fate() == fate::aborted);
    BOOST_TEST(after.fate() == fate::waiting);
    BOOST_TEST(t.cancel() == 2u);
    sig.emit(type);
    io.run();
    BOOST_TEST(before.fate() == fate::aborted);
    BOOST_TEST(it.fate() == fate::aborted);
    BOOST_TEST(after.fate() == fate::aborted);
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(type_none_cancels_nothing, Timer, timers) {
  asio::cancellation_signal sig;
  asio::io_context io;
  outcome o;
  Timer t(io, 2ms);
  t.async_wait(asio::bind_cancellation_slot(sig.slot(), o.tracked()));
  sig.emit(asio::cancellation_type::none);
  io.run();
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(one_slot_serves_one_wait_after_another, Timer,
                              timers) {
  asio::cancellation_signal sig;
  asio::io_context io;
  Timer t(io, 1ms);
  outcome o;
  const auto wait = [&] {
    o.forget();
    io.restart();
    t.async_wait(asio::bind_cancellation_slot(sig.slot(), o.tracked()));
  };
  wait();
  BOOST_TEST(sig.slot().has_handler());
  io.run();
  BOOST_TEST(o.fate() == fate::fired);

  t.expires_after(far);
  wait();
  sig.emit(asio::cancellation_type::terminal);
  io.run();
  BOOST_TEST(o.fate() == fate::aborted);

  wait();
  t.cancel();
  sig.emit(asio::cancellation_type::terminal);
  io.run();
  BOOST_TEST(o.fate() == fate::aborted);

  wait();
  sig.emit(asio::cancellation_type::total);
  BOOST_TEST(t.cancel() == 0u);
  io.run();
  BOOST_TEST(o.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(emission_from_the_handler_does_nothing, Timer,
                              timers) {
  asio::cancellation_signal sig;
  asio::io_context io;
  Timer t(io, 1ms);
  outcome o([&](auto) { sig.emit(asio::cancellation_type::all); });
  t.async_wait(asio::bind_cancellation_slot(sig.slot(), o.tracked()));
  io.run();
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_slot_without_a_signal_is_no_slot, Timer,
                              timers) {
  asio::io_context io;
  outcome o;
  Timer t(io, 1ms);
  t.async_wait(
      asio::bind_cancellation_slot(asio::cancellation_slot(), o.tracked()));
  io.run();
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(running)

BOOST_AUTO_TEST_CASE_TEMPLATE(several_waits_all_fire, Timer, timers) {
  asio::io_context io;
  std::vector<outcome> o(10);
  Timer t(io, 2ms);
  for (auto& x : o)
    quietly([&] { t.async_wait(x.tracked()); });
  io.run();
  for (auto& x : o)
    BOOST_TEST(x.fate() == fate::fired);
  BOOST_TEST(t.cancel() == 0u);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(run_returns_at_once_when_nothing_waits, Timer,
                              timers) {
  asio::io_context io;
  Timer a(io), b(io, far), c(io, steady::time_point::max());
  io.run();
  BOOST_TEST(io.stopped());
  outcome o;
  b.async_wait(o.tracked());
  b.cancel();
  io.restart();
  io.run();
  BOOST_TEST(io.stopped());
  BOOST_TEST(o.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(run_returns_after_the_last_wait, Timer, timers) {
  asio::io_context io;
  outcome o1, o2;
  Timer a(io, 1ms), b(io, 3ms);
  a.async_wait(o1.tracked());
  b.async_wait(o2.tracked());
  const auto due = b.expiry();
  io.run();
  BOOST_TEST((steady::now() >= due));
  BOOST_TEST(o1.fate() == fate::fired);
  BOOST_TEST(o2.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_wait_for_ever_holds_run_until_cancelled, Timer,
                              timers) {
  asio::io_context io;
  outcome o;
  Timer t(io, steady::time_point::max());
  t.async_wait(o.tracked());
  io.run_for(3ms);
  BOOST_TEST(!io.stopped());
  BOOST_TEST(o.fate() == fate::waiting);
  BOOST_TEST(t.cancel_one() == 1u);
  io.run();
  BOOST_TEST(o.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(serves_as_a_condition_variable, Timer, timers) {
  // The well-known idiom: a queue whose readers wait on a timer that never
  // expires, and are notified by cancel_one().
  asio::io_context io;
  Timer signal(io, steady::time_point::max());
  int items = 0, taken = 0;
  for (int i = 0; i != 3; ++i)
    signal.async_wait([&](test::error_code ec) {
      BOOST_TEST(ec == asio::error::operation_aborted);
      if (items) {
        --items;
        ++taken;
      }
    });
  for (int i = 0; i != 3; ++i)
    asio::post(io, [&] {
      ++items;
      BOOST_TEST(signal.cancel_one() == 1u);
    });
  io.run();
  BOOST_TEST(taken == 3);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(handlers_run_on_the_timers_executor, Timer,
                              timers) {
  asio::io_context io;
  auto strand = asio::make_strand(io);
  rebound<Timer, asio::any_io_executor> t(strand, 1ms);
  outcome fired([&](auto) { BOOST_TEST(strand.running_in_this_thread()); });
  outcome cancelled([&](auto) { BOOST_TEST(strand.running_in_this_thread()); });
  t.async_wait(fired.tracked());
  io.run();
  BOOST_TEST(fired.fate() == fate::fired);
  t.expires_after(far);
  t.async_wait(cancelled.tracked());
  t.cancel();
  io.restart();
  io.run();
  BOOST_TEST(cancelled.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(handlers_run_on_their_own_executor_if_they_have_one,
                              Timer, timers) {
  asio::io_context io;
  auto strand = asio::make_strand(io);
  Timer t(io, 1ms);
  outcome o([&](auto) { BOOST_TEST(strand.running_in_this_thread()); });
  t.async_wait(asio::bind_executor(strand, o.tracked()));
  io.run();
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(handlers_may_run_in_another_context, Timer,
                              timers) {
  asio::io_context io, other;
  outcome o;
  Timer t(io, 1ms);
  t.async_wait(asio::bind_executor(other, o.tracked()));
  io.run();
  BOOST_TEST(o.fate() == fate::waiting);
  other.run();
  BOOST_TEST(o.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_wait_holds_its_handlers_context, Timer, timers) {
  asio::io_context io, other;
  outcome o;
  Timer t(io, far);
  t.async_wait(asio::bind_executor(other, o.tracked()));
  other.run_for(2ms);
  BOOST_TEST(!other.stopped());
  t.cancel();
  io.run();
  other.run();
  BOOST_TEST(o.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(an_exception_from_a_handler_leaves_run, Timer,
                              timers) {
  asio::io_context io;
  outcome before, after;
  Timer a(io, 0ms), b(io, 0ms), c(io, 1ms);
  a.async_wait(before.tracked());
  b.async_wait([](auto) { throw 42; });
  c.async_wait(after.tracked());
  BOOST_CHECK_THROW(io.run(), int);
  io.run();
  BOOST_TEST(before.fate() == fate::fired);
  BOOST_TEST(after.fate() == fate::fired);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(nothing_runs_after_stop, Timer, timers) {
  asio::io_context io;
  std::vector<outcome> o;
  int ran = 0;
  Timer t(io, 0ms);
  for (int i = 0; i != 6; ++i)
    o.emplace_back([&](auto) {
      if (++ran == 3)
        io.stop();
    });
  for (auto& x : o)
    t.async_wait(x.tracked());
  io.run();
  BOOST_TEST(ran == 3);
  io.run();
  BOOST_TEST(ran == 3);
  io.restart();
  io.run();
  BOOST_TEST(ran == 6);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(blocking_wait)

BOOST_AUTO_TEST_CASE_TEMPLATE(wait_blocks_until_the_expiry, Timer, timers) {
  asio::io_context io;
  Timer t(io, 3ms);
  t.wait();
  BOOST_TEST((steady::now() >= t.expiry()));
  t.wait();
  test::error_code ec = asio::error::eof;
  t.expires_after(2ms);
  t.wait(ec);
  BOOST_TEST(!ec);
  BOOST_TEST((steady::now() >= t.expiry()));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(wait_on_a_new_timer_returns_at_once, Timer,
                              timers) {
  asio::io_context io;
  Timer t(io);
  t.wait();
  BOOST_TEST((t.expiry() == steady::time_point()));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(lifetime)

BOOST_AUTO_TEST_CASE_TEMPLATE(the_context_goes_with_waits_pending, Timer,
                              timers) {
  // The timer belongs to its own handler, and so goes with it.
  outcome o, p, q;
  std::weak_ptr<Timer> gone;
  {
    asio::io_context io;
    auto t = std::make_shared<Timer>(io, far);
    gone = t;
    t->async_wait([t, h = o.tracked()](auto ec) mutable { h(ec); });
    t->async_wait([t, h = p.tracked()](auto ec) mutable { h(ec); });
    auto due = std::make_shared<Timer>(io);
    due->async_wait([due, h = q.tracked()](auto ec) mutable { h(ec); });
  }
  BOOST_TEST(o.fate() == fate::dropped);
  BOOST_TEST(p.fate() == fate::dropped);
  BOOST_TEST(q.fate() == fate::dropped);
  BOOST_TEST(gone.expired());
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_context_goes_with_aborted_waits_queued, Timer,
                              timers) {
  outcome o;
  {
    asio::io_context io;
    Timer t(io, far);
    t.async_wait(o.tracked());
    t.cancel();
  }
  BOOST_TEST(o.fate() == fate::dropped);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_signal_may_go_before_the_context, Timer,
                              timers) {
  outcome o;
  {
    asio::io_context io;
    auto t = std::make_shared<Timer>(io, far);
    asio::cancellation_signal sig;
    t->async_wait(asio::bind_cancellation_slot(
        sig.slot(), [t, h = o.tracked()](auto ec) mutable { h(ec); }));
  }
  BOOST_TEST(o.fate() == fate::dropped);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(tokens)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_future_reports_success_and_abortion, Timer,
                              timers) {
  asio::io_context io;
  Timer t(io, 1ms);
  std::future<void> f = t.async_wait(asio::use_future);
  io.run();
  BOOST_CHECK_NO_THROW(f.get());
  t.expires_after(far);
  f = t.async_wait(asio::use_future);
  t.cancel();
  io.restart();
  io.run();
  BOOST_CHECK_THROW(f.get(), boost::system::system_error);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_deferred_wait_starts_when_called, Timer,
                              timers) {
  asio::io_context io;
  Timer t(io, far);
  auto op = t.async_wait(asio::deferred);
  io.run();
  BOOST_TEST(t.cancel() == 0u);
  outcome o;
  std::move(op)(o.tracked());
  BOOST_TEST(t.cancel() == 1u);
  io.restart();
  io.run();
  BOOST_TEST(o.fate() == fate::aborted);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(as_default_on_gives_a_default_token, Timer,
                              timers) {
  using deferred_timer = asio::deferred_t::as_default_on_t<Timer>;
  asio::io_context io;
  deferred_timer t(io, 1ms);
  outcome first;
  t.async_wait()(first.tracked());
  io.run();
  BOOST_TEST(first.fate() == fate::fired);

  auto u = asio::deferred.as_default_on(Timer(io, 1ms));
  outcome o;
  u.async_wait()(o.tracked());
  io.restart();
  io.run();
  BOOST_TEST(o.fate() == fate::fired);
}

#if defined(BOOST_ASIO_HAS_CO_AWAIT)

BOOST_AUTO_TEST_CASE_TEMPLATE(a_coroutine_can_wait, Timer, timers) {
  using coro_timer = asio::use_awaitable_t<>::as_default_on_t<Timer>;
  asio::io_context io;
  int steps = 0;
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        Timer t(io, 1ms);
        co_await t.async_wait(asio::use_awaitable);
        ++steps;
        coro_timer u(io, 1ms);
        co_await u.async_wait();
        ++steps;
        auto v = asio::use_awaitable.as_default_on(Timer(io, 1ms));
        co_await v.async_wait();
        ++steps;
      },
      asio::detached);
  io.run();
  BOOST_TEST(steps == 3);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_coroutine_sees_the_cancellation_as_an_exception,
                              Timer, timers) {
  asio::io_context io;
  Timer t(io, far);
  bool aborted = false;
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        try {
          co_await t.async_wait(asio::use_awaitable);
        } catch (const boost::system::system_error& e) {
          aborted = e.code() == asio::error::operation_aborted;
        }
      },
      asio::detached);
  asio::post(io, [&] { t.cancel(); });
  io.run();
  BOOST_TEST(aborted);
}

#endif // BOOST_ASIO_HAS_CO_AWAIT

BOOST_AUTO_TEST_SUITE_END()
