//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// An HTTP/1.1 server on which no peer can hold a connection for nothing.
//
//   http_server --port 8080 --root /srv/www
//
// Serves files; /hello and /status answer in JSON, and /echo sends back what
// was posted to it. A connection is in one of two phases, and changing is
// cheap:
//
//   waiting   for a request: at most the idle timeout.
//   working   on a request that did not come at once, or an answer that does
//             not go at once: its header has a time limit, its body and the
//             answer a minimum rate, and the peer may not stall.
//
// Stops gracefully on SIGINT and SIGTERM, and says how its connections ended.

#include <asio_wheel.hpp>

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/json.hpp>
#include <boost/program_options.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace fs = std::filesystem;
namespace http = beast::http;
namespace json = boost::json;
namespace po = boost::program_options;
namespace errc = boost::system::errc;
using namespace std::chrono_literals;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::steady_clock;

constexpr auto no_throw = asio::as_tuple(asio::use_awaitable);

using bounded_stream = asio_wheel::timeout_stream<>;
using request_parser = http::request_parser<http::string_body>;
using request = request_parser::value_type;

struct settings {
  asio_wheel::stream_timeouts waiting, working; // the phases
  steady_clock::duration header{}; // how long a request's header may take
  steady_clock::duration drain{};  // how long a graceful stop may take
  std::uint32_t max_header = 0;    // bytes
  std::uint64_t max_body = 0;      // bytes
  fs::path root;                   // of the files; canonical
  bool timeouts = true;
};

// The connections that ended alike.
struct ending {
  std::uint64_t connections = 0;
  std::vector<double> lateness; // ms, of those that a timeout ended
};

struct server {
  // First, so that it outlives sessions.
  std::unordered_set<tcp::socket::lowest_layer_type*> open;
  settings set;
  asio::io_context io{1}; // run by one thread
  tcp::acceptor acceptor{io};
  bool stopping = false;
  std::uint64_t accepted = 0;
  std::uint64_t requests = 0;
  std::map<std::string, ending> endings;
};

// ----------------------------------------------------------------------------
// Timeouts. With --no-timeouts a connection is a bare socket and nothing of
// this is done, so that one can see what it costs.

void enter(bounded_stream& stream, const asio_wheel::stream_timeouts& phase) {
  stream.timeouts(phase);
}
void enter(tcp::socket&, const asio_wheel::stream_timeouts&) {}

void set_deadline(bounded_stream& stream, steady_clock::duration d) {
  stream.expires_after(d);
}
void set_deadline(tcp::socket&, steady_clock::duration) {}

void clear_deadline(bounded_stream& stream) { stream.expires_never(); }
void clear_deadline(tcp::socket&) {}

// How late the timeout was with which an operation has just ended. The stream
// knows since when nothing moved, though not when a peer became too slow.
std::optional<steady_clock::duration> lateness(const bounded_stream& stream,
                                               error_code ec) {
  const auto now = steady_clock::now();
  if (ec == asio_wheel::error::idle_timeout)
    return now - stream.timeouts().idle -
           std::max(stream.last_read(), stream.last_write());
  if (ec == asio_wheel::error::write_timeout)
    return now - stream.timeouts().write - stream.last_write();
  if (ec == asio_wheel::error::deadline_exceeded)
    return now - stream.expiry();
  return {};
}
std::optional<steady_clock::duration> lateness(const tcp::socket&, error_code) {
  return {};
}

bool took_too_long(error_code ec) {
  return ec == asio_wheel::condition::timeout ||
         ec == asio_wheel::error::too_slow;
}

template <typename Stream>
void note_end(server& s, const Stream& stream, const char* when,
              error_code ec = {}) {
  if (ec == asio::error::eof || ec == http::error::partial_message) {
    ++s.endings["closed by the peer"].connections;
    return;
  }
  // While the server stops, a connection's idle time is shorter than set.
  const bool shortened = s.stopping && ec == asio_wheel::error::idle_timeout;
  std::string how = s.stopping ? "stopping, " : "";
  how += when;
  if (ec)
    how.append(": ").append(ec.message());
  ending& e = s.endings[how];
  ++e.connections;
  if (const auto late = lateness(stream, ec); late && !shortened)
    e.lateness.push_back(
        std::chrono::duration<double, std::milli>(*late).count());
}

