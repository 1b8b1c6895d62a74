//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/timeout_stream.hpp>

#include <asio_wheel/beast.hpp>
#include <asio_wheel/rate_limited_stream.hpp>
#include <asio_wheel/rate_limiter.hpp>

#include <test/manual_context.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/stream_traits.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#define BOOST_TEST_MODULE integration_layers
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <type_traits>

// What stands on top of a timeout_stream: TLS, WebSocket, HTTP, read_until.
// Real sockets under a manual clock, so that no test waits for time to pass.

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
namespace ssl = asio::ssl;
namespace websocket = beast::websocket;
using namespace std::chrono_literals;
using asio::ip::tcp;
using asio_wheel::error;
using asio_wheel::stream_timeouts;
using boost::system::error_code;

using stream = asio_wheel::timeout_stream<tcp::socket>;
using tls_stream = ssl::stream<stream>;
using ws_stream = websocket::stream<stream>;
using wss_stream = websocket::stream<tls_stream>;
using limited_stream = asio_wheel::rate_limited_stream<stream>;
using limited_ws_stream = websocket::stream<limited_stream>;

// To Beast it is what a socket is.
static_assert(beast::is_async_read_stream<stream>::value);
static_assert(beast::is_async_write_stream<stream>::value);
static_assert(beast::is_async_stream<stream>::value);
static_assert(beast::is_sync_read_stream<stream>::value);
static_assert(beast::is_sync_write_stream<stream>::value);
static_assert(beast::is_sync_stream<stream>::value);
static_assert(beast::has_get_executor<stream>::value);
static_assert(
    std::is_same_v<beast::executor_type<stream>, tcp::socket::executor_type>);

// And so are the layers on top.
static_assert(beast::is_async_stream<tls_stream>::value);
static_assert(beast::is_sync_stream<tls_stream>::value);
static_assert(
    std::is_same_v<tls_stream::lowest_layer_type, stream::lowest_layer_type>);
static_assert(std::is_same_v<ws_stream::next_layer_type, stream>);

// What became of an operation.
struct result {
  bool done = false;
  error_code ec;
  std::size_t bytes = 0;
};

struct into {
  result& r;
  void operator()(error_code ec, std::size_t bytes = 0) const {
    BOOST_TEST(!r.done);
    r = {true, ec, bytes};
  }
};

// Two sockets that are connected to each other, and a clock.
struct fixture : test::manual_context {
  tcp::socket near{io}, far{io};

  fixture() {
    tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
    far.connect(acceptor.local_endpoint());
    near = acceptor.accept();
    near.set_option(tcp::no_delay(true));
    far.set_option(tcp::no_delay(true));
  }

  // Run what is ready, while the time stands still, until something is so. A
  // socket may need some real time.
  template <typename Condition> void run_until(Condition condition) {
    const auto give_up = std::chrono::steady_clock::now() + 20s;
    while (!condition()) {
      BOOST_TEST_REQUIRE((std::chrono::steady_clock::now() < give_up));
      poll();
    }
  }

  void run_until_done(const result& r) {
    run_until([&r] { return r.done; });
  }

  // A pending operation goes on for all of d, and no longer, and ends with e.
  void check_ends_after(duration d, const result& r, error_code e) {
    poll();
    advance(d - 1ms);
    BOOST_TEST(!r.done);
    advance(1ms + d / 64 + 2ms);
    BOOST_TEST(r.done);
    BOOST_TEST(r.ec == e);
    BOOST_TEST((r.ec == asio_wheel::condition::timeout));
  }

  // As above, where bytes still move, for as long as the kernel takes them,
  // which is a matter of real time.
  void check_ends_when_nothing_moves(duration d, const result& r,
                                     error_code e) {
    const auto start = now();
    run_until([&] {
      advance(1ms);
      return r.done;
    });
    BOOST_TEST(r.ec == e);
    BOOST_TEST((now() - start >= d));
  }
};

std::string random_bytes(std::size_t size) {
  std::minstd_rand random(1);
  std::string bytes(size, '\0');
  for (char& b : bytes)
    b = static_cast<char>(random() >> 8);
  return bytes;
}

constexpr std::size_t mebibyte = 1024 * 1024;

stream_timeouts every_timeout() {
  stream_timeouts t;
  t.read = t.write = t.connect = t.idle = 10s;
  t.read_rate = t.write_rate = {1000, 5s};
  return t;
}

