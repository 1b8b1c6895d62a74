//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// Loads an http_server on this machine with good peers and bad ones, and checks
// whom it throws off, and when.
//
//   http_load --port 8080 --idle 3 --header-timeout 3 --write-timeout 3 ...
//
//   busy          requests, one after the other on one connection, to the end
//   silent        says nothing; every other one after a request
//   drips header  sends the header of a request a byte at a time
//   drips body    sends the body of a request a byte at a time
//   not reading   asks for a large file, several times, and reads nothing
//   half closed   sends a request and the end of its stream; then is answered
//
// The busy and the half closed ones are to be served, the others to be thrown
// off: the table says how much later than the server's settings promise. The
// exit status is 1 if one was thrown off early, more than a second late (plus
// what the settings allow) or not at all, or if a good one was not served.

#include <asio_wheel.hpp>

#include <boost/asio.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/program_options.hpp>

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <iostream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace asio = boost::asio;
namespace po = boost::program_options;
using namespace asio::experimental::awaitable_operators;
using namespace std::chrono_literals;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::steady_clock;

constexpr auto no_throw = asio::as_tuple(asio::use_awaitable);

enum kind {
  busy,
  silent,
  drips_header,
  drips_body,
  not_reading,
  half_closed,
  kind_count
};

constexpr struct {
  const char* name;
  const char* option;
  std::size_t connections; // by default
  bool good;               // to be served, not to be thrown off
} kinds[kind_count] = {
    {"busy", "busy", 1000, true},
    {"silent", "silent", 1000, false},
    {"drips header", "drips-header", 300, false},
    {"drips body", "drips-body", 300, false},
    {"not reading", "not-reading", 100, false},
    {"half closed", "half-closed", 300, true},
};

// By which a peer may be thrown off late: a loaded machine is no fault of the
// server's. How late it was is in the table.
constexpr auto margin = 5s;
constexpr auto drip_pause = 500ms;

constexpr std::string_view hello = "GET /hello HTTP/1.1\r\n"
                                   "Host: localhost\r\n\r\n";

