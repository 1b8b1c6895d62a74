//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// Orders that lapse unless they are paid in 30 minutes. Payments and the end of
// the 30 minutes come from different threads, and race: each order is either
// paid or lapses, never both. When the service stops, what is still open is
// kept, with the time it has left, for the service that is started next.
//
// main() has a million customers order, and pay or not, in virtual time.

#include <asio_wheel.hpp>

#include <boost/asio.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <iterator>
#include <mutex>
#include <random>
#include <unordered_map>
#include <utility>
#include <vector>

namespace order_service {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using duration = std::chrono::steady_clock::duration;

using order_id = std::uintptr_t; // fits the tag of a task

struct open_order {
  order_id id;
  duration left; // steady time means nothing to another process: no time_point
};

struct limits {
  duration time_to_pay = 30min;
  std::size_t open_orders = 0; // no limit
};

//[scheduler
// Every function may be called by any thread. Orders lapse on the context's
// threads: stop(), and run the context to its end, before this is destroyed.
class orders {
public:
  orders(asio::io_context& io, const limits& l,
         std::function<void(order_id)> on_lapse)
      : time_to_pay_(l.time_to_pay), on_lapse_(std::move(on_lapse)),
        unpaid_(io, options(l)) {}

  // False: it is open already, there are too many, or the service has stopped.
  bool place(order_id id) {
    // The lock is held until the handle is where lapsed() looks for it.
    const std::lock_guard lock(mutex_);
    if (open_.count(id) != 0)
      return false;
    const auto task = unpaid_.schedule_after(time_to_pay_, lapse{this, id}, id);
    if (task.error())
      return false;
    open_.emplace(id, task);
    return true;
  }

  // Whether the payment is accepted. cancel() is true for one caller, and only
  // if the order will not lapse: that decides the race, also while lapsed() is
  // just beginning in another thread.
  bool pay(order_id id) {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find(id);
    if (found == open_.end() || !found->second.cancel())
      return false;
    open_.erase(found);
    return true;
  }

  // No order lapses any more, and none is paid here. Returns those that are
  // open, next to lapse first.
  std::vector<open_order> stop() {
    std::vector<open_order> result;
    const auto now = unpaid_.now();
    for (const asio_wheel::task_handle& task : unpaid_.stop())
      result.push_back({task.tag(), task.expiry() - now});
    return result;
  }

  // Go on with what another service has left, before anything else. Returns
  // what there is no room for.
  std::vector<order_id> resume(const std::vector<open_order>& left) {
    std::vector<asio_wheel::delayed_task<lapse>> tasks;
    for (const open_order& o : left)
      tasks.push_back({o.left, lapse{this, o.id}, o.id});
    std::vector<asio_wheel::task_handle> handles;
    std::vector<order_id> refused;
    const std::lock_guard lock(mutex_);
    unpaid_.schedule_batch(std::move(tasks), std::back_inserter(handles));
    for (const asio_wheel::task_handle& task : handles)
      if (task.error())
        refused.push_back(task.tag());
      else
        open_.emplace(task.tag(), task);
    return refused;
  }

  asio_wheel::task_counts counts() const { return unpaid_.counts(); }

private:
  struct lapse {
    orders* self;
    order_id id;

    void operator()() const { self->lapsed(id); }
  };

  static asio_wheel::scheduler_options options(const limits& l) {
    asio_wheel::scheduler_options o;
    o.max_pending = l.open_orders;
    return o;
  }

  void lapsed(order_id id) {
    {
      const std::lock_guard lock(mutex_);
      open_.erase(id);
    }
    on_lapse_(id); // may place the next one: not under the lock
  }

  const duration time_to_pay_;
  const std::function<void(order_id)> on_lapse_;
  std::mutex mutex_; // for open_
  std::unordered_map<order_id, asio_wheel::task_handle> open_;
  asio_wheel::scheduler unpaid_;
};
//]

} // namespace order_service

int main() {
  using namespace order_service;
  const auto real_start = std::chrono::steady_clock::now();

  asio_wheel::manual_clock clock; // moves when nothing is left to do
  asio_wheel::wheel_options options;
  options.clock = clock;
  options.tick = 100ms; // half an hour need not be exact to the millisecond
  asio::io_context io;
  asio_wheel::make_wheel(io, options);

  std::size_t placed = 0, paid = 0, late = 0, lapsed = 0;
  orders shop(io, limits(), [&](order_id) { ++lapsed; }); // goods to the shelf

  // A hundred customers a second. Each pays after a while of up to 40 minutes,
  // or, one in ten, never.
  constexpr std::size_t customers = 1'000'000, seconds = customers / 100;
  std::vector<std::vector<order_id>> payments(seconds + 40 * 60);
  std::mt19937 chance(1);
  asio_wheel::scheduler outside(io);
  std::size_t second = 0;
  outside.schedule_every(1s, [&] {
    for (int i = 0; i != 100; ++i) {
      shop.place(++placed);
      if (chance() % 10 != 0)
        payments[second + chance() % (40 * 60)].push_back(placed);
    }
    for (const order_id id : payments[second++])
      ++(shop.pay(id) ? paid : late);
  });

  // The shop closes with the last one.
  asio_wheel::simulation_options until;
  until.until = clock.now() + seconds * 1s;
  asio_wheel::run_simulation({io}, clock, until);
  const std::vector<open_order> left = shop.stop();
  outside.stop();
  io.restart();
  io.run(); // what has begun to lapse

  const bool right = placed == customers &&
                     placed == paid + lapsed + left.size() && !left.empty();
  const auto took = std::chrono::steady_clock::now() - real_start;
  std::cout << placed << " orders in " << seconds / 60
            << " minutes of virtual time, " << took / 1ms
            << " ms of real time\n  " << paid << " paid\n  " << lapsed
            << " lapsed; " << late << " payments came too late\n  "
            << left.size() << " open at the end, of which the next has "
            << (left.empty() ? 0ns : left.front().left) / 1ms << " ms left\n"
            << (right ? "right" : "WRONG") << '\n';
  return right ? 0 : 1;
}
