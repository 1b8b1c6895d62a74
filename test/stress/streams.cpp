//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/timeout_stream.hpp>

#include <test/local_pair.hpp>

#include <asio_wheel/wheel_service.hpp>
#include <asio_wheel/wheel_timer.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/thread_pool.hpp>

#define BOOST_TEST_MODULE stress_streams
#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// ThreadSanitizer does not know fences, and Asio's any_io_executor orders the
// destruction of what it holds by one.
extern "C" const char* __tsan_default_suppressions() {
  return "race:boost::asio::execution::detail::shared_target_executor";
}

// For ThreadSanitizer, and for what only races show: streams on strands, in
// real time, with timeouts that expire while bytes move. How long it takes
// follows ASIO_WHEEL_STRESS, a factor, default 1.

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::error;
using asio_wheel::error_code;
using asio_wheel::stream_timeouts;
using asio_wheel::timeout_action;
using test::local_pair;
using clock_type = std::chrono::steady_clock;
using stream = asio_wheel::timeout_stream<>;
using tcp = asio::ip::tcp;
template <typename Context>
using strand_of = asio::strand<typename Context::executor_type>;

std::size_t factor() {
  const char* const text = std::getenv("ASIO_WHEEL_STRESS");
  return text ? std::stoul(text) : 1;
}

// What became of the handlers.
struct totals {
  std::atomic<std::size_t> started{0};
  std::atomic<std::size_t> called{0};
  std::atomic<std::size_t> dropped{0};
  std::atomic<std::size_t> wrong{0}; // called in the wrong place, or twice
  std::atomic<std::size_t> succeeded{0};
  std::atomic<std::size_t> timed_out{0};
  std::atomic<std::size_t> cancelled{0};
  std::atomic<std::size_t> failed{0};

  void count(error_code ec) {
    ++called;
    if (!ec)
      ++succeeded;
    else if (ec.category() == asio_wheel::wheel_category())
      ++timed_out;
    else if (ec == asio::error::operation_aborted)
      ++cancelled;
    else
      ++failed;
  }

  void check() const {
    BOOST_TEST(started == called);
    BOOST_TEST(dropped == 0u);
    BOOST_TEST(wrong == 0u);
    BOOST_TEST_MESSAGE(started << " operations: " << succeeded << " succeeded, "
                               << timed_out << " timed out, " << cancelled
                               << " cancelled, " << failed << " failed");
  }
};

// A handler that has to be called exactly once, on some executor.
template <typename Then> class once {
public:
  once(totals& all, Then then) : all_(&all), then_(std::move(then)) {
    ++all.started;
  }
  once(once&& other) noexcept
      : all_(std::exchange(other.all_, nullptr)),
        then_(std::move(other.then_)) {}
  ~once() {
    if (all_)
      ++all_->dropped;
  }
  void operator()(error_code ec, std::size_t n = 0) {
    std::exchange(all_, nullptr)->count(ec);
    then_(ec, n);
  }

private:
  totals* all_;
  Then then_;
};

// Answers, as long as it is spoken to.
class echo : public std::enable_shared_from_this<echo> {
public:
  explicit echo(tcp::socket s) : socket_(std::move(s)) {}

  void go() {
    socket_.async_read_some(
        asio::buffer(data_),
        [self = shared_from_this()](error_code ec, std::size_t n) {
          if (!ec)
            self->answer(n);
        });
  }

private:
  void answer(std::size_t n) {
    asio::async_write(socket_, asio::buffer(data_, n),
                      [self = shared_from_this()](error_code ec, std::size_t) {
                        if (!ec)
                          self->go();
                      });
  }

  tcp::socket socket_;
  std::array<char, 256> data_{};
};

// A connection on its strand, to which random things are done there.
template <typename Context>
class connection : public std::enable_shared_from_this<connection<Context>> {
public:
  connection(Context& context, asio::thread_pool& other, totals& all,
             unsigned seed, clock_type::time_point until)
      : context_(context), strand_(asio::make_strand(context)), other_(other),
        all_(all), random_(seed), until_(until), pause_(strand_) {}