steady_clock::duration from_seconds(double seconds) {
  return std::chrono::duration_cast<steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

double milliseconds(steady_clock::duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}

// What became of the connections of a kind.
struct tally {
  std::uint64_t opened = 0;
  std::uint64_t served = 0;     // good ones, to the end
  std::uint64_t thrown_off = 0; // bad ones, neither early nor with an error
  std::uint64_t told = 0;       // of them, with an answer: 408
  std::uint64_t wrongly = 0;    // good ones thrown off, bad ones early
  std::vector<double> lateness; // ms, of those thrown off
};

struct load {
  asio::io_context io{1};
  tcp::endpoint server;
  std::string large; // the request for the large file
  std::vector<kind> connections;
  steady_clock::duration limits[kind_count] = {}; // of the bad ones
  steady_clock::duration pause{}; // of a busy connection, on average
  steady_clock::time_point start, opened, end;

  std::array<tally, kind_count> tallies;
  std::vector<std::uint32_t> latencies = // how many requests took 10 us, ...
      std::vector<std::uint32_t>(100'000);
  std::uint64_t requests = 0;
  std::size_t open = 0;
  error_code failure; // to open a connection
  std::minstd_rand random;

  steady_clock::duration random_part_of(steady_clock::duration d) {
    return from_seconds(std::chrono::duration<double>(d).count() *
                        std::uniform_real_distribution<>()(random));
  }

  void note_request(steady_clock::duration took) {
    ++requests;
    ++latencies[std::min<std::size_t>(static_cast<std::size_t>(took / 10us),
                                      latencies.size() - 1)];
  }

  // In ms.
  double latency(double quantile) const {
    const auto rank =
        static_cast<std::uint64_t>(quantile * static_cast<double>(requests));
    std::uint64_t n = 0;
    std::size_t i = 0;
    while (i < latencies.size() && (n += latencies[i]) <= rank)
      ++i;
    return static_cast<double>(i + 1) / 100;
  }

  // A bad peer, whose time began not before `since`, was thrown off at `at`.
  void note_thrown_off(kind k, steady_clock::time_point since,
                       steady_clock::time_point at) {
    tally& mine = tallies[k];
    const double late = milliseconds(at - since - limits[k]);
    if (late < 0) {
      ++mine.wrongly;
    } else {
      ++mine.thrown_off;
      mine.lateness.push_back(late);
    }
  }

  // How late that may be, in ms.
  double tolerance(kind k) const {
    // See stream_timeouts. The bytes that drip are worth a little time, too.
    return milliseconds(limits[k] / (k == not_reading ? 8 : 64) + margin);
  }
};

// ----------------------------------------------------------------------------
// Connections

// An address has some 28,000 ports: use one address for each 10,000.
tcp::socket make_socket(load& l, kind k, std::size_t number, error_code& ec) {
  tcp::socket socket(l.io);
  socket.open(tcp::v4(), ec);
  if (!ec) {
    // Let connect() choose the port, which may then be shared.
    const int on = 1;
    ::setsockopt(socket.native_handle(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT,
                 &on, sizeof on);
    if (k == not_reading) // so that its peer stalls at once
      socket.set_option(asio::socket_base::receive_buffer_size(4096), ec);
    const auto address =
        asio::ip::address_v4(asio::ip::address_v4::loopback().to_uint() +
                             static_cast<std::uint32_t>(number / 10000));
    socket.bind(tcp::endpoint(address, 0), ec);
  }
  return socket;
}

// Whether data begins with a whole answer.
bool is_answer(std::string_view data) {
  constexpr std::string_view name = "Content-Length: ";
  const auto end = data.find("\r\n\r\n");
  const auto field = data.find(name);
  if (end == data.npos || field > end)
    return false;
  std::size_t size = 0;
  std::from_chars(data.data() + field + name.size(), data.data() + end, size);
  return data.size() >= end + 4 + size;
}

bool is_success(std::string_view data) {
  return data.starts_with("HTTP/1.1 200 ") && is_answer(data);
}

// One request and its answer.
asio::awaitable<bool> ask(tcp::socket& socket) {
  std::array<char, 1024> data;
  auto [ec, n] =
      co_await asio::async_write(socket, asio::buffer(hello), no_throw);
  for (std::size_t size = 0; !ec; size += n) {
    if (is_answer({data.data(), size}))
      co_return is_success({data.data(), size});
    std::tie(ec, n) =
        co_await socket.async_read_some(asio::buffer(data) + size, no_throw);
  }
  co_return false;
}

// All that comes until the server closes; when that was.
asio::awaitable<steady_clock::time_point> read_to_end(tcp::socket& socket,
                                                      std::string& text) {
  error_code ec;
  std::tie(ec, std::ignore) = co_await asio::async_read(
      socket, asio::dynamic_buffer(text, 100'000), no_throw);
  const auto now = steady_clock::now();
  if (ec != asio::error::eof)
    text.append("\n").append(ec.message());
  co_return now;
}

asio::awaitable<void> be_busy(load& l, tcp::socket& socket) {
  // Random, so that requests held up together do not stay together.
  asio_wheel::wheel_timer timer(l.io);
  timer.expires_after(l.random_part_of(l.pause));
  bool served = true;
  while (served && steady_clock::now() < l.end) {
    if (l.pause != 0s) {
      timer.expires_at(std::min(timer.expiry(), l.end));
      co_await timer.async_wait(asio::use_awaitable);
    }
    const auto sent = steady_clock::now();
    timer.expires_at(sent + l.pause / 2 + l.random_part_of(l.pause));
    served = co_await ask(socket);
    if (served)
      l.note_request(steady_clock::now() - sent);
  }
  ++(served ? l.tallies[busy].served : l.tallies[busy].wrongly);
}

asio::awaitable<void> be_silent(load& l, tcp::socket& socket,
                                steady_clock::time_point since, bool ask_once) {
  bool good = true;
  if (ask_once) {
    since = steady_clock::now();
    good = co_await ask(socket);
  }
  std::string text;
  const auto closed = co_await read_to_end(socket, text);
  if (good && text.empty())
    l.note_thrown_off(silent, since, closed);
  else
    ++l.tallies[silent].wrongly;
}

asio::awaitable<void> drip(load& l, tcp::socket& socket) {
  asio_wheel::wheel_timer timer(l.io);
  timer.expires_after(l.random_part_of(drip_pause));
  for (error_code ec; !ec; timer.expires_after(drip_pause)) {
    co_await timer.async_wait(asio::use_awaitable);
    std::tie(ec, std::ignore) =
        co_await asio::async_write(socket, asio::buffer("x", 1), no_throw);
  }
  // It was thrown off. See what the server has to say before that ends.
  timer.expires_at(steady_clock::time_point::max());
  co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<void> be_dripping(load& l, tcp::socket& socket, kind k) {
  constexpr std::string_view header = "GET /hello HTTP/1.1\r\n"
                                      "X-Padding: ";
  constexpr std::string_view body = "POST /echo HTTP/1.1\r\n"
                                    "Host: localhost\r\n"
                                    "Content-Length: 100000\r\n\r\n";
  const auto since = steady_clock::now();
  std::string text;
  co_await asio::async_write(
      socket, asio::buffer(k == drips_header ? header : body), no_throw);
  const auto ended = co_await (read_to_end(socket, text) || drip(l, socket));
  l.note_thrown_off(k, since, std::get<0>(ended));
  if (text.starts_with("HTTP/1.1 408 ") && is_answer(text))
    ++l.tallies[k].told;
}

asio::awaitable<void> do_not_read(load& l, tcp::socket& socket) {
  const auto since = steady_clock::now();
  for (int i = 0; i < 4; ++i)
    co_await asio::async_write(socket, asio::buffer(l.large), no_throw);
  // An end of stream would not be seen behind all that is not read: the server
  // has to reset the connection.
  co_await socket.async_wait(tcp::socket::wait_error, no_throw);
  l.note_thrown_off(not_reading, since, steady_clock::now());
}

asio::awaitable<void> half_close(load& l, tcp::socket& socket) {
  error_code ec;
  co_await asio::async_write(socket, asio::buffer(hello), no_throw);
  socket.shutdown(tcp::socket::shutdown_send, ec);
  std::string text;
  co_await read_to_end(socket, text);
  tally& mine = l.tallies[half_closed];
  ++(is_success(text) ? mine.served : mine.wrongly);
}

asio::awaitable<void> client(load& l, kind k, std::size_t number) {
  if (k == half_closed) { // these come all the time
    asio_wheel::wheel_timer timer(l.io);
    timer.expires_after(l.random_part_of(l.end - l.opened));
    co_await timer.async_wait(asio::use_awaitable);
  }
  error_code ec;
  tcp::socket socket = make_socket(l, k, number, ec);
  const auto since = steady_clock::now();
  if (!ec)
    std::tie(ec) = co_await socket.async_connect(l.server, no_throw);
  if (!ec)
    socket.set_option(tcp::no_delay(true), ec);
  if (ec) {
    l.failure = ec;
    co_return;
  }

  ++l.tallies[k].opened;
  ++l.open;
  if (k == busy)
    co_await be_busy(l, socket);
  else if (k == silent)
    co_await be_silent(l, socket, since, number % 2 == 0);
  else if (k == drips_header || k == drips_body)
    co_await be_dripping(l, socket, k);
  else if (k == not_reading)
    co_await do_not_read(l, socket);
  else
    co_await half_close(l, socket);
  --l.open;
}

asio::awaitable<void> open_all(load& l) {
  asio_wheel::wheel_timer timer(l.io);
  const auto n = l.connections.size();
  for (std::size_t i = 0; i < n; ++i) {
    timer.expires_at(l.start + (l.opened - l.start) / n * i);
    co_await timer.async_wait(asio::use_awaitable);
    co_spawn(l.io, client(l, l.connections[i], i), asio::detached);
  }
}

// ----------------------------------------------------------------------------
// Reports

void print_progress(const load& l, int second, std::uint64_t requests) {
  const auto& t = l.tallies;
  std::uint64_t wrongly = 0;
  for (const tally& each : t)
    wrongly += each.wrongly;
  auto number = [](std::uint64_t n) {
    return static_cast<unsigned long long>(n);
  };
  std::printf("%3d s: %5zu open, %6llu requests; thrown off: %4llu silent, "
              "%4llu dripping, %4llu not reading",
              second, l.open, number(requests), number(t[silent].thrown_off),
              number(t[drips_header].thrown_off + t[drips_body].thrown_off),
              number(t[not_reading].thrown_off));
  if (wrongly != 0)
    std::printf(", %llu WRONGLY", number(wrongly));
  std::printf("\n");
  std::fflush(stdout);
}

// Reports each second, and ends it all.
asio::awaitable<void> conduct(load& l, bool brief) {
  asio_wheel::wheel_timer timer(l.io, l.start);
  std::uint64_t before = 0;
  for (int second = 1; l.start + second * 1s < l.end; ++second) {
    timer.expires_at(l.start + second * 1s);
    co_await timer.async_wait(asio::use_awaitable);
    if (!brief)
      print_progress(l, second, l.requests - before);
    before = l.requests;
  }
  timer.expires_at(l.end);
  do {
    co_await timer.async_wait(asio::use_awaitable);
    timer.expires_after(10ms);
  } while (l.open != 0 && steady_clock::now() < l.end + margin);
  l.io.stop(); // what is still open should not be
}

void print_lateness(std::vector<double> late) {
  std::sort(late.begin(), late.end());
  if (late.empty())
    std::printf(" %8s %8s %8s\n", "-", "-", "-");
  else
    std::printf(" %8.2f %8.2f %8.2f\n", late[late.size() / 2],
                late[late.size() * 99 / 100], late.back());
}

void print_table(const load& l) {
  std::printf("\n%-13s %6s %6s %6s %6s %7s %6s   %s\n", "", "", "", "thrown",
              "told", "", "left", "late, ms");
  std::printf("%-13s %6s %6s %6s %6s %7s %6s %8s %8s %8s\n", "connections",
              "opened", "served", "off", "why", "wrongly", "open", "p50", "p99",
              "max");
  for (int k = 0; k < kind_count; ++k) {
    const tally& t = l.tallies[k];
    if (t.opened == 0)
      continue;
    const auto left = t.opened - t.served - t.thrown_off - t.wrongly;
    std::printf("%-13s", kinds[k].name);
    for (std::uint64_t n : {t.opened, t.served, t.thrown_off, t.told})
      std::printf(" %6llu", static_cast<unsigned long long>(n));
    std::printf(" %7llu %6llu", static_cast<unsigned long long>(t.wrongly),
                static_cast<unsigned long long>(left));
    print_lateness(t.lateness);
  }
}

// What is not as it should be; empty if all is.
std::string find_fault(const load& l) {
  std::uint64_t opened = 0;
  for (int k = 0; k < kind_count; ++k) {
    const tally& t = l.tallies[k];
    const std::string name = std::string(kinds[k].name) + " connections were ";
    opened += t.opened;
    if (t.wrongly != 0)
      return name +
             (kinds[k].good ? "not served" : "thrown off early or wrongly");
    if (t.served + t.thrown_off != t.opened)
      return name + (kinds[k].good ? "not served" : "not thrown off");
    for (double late : t.lateness)
      if (late > l.tolerance(static_cast<kind>(k)))
        return name + "thrown off too late";
  }
  if (opened != l.connections.size())
    return "connections could not be opened: " + l.failure.message();
  return {};
}

// ----------------------------------------------------------------------------
// The program

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
  if (!(value >= least && value <= most)) {
    std::ostringstream text;
    text << "--" << name << " must be from " << least << " to " << most;
    throw std::invalid_argument(text.str());
  }
  return value;
}

steady_clock::duration seconds(const po::variables_map& args,
                               const char* name) {
  return from_seconds(option<double>(args, name, 0.1, 3600));
}

void read_settings(load& l, const po::variables_map& args,
                   std::size_t most_connections) {
  l.server = {asio::ip::address_v4::loopback(),
              args["port"].as<std::uint16_t>()};
  l.large = "GET " + args["large"].as<std::string>() +
            " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  for (int k = 0; k < kind_count; ++k)
    l.connections.insert(
        l.connections.end(),
        option<std::size_t>(args, kinds[k].option, 0, most_connections),
        static_cast<kind>(k));
  if (l.connections.empty() || l.connections.size() > most_connections)
    throw std::invalid_argument("the connections must be from 1 to " +
                                std::to_string(most_connections) + " in all");
  std::shuffle(l.connections.begin(), l.connections.end(), l.random);

  const auto grace = seconds(args, "grace");
  l.limits[silent] = seconds(args, "idle");
  l.limits[drips_header] = seconds(args, "header-timeout");
  l.limits[drips_body] = grace;
  l.limits[not_reading] = std::min(seconds(args, "write-timeout"), grace);

  // A few thousand per second.
  const auto n = static_cast<double>(l.connections.size());
  const auto ramp = from_seconds(std::min(n / 2000, 4.0));
  auto shortest = ramp;
  for (int k = 0; k < kind_count; ++k)
    if (!kinds[k].good &&
        std::count(l.connections.begin(), l.connections.end(), k) != 0)
      shortest = std::max(shortest, ramp + l.limits[k] * 9 / 8 + 1s);
  const double duration = option<double>(
      args, "duration", std::chrono::duration<double>(shortest).count(), 3600);
  if (const double rate = option<double>(args, "rate", 0, 1e6); rate != 0) {
    const auto n_busy = static_cast<double>(
        std::count(l.connections.begin(), l.connections.end(), busy));
    // The server is not to take them for silent.
    l.pause = std::min(from_seconds(n_busy / rate), l.limits[silent] / 2);
  }
  l.start = steady_clock::now();
  l.opened = l.start + ramp;
  l.end = l.start + from_seconds(duration);
}

int main(int argc, char* argv[]) {
  try {
    const std::size_t most =
        std::max<std::size_t>(raise_file_limit(), 200) - 100;
    po::options_description usage("Options");
    auto add = usage.add_options();
    add("help", "print this");
    add("port", po::value<std::uint16_t>()->required(),
        "the server's port on 127.0.0.1");
    add("large", po::value<std::string>()->default_value("/large"),
        "a file of 16 MB or more, not to be read");
    for (const auto& k : kinds)
      add(k.option, po::value<std::size_t>()->default_value(k.connections),
          "how many of that kind");
    add("duration", po::value<double>()->default_value(10), "seconds");
    add("rate", po::value<double>()->default_value(5000),
        "requests per second that the busy ones aim at; 0: all they can");
    add("idle", po::value<double>()->default_value(3),
        "this and the following: the server's settings");
    add("header-timeout", po::value<double>()->default_value(3), "seconds");
    add("write-timeout", po::value<double>()->default_value(3), "seconds");
    add("grace", po::value<double>()->default_value(4), "seconds");
    add("brief", "print the number of requests per second, and nothing else");
    po::variables_map args;
    po::store(po::command_line_parser(argc, argv)
                  .options(usage)
                  .positional({}) // nothing but options
                  .run(),
              args);
    if (args.count("help")) {
      std::cout << usage;
      return 0;
    }
    po::notify(args);

    load l;
    read_settings(l, args, most);
    const bool brief = args.count("brief") != 0;
    co_spawn(l.io, open_all(l), asio::detached);
    co_spawn(l.io, conduct(l, brief), asio::detached);
    l.io.run();

    const std::chrono::duration<double> ran =
        std::min(steady_clock::now(), l.end) - l.start;
    const double rate = static_cast<double>(l.requests) / ran.count();
    if (brief) {
      std::printf("%.0f\n", rate);
    } else {
      print_table(l);
      std::printf("\nload: %.0f requests per second; latency p50 %.2f ms, "
                  "p99 %.2f ms; CPU %.1f %% of a core\n",
                  rate, l.latency(0.5), l.latency(0.99),
                  100.0 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC /
                      ran.count());
    }
    if (const std::string fault = find_fault(l); !fault.empty()) {
      std::fflush(stdout);
      std::cerr << "http_load: FAILED: " << fault << '\n';
      return 1;
    }
  } catch (const std::exception& e) {
    std::cerr << "http_load: " << e.what() << '\n';
    return 1;
  }
}
