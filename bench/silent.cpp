//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

//
// What an idle timeout for each of very many connections costs.
//
//   silent             two minutes
//   silent --quick     a few seconds
//   silent --help
//
// TCP connections over several loopback addresses, as many as the limits allow
// up to 100,000, from a client that is a process of its own. The server reads
// from all of them and has an idle timeout of 60 s for each. First none says
// anything; then bytes arrive on random ones at a fixed rate, and each puts its
// connection's timeout off. The exit status is 1 if a byte got lost, a timeout
// expired, or a wait was not aborted in the end.
//

#include "command_line.hpp"
#include "machine.hpp"
#include "report.hpp"
#include "settings.hpp"

#include <asio_wheel/watchdog.hpp>
#include <asio_wheel/wheel_timer.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/program_options.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace bench {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

namespace {

constexpr auto idle_timeout = 60s;

// File descriptors that are not connections: the standard ones, what a context
// has, listening sockets, and some in reserve.
constexpr std::size_t other_files = 64;

/// How many files this process may have open, once it has asked for @c wanted.
std::size_t may_open(std::size_t wanted) {
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return 0;
  rlimit more = limit;
  more.rlim_cur = std::max<rlim_t>(limit.rlim_cur, wanted);
  more.rlim_max = std::max<rlim_t>(limit.rlim_max, wanted);
  if (::setrlimit(RLIMIT_NOFILE, &more) != 0) { // a privilege
    more.rlim_cur = more.rlim_max = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &more);
  }
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

// What the server tells the client, again and again: to send.
struct order {
  std::uint32_t seconds, per_second;
};

using control_socket = asio::local::stream_protocol::socket;

/// Another process: connects, and then sends what it is told to.
class client {
public:
  /// Before there is a context, whose epoll instance both would share, or a
  /// thread.
  explicit client(std::size_t connections) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
      throw std::runtime_error("no pair of sockets");
    pid_ = ::fork();
    if (pid_ < 0)
      throw std::runtime_error("no second process");
    ::close(ends[pid_ == 0 ? 0 : 1]);
    control_ = ends[pid_ == 0 ? 1 : 0];
    if (pid_ != 0)
      return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    try {
      run(connections, control_);
    } catch (const std::exception& e) {
      std::cerr << "silent: client: " << e.what() << '\n';
    }
    ::_exit(1);
  }
  ~client() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  client(const client&) = delete;
  client& operator=(const client&) = delete;

  /// To talk to it, once.
  control_socket control(asio::io_context& io) const {
    return control_socket(io, asio::local::stream_protocol(), control_);
  }

private:
  static void run(std::size_t connections, int descriptor) {
    asio::io_context io(1);
    control_socket control(io, asio::local::stream_protocol(), descriptor);
    std::uint32_t addresses = 0;
    asio::read(control, asio::buffer(&addresses, sizeof addresses));
    std::vector<std::uint16_t> ports(addresses);
    asio::read(control, asio::buffer(ports));
    std::vector<tcp::socket> sockets;
    sockets.reserve(connections);
    for (std::size_t i = 0; i != connections; ++i) {
      const auto k = static_cast<std::uint32_t>(i % addresses);
      sockets.emplace_back(io);
      sockets.back().connect({asio::ip::address_v4(0x7f000001u + k), ports[k]});
    }
    std::mt19937_64 random(1);
    std::uniform_int_distribution<std::size_t> any(0, connections - 1);
    for (;;) {
      order o;
      asio::read(control, asio::buffer(&o, sizeof o));
      const std::uint64_t count = std::uint64_t{o.seconds} * o.per_second;
      auto next = std::chrono::steady_clock::now();
      asio::steady_timer pause(io);
      for (std::uint64_t i = 0; i != count; ++i) {
        next += std::chrono::nanoseconds(1s) / o.per_second;
        pause.expires_at(next);
        pause.wait();
        asio::write(sockets[any(random)], asio::buffer("x", 1));
      }
      asio::write(control, asio::buffer(&count, sizeof count));
    }
  }

  pid_t pid_;
  int control_;
};

/// An idle timeout for each connection.
class timeouts {
public:
  virtual ~timeouts() = default;
  /// There was traffic on connection i.
  virtual void refresh(std::size_t i) = 0;
  virtual void cancel() = 0;

  /// How many waits must have been aborted once all are cancelled.
  std::uint64_t to_abort = 0;
  std::uint64_t aborted = 0, expired = 0;

protected:
  auto handler() {
    ++to_abort;
    return [this](const error_code& ec) {
      ++(ec == asio::error::operation_aborted ? aborted : expired);
    };
  }
};

class no_timeouts final : public timeouts {
public:
  void refresh(std::size_t) override {}
  void cancel() override {}
};

class asio_timeouts final : public timeouts {
public:
  asio_timeouts(asio::io_context& io, std::size_t n) {
    timers_.reserve(n);
    for (std::size_t i = 0; i != n; ++i) {
      timers_.emplace_back(io);
      refresh(i);
    }
  }
  void refresh(std::size_t i) override {
    timers_[i].expires_after(idle_timeout);
    timers_[i].async_wait(handler());
  }
  void cancel() override {
    for (auto& t : timers_)
      t.cancel();
  }

private:
  std::vector<asio::steady_timer> timers_;
};