// ----------------------------------------------------------------------------
// Requests and their answers

struct answer {
  http::message_generator message;
  bool at_once; // it is short, and leaves with one write
};

// What all answers have in common.
template <typename Response>
void fill(const server& s, const request& req, Response& response,
          std::string_view type, std::uint64_t size) {
  response.set(http::field::server, "asio_wheel");
  response.set(http::field::content_type, type);
  response.content_length(size);
  response.keep_alive(req.keep_alive() && !s.stopping);
}

answer short_answer(const server& s, const request& req, http::status status,
                    std::string_view type, std::string body,
                    std::string_view allow = {}) {
  http::response<http::string_body> response(status, req.version());
  fill(s, req, response, type, body.size());
  if (!allow.empty())
    response.set(http::field::allow, allow);
  if (req.method() == http::verb::head)
    return {http::response<http::empty_body>(std::move(response.base())), true};
  const bool at_once = body.size() < 16 * 1024;
  response.body() = std::move(body);
  return {std::move(response), at_once};
}

answer plain(const server& s, const request& req, http::status status,
             std::string_view allow = {}) {
  std::string text = std::to_string(static_cast<unsigned>(status)) + ' ' +
                     std::string(http::obsolete_reason(status)) + '\n';
  return short_answer(s, req, status, "text/plain", std::move(text), allow);
}

std::string_view content_type(const fs::path& file) {
  static const std::map<std::string, std::string_view> types = {
      {".css", "text/css"},        {".gif", "image/gif"},
      {".htm", "text/html"},       {".html", "text/html"},
      {".jpeg", "image/jpeg"},     {".jpg", "image/jpeg"},
      {".js", "text/javascript"},  {".json", "application/json"},
      {".png", "image/png"},       {".svg", "image/svg+xml"},
      {".txt", "text/plain"},      {".wasm", "application/wasm"},
      {".xml", "application/xml"},
  };
  const auto found = types.find(file.extension().string());
  return found != types.end() ? found->second : "application/octet-stream";
}

// "/a%20b" is "/a b".
std::optional<std::string> decode(std::string_view path) {
  std::string decoded;
  for (; !path.empty(); path.remove_prefix(1)) {
    char c = path.front();
    if (c == '%') {
      constexpr std::string_view digits = "0123456789abcdef0123456789ABCDEF";
      const auto high = path.size() > 2 ? digits.find(path[1]) : digits.npos;
      const auto low = path.size() > 2 ? digits.find(path[2]) : digits.npos;
      if (high == digits.npos || low == digits.npos)
        return {};
      c = static_cast<char>(high % 16 * 16 + low % 16);
      path.remove_prefix(2);
    }
    if (c == '\0')
      return {};
    decoded += c;
  }
  return decoded;
}

// The regular file that a path names, whatever dots and links are in it, if
// that is below the root.
std::optional<fs::path> find_file(const fs::path& root, std::string_view path) {
  const auto decoded = decode(path);
  if (!decoded || !decoded->starts_with('/'))
    return {};
  std::error_code ec;
  fs::path file = fs::canonical(root.native() + *decoded, ec);
  if (!ec && fs::is_directory(file, ec))
    file = fs::canonical(file / "index.html", ec);
  const auto [end, differs] = std::mismatch(root.begin(), root.end(), //
                                            file.begin(), file.end());
  if (ec || end != root.end() || !fs::is_regular_file(file, ec))
    return {};
  return file;
}

// Reads the file in small parts, as the peer takes them.
answer file_answer(const server& s, const request& req, std::string_view path) {
  const auto found = find_file(s.set.root, path);
  if (!found)
    return plain(s, req, http::status::not_found);
  error_code ec;
  http::file_body::value_type file;
  file.open(found->c_str(), beast::file_mode::scan, ec);
  if (ec == errc::permission_denied)
    return plain(s, req, http::status::forbidden);
  if (ec) // no more descriptors, most likely
    return plain(s, req, http::status::service_unavailable);

  const auto size = file.size();
  http::response<http::file_body> response(
      std::piecewise_construct, std::make_tuple(std::move(file)),
      std::make_tuple(http::status::ok, req.version()));
  fill(s, req, response, content_type(*found), size);
  if (req.method() == http::verb::head)
    return {http::response<http::empty_body>(std::move(response.base())), true};
  return {std::move(response), false};
}

