//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

//
// What timeouts cost a stream: nothing around it, our timeout_stream with a
// read, a write and an idle timeout, and Beast's basic_stream with
// expires_after() before each operation, as its documentation asks for.
//
//   streams              all of it, a minute or two
//   streams --quick      fewer rounds, shorter
//   streams --help
//
// All contestants in turn, round by round, in one process and one thread. Times
// are CPU time of the thread, the kernel's included.
//

#include "command_line.hpp"
#include "machine.hpp"
#include "memory_socket.hpp"
#include "report.hpp"
#include "settings.hpp"

#include <asio_wheel/timeout_stream.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/program_options.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// Counts what is allocated while a contestant reads.
namespace {
std::size_t allocations = 0;
}

void* operator new(std::size_t n) {
  ++allocations;
  if (void* const p = std::malloc(n))
    return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

namespace bench {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using boost::system::error_code;
using tcp = asio::ip::tcp;

namespace {

// ---------------------------------------------------------------------------
// The contestants. before_read() and before_write() are what the library asks
// for before each operation.

template <typename Protocol, typename Executor> struct bare {
  static constexpr auto name = "bare";
  using socket = asio::basic_stream_socket<Protocol, Executor>;
  explicit bare(socket s) : stream(std::move(s)) {}
  void before_read() {}
  void before_write() {}
  socket stream;
};

template <typename Protocol, typename Executor> struct ours {
  static constexpr auto name = "timeout_stream";
  using socket = asio::basic_stream_socket<Protocol, Executor>;
  explicit ours(socket s) : stream(std::move(s)) {
    asio_wheel::stream_timeouts t;
    t.read = 30s;
    t.write = 30s;
    t.idle = 60s;
    stream.timeouts(t);
  }
  void before_read() {}
  void before_write() {}
  asio_wheel::timeout_stream<socket> stream;
};

template <typename Protocol, typename Executor> struct beasts {
  static constexpr auto name = "beast";
  using socket = asio::basic_stream_socket<Protocol, Executor>;
  explicit beasts(socket s) : stream(std::move(s)) {}
  void before_read() { stream.expires_after(30s); }
  void before_write() { stream.expires_after(30s); }
  boost::beast::basic_stream<Protocol, Executor> stream;
};

// ---------------------------------------------------------------------------
// One read after another on a stream that is always ready

class reading {
public:
  virtual ~reading() = default;
  /// Returns nanoseconds of CPU time for one read.
  virtual double run(std::size_t reads) = 0;
};

template <typename Contestant, typename Executor>
class reading_of final : public reading {
public:
  reading_of() {
    awake_.async_wait([](const error_code&) {});
  }

  double run(std::size_t reads) override {
    left_ = reads;
    const double start = cpu_nanoseconds();
    next();
    while (left_ != 0)
      context_.run_one();
    return (cpu_nanoseconds() - start) / static_cast<double>(reads);
  }

private:
  void next() {
    it_.before_read();
    it_.stream.async_read_some(asio::buffer(data_),
                               [this](const error_code& ec, std::size_t) {
                                 if (ec)
                                   throw boost::system::system_error(ec);
                                 if (--left_ != 0)
                                   next();
                               });
  }

  asio::io_context context_{1};
  // As soon as a context has a timer or a socket it looks at its reactor
  // between any two handlers: to be paid by all.
  asio::steady_timer awake_{context_, 24h};
  Contestant it_{
      typename Contestant::socket(Executor(context_.get_executor()))};
  std::array<char, 64> data_{};
  std::size_t left_ = 0;
};

template <typename Executor>
void measure_reads(const settings& s, const std::string& executor, report& r) {
  const std::string workload = "read, always ready, " + executor;
  if (workload.find(s.only) == std::string::npos)
    return;
  std::cerr << workload << '\n';
  const std::size_t reads = s.operations;
  std::vector<std::pair<std::string, std::unique_ptr<reading>>> all;
  const auto add = [&](auto* contestant) {
    using type = std::remove_pointer_t<decltype(contestant)>;
    all.emplace_back(type::name,
                     std::make_unique<reading_of<type, Executor>>());
  };
  add(static_cast<bare<memory_protocol, Executor>*>(nullptr));
  add(static_cast<beasts<memory_protocol, Executor>*>(nullptr));
  add(static_cast<ours<memory_protocol, Executor>*>(nullptr));
  std::vector<std::vector<double>> samples(all.size());
  std::vector<double> allocated;
  for (auto& [name, it] : all)
    it->run(reads);
  for (std::size_t i = 0; i != s.rounds; ++i)
    for (std::size_t k = 0; k != all.size(); ++k) {
      const std::size_t before = allocations;
      samples[k].push_back(all[k].second->run(reads));
      if (i + 1 == s.rounds)
        allocated.push_back(static_cast<double>(allocations - before) /
                            static_cast<double>(reads));
    }
  for (std::size_t k = 0; k != all.size(); ++k)
    r.add({workload, 1, all[k].first, false, "ns", samples[k], {}});
  // Of the same round, so that what disturbs it disturbs both.
  for (std::size_t k = 1; k != all.size(); ++k) {
    std::vector<double> added = samples[k];
    for (std::size_t i = 0; i != added.size(); ++i)
      added[i] -= samples[0][i];
    std::optional<target> wanted;
    if (k == 2)
      wanted = target{target::kind::times_faster, 8};
    r.add({workload + ", added by timeouts", 1, all[k].first, false, "ns",
           added, wanted});
  }
  for (std::size_t k = 0; k != all.size(); ++k) {
    std::optional<target> wanted;
    if (k == 2)
      wanted = target{target::kind::at_most, 0.001}; // none, but to warm up
    r.add({workload + ", allocations",
           1,
           all[k].first,
           false,
           "per read",
           {allocated[k]},
           wanted});
  }
}

// ---------------------------------------------------------------------------
// Ping-pong over loopback: the contestant echoes, bare sockets ask

template <typename Contestant> class ping_pong_of {
public:
  explicit ping_pong_of(std::size_t connections) {
    tcp::acceptor acceptor(context_, {asio::ip::address_v4::loopback(), 0});
    for (std::size_t i = 0; i != connections; ++i) {
      tcp::socket client(context_);
      client.connect(acceptor.local_endpoint());
      client.set_option(tcp::no_delay(true));
      tcp::socket server = acceptor.accept();
      server.set_option(tcp::no_delay(true));
      echoes_.push_back(std::make_unique<echo>(std::move(server)));
      askers_.push_back(std::make_unique<asker>(*this, std::move(client)));
    }
    for (auto& e : echoes_)
      e->read();
  }

  /// Returns nanoseconds of CPU time for one round trip.
  double run(std::size_t round_trips) {
    left_ = round_trips;
    waiting_ = askers_.size();
    const double start = cpu_nanoseconds();
    for (auto& a : askers_)
      a->ask();
    while (waiting_ != 0)
      context_.run_one();
    return (cpu_nanoseconds() - start) / static_cast<double>(round_trips);
  }

private:
  struct echo {
    explicit echo(tcp::socket s) : it(std::move(s)) {}
    void read() {
      it.before_read();
      it.stream.async_read_some(asio::buffer(data),
                                [this](const error_code& ec, std::size_t n) {
                                  if (!ec)
                                    write(n);
                                });
    }
    void write(std::size_t n) {
      it.before_write();
      it.stream.async_write_some(asio::buffer(data, n),
                                 [this](const error_code& ec, std::size_t) {
                                   if (!ec)
                                     read();
                                 });
    }
    Contestant it;
    std::array<char, 64> data{};
  };

  struct asker {
    asker(ping_pong_of& o, tcp::socket s) : owner(o), socket(std::move(s)) {}
    void ask() {
      if (owner.left_ == 0) {
        --owner.waiting_;
        return;
      }
      --owner.left_;
      socket.async_write_some(
          asio::buffer(data), [this](const error_code& ec, std::size_t) {
            if (ec)
              throw boost::system::system_error(ec);
            socket.async_read_some(asio::buffer(data),
                                   [this](const error_code& e, std::size_t) {
                                     if (e)
                                       throw boost::system::system_error(e);
                                     ask();
                                   });
          });
    }
    ping_pong_of& owner;
    tcp::socket socket;
    std::array<char, 64> data{};
  };

  asio::io_context context_{1};
  std::vector<std::unique_ptr<echo>> echoes_;
  std::vector<std::unique_ptr<asker>> askers_;
  std::size_t left_ = 0;
  std::size_t waiting_ = 0;
};

/// One contestant and bare sockets in turn. Two at a time, since each
/// connection takes two descriptors.
template <typename Contestant>
void measure_ping_pong(const settings& s, std::size_t connections,
                       double wanted, report& r) {
  const std::string workload = std::string("ping-pong, ") + Contestant::name;
  if (workload.find(s.only) == std::string::npos)
    return;
  std::cerr << workload << ", " << connections << " connections\n";
  ping_pong_of<bare<tcp, asio::any_io_executor>> base(connections);
  ping_pong_of<Contestant> contestant(connections);
  std::vector<double> base_samples, samples;
  const std::size_t round_trips = std::max(s.operations / 5, connections);
  base.run(round_trips);
  contestant.run(round_trips);
  // In many short turns, since this depends on the machine's mood.
  for (std::size_t i = 0; i != s.rounds * 5; ++i) {
    base_samples.push_back(base.run(round_trips));
    samples.push_back(contestant.run(round_trips));
  }
  std::optional<target> t;
  if (wanted != 0)
    t = target{target::kind::times_faster, wanted};
  r.add({workload, connections, "bare", false, "ns", base_samples, {}});
  r.add({workload, connections, Contestant::name, false, "ns", samples, t});
}

// ---------------------------------------------------------------------------
// Memory

/// The heap that streams take, each with a read pending.
template <typename Contestant> double footprint(std::size_t n) {
  asio::io_context context(1);
  tcp::acceptor acceptor(context, {asio::ip::address_v4::loopback(), 0});
  std::vector<tcp::socket> clients, servers;
  for (std::size_t i = 0; i != n; ++i) {
    clients.emplace_back(context).connect(acceptor.local_endpoint());
    servers.push_back(acceptor.accept());
  }
  std::array<char, 1> data{};
  std::vector<Contestant> streams;
  streams.reserve(n);
  const std::size_t before =
      heap_in_use() - n * sizeof(Contestant); // reserved already
  for (auto& s : servers) {
    streams.emplace_back(std::move(s));
    streams.back().before_read();
    streams.back().stream.async_read_some(
        asio::buffer(data), [](const error_code&, std::size_t) {});
  }
  const double bytes =
      static_cast<double>(heap_in_use() - before) / static_cast<double>(n);
  // Ends the operations before the context goes.
  streams.clear();
  context.poll();
  return bytes;
}

void measure_memory(const settings& s, report& r) {
  const std::string workload = "memory beyond a bare socket";
  if (workload.find(s.only) == std::string::npos)
    return;
  constexpr std::size_t n = 4'000;
  std::cerr << workload << ", " << n << " connections\n";
  using executor = asio::any_io_executor;
  const double alone = footprint<bare<tcp, executor>>(n);
  const auto note = [&](const char* what, const char* who, double bytes,
                        std::optional<target> t) {
    r.add({workload + what, n, who, false, "bytes", {bytes}, t});
  };
  using socket = tcp::socket;
  note(", of the stream itself", ours<tcp, executor>::name,
       sizeof(asio_wheel::timeout_stream<socket>) +
           sizeof(asio_wheel::detail::bounded_stream<socket>) - sizeof(socket),
       target{target::kind::at_most, 256});
  // What malloc rounds up, the slot's memory and the bigger operation included.
  note(", of the heap", ours<tcp, executor>::name,
       footprint<ours<tcp, executor>>(n) - alone, {});
  note(", of the heap", beasts<tcp, executor>::name,
       footprint<beasts<tcp, executor>>(n) - alone, {});
}

// Two descriptors a connection, two contestants.
void raise_file_limit(rlim_t wanted) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_max < wanted)
    throw std::runtime_error("needs " + std::to_string(wanted) +
                             " open files (ulimit -Hn)");
  files.rlim_cur = std::max(files.rlim_cur, wanted);
  setrlimit(RLIMIT_NOFILE, &files);
}

int run(int argc, char** argv) {
  namespace po = boost::program_options;
  settings s;
  s.sizes = {100, 4'000};
  std::string json;
  po::options_description options("Options");
  // clang-format off
  options.add_options()
      ("help", "say this and end")
      ("quick", "fewer and shorter rounds")
      ("json", po::value(&json)->value_name("FILE"),
       "also write the figures to a file")
      ("connections", po::value(&s.sizes)->multitoken()->value_name("N..."),
       "of the ping-pong (default: 100 4000)")
      ("rounds", po::value(&s.rounds)->default_value(s.rounds),
       "measured rounds")
      ("operations", po::value(&s.operations)->default_value(s.operations),
       "reads in a round")
      ("only", po::value(&s.only)->value_name("TEXT"),
       "only workloads whose name contains this");
  // clang-format on
  const auto given = read_command_line(argc, argv, options);
  if (given.count("help") != 0) {
    std::cout << "What timeouts cost a stream.\n\n" << options;
    return 0;
  }
  if (given.count("quick") != 0) {
    if (given["rounds"].defaulted())
      s.rounds = 3;
    if (given["operations"].defaulted())
      s.operations = 50'000;
  }
  if (s.rounds < 1 || s.operations < 1 ||
      std::any_of(s.sizes.begin(), s.sizes.end(),
                  [](std::size_t n) { return n < 1 || n > 10'000; }))
    throw po::error("rounds and operations must be at least 1, connections "
                    "from 1 to 10000");
  raise_file_limit(
      4 * std::max<std::size_t>(
              4'000, *std::max_element(s.sizes.begin(), s.sizes.end())) +
      100);

  keep_freed_memory();
  start_idle_thread();
  report r("streams");
  r.print_machine(std::cout);
  measure_reads<asio::io_context::executor_type>(s, "io_context::executor_type",
                                                 r);
  measure_reads<asio::any_io_executor>(s, "any_io_executor", r);
  measure_memory(s, r);
  for (const std::size_t n : s.sizes) {
    using executor = asio::any_io_executor;
    measure_ping_pong<ours<tcp, executor>>(s, n, 0.97, r);
    measure_ping_pong<beasts<tcp, executor>>(s, n, 0, r);
  }
  r.print_table(std::cout);
  if (!json.empty())
    r.write_json(json, to_json(s));
  return 0;
}

} // namespace
} // namespace bench

int main(int argc, char** argv) {
  try {
    return bench::run(argc, argv);
  } catch (const std::exception& e) {
    std::cerr << "streams: " << e.what() << '\n';
    return 2;
  }
}