class wheel_timeouts final : public timeouts {
public:
  wheel_timeouts(asio::io_context& io, std::size_t n) {
    timers_.reserve(n);
    for (std::size_t i = 0; i != n; ++i) {
      timers_.emplace_back(io, idle_timeout);
      timers_.back().async_wait(handler());
    }
  }
  void refresh(std::size_t i) override { timers_[i].rearm_after(idle_timeout); }
  void cancel() override {
    for (auto& t : timers_)
      t.cancel();
  }

private:
  std::vector<asio_wheel::wheel_timer> timers_;
};

class watchdogs final : public timeouts {
public:
  watchdogs(asio::io_context& io, std::size_t n,
            std::chrono::nanoseconds slack) {
    for (std::size_t i = 0; i != n; ++i) {
      dogs_.push_back(
          std::make_unique<asio_wheel::watchdog>(io, idle_timeout, slack));
      dogs_.back()->async_wait(handler());
    }
  }
  void refresh(std::size_t i) override { dogs_[i]->kick(); }
  void cancel() override {
    for (auto& d : dogs_)
      d->cancel();
  }

private:
  std::vector<std::unique_ptr<asio_wheel::watchdog>> dogs_;
};

/// Reads from all connections, whoever watches over them.
class server {
public:
  server(asio::io_context& io, std::size_t connections, control_socket control)
      : io_(io), control_(std::move(control)) {
    // A client's ports are used up by some 28,000 connections to one address.
    const std::size_t addresses = connections / 20'000 + 1;
    std::vector<tcp::acceptor> acceptors;
    std::vector<std::uint16_t> ports;
    for (std::uint32_t k = 0; k != addresses; ++k) {
      acceptors.emplace_back(
          io, tcp::endpoint(asio::ip::address_v4(0x7f000001u + k), 0));
      ports.push_back(acceptors.back().local_endpoint().port());
    }
    const auto n = static_cast<std::uint32_t>(addresses);
    asio::write(control_, asio::buffer(&n, sizeof n));
    asio::write(control_, asio::buffer(ports));
    sockets_.reserve(connections);
    bytes_.resize(connections);
    for (std::size_t i = 0; i != connections; ++i) {
      sockets_.push_back(acceptors[i % addresses].accept());
      read(i);
    }
  }

  std::size_t size() const noexcept { return sockets_.size(); }
  void watched_by(timeouts* t) noexcept { timeouts_ = t; }

  struct usage {
    double seconds, cpu_nanoseconds, wakeups;
  };

  /// Nothing happens for some time.
  usage be_silent(std::chrono::seconds d) {
    asio::steady_timer end(io_, d);
    end.async_wait([this](const error_code&) { io_.stop(); });
    usage u = used([this] { io_.run(); });
    u.wakeups -= 1; // the end's
    return u;
  }

  /// The client sends. Returns false if not all of it arrived.
  bool listen(order o, usage& u) {
    received_ = 0;
    sent_ = 0;
    asio::write(control_, asio::buffer(&o, sizeof o));
    asio::async_read(control_, asio::buffer(&sent_, sizeof sent_),
                     [this](const error_code& ec, std::size_t) {
                       if (ec || received_ == sent_)
                         io_.stop();
                     });
    asio::steady_timer too_long(io_, std::chrono::seconds(o.seconds) + 30s);
    too_long.async_wait([this](const error_code& ec) {
      if (!ec)
        io_.stop();
    });
    u = used([this] { io_.run(); });
    return received_ == std::uint64_t{o.seconds} * o.per_second;
  }

private:
  void read(std::size_t i) {
    sockets_[i].async_read_some(asio::buffer(&bytes_[i], 1),
                                [this, i](const error_code& ec, std::size_t) {
                                  if (ec)
                                    return;
                                  timeouts_->refresh(i);
                                  read(i);
                                  if (++received_ == sent_)
                                    io_.stop();
                                });
  }

  template <typename F> usage used(F f) {
    const auto begin = std::chrono::steady_clock::now();
    const double cpu = cpu_nanoseconds();
    const long slept = sleeps();
    f();
    io_.restart();
    return {
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
            .count(),
        cpu_nanoseconds() - cpu, static_cast<double>(sleeps() - slept)};
  }

  asio::io_context& io_;
  control_socket control_;
  std::vector<tcp::socket> sockets_;
  std::vector<char> bytes_;
  timeouts* timeouts_ = nullptr;
  std::uint64_t received_ = 0, sent_ = 0;
};

struct contestant {
  std::string who;
  std::function<std::unique_ptr<timeouts>()> make;
  std::vector<double> bytes, silent_wakeups, silent_cpu, wakeups, cpu;
};