  void go() {
    asio::post(strand_, [self = this->shared_from_this()] { self->step(); });
  }

private:
  std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>(random_() % n);
  }
  stream::duration some_time() {
    return std::chrono::microseconds(50 + below(3000));
  }

  void make() {
    local_pair pair(strand_, context_);
    std::make_shared<echo>(std::move(pair.theirs))->go();
    s_.emplace(std::move(pair.ours));
    change();
  }

  void change() {
    stream_timeouts t;
    if (below(2))
      t.read = some_time();
    if (below(2))
      t.write = some_time();
    if (below(2))
      t.idle = some_time();
    if (below(8) == 0)
      t.read_rate = {1'000'000, some_time()};
    t.action = below(8) == 0   ? timeout_action::close
               : below(8) == 0 ? timeout_action::shutdown
                               : timeout_action::cancel;
    s_->timeouts(t);
  }

  void step() {
    if (!strand_.running_in_this_thread())
      ++all_.wrong;
    if (clock_type::now() >= until_) {
      s_.reset();
      return;
    }
    if (!s_ || !s_->is_open())
      make();
    for (auto n = 1 + below(4); n != 0; --n)
      act();
    if (below(2)) {
      go();
    } else {
      pause_.expires_after(std::chrono::microseconds(below(1500)));
      pause_.async_wait(
          [self = this->shared_from_this()](error_code) { self->step(); });
    }
  }

  void act() {
    switch (below(20)) {
    case 0:
      change();
      break;
    case 1:
      s_->cancel();
      break;
    case 2:
      if (below(4) == 0)
        s_.reset();
      if (!s_)
        make();
      break;
    case 3: {
      stream moved(std::move(*s_));
      *s_ = std::move(moved);
      break;
    }
    case 4:
      below(2) ? s_->expires_after(some_time()) : s_->expires_never();
      break;
    case 5:
      if (waiting_ < 3)
        wait_idle();
      break;
    case 6:
      if (read_ && read_->pending)
        read_->signal.emit(asio::cancellation_type::total);
      break;
    case 7:
      s_->touch();
      s_->next_timeout();
      break;
    case 8:
      if (below(6) == 0) {
        error_code ignored;
        s_->close(ignored);
        s_.reset();
        make();
      }
      break;
    default:
      if (below(2))
        read();
      else
        write();
    }
  }

  // What a handler has to share with operations of a stream that has gone.
  struct operation {
    bool pending = true;
    std::array<char, 256> data{};
    asio::cancellation_signal signal;
  };
  using operation_ptr = std::shared_ptr<operation>;

  // Its handler is called on the strand, or on another executor.
  template <typename Start> void begin(operation_ptr& slot, Start start) {
    if (slot && slot->pending)
      return;
    auto op = slot = std::make_shared<operation>();
    if (below(3) != 0)
      start(op,
            asio::bind_cancellation_slot(
                op->signal.slot(), once(all_, [self = this->shared_from_this(),
                                               op](error_code, std::size_t) {
                  if (!self->strand_.running_in_this_thread())
                    ++self->all_.wrong;
                  op->pending = false;
                })));
    else
      start(op, asio::bind_executor(
                    other_.get_executor(),
                    once(all_, [self = this->shared_from_this(),
                                op](error_code, std::size_t) {
                      if (!self->other_.get_executor().running_in_this_thread())
                        ++self->all_.wrong;
                      asio::post(self->strand_, [op] { op->pending = false; });
                    })));
  }

  void read() {
    begin(read_, [this](const operation_ptr& op, auto&& handler) {
      s_->async_read_some(asio::buffer(op->data), std::move(handler));
    });
  }
  void write() {
    begin(write_, [this](const operation_ptr& op, auto&& handler) {
      s_->async_write_some(asio::buffer(op->data, 1 + below(256)),
                           std::move(handler));
    });
  }
  void wait_idle() {
    ++waiting_;
    s_->async_wait_idle(
        once(all_, [self = this->shared_from_this()](error_code, std::size_t) {
          --self->waiting_;
        }));
  }

  Context& context_;
  strand_of<Context> strand_;
  asio::thread_pool& other_;
  totals& all_;
  std::mt19937 random_;
  const clock_type::time_point until_;
  asio_wheel::wheel_timer pause_;
  std::optional<stream> s_;
  operation_ptr read_, write_;
  int waiting_ = 0;
};

