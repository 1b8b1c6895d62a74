//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// Loads an echo_server on this machine and checks when it closes connections.
//
//   load_generator --port 7777 --idle 4
//
// Opens thousands of connections of four kinds. The busy ones send a request,
// read the reply, pause, and so on to the end; the slow ones too, with pauses
// just short of the idle timeout. The silent ones never send anything. The rest
// start out busy and fall silent half way. A table says how late each silent
// connection was closed: from the idle timeout after its last request (or the
// call to connect), taken just before it was sent, to the end of its stream.
// The exit status is 1 if one was closed early, more than a second late or not
// at all, or if a busy or slow one was closed.

#include <asio_wheel.hpp>

#include <boost/asio.hpp>
#include <boost/program_options.hpp>

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <iostream>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace asio = boost::asio;
namespace po = boost::program_options;
using namespace std::chrono_literals;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::steady_clock;

constexpr auto no_throw = asio::as_tuple(asio::use_awaitable);

enum kind { busy, slow, fading, silent, kind_count };

// Of every ten connections.
constexpr kind pattern[10] = {busy, silent, fading, busy,   silent,
                              busy, busy,   fading, silent, slow};

steady_clock::duration from_seconds(double seconds) {
  return std::chrono::duration_cast<steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

struct tally {
  std::uint64_t opened = 0;
  std::uint64_t closed_wrongly = 0; // early, or while not silent
  std::vector<double> lateness;     // ms, of each that was closed in time
};

struct load {
  asio::io_context io{1};
  tcp::endpoint server;
  std::size_t connections = 0;
  steady_clock::duration idle{};
  steady_clock::duration pause{}; // of a busy connection, on average
  steady_clock::time_point start, end;

  std::array<tally, kind_count> tallies;
  std::uint64_t echoes = 0;
  std::size_t open = 0;
  error_code failure; // to open a connection
  std::minstd_rand random;

  steady_clock::duration random_part_of(steady_clock::duration d) {
    return from_seconds(std::chrono::duration<double>(d).count() *
                        std::uniform_real_distribution<>()(random));
  }

  // Random, so that requests held up together do not stay together.
  steady_clock::duration next_pause(kind k) {
    return k == slow ? idle / 2 + random_part_of(idle / 4)
                     : pause / 2 + random_part_of(pause);
  }
};

constexpr auto ramp = 2s;   // over which the connections are opened
constexpr auto margin = 1s; // by which the last one closed may be late

// An address has some 28,000 ports: use one address for each 10,000.
tcp::socket make_socket(load& l, std::size_t number, error_code& ec) {
  tcp::socket socket(l.io);
  socket.open(tcp::v4(), ec);
  if (!ec) {
    // Let connect() choose the port, which may then be shared.
    const int on = 1;
    ::setsockopt(socket.native_handle(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT,
                 &on, sizeof on);
    const auto address =
        asio::ip::address_v4(asio::ip::address_v4::loopback().to_uint() +
                             static_cast<std::uint32_t>(number / 10000));
    socket.bind(tcp::endpoint(address, 0), ec);
  }
  return socket;
}

asio::awaitable<void> client(load& l, kind k, std::size_t number) {
  error_code setup;
  tcp::socket socket = make_socket(l, number, setup);
  auto last_sent = steady_clock::now();
  if (!setup)
    std::tie(setup) = co_await socket.async_connect(l.server, no_throw);
  if (setup) {
    l.failure = setup;
    co_return;
  }
  tally& mine = l.tallies[k];
  ++mine.opened;
  ++l.open;

  auto active_until = l.end;
  if (k == silent)
    active_until = l.start;
  else if (k == fading) // silent from some time between the ramp and the last
    active_until =      // moment at which it can still be seen to be closed
        l.start + ramp +
        l.random_part_of(l.end - margin - l.idle - l.start - ramp);

  asio_wheel::wheel_timer timer(l.io);
  timer.expires_after(l.random_part_of(l.next_pause(k)));
  std::array<char, 64> message{};
  error_code ec;
  while (!ec && last_sent < active_until) {
    timer.expires_at(std::min(timer.expiry(), active_until));
    co_await timer.async_wait(asio::use_awaitable);
    last_sent = steady_clock::now();
    timer.expires_at(last_sent + l.next_pause(k));
    std::tie(ec, std::ignore) =
        co_await asio::async_write(socket, asio::buffer(message), no_throw);
    if (!ec)
      std::tie(ec, std::ignore) =
          co_await asio::async_read(socket, asio::buffer(message), no_throw);
    if (!ec)
      ++l.echoes;
  }

  if (ec) {
    ++mine.closed_wrongly;
  } else if (k == silent || k == fading) {
    std::tie(ec, std::ignore) =
        co_await socket.async_read_some(asio::buffer(message), no_throw);
    const std::chrono::duration<double, std::milli> late =
        steady_clock::now() - (last_sent + l.idle);
    if (!ec || late.count() < 0)
      ++mine.closed_wrongly;
    else
      mine.lateness.push_back(late.count());
  }
  --l.open;
}

void print_progress(const load& l, int second, std::uint64_t echoes) {
  std::size_t closed = 0;
  std::uint64_t wrongly = 0;
  double latest = 0;
  for (const tally& t : l.tallies) {
    closed += t.lateness.size();
    wrongly += t.closed_wrongly;
    for (double late : t.lateness)
      latest = std::max(latest, late);
  }
  std::printf("%3d s: %6zu open, %6llu echoes, %6zu closed idle, latest by "
              "%.1f ms",
              second, l.open, static_cast<unsigned long long>(echoes), closed,
              latest);
  if (wrongly != 0)
    std::printf(", %llu WRONGLY", static_cast<unsigned long long>(wrongly));
  std::printf("\n");
  std::fflush(stdout);
}

asio::awaitable<void> open_all(load& l) {
  asio_wheel::wheel_timer timer(l.io);
  for (std::size_t i = 0; i < l.connections; ++i) {
    timer.expires_at(l.start + from_seconds(double(ramp.count()) * double(i) /
                                            double(l.connections)));
    co_await timer.async_wait(asio::use_awaitable);
    co_spawn(l.io, client(l, pattern[i % 10], i), asio::detached);
  }
}

// Reports each second, and ends it all.
asio::awaitable<void> conduct(load& l) {
  asio_wheel::wheel_timer timer(l.io, l.start);
  std::uint64_t echoes_before = 0;
  for (int second = 1; l.start + second * 1s < l.end; ++second) {
    timer.expires_at(l.start + second * 1s);
    co_await timer.async_wait(asio::use_awaitable);
    print_progress(l, second, l.echoes - echoes_before);
    echoes_before = l.echoes;
    if (l.open == 0)
      break; // the server is gone
  }
  while (l.open != 0 && steady_clock::now() < l.end + margin) {
    timer.expires_after(10ms);
    co_await timer.async_wait(asio::use_awaitable);
  }
  l.io.stop(); // what is still open should not be
}

// Returns whether all went as it should.
bool print_table(load& l) {
  const double seconds = std::chrono::duration<double>(
                             std::min(steady_clock::now(), l.end) - l.start)
                             .count();
  std::printf("\n%-12s %7s %8s %8s %10s   %s\n", "", "", "closed", "closed", "",
              "lateness of a close, ms");
  std::printf("%-12s %7s %8s %8s %10s %8s %8s %8s\n", "connections", "opened",
              "idle", "wrongly", "left open", "p50", "p99", "max");
  auto print_row = [](const char* name, tally t) {
    auto& late = t.lateness;
    std::printf("%-12s %7llu %8zu %8llu %10llu", name,
                static_cast<unsigned long long>(t.opened), late.size(),
                static_cast<unsigned long long>(t.closed_wrongly),
                static_cast<unsigned long long>(t.opened - late.size() -
                                                t.closed_wrongly));
    std::sort(late.begin(), late.end());
    if (late.empty())
      std::printf(" %8s %8s %8s\n", "-", "-", "-");
    else
      std::printf(" %8.2f %8.2f %8.2f\n", late[late.size() / 2],
                  late[late.size() * 99 / 100], late.back());
  };
  constexpr const char* names[] = {"busy", "slow", "fell silent", "silent"};
  tally all;
  for (int k = 0; k < kind_count; ++k) {
    const tally& t = l.tallies[k];
    print_row(names[k], t);
    all.opened += t.opened;
    all.closed_wrongly += t.closed_wrongly;
    all.lateness.insert(all.lateness.end(), t.lateness.begin(),
                        t.lateness.end());
  }
  print_row("all", all);
  std::printf("\nload: echoes per second %.0f\n"
              "load: CPU               %.1f %% of a core\n",
              static_cast<double>(l.echoes) / seconds,
              100.0 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC /
                  seconds);

  const std::uint64_t to_close =
      l.tallies[fading].opened + l.tallies[silent].opened;
  const char* failure = nullptr;
  if (all.opened != l.connections)
    failure = "connections could not be opened";
  else if (all.closed_wrongly != 0)
    failure = "connections were closed that should not have been";
  else if (all.lateness.size() != to_close)
    failure = "silent connections were not closed";
  else if (!all.lateness.empty() &&
           *std::max_element(all.lateness.begin(), all.lateness.end()) >
               std::chrono::duration<double, std::milli>(margin).count())
    failure = "silent connections were closed more than a second late";
  if (failure)
    std::printf("FAILED: %s%s%s\n", failure, l.failure ? ": " : "",
                l.failure ? l.failure.message().c_str() : "");
  return !failure;
}

// Each connection takes a descriptor, and the usual soft limit is 1,024.
std::size_t raise_file_limit() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0)
    return 1024;
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  return static_cast<std::size_t>(files.rlim_cur);
}