std::string status(server& s) {
  const auto& wheel = asio_wheel::use_wheel(s.io);
  const auto stats = wheel.stats();
  return json::serialize(json::object{
      {"connections", {{"accepted", s.accepted}, {"open", s.open.size()}}},
      {"requests", s.requests},
      {"wheel",
       {{"pending", wheel.pending()},
        {"scheduled", stats.scheduled},
        {"fired", stats.fired},
        {"wakeups", stats.wakeups},
        {"max_lateness_ms",
         std::chrono::duration<double, std::milli>(stats.max_lateness)
             .count()}}}});
}

answer respond(server& s, request& req) {
  const std::string_view target = req.target();
  const std::string_view path = target.substr(0, target.find('?'));
  if (path == "/echo") {
    if (req.method() != http::verb::post)
      return plain(s, req, http::status::method_not_allowed, "POST");
    return short_answer(s, req, http::status::ok, "application/octet-stream",
                        std::move(req.body()));
  }
  if (req.method() != http::verb::get && req.method() != http::verb::head)
    return plain(s, req, http::status::method_not_allowed, "GET, HEAD");
  if (path == "/hello")
    return short_answer(s, req, http::status::ok, "application/json",
                        json::serialize(json::object{{"hello", "world"}}));
  if (path == "/status")
    return short_answer(s, req, http::status::ok, "application/json",
                        status(s));
  return file_answer(s, req, path);
}

// What to say about a request that did not become one. Nothing to a peer that
// is gone.
std::optional<http::status> refusal(error_code ec) {
  if (took_too_long(ec))
    return http::status::request_timeout;
  if (ec == http::error::header_limit || ec == http::error::buffer_overflow)
    return http::status::request_header_fields_too_large;
  if (ec == http::error::body_limit)
    return http::status::payload_too_large;
  if (ec.category() == make_error_code(http::error::bad_method).category() &&
      ec != http::error::partial_message)
    return http::status::bad_request;
  return {};
}

// ----------------------------------------------------------------------------
// Connections

// The rest of a request, whose first bytes have come.
template <typename Stream>
asio::awaitable<error_code> receive_rest(const server& s, Stream& stream,
                                         beast::flat_buffer& buffer,
                                         request_parser& parser) {
  error_code ec;
  if (!parser.is_header_done()) {
    set_deadline(stream, s.set.header);
    std::tie(ec, std::ignore) =
        co_await http::async_read_header(stream, buffer, parser, no_throw);
    if (ec)
      co_return ec;
    clear_deadline(stream);
  }
  if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
    http::response<http::empty_body> go_on(http::status::continue_, 11);
    std::tie(ec, std::ignore) =
        co_await http::async_write(stream, go_on, no_throw);
    if (ec)
      co_return ec;
  }
  if (!parser.is_done())
    std::tie(ec, std::ignore) =
        co_await http::async_read(stream, buffer, parser, no_throw);
  co_return ec;
}

// Closing a socket while the peer still sends would destroy the last answer on
// its way to it: so say that this is the end, and read on for a moment.
template <typename Stream> asio::awaitable<void> close_gently(Stream& stream) {
  error_code ec;
  stream.lowest_layer().shutdown(tcp::socket::shutdown_send, ec);
  set_deadline(stream, 1s);
  for (std::array<char, 1024> ignored; !ec;)
    std::tie(ec, std::ignore) =
        co_await stream.async_read_some(asio::buffer(ignored), no_throw);
}