stream_timeouts only(stream_timeouts::duration stream_timeouts::*which,
                     stream_timeouts::duration d) {
  stream_timeouts t;
  t.*which = d;
  return t;
}

// Sends back what comes, to the end of the stream.
template <typename Stream> class echo {
public:
  explicit echo(Stream& s) : stream_(s) { read(); }

  error_code ended() const { return ended_; }

private:
  void read() {
    stream_.async_read_some(asio::buffer(data_),
                            [this](error_code ec, std::size_t n) {
                              ended_ = ec;
                              if (!ec)
                                write(n);
                            });
  }

  void write(std::size_t n) {
    asio::async_write(stream_, asio::buffer(data_, n),
                      [this](error_code ec, std::size_t) {
                        ended_ = ec;
                        if (!ec)
                          read();
                      });
  }

  Stream& stream_;
  std::array<char, 10'000> data_;
  error_code ended_;
};

// A key and a certificate that nobody has to trust.
ssl::context server_context() {
  ssl::context context(ssl::context::tls_server);
  EVP_PKEY* raw_key = nullptr;
  const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> generator(
      EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, nullptr), EVP_PKEY_CTX_free);
  BOOST_TEST_REQUIRE(EVP_PKEY_keygen_init(generator.get()) == 1);
  BOOST_TEST_REQUIRE(EVP_PKEY_keygen(generator.get(), &raw_key) == 1);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(raw_key,
                                                                EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> cert(X509_new(), X509_free);
  X509_gmtime_adj(X509_getm_notBefore(cert.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(cert.get()), 3600);
  X509_set_pubkey(cert.get(), key.get());
  BOOST_TEST_REQUIRE(X509_sign(cert.get(), key.get(), nullptr) != 0);
  SSL_CTX_use_certificate(context.native_handle(), cert.get());
  SSL_CTX_use_PrivateKey(context.native_handle(), key.get());
  BOOST_TEST_REQUIRE(SSL_CTX_check_private_key(context.native_handle()) == 1);
  return context;
}

struct tls_fixture : fixture {
  ssl::context server_tls{server_context()};
  ssl::context client_tls{ssl::context::tls_client};
  tls_stream server{std::move(near), server_tls};
  tls_stream client{std::move(far), client_tls};

  void handshake() {
    result s, c;
    server.async_handshake(tls_stream::server, into{s});
    client.async_handshake(tls_stream::client, into{c});
    run_until([&] { return s.done && c.done; });
    BOOST_TEST_REQUIRE(!s.ec);
    BOOST_TEST_REQUIRE(!c.ec);
  }
};

// A WebSocket at each end.
template <typename Server> struct ws_fixture_of : fixture {
  Server server{std::move(near)};
  ws_stream client{std::move(far)};

  void handshake() {
    result s, c;
    server.async_accept(into{s});
    client.async_handshake("localhost", "/", into{c});
    run_until([&] { return s.done && c.done; });
    BOOST_TEST_REQUIRE(!s.ec);
    BOOST_TEST_REQUIRE(!c.ec);
  }

  // The server closes, the peer agrees with a close frame, but leaves the
  // connection open.
  void close_with_a_peer_that_stays(result& r, const stream& under_server) {
    server.async_close(websocket::close_code::normal, into{r});
    poll();
    asio::write(client.next_layer().socket(),
                asio::buffer("\x88\x80\x00\x00\x00\x00", 6));
    const auto before = under_server.bytes_read();
    run_until([&] { return under_server.bytes_read() != before; });
  }
};

using ws_fixture = ws_fixture_of<ws_stream>;

struct limited_ws_fixture : ws_fixture_of<limited_ws_stream> {
  limited_ws_fixture() {
    const auto limiter = std::make_shared<asio_wheel::rate_limiter>(
        server.get_executor(), 1e6, 8 * mebibyte);
    server.next_layer().read_limiter(limiter);
    server.next_layer().write_limiter(limiter);
  }
};

// A whole message each way, over a WebSocket whose handshake is done.
template <typename WebSocket, typename Client>
void exchange_messages(fixture& f, WebSocket& server, Client& client) {
  for (const std::size_t size : {std::size_t(0), std::size_t(1), mebibyte}) {
    const std::string sent = random_bytes(size);
    beast::flat_buffer at_server, at_client;
    result written, read, written_back, read_back;
    server.binary(true);
    client.binary(true);
    server.async_read(at_server, into{read});
    client.async_write(asio::buffer(sent), into{written});
    f.run_until([&] { return written.done && read.done; });
    BOOST_TEST(!written.ec);
    BOOST_TEST(!read.ec);
    BOOST_TEST((beast::buffers_to_string(at_server.data()) == sent));

    client.async_read(at_client, into{read_back});
    server.async_write(at_server.data(), into{written_back});
    f.run_until([&] { return written_back.done && read_back.done; });
    BOOST_TEST(!written_back.ec);
    BOOST_TEST(!read_back.ec);
    BOOST_TEST((beast::buffers_to_string(at_client.data()) == sent));
  }
}

} // namespace