// Asks and is answered, until it is ended.
struct talker : std::enable_shared_from_this<talker> {
  talker(asio::io_context& io, totals& t)
      : strand(asio::make_strand(io)), all(t) {
    local_pair pair(strand, io);
    std::make_shared<echo>(std::move(pair.theirs))->go();
    s.emplace(std::move(pair.ours));
    stream_timeouts st;
    st.read = st.write = 1h;
    st.idle = 2h;
    s->timeouts(st);
  }
  template <typename F> auto then(F f) {
    return once(
        all, [f, self = this->shared_from_this()](error_code ec, std::size_t) {
          if (ec) {
            self->end = ec;
            self->s.reset(); // as a server does
          } else {
            f(*self);
          }
        });
  }
  void talk() {
    s->async_write_some(asio::buffer(data), then([](talker& t) {
                          t.s->async_read_some(
                              asio::buffer(t.data),
                              t.then([](talker& u) { u.talk(); }));
                        }));
  }
  asio::strand<asio::io_context::executor_type> strand;
  totals& all;
  std::optional<stream> s;
  std::array<char, 16> data{};
  error_code end;
};

void run_on_threads(asio::io_context& io, std::size_t n) {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i != n; ++i)
    threads.emplace_back([&] { io.run(); });
  for (auto& t : threads)
    t.join();
}

} // namespace

BOOST_AUTO_TEST_CASE(random_connections_on_the_threads_of_an_io_context) {
  totals all;
  asio::thread_pool other(1);
  asio::io_context io;
  const auto until = clock_type::now() + factor() * 2500ms;
  for (unsigned i = 0; i != 16; ++i)
    std::make_shared<connection<asio::io_context>>(io, other, all, i, until)
        ->go();
  run_on_threads(io, 4);
  other.join();
  io.restart();
  io.poll(); // what the others posted at the end
  all.check();
  BOOST_TEST(all.timed_out != 0u);
  BOOST_TEST(asio_wheel::use_wheel(io).pending() == 0u);
  BOOST_TEST(asio_wheel::use_wheel(io).streams() == 0u);
}

BOOST_AUTO_TEST_CASE(random_connections_in_a_thread_pool_with_shards) {
  totals all;
  asio::thread_pool other(1);
  asio::thread_pool pool(4);
  asio_wheel::wheel_options options;
  options.shards = 4;
  auto& wheel = asio_wheel::make_wheel(pool, options);
  const auto until = clock_type::now() + factor() * 2500ms;
  for (unsigned i = 0; i != 16; ++i)
    std::make_shared<connection<asio::thread_pool>>(pool, other, all, 100 + i,
                                                    until)
        ->go();
  pool.wait();
  other.join();
  all.check();
  BOOST_TEST(all.timed_out != 0u);
  BOOST_TEST(wheel.pending() == 0u);
  BOOST_TEST(wheel.streams() == 0u);
}

// The answer comes when the timeout does (D7): one of them wins, and no byte
// is lost.
BOOST_AUTO_TEST_CASE(an_answer_and_a_timeout_in_one_instant) {
  struct turns : std::enable_shared_from_this<turns> {
    turns(asio::io_context& io, totals& t, clock_type::time_point u, unsigned i)
        : strand(asio::make_strand(io)), pair(strand, io),
          s(std::move(pair.ours)), delay(pair.theirs.get_executor()), all(t),
          until(u), random(i) {
      stream_timeouts st;
      st.read = 2ms;
      s.timeouts(st);
    }
    void go() {
      if (clock_type::now() >= until) {
        error_code ignored;
        s.close(ignored);
        return;
      }
      delay.expires_after(std::chrono::microseconds(1500 + random() % 1500));
      delay.async_wait([self = this->shared_from_this()](error_code) {
        asio::async_write(self->pair.theirs, asio::buffer(&self->out, 1),
                          [self](error_code, std::size_t) { ++self->written; });
      });
      read();
    }
    void read() {
      s.async_read_some(asio::buffer(&in, 1),
                        once(all, [self = this->shared_from_this()](
                                      error_code ec, std::size_t n) {
                          if (ec == error::read_timeout && n == 0)
                            return self->read();
                          self->read_ += n;
                          if (ec || n != 1)
                            ++self->all.wrong;
                          else
                            asio::post(self->strand, [self] { self->go(); });
                        }));
    }

    asio::strand<asio::io_context::executor_type> strand;
    local_pair pair;
    stream s;
    asio_wheel::wheel_timer delay;
    totals& all;
    clock_type::time_point until;
    std::mt19937 random;
    char in = 0, out = 'x';
    std::atomic<std::size_t> written{0};
    std::size_t read_ = 0;
  };

  totals all;
  asio::io_context io;
  const auto until = clock_type::now() + factor() * 1500ms;
  std::vector<std::shared_ptr<turns>> players;
  for (unsigned i = 0; i != 32; ++i) {
    players.push_back(std::make_shared<turns>(io, all, until, i));
    asio::post(players.back()->strand, [p = players.back()] { p->go(); });
  }
  run_on_threads(io, 4);
  all.check();
  BOOST_TEST(all.timed_out != 0u);
  BOOST_TEST(all.succeeded != 0u);
  for (auto& p : players)
    BOOST_TEST(p->read_ == p->written);
}