void measure(server& srv, asio::io_context& io, std::size_t rounds, order o,
             report& r) {
  const std::size_t n = srv.size();
  std::vector<contestant> all;
  const auto add = [&](const char* who,
                       std::function<std::unique_ptr<timeouts>()> make) {
    all.push_back({who, std::move(make), {}, {}, {}, {}, {}});
  };
  add("no timeouts", [] { return std::make_unique<no_timeouts>(); });
  add("steady_timer", [&] { return std::make_unique<asio_timeouts>(io, n); });
  add("wheel_timer", [&] { return std::make_unique<wheel_timeouts>(io, n); });
  add("watchdog", [&] { return std::make_unique<watchdogs>(io, n, 0s); });
  add("watchdog, slack 1 s",
      [&] { return std::make_unique<watchdogs>(io, n, 1s); });

  for (std::size_t i = 0; i != rounds; ++i) {
    std::cerr << "round " << i + 1 << " of " << rounds << '\n';
    for (auto& c : all) {
      const auto before = heap_in_use();
      const auto watch = c.make();
      c.bytes.push_back(static_cast<double>(heap_in_use() - before) /
                        static_cast<double>(n));
      srv.watched_by(watch.get());
      io.poll();
      io.restart();
      const auto silent = srv.be_silent(std::chrono::seconds(o.seconds));
      c.silent_wakeups.push_back(silent.wakeups / silent.seconds);
      c.silent_cpu.push_back(silent.cpu_nanoseconds / 1e3 / silent.seconds);
      server::usage busy;
      if (!srv.listen(o, busy))
        r.add_failure(c.who + ": not all that was sent arrived");
      c.wakeups.push_back(busy.wakeups / busy.seconds);
      c.cpu.push_back(busy.cpu_nanoseconds / 1e3 / o.seconds / o.per_second);
      watch->cancel();
      io.poll();
      io.restart();
      if (watch->expired != 0 || watch->aborted != watch->to_abort)
        r.add_failure(c.who + ": " + std::to_string(watch->expired) +
                      " timeouts expired, " + std::to_string(watch->aborted) +
                      " of " + std::to_string(watch->to_abort) +
                      " waits were aborted");
    }
  }
  const auto note = [&](const std::string& workload, const char* unit,
                        std::vector<double> contestant::*samples) {
    for (auto& c : all)
      r.add({workload,
             n,
             c.who,
             false,
             unit,
             std::move(c.*samples),
             {},
             comparison::none});
  };
  const auto sending = std::to_string(o.per_second) + " messages/s, ";
  note("memory of a connection's timeout", "bytes", &contestant::bytes);
  note("silent, wake-ups", "1/s", &contestant::silent_wakeups);
  note("silent, CPU time", "us/s", &contestant::silent_cpu);
  note(sending + "wake-ups", "1/s", &contestant::wakeups);
  note(sending + "CPU time of a message", "us", &contestant::cpu);
}

int run(int argc, char** argv) {
  namespace po = boost::program_options;
  std::size_t connections = 100'000, rounds = 3;
  order o{3, 2'000};
  std::string json;
  po::options_description options("Options");
  // clang-format off
  options.add_options()
      ("help", "say this and end")
      ("quick", "2,000 connections, one short round")
      ("json", po::value(&json)->value_name("FILE"),
       "also write the figures to a file")
      ("connections", po::value(&connections)->default_value(connections),
       "how many at most")
      ("rounds", po::value(&rounds)->default_value(rounds), "measured rounds")
      ("seconds", po::value(&o.seconds)->default_value(o.seconds),
       "of a measurement")
      ("messages", po::value(&o.per_second)->default_value(o.per_second),
       "per second");
  // clang-format on
  const auto given = read_command_line(argc, argv, options);
  if (given.count("help") != 0) {
    std::cout << "What an idle timeout for each connection costs.\n\n"
              << options;
    return 0;
  }
  if (given.count("quick") != 0) {
    if (given["connections"].defaulted())
      connections = 2'000;
    if (given["rounds"].defaulted())
      rounds = 1;
    if (given["seconds"].defaulted())
      o.seconds = 1;
  }
  if (rounds < 1 || connections < 1 || connections > 100'000 || o.seconds < 1 ||
      o.seconds > 20 || o.per_second < 1 || o.per_second > 100'000)
    throw po::error("rounds must be at least 1, connections from 1 to 100000, "
                    "seconds from 1 to 20, messages from 1 to 100000");

  const std::size_t files = may_open(connections + other_files);
  if (files <= other_files)
    throw std::runtime_error("too few files may be open");
  report r("silent");
  if (files - other_files < connections) {
    connections = files - other_files;
    r.add_machine("limit", std::to_string(files) +
                               " open files for a process: " +
                               std::to_string(connections) + " connections");
  }

  const client c(connections);
  keep_freed_memory();
  start_idle_thread();
  r.print_machine(std::cout);

  asio::io_context io(1);
  server srv(io, connections, c.control(io));
  measure(srv, io, rounds, o, r);
  r.print_table(std::cout);
  if (!json.empty())
    r.write_json(json, {{"connections", connections},
                        {"rounds", rounds},
                        {"seconds", o.seconds},
                        {"messages_per_second", o.per_second}});
  return r.failed() ? 1 : 0;
}

} // namespace
} // namespace bench

int main(int argc, char** argv) {
  try {
    return bench::run(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "silent: " << e.what() << '\n';
    return 2;
  }
}