template <typename Stream>
asio::awaitable<void> session(server& s, Stream stream) {
  struct registration {
    decltype(server::open)& open;
    tcp::socket::lowest_layer_type* socket;
    ~registration() { open.erase(socket); }
  } registered{s.open, *s.open.insert(&stream.lowest_layer()).first};

  beast::flat_buffer buffer(64 * 1024);
  enter(stream, s.set.waiting);
  bool working = false;
  for (bool keep_alive = true; keep_alive;) {
    if (buffer.size() == 0) {
      if (std::exchange(working, false))
        enter(stream, s.set.waiting);
      auto [ec, n] =
          co_await stream.async_read_some(buffer.prepare(4096), no_throw);
      if (ec) {
        note_end(s, stream, "waiting", ec);
        co_return;
      }
      buffer.commit(n);
    }

    // Most requests have come as a whole.
    request_parser parser;
    parser.header_limit(s.set.max_header);
    parser.body_limit(s.set.max_body);
    parser.eager(true);
    error_code ec;
    buffer.consume(parser.put(buffer.data(), ec));
    if (ec == http::error::need_more || (!ec && !parser.is_done())) {
      working = true;
      enter(stream, s.set.working);
      ec = co_await receive_rest(s, stream, buffer, parser);
    }
    if (ec) {
      note_end(s, stream, "receiving", ec);
      if (const auto status = refusal(ec)) {
        clear_deadline(stream);
        request refused(http::verb::get, "/", 11);
        refused.keep_alive(false);
        co_await beast::async_write(stream, plain(s, refused, *status).message,
                                    no_throw);
        co_await close_gently(stream);
      }
      co_return;
    }

    ++s.requests;
    answer a = respond(s, parser.get());
    keep_alive = a.message.keep_alive();
    if (!a.at_once && !std::exchange(working, true))
      enter(stream, s.set.working);
    std::tie(ec, std::ignore) =
        co_await beast::async_write(stream, std::move(a.message), no_throw);
    if (ec) {
      note_end(s, stream, "answering", ec);
      // What the peer did not take is not to wait for it in the kernel. (A
      // destructor would see to it that it does.)
      stream.lowest_layer().set_option(asio::socket_base::linger(true, 0), ec);
      stream.lowest_layer().close(ec);
      co_return;
    }
  }
  note_end(s, stream, "answered");
  co_await close_gently(stream);
}

asio::awaitable<void> accept_all(server& s) {
  while (s.acceptor.is_open()) {
    auto [ec, socket] = co_await s.acceptor.async_accept(no_throw);
    if (!ec) {
      ++s.accepted;
      socket.set_option(tcp::no_delay(true), ec);
      if (s.set.timeouts)
        co_spawn(s.io, session(s, bounded_stream(std::move(socket))),
                 asio::detached);
      else
        co_spawn(s.io, session(s, std::move(socket)), asio::detached);
    } else if (s.acceptor.is_open()) { // no more descriptors, most likely
      asio_wheel::wheel_timer pause(s.io, 100ms);
      co_await pause.async_wait(asio::use_awaitable);
    }
  }
}

// The order of a graceful stop: no new connections; each request under way is
// answered, with "Connection: close"; those that wait for one have less and
// less time for it; whatever is left then goes.
asio::awaitable<void> stop_on_signal(server& s) {
  asio::signal_set signals(s.io, SIGINT, SIGTERM);
  co_await signals.async_wait(asio::use_awaitable);
  signals.clear(); // a second one kills

  s.stopping = true;
  s.acceptor.close();
  co_await asio_wheel::use_wheel(s.io).async_drain(s.set.drain, no_throw);
  error_code ignored;
  for (auto* socket : s.open)
    socket->close(ignored);
}

// ----------------------------------------------------------------------------
// The program

