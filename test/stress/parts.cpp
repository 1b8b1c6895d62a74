//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/delay_queue.hpp>
#include <asio_wheel/expiring_map.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>

#define BOOST_TEST_MODULE stress_parts
#include <boost/test/unit_test.hpp>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

// The parts that many threads may use at once, for ThreadSanitizer, and for
// what only races show. How much is done follows ASIO_WHEEL_STRESS, a factor,
// default 1.

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::delay_key;
using boost::system::error_code;

std::size_t factor() {
  const char* const text = std::getenv("ASIO_WHEEL_STRESS");
  return text ? std::stoul(text) : 1;
}

template <typename F> void on_four_threads(F f) {
  std::vector<std::thread> threads;
  for (unsigned i = 0; i != 4; ++i)
    threads.emplace_back([f, i] { f(i); });
  for (auto& t : threads)
    t.join();
}

using item = std::shared_ptr<std::atomic<int>>; // how often it came out
using queue = asio_wheel::delay_queue<item>;

// Pops until the end, now and then with a wait that is cancelled.
struct consumer : std::enable_shared_from_this<consumer> {
  consumer(asio::io_context& io, queue& x)
      : strand(asio::make_strand(io)), q(x) {}

  void pop() {
    q.async_pop(asio::bind_executor(
        strand,
        asio::bind_cancellation_slot(
            signal.slot(), [self = shared_from_this()](error_code ec, item i) {
              if (ec == asio::error::eof)
                return;
              if (!ec)
                ++*i;
              self->pop();
            })));
    if (++pops % 7 == 0)
      signal.emit(asio::cancellation_type::total);
  }

  asio::strand<asio::io_context::executor_type> strand;
  queue& q;
  asio::cancellation_signal signal;
  std::size_t pops = 0;
};

} // namespace

BOOST_AUTO_TEST_CASE(a_delay_queue_gives_out_each_item_once) {
  asio::io_context io;
  asio_wheel::delay_queue_options options;
  options.capacity = 200;
  queue q(io, options);
  for (int i = 0; i != 4; ++i) {
    auto c = std::make_shared<consumer>(io, q);
    asio::post(c->strand, [c] { c->pop(); });
  }
  std::vector<std::vector<item>> items(4);
  std::atomic<std::size_t> waiting{0}, failed{0};
  auto work = asio::make_work_guard(io);
  std::vector<std::thread> runners;
  for (int i = 0; i != 2; ++i)
    runners.emplace_back([&] { io.run(); });
  on_four_threads([&](unsigned n) {
    std::minstd_rand random(n + 1);
    std::vector<delay_key> keys;
    for (std::size_t i = 0; i != 3000 * factor(); ++i) {
      const auto delay = std::chrono::microseconds(random() % 3000);
      const auto any = [&] {
        return keys.empty() ? delay_key() : keys[random() % keys.size()];
      };
      switch (random() % 8) {
      case 0:
        if (auto v = q.remove(any()))
          ++**v;
        break;
      case 1:
        q.reset(any(), delay);
        break;
      case 2:
        if (auto v = q.try_pop())
          ++**v;
        break;
      case 3:
        q.peek();
        q.contains(any());
        q.size();
        break;
      case 4:
        items[n].push_back(std::make_shared<std::atomic<int>>(0));
        ++waiting;
        q.async_push(items[n].back(), delay, [&](error_code ec, delay_key) {
          failed += ec ? 1 : 0;
          --waiting;
        });
        break;
      default: {
        auto v = std::make_shared<std::atomic<int>>(0);
        if (const delay_key k = q.try_push(v, delay)) {
          items[n].push_back(std::move(v));
          keys.push_back(k);
        }
      }
      }
    }
  });
  while (waiting != 0)
    std::this_thread::yield();
  q.close();
  work.reset();
  for (auto& t : runners)
    t.join();
  BOOST_TEST(q.empty());
  std::size_t lost = 0, doubled = 0;
  for (const auto& each : items)
    for (const item& i : each) {
      lost += *i == 0;
      doubled += *i > 1;
    }
  BOOST_TEST(failed == 0u);
  BOOST_TEST(lost == 0u);
  BOOST_TEST(doubled == 0u);
}

BOOST_AUTO_TEST_CASE(a_delay_queue_is_destroyed_while_its_context_runs) {
  for (std::size_t round = 0; round != 50 * factor(); ++round) {
    asio::io_context io;
    std::atomic<int> ended{0};
    auto q = std::make_unique<asio_wheel::delay_queue<int>>(io);
    for (int i = 0; i != 20; ++i) {
      q->push(i, std::chrono::microseconds(i * 20));
      q->async_pop([&](error_code, int) { ++ended; });
      q->async_pop([&](error_code, int) { ++ended; });
    }
    std::thread runner([&] { io.run(); });
    std::this_thread::sleep_for(std::chrono::microseconds(round * 10));
    q.reset();
    runner.join();
    BOOST_TEST(ended == 40);
  }
}

BOOST_AUTO_TEST_CASE(an_expiring_map_is_used_by_four_threads) {
  asio::io_context io;
  using map = asio_wheel::expiring_map<int, std::shared_ptr<int>>;
  map::options_type options;
  options.time_to_live = 2ms;
  options.expire_after = asio_wheel::expire_after::access;
  options.max_size = 50;
  std::atomic<std::size_t> hooked{0}, in{0}, out{0}, wrong{0};
  options.on_expire = [&](const int& key, std::shared_ptr<int>&& v,
                          asio_wheel::expiry_reason) {
    wrong += *v != key;
    ++hooked;
  };
  map m(io, options);
  auto work = asio::make_work_guard(io);
  std::vector<std::thread> runners;
  for (int i = 0; i != 2; ++i)
    runners.emplace_back([&] { io.run(); });
  on_four_threads([&](unsigned n) {
    std::minstd_rand random(n + 1);
    for (std::size_t i = 0; i != 5000 * factor(); ++i) {
      const int key = static_cast<int>(random() % 100);
      switch (random() % 7) {
      case 0:
        if (const auto v = m.find(key))
          wrong += **v != key;
        break;
      case 1:
        m.touch(key);
        break;
      case 2:
        out += m.erase(key);
        break;
      case 3:
        if (const auto v = m.extract(key)) {
          wrong += **v != key;
          ++out;
        }
        break;
      case 4:
        if (i % 50 == 0)
          m.for_each([&](const int& k, const std::shared_ptr<int>& v) {
            wrong += *v != k;
          });
        break;
      default:
        in += m.insert(key, std::make_shared<int>(key),
                       std::chrono::microseconds(random() % 3000));
        break;
      }
    }
  });
  work.reset();
  for (auto& t : runners) // until the last has expired
    t.join();
  BOOST_TEST(m.empty());
  BOOST_TEST(wrong == 0u);
  BOOST_TEST(hooked + out == in);
}