// TLS

BOOST_FIXTURE_TEST_CASE(tls_carries_every_byte, tls_fixture) {
  server.next_layer().timeouts(every_timeout());
  client.next_layer().timeouts(every_timeout());
  handshake();

  const std::string sent = random_bytes(4 * mebibyte);
  std::string received(sent.size(), '\0');
  echo<tls_stream> echoing(server);
  result written, read;
  asio::async_write(client, asio::buffer(sent), into{written});
  asio::async_read(client, asio::buffer(received), into{read});
  run_until([&] { return written.done && read.done; });
  BOOST_TEST(!written.ec);
  BOOST_TEST(!read.ec);
  BOOST_TEST((received == sent));
  BOOST_TEST(client.next_layer().bytes_written() > sent.size());
  BOOST_TEST(server.next_layer().bytes_read() ==
             client.next_layer().bytes_written());

  result shut;
  client.async_shutdown(into{shut});
  run_until([&] { return bool(echoing.ended()); });
  BOOST_TEST(echoing.ended() == asio::error::eof);
  result answered;
  server.async_shutdown(into{answered});
  run_until([&] { return answered.done && shut.done; });
  BOOST_TEST(!answered.ec);
  BOOST_TEST(!shut.ec);
}

BOOST_FIXTURE_TEST_CASE(tls_handshake_with_a_silent_peer_ends, tls_fixture) {
  server.next_layer().timeouts(only(&stream_timeouts::read, 5s));
  result r;
  server.async_handshake(tls_stream::server, into{r});
  check_ends_after(5s, r, error::read_timeout);
}

BOOST_FIXTURE_TEST_CASE(tls_handshake_of_a_client_with_a_silent_server_ends,
                        tls_fixture) {
  client.next_layer().timeouts(only(&stream_timeouts::idle, 5s));
  result r;
  client.async_handshake(tls_stream::client, into{r});
  check_ends_after(5s, r, error::idle_timeout);
}

BOOST_FIXTURE_TEST_CASE(tls_handshake_that_drips_meets_the_deadline,
                        tls_fixture) {
  // The head of a ClientHello, then a byte a second: no read times out.
  server.next_layer().timeouts(only(&stream_timeouts::read, 2s));
  server.next_layer().expires_after(10s);
  result r;
  server.async_handshake(tls_stream::server, into{r});
  tcp::socket& dripping = client.next_layer().socket();
  asio::write(dripping,
              asio::buffer("\x16\x03\x01\x02\x00\x01\x00\x01\xfc", 9));
  for (std::uint64_t sent = 9; sent != 18; ++sent) {
    run_until([&] { return server.next_layer().bytes_read() == sent; });
    BOOST_TEST_REQUIRE(!r.done);
    advance(1s);
    asio::write(dripping, asio::buffer("\x03", 1));
  }
  run_until([&] { return server.next_layer().bytes_read() == 18; });
  check_ends_after(1s, r, error::deadline_exceeded);
}

BOOST_FIXTURE_TEST_CASE(tls_read_goes_on_after_a_timeout, tls_fixture) {
  handshake();
  server.next_layer().timeouts(only(&stream_timeouts::read, 5s));
  std::string received(5, '\0');
  result first, written, second;
  server.async_read_some(asio::buffer(received), into{first});
  check_ends_after(5s, first, error::read_timeout);

  asio::async_read(server, asio::buffer(received), into{second});
  asio::async_write(client, asio::buffer("hello", 5), into{written});
  run_until_done(second);
  BOOST_TEST(!second.ec);
  BOOST_TEST(received == "hello");
}

