//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// A pool of connections to a database, say. Who needs one gets the one that was
// used last, or a new one, or waits, but not for ever, for one that is given
// back. What has been idle for a minute is closed. A day of it in virtual time.

#include <asio_wheel.hpp>

#include <boost/asio.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <iostream>
#include <list>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace connection_pool {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio::use_awaitable;
using boost::system::system_error;
using duration = std::chrono::steady_clock::duration;

// Whatever is expensive to open. Closed when it is destroyed.
struct connection {
  std::size_t number;
};

struct options {
  std::size_t most = 10;     // connections, in use and idle
  duration idle = 1min;      // after that an idle one is closed
  duration patience = 500ms; // how long one waits for a connection
};

// Outlives what it has lent. All on one thread, or one strand.
class pool {
public:
  using connection_ptr = std::unique_ptr<connection>;

  // What is dropped and not given back is closed, and its place is free: an
  // exception may have left it in the middle of something.
  struct drop {
    pool* from = nullptr;
    void operator()(connection* c) const {
      delete c;
      from->give_up();
    }
  };
  using lease = std::unique_ptr<connection, drop>;

  // Makes a connection, or throws.
  using open_function = std::function<asio::awaitable<connection_ptr>()>;

  pool(asio::any_io_executor ex, open_function open, options o)
      : scheduler_(std::move(ex)), open_(std::move(open)), options_(o) {}

  // Throws asio_wheel::error::operation_timeout if there is none in time,
  // asio::error::shut_down after close(), asio::error::operation_aborted if it
  // is cancelled while it waits, and what opening one throws.
  asio::awaitable<lease> acquire() {
    if (closed_)
      throw system_error(asio::error::shut_down);
    if (!idle_.empty()) {
      // The one that was used last: the others grow old, and go.
      idle_connection last = std::move(idle_.back());
      idle_.pop_back();
      last.eviction.cancel();
      co_return lend(std::move(last.it));
    }
    if (open_count_ == options_.most)
      co_return co_await wait();
    ++open_count_; // before it is open, so that there are never more
    co_return co_await open_another();
  }

  // Give one back that is as good as new.
  void release(lease l) {
    if (!l || closed_)
      return; // dropped
    connection_ptr c(l.release());
    if (!waiting_.empty()) {
      waiting_.front().got = std::move(c);
      serve_first();
      return;
    }
    const std::size_t number = c->number;
    idle_.push_back({std::move(c), {}});
    idle_.back().eviction = scheduler_.schedule_after(
        options_.idle, [this, number] { evict(number); });
  }

  // Idle connections are closed, waiting coroutines told. Those in use are
  // closed when they are given back.
  void close() {
    closed_ = true;
    scheduler_.stop();
    open_count_ -= idle_.size();
    idle_.clear();
    for (waiter& w : waiting_)
      w.timer.cancel();
  }

  std::size_t open() const noexcept { return open_count_; }
  std::size_t idle() const noexcept { return idle_.size(); }

private:
  struct idle_connection {
    connection_ptr it;
    asio_wheel::task_handle eviction;
  };

  // Waits on its timer, which is cancelled when there is a connection.
  struct waiter {
    asio_wheel::wheel_timer timer;
    connection_ptr got;
    bool may_open = false; // in the place of one that broke
  };

  lease lend(connection_ptr c) { return lease(c.release(), drop{this}); }

  // In a place that is counted already.
  asio::awaitable<lease> open_another() {
    try {
      co_return lend(co_await open_());
    } catch (...) {
      give_up();
      throw;
    }
  }

  asio::awaitable<lease> wait() {
    const auto me = waiting_.emplace(
        waiting_.end(),
        waiter{{scheduler_.get_executor(), options_.patience}, {}});
    const auto [ec] =
        co_await me->timer.async_wait(asio::as_tuple(use_awaitable));
    connection_ptr c = std::move(me->got);
    const bool may_open = me->may_open, served = c || may_open;
    if (!served)
      waiting_.erase(me); // who serves one takes it out
    else
      served_.erase(me);
    if (c)
      co_return lend(std::move(c));
    if (may_open)
      co_return co_await open_another();
    if (closed_)
      throw system_error(asio::error::shut_down);
    if (ec)
      throw system_error(ec);
    throw system_error(asio_wheel::error::operation_timeout);
  }

  // Once a waiter is served it is no longer in line. Its timer may have expired
  // already: that its handler has not run is enough.
  void serve_first() {
    waiting_.front().timer.cancel();
    served_.splice(served_.end(), waiting_, waiting_.begin());
  }

  // There is one connection less; whoever waits longest may open another.
  void give_up() {
    if (!closed_ && !waiting_.empty()) {
      waiting_.front().may_open = true;
      serve_first();
    } else {
      --open_count_;
    }
  }

  void evict(std::size_t number) {
    for (auto i = idle_.begin(); i != idle_.end(); ++i)
      if (i->it->number == number) {
        idle_.erase(i);
        --open_count_;
        return;
      }
  }

  asio_wheel::scheduler scheduler_;
  open_function open_;
  const options options_;
  std::vector<idle_connection> idle_; // the one used last at the end
  std::list<waiter> waiting_, served_;
  std::size_t open_count_ = 0; // being opened, in use, idle
  bool closed_ = false;
};

} // namespace connection_pool

int main() {
  using namespace connection_pool;
  asio_wheel::manual_clock clock;
  asio::io_context io{1};
  asio_wheel::wheel_options wheel;
  wheel.clock = clock;
  asio_wheel::make_wheel(io, wheel);

  std::size_t opened = 0, served = 0, refused = 0, most = 0;
  pool p(
      io.get_executor(),
      [&]() -> asio::awaitable<pool::connection_ptr> {
        asio_wheel::wheel_timer handshake(io, 20ms);
        co_await handshake.async_wait(use_awaitable);
        co_return std::make_unique<connection>(connection{++opened});
      },
      options());

  // A request needs a connection for 5 to 50 ms.
  std::mt19937 random(1);
  const auto request = [&]() -> asio::awaitable<void> {
    try {
      pool::lease c = co_await p.acquire();
      most = std::max(most, p.open());
      asio_wheel::wheel_timer work(io, 5ms + 1ms * (random() % 46));
      co_await work.async_wait(use_awaitable);
      p.release(std::move(c));
      ++served;
    } catch (const system_error&) {
      ++refused;
    }
  };

  // Rush hours and quiet ones: each hour has its own pause between requests.
  const auto day = [&]() -> asio::awaitable<void> {
    asio_wheel::wheel_timer pause(io);
    for (int hour = 0; hour != 24; ++hour) {
      const duration every = hour != 12 && hour % 6 == 0 ? 90s : 10s;
      for (duration t{}; t < 1h; t += every) {
        const int at_once = hour == 12 ? 180 : 2;
        for (int i = 0; i != at_once; ++i)
          asio::co_spawn(io, request(), asio::detached);
        pause.expires_after(every);
        co_await pause.async_wait(use_awaitable);
      }
    }
    std::cout << "at midnight " << p.open() << " connections are open, of "
              << most << " at most\n";
    p.close();
  };
  asio::co_spawn(io, day(), asio::detached);
  asio_wheel::run_simulation({io}, clock);
  std::cout << served << " requests served over " << opened << " connections, "
            << refused << " had to wait for too long\n";
  return p.open() == 0 ? 0 : 1;
}
