//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/timeout_stream.hpp>

#include <test/local_pair.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#define BOOST_TEST_MODULE integration_bounded_transfer
#include <boost/test/unit_test.hpp>

#if defined(__linux__)
#include <netinet/tcp.h>
#include <sys/resource.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// Bytes through real sockets, in real time: lower bounds are strict, upper
// bounds are loose.

namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::error;
using asio_wheel::error_code;
using asio_wheel::stream_timeouts;
using test::local_pair;
using clock_type = std::chrono::steady_clock;
using tcp = asio::ip::tcp;
using stream = asio_wheel::timeout_stream<>;

// What byte follows what is known everywhere: pattern at position n.
class pattern {
public:
  static constexpr std::size_t period = 65521;
  static constexpr std::size_t largest = 1 << 16;

  pattern() : bytes_(period + largest) {
    std::uint32_t x = 1;
    for (std::size_t i = 0; i != period; ++i) {
      x = x * 1664525 + 1013904223;
      bytes_[i] = static_cast<char>(x >> 24);
    }
    for (std::size_t i = period; i != bytes_.size(); ++i)
      bytes_[i] = bytes_[i - period];
  }

  // At most `largest` bytes from there.
  const char* at(std::size_t position) const {
    return bytes_.data() + position % period;
  }

private:
  std::vector<char> bytes_;
};

const pattern& the_pattern() {
  static const pattern p;
  return p;
}

// A connection with small buffers, whose other end is a thread's.
struct throttled {
  asio::io_context io;
  asio::io_context peer_io;
  local_pair pair{io.get_executor(), peer_io};
  stream ours{std::move(pair.ours)};
  tcp::socket& theirs = pair.theirs;
  std::thread peer;

  explicit throttled(int send_buffer = 64 << 10,
                     int receive_buffer = 32 << 10) {
    ours.next_layer().set_option(
        asio::socket_base::send_buffer_size(send_buffer));
    theirs.set_option(asio::socket_base::receive_buffer_size(receive_buffer));
#if defined(__linux__)
    // Or else the window of a local connection moves in steps of 64 KiB.
    using segment =
        asio::detail::socket_option::integer<IPPROTO_TCP, TCP_MAXSEG>;
    ours.next_layer().set_option(segment(1460));
    theirs.set_option(segment(1460));
#endif
  }

  ~throttled() {
    error_code ignored;
    ours.close(ignored);
    if (peer.joinable())
      peer.join();
  }

  // Until done() is called, and no longer than is reasonable.
  void run(std::chrono::seconds limit) {
    io.run_for(limit);
    BOOST_TEST_REQUIRE(done_);
  }
  void done() {
    done_ = true;
    io.stop();
  }

private:
  bool done_ = false;
};

// Write the pattern for as long as it takes, timeouts notwithstanding.
struct sender {
  stream& to;
  std::size_t total;
  stream::duration timeout;
  std::function<void(error_code)> then; // at the end, or an error
  std::size_t sent = 0;
  std::size_t timeouts = 0;
  clock_type::duration longest{};
  clock_type::time_point started{};

  void go() {
    started = clock_type::now();
    to.async_write_some(asio::buffer(the_pattern().at(sent),
                                     std::min(pattern::largest, total - sent)),
                        [this](error_code ec, std::size_t n) {
                          const auto took = clock_type::now() - started;
                          longest = std::max(longest, took);
                          sent += n;
                          if (ec == error::write_timeout) {
                            ++timeouts;
                            BOOST_TEST((took >= timeout)); // never early
                            BOOST_TEST(n == 0u);
                          } else if (ec) {
                            return then(ec);
                          }
                          if (sent == total)
                            then({});
                          else
                            go();
                        });
  }
};

// Read it likewise.
struct receiver {
  stream& from;
  std::size_t total;
  stream::duration timeout;
  std::function<void(error_code)> then;
  std::vector<char> data = std::vector<char>(pattern::largest);
  std::size_t received = 0;
  std::size_t timeouts = 0;
  bool right = true;
  clock_type::time_point started{};

