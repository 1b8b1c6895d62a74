//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// Messages that are delivered later: reminders, newsletters, web hooks. Several
// workers take them as they become due. What cannot be delivered goes back,
// and is tried again after a longer and longer while; after so many attempts it
// is put on the list of dead letters.
//
// main() delivers a day's messages in virtual time, to receivers of which one
// does not exist, one is down for an hour, and one hangs at times.

#include <asio_wheel.hpp>

#include <boost/asio.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace delayed_delivery {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using duration = std::chrono::steady_clock::duration;
using std::chrono::seconds;

constexpr auto no_throw = asio::as_tuple(asio::use_awaitable);

struct message {
  std::string to;
  std::string text;
};

struct dead_letter {
  message what;
  std::string why; // the last attempt's error
  std::size_t attempts;
};

struct settings {
  std::size_t workers = 4;       // how many deliveries at the same time
  duration timeout = 10s;        // for each
  std::size_t max_attempts = 10; // within three and a half hours, or so
  asio_wheel::backoff retry = asio_wheel::backoff::exponential(30s, 1h).jitter(
      asio_wheel::jitter::equal);
};

// Delivers one message, or throws.
using transport = std::function<asio::awaitable<void>(const message&)>;

// To be used on one thread, or a strand.
class courier {
public:
  using receipt = asio_wheel::delay_key;

  // Works on ex until it is closed, and must live until then: see closed().
  courier(const asio::any_io_executor& ex, transport t, const settings& s = {})
      : transport_(std::move(t)), settings_(s), queue_(ex) {
    for (; working_ != settings_.workers; ++working_)
      asio::co_spawn(ex, work(), asio::detached);
  }

  // Throws if it is closed.
  receipt send(message m, duration delay) {
    return queue_.push(parcel{std::move(m), settings_.retry}, delay);
  }

  // Whether a message was taken back. It cannot be after its first attempt.
  bool take_back(receipt r) { return queue_.remove(r).has_value(); }

  // Take no more messages; the workers end when those there are have been
  // tried, each when it is due. What fails now is a dead letter: nobody will be
  // there to try again.
  void close() { queue_.close(); }

  bool closed() const { return working_ == 0; }

  std::size_t waiting() const { return queue_.size(); }
  std::size_t delivered() const { return delivered_; }
  std::size_t attempts() const { return attempts_; }
  const std::vector<dead_letter>& dead_letters() const { return dead_; }

private:
  // What is in the queue: each message has a backoff of its own. (The default
  // is for async_pop(), which needs a value even if it has none to give.)
  struct parcel {
    message what;
    asio_wheel::backoff retry = asio_wheel::backoff::constant(0s);
  };

  asio::awaitable<void> work() {
    for (;;) {
      auto [ec, p] = co_await queue_.async_pop(no_throw);
      if (ec)
        break; // closed, and there is no more
      ++attempts_;
      std::string why = co_await attempt(p.what);
      if (why.empty())
        ++delivered_;
      else
        again(std::move(p), std::move(why));
    }
    --working_;
  }

  // Returns what went wrong. A worker is worth more than a message: whatever
  // the transport throws, it goes on with the next one, and it waits for none
  // for ever.
  asio::awaitable<std::string> attempt(const message& m) {
    try {
      co_await asio::co_spawn(
          queue_.get_executor(), transport_(m),
          asio_wheel::timeout_after(settings_.timeout, asio::use_awaitable));
      co_return "";
    } catch (const std::exception& e) {
      co_return e.what();
    }
  }

  // Meanwhile the worker is free for others: it does not wait for the retry.
  void again(parcel p, std::string why) {
    const auto attempts = p.retry.attempt() + 1; // as many as delays, and one
    if (attempts < settings_.max_attempts) {
      const auto delay = p.retry.next();
      // If the queue is closed, it leaves the parcel as it is.
      if (queue_.try_push(std::move(p), delay))
        return;
    }
    dead_.push_back({std::move(p.what), std::move(why), attempts});
  }

  const transport transport_;
  const settings settings_;
  asio_wheel::delay_queue<parcel> queue_;
  std::size_t working_ = 0, delivered_ = 0, attempts_ = 0;
  std::vector<dead_letter> dead_;
};

} // namespace delayed_delivery

int main() {
  using namespace delayed_delivery;

  asio_wheel::manual_clock clock; // moves when nothing is left to do
  asio_wheel::wheel_options options;
  options.clock = clock;
  asio::io_context io;
  asio_wheel::make_wheel(io, options);
  const auto start = clock.now();
  std::minstd_rand chance(1);

  const auto post = [&](const message& m) -> asio::awaitable<void> {
    const auto hour = (clock.now() - start) / 1h;
    asio_wheel::wheel_timer line(io, 200ms);
    if (m.to == "carol" && chance() % 4 == 0)
      line.expires_after(24h); // hangs
    co_await line.async_wait(asio::use_awaitable);
    if (m.to == "nobody")
      throw std::runtime_error("no such receiver");
    if (m.to == "bob" && hour == 12)
      throw std::runtime_error("bob is having lunch");
  };
  courier c(io.get_executor(), post);

  const std::size_t messages = 10'000, to_nobody = 3;
  const char* const known[] = {"alice", "bob", "carol"};
  for (std::size_t i = 0; i != messages; ++i)
    c.send({i < to_nobody ? "nobody" : known[i % 3], std::to_string(i)},
           seconds(chance() % 86'400));
  const auto mistake = c.send({"alice", "you are fired"}, 1h);
  const bool taken_back = c.take_back(mistake);

  // Until nothing is left to deliver. The workers wait for more.
  asio_wheel::run_simulation({io}, clock);
  const auto took = clock.now() - start;
  const bool idle = c.waiting() == 0 && !c.closed();
  c.close();
  asio_wheel::run_simulation({io}, clock);

  const bool right = idle && c.closed() && taken_back &&
                     c.delivered() == messages - to_nobody &&
                     c.dead_letters().size() == to_nobody;
  std::cout << c.delivered() << " messages delivered in " << c.attempts()
            << " attempts, the last after " << took / 1min << " minutes\n";
  for (const dead_letter& d : c.dead_letters())
    std::cout << "  message " << d.what.text << " to " << d.what.to
              << " given up after " << d.attempts << " attempts: " << d.why
              << '\n';
  std::cout << (right ? "right" : "WRONG") << '\n';
  return right ? 0 : 1;
}