// Streams are made, used and destroyed all over the place.
BOOST_AUTO_TEST_CASE(made_and_destroyed_on_many_threads) {
  totals all;
  asio::thread_pool pool(4);
  const auto until = clock_type::now() + factor() * 1000ms;
  std::function<void(unsigned)> one = [&](unsigned i) {
    if (clock_type::now() >= until)
      return;
    auto strand = asio::make_strand(pool);
    auto pair = std::make_shared<local_pair>(strand, pool);
    auto s = std::make_shared<stream>(std::move(pair->ours));
    auto data = std::make_shared<std::array<char, 16>>();
    asio::post(strand, [&, i, s = std::move(s), pair, data, strand]() mutable {
      stream_timeouts t;
      t.read = std::chrono::microseconds(100 + i % 7 * 300);
      t.idle = 1ms;
      s->timeouts(t);
      s->async_read_some(asio::buffer(*data),
                         once(all, [data, pair](error_code, std::size_t) {}));
      s->async_write_some(asio::buffer(*data),
                          once(all, [data, pair](error_code, std::size_t) {}));
      s->async_wait_idle(once(all, [pair](error_code, std::size_t) {}));
      // It goes from another thread's hands, on its strand.
      asio::post(pool, [&, i, s = std::move(s), strand]() mutable {
        if (i % 3 == 0)
          std::this_thread::sleep_for(500us);
        asio::post(strand, [&, i, s = std::move(s)]() mutable {
          s.reset();
          one(i + 1);
        });
      });
    });
  };
  for (unsigned i = 0; i != 8; ++i)
    asio::post(pool, [&, i] { one(i * 1000); });
  pool.wait();
  all.check();
  BOOST_TEST(asio_wheel::use_wheel(pool).pending() == 0u);
  BOOST_TEST(asio_wheel::use_wheel(pool).streams() == 0u);
}

// A drain that another thread begins, while everybody talks.
BOOST_AUTO_TEST_CASE(a_drain_from_another_thread) {
  for (std::size_t i = 0; i != factor(); ++i) {
    totals all;
    asio::io_context io;
    auto& wheel = asio_wheel::use_wheel(io);
    std::vector<std::shared_ptr<talker>> talkers;
    for (int n = 0; n != 50; ++n) {
      talkers.push_back(std::make_shared<talker>(io, all));
      asio::post(talkers.back()->strand, [t = talkers.back()] { t->talk(); });
    }
    std::optional<std::size_t> left;
    std::thread other([&] {
      std::this_thread::sleep_for(50ms);
      wheel.async_drain(10s, [](error_code, std::size_t) {}); // not so soon
      wheel.async_drain(500ms, [&](error_code ec, std::size_t n) {
        BOOST_TEST(!ec);
        left = n;
        // What has no turn of its own any more.
        for (auto& t : talkers)
          asio::post(t->strand, [t] { t->s.reset(); });
      });
    });
    auto work = asio::make_work_guard(io);
    std::thread ending([&] {
      other.join();
      work.reset();
    });
    run_on_threads(io, 4);
    ending.join();
    BOOST_TEST(left.has_value());
    all.check();
    std::size_t drained = 0;
    for (auto& t : talkers)
      drained += t->end == error::idle_timeout;
    BOOST_TEST_MESSAGE(drained << " were ended by the drain, " << *left
                               << " left");
    BOOST_TEST(wheel.streams() == 0u);
  }
}