  void go() {
    started = clock_type::now();
    from.async_read_some(asio::buffer(data), [this](error_code ec,
                                                    std::size_t n) {
      right =
          right && std::memcmp(data.data(), the_pattern().at(received), n) == 0;
      received += n;
      if (ec == error::read_timeout) {
        ++timeouts;
        BOOST_TEST((clock_type::now() - started >= timeout));
        BOOST_TEST(n == 0u);
      } else if (ec) {
        return then(ec);
      }
      if (received == total)
        then({});
      else
        go();
    });
  }
};

constexpr std::size_t size = std::size_t(64) << 20;

} // namespace

BOOST_AUTO_TEST_CASE(what_is_written_between_timeouts_arrives_byte_for_byte) {
  throttled c;
  stream_timeouts t;
  t.write = 20ms;
  c.ours.timeouts(t);
  bool right = true;
  std::size_t received = 0;
  c.peer = std::thread([&] { // stalls now and then
    std::vector<char> data(pattern::largest);
    error_code ec;
    std::size_t stall = 4 << 20;
    while (received != size && !ec) {
      const std::size_t n = c.theirs.read_some(asio::buffer(data), ec);
      right =
          right && std::memcmp(data.data(), the_pattern().at(received), n) == 0;
      received += n;
      if (received >= stall) {
        stall += 8 << 20;
        std::this_thread::sleep_for(150ms);
      }
    }
  });
  sender s{c.ours, size, t.write, [&](error_code ec) {
             BOOST_TEST(!ec);
             c.done();
           }};
  s.go();
  c.run(20s);
  c.peer.join();
  BOOST_TEST(right);
  BOOST_TEST(received == size);
  BOOST_TEST(c.ours.bytes_written() == size);
  BOOST_TEST(s.timeouts >= 1u);
  BOOST_TEST_MESSAGE(s.timeouts << " write timeouts in 64 MiB");
}

BOOST_AUTO_TEST_CASE(what_is_read_between_timeouts_arrives_byte_for_byte) {
  throttled c;
  stream_timeouts t;
  t.read = 20ms;
  c.ours.timeouts(t);
  c.peer = std::thread([&] {
    std::size_t sent = 0, stall = 4 << 20;
    error_code ec;
    while (sent != size && !ec) {
      sent += c.theirs.write_some(
          asio::buffer(the_pattern().at(sent),
                       std::min(pattern::largest, size - sent)),
          ec);
      if (sent >= stall) {
        stall += 8 << 20;
        std::this_thread::sleep_for(150ms);
      }
    }
  });
  receiver r{c.ours, size, t.read, [&](error_code ec) {
               BOOST_TEST(!ec);
               c.done();
             }};
  r.go();
  c.run(20s);
  BOOST_TEST(r.right);
  BOOST_TEST(c.ours.bytes_read() == size);
  BOOST_TEST(r.timeouts >= 1u);
  BOOST_TEST_MESSAGE(r.timeouts << " read timeouts in 64 MiB");
}