BOOST_FIXTURE_TEST_CASE(tls_write_to_a_peer_that_does_not_read_ends,
                        tls_fixture) {
  handshake();
  server.next_layer().timeouts(only(&stream_timeouts::write, 5s));
  const std::string data = random_bytes(32 * mebibyte);
  result r;
  asio::async_write(server, asio::buffer(data), into{r});
  check_ends_when_nothing_moves(5s, r, error::write_timeout);
}

BOOST_FIXTURE_TEST_CASE(tls_shutdown_with_a_silent_peer_ends, tls_fixture) {
  handshake();
  server.next_layer().timeouts(only(&stream_timeouts::read, 5s));
  result r;
  server.async_shutdown(into{r});
  check_ends_after(5s, r, error::read_timeout);
}

// WebSocket

BOOST_FIXTURE_TEST_CASE(websocket_carries_every_byte, ws_fixture) {
  server.next_layer().timeouts(every_timeout());
  client.next_layer().timeouts(every_timeout());
  handshake();
  exchange_messages(*this, server, client);

  beast::flat_buffer nothing;
  result read, closed;
  server.async_read(nothing, into{read});
  client.async_close(websocket::close_code::normal, into{closed});
  run_until([&] { return read.done && closed.done; });
  BOOST_TEST(read.ec == error_code(websocket::error::closed));
  BOOST_TEST(!closed.ec);
  BOOST_TEST(!client.next_layer().is_open());
  BOOST_TEST(!server.next_layer().is_open());
}

BOOST_FIXTURE_TEST_CASE(websocket_over_tls_carries_every_byte, tls_fixture) {
  server.next_layer().timeouts(every_timeout());
  client.next_layer().timeouts(every_timeout());
  handshake();
  wss_stream ws_server(std::move(server)), ws_client(std::move(client));
  result s, c;
  ws_server.async_accept(into{s});
  ws_client.async_handshake("localhost", "/", into{c});
  run_until([&] { return s.done && c.done; });
  BOOST_TEST_REQUIRE(!s.ec);
  BOOST_TEST_REQUIRE(!c.ec);
  exchange_messages(*this, ws_server, ws_client);
}

BOOST_FIXTURE_TEST_CASE(websocket_handshake_with_a_silent_peer_ends,
                        ws_fixture) {
  server.next_layer().timeouts(only(&stream_timeouts::read, 5s));
  result r;
  server.async_accept(into{r});
  check_ends_after(5s, r, error::read_timeout);
}

BOOST_FIXTURE_TEST_CASE(websocket_read_from_a_silent_peer_ends, ws_fixture) {
  handshake();
  server.next_layer().timeouts(only(&stream_timeouts::idle, 5s));
  beast::flat_buffer data;
  result r;
  server.async_read(data, into{r});
  check_ends_after(5s, r, error::idle_timeout);
}

BOOST_FIXTURE_TEST_CASE(websocket_write_to_a_peer_that_does_not_read_ends,
                        ws_fixture) {
  handshake();
  server.next_layer().timeouts(only(&stream_timeouts::write, 5s));
  const std::string data = random_bytes(32 * mebibyte);
  server.binary(true);
  result r;
  server.async_write(asio::buffer(data), into{r});
  check_ends_when_nothing_moves(5s, r, error::write_timeout);
}

// https://github.com/boostorg/beast/issues/2716
BOOST_DATA_TEST_CASE_F(ws_fixture,
                       websocket_on_which_only_pings_move_stays_open,
                       boost::unit_test::data::make({1, 3}), counts) {
  handshake();
  auto t = only(&stream_timeouts::idle, 5s);
  t.idle_counts = static_cast<asio_wheel::idle_activity>(counts);
  server.next_layer().timeouts(t);
  beast::flat_buffer data;
  result r;
  server.async_read(data, into{r});
  for (int i = 0; i != 20; ++i) { // 80 s
    advance(4s);
    BOOST_TEST_REQUIRE(!r.done);
    const auto before = server.next_layer().bytes_read();
    result pinged;
    client.async_ping({}, into{pinged});
    run_until([&] { return server.next_layer().bytes_read() != before; });
    run_until_done(pinged);
  }
  check_ends_after(5s, r, error::idle_timeout);
}