// An option's value, checked.
template <typename T>
T option(const po::variables_map& args, const char* name, T least, T most) {
  const T value = args[name].as<T>();
  if (!(value >= least && value <= most))
    throw std::invalid_argument("--" + std::string(name) + " must be from " +
                                std::to_string(least) + " to " +
                                std::to_string(most));
  return value;
}

int main(int argc, char* argv[]) {
  try {
    const std::size_t most =
        std::max<std::size_t>(raise_file_limit(), 200) - 100;
    po::options_description usage("Options");
    usage.add_options()("help", "print this");
    usage.add_options()("port", po::value<std::uint16_t>()->required(),
                        "the server's port on 127.0.0.1");
    usage.add_options()("idle", po::value<double>()->default_value(4),
                        "the server's idle timeout in seconds");
    usage.add_options()("connections",
                        po::value<std::size_t>()->default_value(
                            std::min<std::size_t>(most, 10000)),
                        "how many; at most as many as the file limit allows");
    usage.add_options()("rate", po::value<double>()->default_value(20000),
                        "echoes per second that the busy ones aim at");
    usage.add_options()("duration", po::value<double>()->default_value(15),
                        "seconds");
    po::variables_map args;
    po::store(po::parse_command_line(argc, argv, usage), args);
    if (args.count("help")) {
      std::cout << usage;
      return 0;
    }
    po::notify(args);

    load l;
    l.server = {asio::ip::address_v4::loopback(),
                args["port"].as<std::uint16_t>()};
    l.connections = option<std::size_t>(args, "connections", 10, most);
    const double idle = option<double>(args, "idle", 0.1, 3600);
    l.idle = from_seconds(idle);
    const double shortest =
        std::chrono::duration<double>(ramp + margin + 1s).count() + idle;
    const double duration = option<double>(args, "duration", shortest, 86400);
    // Six of ten are busy, at first.
    const double pause = 0.6 * static_cast<double>(l.connections) /
                         option<double>(args, "rate", 1, 1e6);
    l.pause = from_seconds(std::min(pause, idle / 2));
    l.start = steady_clock::now();
    l.end = l.start + from_seconds(duration);

    co_spawn(l.io, open_all(l), asio::detached);
    co_spawn(l.io, conduct(l), asio::detached);
    l.io.run();
    return print_table(l) ? 0 : 1;
  } catch (const std::exception& e) {
    std::cerr << "load_generator: " << e.what() << '\n';
    return 1;
  }
}