void print_summary(server& s, double seconds) {
  const double cpu = double(std::clock()) / CLOCKS_PER_SEC;
  const auto requests = std::max<std::uint64_t>(s.requests, 1);
  std::printf(
      "server: %llu connections, %llu requests; CPU: %.1f %% of a core, "
      "%.2f us per request\n",
      static_cast<unsigned long long>(s.accepted),
      static_cast<unsigned long long>(s.requests), 100 * cpu / seconds,
      1e6 * cpu / static_cast<double>(requests));
  if (s.set.timeouts) {
    const auto wheel = asio_wheel::use_wheel(s.io).stats();
    std::printf("server: at most %llu waits on the wheel, %.1f wake-ups per "
                "second\n",
                static_cast<unsigned long long>(wheel.peak_pending),
                double(wheel.wakeups) / seconds);
  }
  if (s.endings.empty())
    return;
  std::printf("\n%-58s %6s %8s\n", "", "", "late, ms");
  std::printf("%-58s %6s %8s %8s\n", "the server's connections ended", "",
              "p50", "max");
  for (auto& [how, e] : s.endings) {
    std::printf("%-58s %6llu", how.c_str(),
                static_cast<unsigned long long>(e.connections));
    auto& late = e.lateness;
    std::sort(late.begin(), late.end());
    if (late.empty())
      std::printf(" %8s %8s\n", "-", "-");
    else
      std::printf(" %8.2f %8.2f\n", late[late.size() / 2], late.back());
  }
}

// Each connection takes a descriptor, and the usual soft limit is 1,024.
void raise_file_limit() {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
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
  return std::chrono::duration_cast<steady_clock::duration>(
      std::chrono::duration<double>(option<double>(args, name, 0.01, 86400)));
}

settings read_settings(const po::variables_map& args) {
  settings set;
  set.timeouts = !args.count("no-timeouts");
  set.header = seconds(args, "header-timeout");
  set.drain = seconds(args, "drain");
  const auto write = seconds(args, "write-timeout");
  const asio_wheel::minimum_rate rate{
      option<std::uint64_t>(args, "minimum-rate", 0, 1'000'000'000),
      seconds(args, "grace")};
  set.waiting.idle = seconds(args, "idle");
  // A short answer is written in this phase, too.
  set.waiting.write = set.working.write = write;
  set.working.read_rate = set.working.write_rate = rate;
  set.max_header = option<std::uint32_t>(args, "max-header", 64, 60'000);
  set.max_body = option<std::uint64_t>(args, "max-body", 0, 1'000'000'000);
  std::error_code ec;
  set.root = fs::canonical(args["root"].as<std::string>(), ec);
  if (ec || !fs::is_directory(set.root, ec))
    throw std::invalid_argument("--root is not a directory");
  return set;
}

int main(int argc, char* argv[]) {
  try {
    po::options_description usage("Options");
    auto add = usage.add_options();
    add("help", "print this");
    add("port", po::value<std::uint16_t>()->default_value(0),
        "port on 127.0.0.1; 0: any free one");
    add("root", po::value<std::string>()->default_value("."),
        "directory of the files to serve");
    add("idle", po::value<double>()->default_value(60),
        "seconds that a connection may wait for a request");
    add("header-timeout", po::value<double>()->default_value(10),
        "seconds that a request's header may take");
    add("write-timeout", po::value<double>()->default_value(15),
        "seconds for which the peer may take nothing of an answer");
    add("minimum-rate", po::value<std::uint64_t>()->default_value(500),
        "bytes per second of a request's body and of an answer; 0: none");
    add("grace", po::value<double>()->default_value(20),
        "seconds for which the peer may be slower");
    add("max-header", po::value<std::uint32_t>()->default_value(8192),
        "bytes of a request's header");
    add("max-body", po::value<std::uint64_t>()->default_value(1'000'000),
        "bytes of a request's body");
    add("drain", po::value<double>()->default_value(5),
        "seconds that a graceful stop may take");
    add("no-timeouts", "let peers do as they like");
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

    raise_file_limit();
    server s;
    s.set = read_settings(args);
    s.acceptor = {s.io, tcp::endpoint(asio::ip::address_v4::loopback(),
                                      args["port"].as<std::uint16_t>())};
    std::cout << "listening on " << s.acceptor.local_endpoint() << std::endl;

    co_spawn(s.io, accept_all(s), asio::detached);
    co_spawn(s.io, stop_on_signal(s), asio::detached);
    const auto start = steady_clock::now();
    s.io.run(); // returns when the last connection is gone
    const std::chrono::duration<double> ran = steady_clock::now() - start;
    print_summary(s, ran.count());
  } catch (const std::exception& e) {
    std::cerr << "http_server: " << e.what() << '\n';
    return 1;
  }
}