BOOST_FIXTURE_TEST_CASE(websocket_ping_of_the_owner_when_idle_keeps_it_open,
                        ws_fixture) {
  handshake();
  auto t = only(&stream_timeouts::idle, 5s);
  t.idle_counts = asio_wheel::idle_activity::received;
  server.next_layer().timeouts(t);
  beast::flat_buffer at_server, at_client;
  result read, client_read;
  server.async_read(at_server, into{read});
  client.async_read(at_client, into{client_read}); // answers pings

  int idle_times = 0;
  std::function<void(error_code)> when_idle = [&](error_code ec) {
    if (ec)
      return;
    ++idle_times;
    server.async_ping({}, [](error_code) {});
    server.next_layer().async_wait_idle(std::ref(when_idle));
  };
  server.next_layer().async_wait_idle(std::ref(when_idle));
  for (int i = 1; i != 10; ++i) {
    const auto before = server.next_layer().bytes_read();
    advance(5s - 1ms);
    BOOST_TEST(idle_times == i - 1);
    advance(100ms); // 1/64, and a little
    BOOST_TEST(idle_times == i);
    run_until([&] { return server.next_layer().bytes_read() != before; });
    BOOST_TEST_REQUIRE(!read.done);
  }
  server.next_layer().cancel();
  run_until_done(read);
  BOOST_TEST(read.ec == asio::error::operation_aborted);
}

BOOST_FIXTURE_TEST_CASE(websocket_close_with_a_silent_peer_ends, ws_fixture) {
  handshake();
  server.next_layer().timeouts(only(&stream_timeouts::read, 5s));
  result r;
  server.async_close(websocket::close_code::normal, into{r});
  check_ends_after(5s, r, error::read_timeout);
}

BOOST_FIXTURE_TEST_CASE(websocket_close_during_a_read_with_a_silent_peer_ends,
                        ws_fixture) {
  handshake();
  beast::flat_buffer data;
  result read, closed;
  server.async_read(data, into{read});
  poll();
  server.next_layer().expires_after(5s);
  server.async_close(websocket::close_code::normal, into{closed});
  check_ends_after(5s, read, error::deadline_exceeded);
  run_until_done(closed);
  BOOST_TEST(bool(closed.ec));
}

BOOST_FIXTURE_TEST_CASE(websocket_teardown_with_a_peer_that_stays_ends,
                        ws_fixture) {
  handshake();
  server.next_layer().timeouts(only(&stream_timeouts::read, 5s));
  result r;
  close_with_a_peer_that_stays(r, server.next_layer());
  check_ends_after(5s, r, error::read_timeout);
}

BOOST_FIXTURE_TEST_CASE(websocket_over_a_limited_stream_closes_at_both_ends,
                        limited_ws_fixture) {
  handshake();
  exchange_messages(*this, server, client);
  beast::flat_buffer at_client;
  result read, closed;
  client.async_read(at_client, into{read});
  server.async_close(websocket::close_code::normal, into{closed});
  run_until([&] { return read.done && closed.done; });
  BOOST_TEST(read.ec == error_code(websocket::error::closed));
  BOOST_TEST(!closed.ec);
  BOOST_TEST(!server.next_layer().next_layer().socket().is_open());
}

BOOST_FIXTURE_TEST_CASE(
    websocket_teardown_over_a_limited_stream_is_bounded_by_its_next_layer,
    limited_ws_fixture) {
  handshake();
  auto& bounded = server.next_layer().next_layer();
  bounded.timeouts(only(&stream_timeouts::read, 5s));
  result r;
  close_with_a_peer_that_stays(r, bounded);
  check_ends_after(5s, r, error::read_timeout);
}

BOOST_FIXTURE_TEST_CASE(limited_streams_are_torn_down_and_closed_blocking,
                        fixture) {
  limited_stream server(std::move(near));
  far.shutdown(tcp::socket::shutdown_send);
  error_code ec = error::wheel_stopped;
  teardown(beast::role_type::server, server, ec);
  BOOST_TEST(!ec);
  char c;
  far.read_some(asio::buffer(&c, 1), ec);
  BOOST_TEST(ec == asio::error::eof);

  limited_stream other{tcp::socket(server.get_executor(), tcp::v4())};
  beast::close_socket(other);
  BOOST_TEST(!other.lowest_layer().is_open());
}

// HTTP