#if defined(__linux__)
// The kernel says "writable" when a third of its buffer has drained, which
// takes longer than the timeout; but the buffer does drain.
BOOST_AUTO_TEST_CASE(a_slow_peer_that_moves_does_not_time_out_a_stall_does) {
  throttled c(1 << 20, 16 << 10);
  stream_timeouts t;
  t.write = 500ms;
  c.ours.timeouts(t);
  std::atomic<bool> stalled{false}, end{false};
  clock_type::time_point last{};
  c.peer = std::thread([&] {
    std::array<char, 2048> data;
    error_code ec;
    const auto until = clock_type::now() + 4s;
    while (clock_type::now() < until && !ec) { // about 400 KB a second
      c.theirs.read_some(asio::buffer(data), ec);
      std::this_thread::sleep_for(5ms);
    }
    last = clock_type::now();
    stalled = true;
    while (!end)
      std::this_thread::sleep_for(10ms);
  });
  bool early = false;
  clock_type::duration longest{};
  std::optional<clock_type::time_point> stall_noticed;
  sender s{c.ours, size, t.write, nullptr};
  // Not the sender's loop: the first timeout ends it.
  std::function<void()> write = [&] {
    s.started = clock_type::now();
    c.ours.async_write_some(
        asio::buffer(the_pattern().at(s.sent), pattern::largest),
        [&](error_code ec, std::size_t n) {
          s.sent += n;
          const auto took = clock_type::now() - s.started;
          if (!ec) {
            longest = std::max(longest, took);
            return write();
          }
          BOOST_TEST((ec == error::write_timeout));
          BOOST_TEST((took >= t.write));
          early = !stalled;
          stall_noticed = clock_type::now();
          c.done();
        });
  };
  write();
  c.run(15s);
  end = true;
  c.peer.join();
  BOOST_TEST(!early);
  BOOST_TEST(s.sent >= 300'000u);
  BOOST_TEST_MESSAGE(
      "the longest write took "
      << std::chrono::duration<double>(longest).count()
      << " s, the stall was noticed after "
      << std::chrono::duration<double>(*stall_noticed - last).count() << " s");
  BOOST_WARN((longest > t.write)); // else the test shows nothing
}

BOOST_AUTO_TEST_CASE(a_reader_that_drips_is_thrown_off) {
  throttled c(1 << 20, 16 << 10);
  stream_timeouts t;
  t.write_rate = {100'000, 500ms};
  c.ours.timeouts(t);
  std::atomic<bool> end{false};
  c.peer = std::thread([&] { // 5 KB a second
    std::array<char, 250> data;
    error_code ec;
    while (!end && !ec) {
      c.theirs.read_some(asio::buffer(data), ec);
      std::this_thread::sleep_for(50ms);
    }
  });
  const auto start = clock_type::now();
  sender s{c.ours, size, asio_wheel::never, [&](error_code ec) {
             BOOST_TEST((ec == error::too_slow));
             c.done();
           }};
  s.go();
  c.run(15s);
  end = true;
  BOOST_TEST((clock_type::now() - start >= 500ms));
  BOOST_TEST_MESSAGE(
      "after "
      << std::chrono::duration<double>(clock_type::now() - start).count()
      << " s");
}

BOOST_AUTO_TEST_CASE(a_reader_above_the_rate_is_kept_though_buffers_are_full) {
  throttled c(1 << 20, 16 << 10);
  stream_timeouts t;
  t.write_rate = {20'000, 500ms};
  c.ours.timeouts(t);
  std::atomic<std::size_t> received{0};
  std::atomic<bool> end{false};
  c.peer = std::thread([&] { // about 200 KB a second
    std::array<char, 1024> data;
    error_code ec;
    while (!end && !ec) {
      received += c.theirs.read_some(asio::buffer(data), ec);
      std::this_thread::sleep_for(5ms);
    }
  });
  error_code ended;
  sender s{c.ours, size, asio_wheel::never, [&](error_code ec) {
             ended = ec;
             c.done();
           }};
  s.go();
  asio_wheel::wheel_timer enough(c.io, 3s);
  enough.async_wait([&](error_code) { c.done(); });
  c.run(15s);
  end = true;
  BOOST_TEST(!ended);
  BOOST_TEST(received >= 100'000u);
  BOOST_TEST(s.sent > received);
}
#endif

BOOST_AUTO_TEST_CASE(a_peer_that_drips_is_thrown_off) {
  throttled c;
  stream_timeouts t;
  t.read = 1s; // each byte is in time
  t.read_rate = {10'000, 500ms};
  c.ours.timeouts(t);
  c.peer = std::thread([&] {
    error_code ec;
    while (!ec) {
      asio::write(c.theirs, asio::buffer(the_pattern().at(0), 1), ec);
      std::this_thread::sleep_for(20ms);
    }
  });
  std::array<char, 100> data;
  const auto start = clock_type::now();
  std::function<void(error_code, std::size_t)> on_read = [&](error_code ec,
                                                             std::size_t) {
    if (!ec)
      return c.ours.async_read_some(asio::buffer(data), on_read);
    BOOST_TEST((ec == error::too_slow));
    c.done();
  };
  c.ours.async_read_some(asio::buffer(data), on_read);
  c.run(15s);
  BOOST_TEST((clock_type::now() - start >= 500ms));
  BOOST_TEST(c.ours.bytes_read() >= 1u);
}

BOOST_AUTO_TEST_CASE(a_half_closed_peer_still_takes_what_is_written) {
  throttled c;
  stream_timeouts t;
  t.read = t.write = 100ms;
  c.ours.timeouts(t);
  c.theirs.shutdown(tcp::socket::shutdown_send);
  std::array<char, 16> data;
  int ends = 0;
  std::function<void()> read = [&] {
    c.ours.async_read_some(asio::buffer(data),
                           [&](error_code ec, std::size_t n) {
                             BOOST_TEST((ec == asio::error::eof));
                             BOOST_TEST(n == 0u);
                             if (++ends != 3)
                               read();
                           });
  };
  read();
  constexpr std::size_t some = 1 << 20;
  const std::string more(8 << 20, 'x');
  bool right = true;
  std::atomic<bool> end{false};
  c.peer = std::thread([&] {
    std::vector<char> got(some);
    error_code ec;
    asio::read(c.theirs, asio::buffer(got), ec);
    for (std::size_t i = 0; i < some; i += pattern::largest)
      right = right && std::memcmp(got.data() + i, the_pattern().at(i),
                                   pattern::largest) == 0;
    while (!end) // and then takes nothing
      std::this_thread::sleep_for(10ms);
  });
  sender s{c.ours, some, t.write, nullptr};
  s.then = [&](error_code ec) {
    BOOST_TEST(!ec);
    asio::async_write(
        c.ours, asio::buffer(more),
        [&, start = clock_type::now()](error_code e, std::size_t n) {
          BOOST_TEST((e == error::write_timeout));
          BOOST_TEST(n < more.size());
          BOOST_TEST((clock_type::now() - start >= t.write));
          c.done();
        });
  };
  s.go();
  c.run(15s);
  end = true;
  c.peer.join();
  BOOST_TEST(right);
  BOOST_TEST(ends == 3);
}

// ---------------------------------------------------------------------------

namespace {

std::size_t how_many_pairs() {
#if defined(__linux__)
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return 100;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return std::min<std::size_t>(10'000, (limit.rlim_cur - 300) / 2);
#else
  return 500;
#endif
}

std::string percentiles(std::vector<clock_type::duration> v) {
  if (v.empty())
    return "none";
  std::sort(v.begin(), v.end());
  const auto us = [&](std::size_t n) {
    return std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(
                              v[std::min(n, v.size() - 1)])
                              .count());
  };
  return std::to_string(v.size()) + " turns, p50 " + us(v.size() / 2) +
         " us, p99 " + us(v.size() * 99 / 100) + " us, max " +
         us(v.size() - 1) + " us";
}

// A stream that asks its peer, who answers, again and again.
struct player {
  player(asio::io_context& io, asio::io_context& peer_io,
         std::vector<clock_type::duration>*& to)
      : pair(io.get_executor(), peer_io), ours(std::move(pair.ours)),
        record(to) {}

  void ask() {
    asked = clock_type::now();
    asio::async_write(
        ours, asio::buffer(data), [this](error_code ec, std::size_t) {
          if (ec)
            return lost(ec);
          asio::async_read(ours, asio::buffer(data),
                           [this](error_code e, std::size_t) {
                             if (e)
                               return lost(e);
                             ++turns;
                             if (record)
                               record->push_back(clock_type::now() - asked);
                             ask();
                           });
        });
  }
  void answer() {
    asio::async_read(pair.theirs, asio::buffer(echo),
                     [this](error_code ec, std::size_t) {
                       if (!ec)
                         asio::async_write(pair.theirs, asio::buffer(echo),
                                           [this](error_code e, std::size_t) {
                                             if (!e)
                                               answer();
                                           });
                     });
  }
  void lost(error_code ec) { end = ec; }

  local_pair pair;
  stream ours;
  std::vector<clock_type::duration>*& record;
  std::array<char, 16> data{}, echo{};
  clock_type::time_point asked{};
  std::size_t turns = 0;
  error_code end;
};

} // namespace

BOOST_AUTO_TEST_CASE(ten_thousand_time_out_at_once_and_a_hundred_go_on) {
  const std::size_t pairs = how_many_pairs();
  const std::size_t players = std::min<std::size_t>(100, pairs / 4);
  const std::size_t silent = pairs - players;
  asio::io_context io, peer_io;
  std::vector<clock_type::duration>* record = nullptr;

  std::vector<std::unique_ptr<player>> playing;
  for (std::size_t i = 0; i != players; ++i)
    playing.push_back(std::make_unique<player>(io, peer_io, record));
  std::vector<stream> waiting;
  std::vector<tcp::socket> quiet;
  waiting.reserve(silent);
  for (std::size_t i = 0; i != silent; ++i) {
    local_pair p(io.get_executor(), peer_io);
    waiting.emplace_back(std::move(p.ours));
    quiet.push_back(std::move(p.theirs));
  }

  // They all end at the same time.
  const auto when = clock_type::now() + 2s;
  std::vector<char> data(silent);
  std::size_t ended = 0;
  bool early = false, wrong = false;
  clock_type::time_point last{};
  stream_timeouts t;
  for (std::size_t i = 0; i != silent; ++i) {
    t.read = std::max<stream::duration>(when - clock_type::now(), 1ms);
    waiting[i].timeouts(t);
    waiting[i].async_read_some(asio::buffer(&data[i], 1),
                               [&](error_code ec, std::size_t) {
                                 last = clock_type::now();
                                 early = early || last < when;
                                 wrong = wrong || ec != error::read_timeout;
                                 ++ended;
                               });
  }

  std::vector<clock_type::duration> before, during, after;
  t.read = t.write = t.idle = 10s;
  for (auto& p : playing) {
    p->ours.timeouts(t);
    p->answer();
    p->ask();
  }
  std::thread peer([&] { peer_io.run(); });
  std::vector<std::size_t> turns;
  io.run_until(when - 1s); // they warm up
  record = &before;
  io.run_until(when - 50ms);
  record = &during;
  const auto limit = clock_type::now() + 15s;
  while (ended != silent && clock_type::now() < limit)
    io.run_one_for(100ms);
  record = &after;
  for (auto& p : playing)
    turns.push_back(p->turns);
  io.run_for(500ms);
  std::size_t survived = 0;
  for (std::size_t i = 0; i != players; ++i)
    if (!playing[i]->end && playing[i]->turns > turns[i])
      ++survived;
  for (auto& p : playing)
    p->ours.close();
  io.run_for(2s);
  peer_io.stop();
  peer.join();

  BOOST_TEST(ended == silent);
  BOOST_TEST(!early);
  BOOST_TEST(!wrong);
  BOOST_TEST(survived == players);
  BOOST_TEST_MESSAGE(
      silent << " timed out within "
             << std::chrono::duration<double>(last - when).count() << " s");
  BOOST_TEST_MESSAGE("before: " << percentiles(before));
  BOOST_TEST_MESSAGE("during: " << percentiles(during));
  BOOST_TEST_MESSAGE("after: " << percentiles(after));
}