BOOST_FIXTURE_TEST_CASE(http_carries_every_byte, fixture) {
  stream server(std::move(near)), client(std::move(far));
  server.timeouts(every_timeout());
  client.timeouts(every_timeout());
  for (int i = 0; i != 3; ++i) { // keep-alive
    http::request<http::string_body> request(http::verb::post, "/", 11);
    request.body() = random_bytes(mebibyte);
    request.prepare_payload();
    beast::flat_buffer server_data(64 * 1024), client_data(64 * 1024);
    http::request<http::string_body> at_server;
    http::response<http::string_body> at_client;
    result written, read, written_back, read_back;
    http::async_read(server, server_data, at_server, into{read});
    http::async_write(client, request, into{written});
    run_until([&] { return written.done && read.done; });
    BOOST_TEST(!written.ec);
    BOOST_TEST(!read.ec);
    BOOST_TEST((at_server.body() == request.body()));

    http::response<http::string_body> response(http::status::ok, 11);
    response.body() = at_server.body();
    response.prepare_payload();
    http::async_read(client, client_data, at_client, into{read_back});
    http::async_write(server, response, into{written_back});
    run_until([&] { return written_back.done && read_back.done; });
    BOOST_TEST(!written_back.ec);
    BOOST_TEST(!read_back.ec);
    BOOST_TEST((at_client.body() == request.body()));
  }
}

BOOST_FIXTURE_TEST_CASE(http_read_from_a_peer_silent_within_a_header_ends,
                        fixture) {
  stream server(std::move(near));
  server.timeouts(only(&stream_timeouts::read, 5s));
  beast::flat_buffer data;
  http::request<http::string_body> request;
  result r;
  http::async_read(server, data, request, into{r});
  asio::write(far, asio::buffer("GET / HTTP/1.1\r\nHost: a", 23));
  run_until([&] { return server.bytes_read() == 23; });
  check_ends_after(5s, r, error::read_timeout);
}

BOOST_FIXTURE_TEST_CASE(http_write_to_a_peer_that_does_not_read_ends, fixture) {
  stream server(std::move(near));
  server.timeouts(only(&stream_timeouts::write, 5s));
  http::response<http::string_body> response(http::status::ok, 11);
  response.body() = random_bytes(32 * mebibyte);
  response.prepare_payload();
  result r;
  http::async_write(server, response, into{r});
  check_ends_when_nothing_moves(5s, r, error::write_timeout);
}

// Asio's composed operations

BOOST_FIXTURE_TEST_CASE(read_until_goes_on_after_a_timeout, fixture) {
  stream server(std::move(near));
  server.timeouts(only(&stream_timeouts::read, 5s));
  std::string line;
  result first, second;
  asio::async_read_until(server, asio::dynamic_buffer(line), '\n', into{first});
  asio::write(far, asio::buffer("hel", 3));
  run_until([&] { return server.bytes_read() == 3; });
  check_ends_after(5s, first, error::read_timeout);
  BOOST_TEST(line == "hel"); // nothing is lost

  asio::async_read_until(server, asio::dynamic_buffer(line), '\n',
                         into{second});
  asio::write(far, asio::buffer("lo\nmore", 7));
  run_until_done(second);
  BOOST_TEST(!second.ec);
  BOOST_TEST(second.bytes == 6u);
  BOOST_TEST(line.substr(0, second.bytes) == "hello\n");
}

BOOST_FIXTURE_TEST_CASE(async_connect_then_transfer, fixture) {
  tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
  stream client(io);
  client.timeouts(every_timeout());
  result connected;
  client.async_connect(acceptor.local_endpoint(), into{connected});
  run_until_done(connected);
  BOOST_TEST_REQUIRE(!connected.ec);
  stream server(acceptor.accept());
  server.timeouts(every_timeout());

  const std::string sent = random_bytes(4 * mebibyte);
  std::string received(sent.size(), '\0');
  echo<stream> echoing(server);
  result written, read;
  asio::async_write(client, asio::buffer(sent), into{written});
  asio::async_read(client, asio::buffer(received), into{read});
  run_until([&] { return written.done && read.done; });
  BOOST_TEST(!written.ec);
  BOOST_TEST(!read.ec);
  BOOST_TEST((received == sent));
  BOOST_TEST(client.bytes_read() == sent.size());
  BOOST_TEST(client.bytes_written() == sent.size());
  client.close();
  run_until([&] { return bool(echoing.ended()); });
  BOOST_TEST(echoing.ended() == asio::error::eof);
}
