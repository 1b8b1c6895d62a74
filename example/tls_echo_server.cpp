//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// A TLS echo server on which no connection can hang for ever, be it in the
// handshake, between messages or in the shutdown.
//
//   tls_echo_server --port 7777 --cert server.pem --key server.key
//   openssl s_client -connect 127.0.0.1:7777
//
// Without --cert it makes a key and a certificate of its own, which no client
// should trust. Stops gracefully on SIGINT and SIGTERM, and says what ended its
// connections.

#include <asio_wheel.hpp>

#include <boost/asio.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/program_options.hpp>

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iomanip>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace asio = boost::asio;
namespace po = boost::program_options;
namespace ssl = asio::ssl;
using namespace std::chrono_literals;
using asio::use_awaitable;
using asio::ip::tcp;
using asio_wheel::timeout_after;
using boost::system::error_code;

// TLS over a stream that knows about time: the TLS stream needs no timeouts.
using tls_stream = ssl::stream<asio_wheel::timeout_stream<tcp::socket>>;

// co_await gives the error_code instead of throwing it.
constexpr auto no_throw = asio::as_tuple(use_awaitable);

struct server {
  asio::io_context io{1}; // run by one thread
  ssl::context tls{ssl::context::tls_server};
  tcp::acceptor acceptor{io};
  asio_wheel::stream_timeouts timeouts;
  std::chrono::milliseconds handshake{}; // how long all of it may take
  std::chrono::milliseconds shutdown{};  // likewise
  std::list<tls_stream> open;
  std::map<std::string, std::size_t> ended; // by what, how many connections
};

asio::awaitable<error_code> echo(tls_stream& client) {
  std::array<char, 4096> data;
  for (;;) {
    auto [ec, n] =
        co_await client.async_read_some(asio::buffer(data), no_throw);
    if (ec)
      co_return ec;
    auto [write_ec, written] =
        co_await asio::async_write(client, asio::buffer(data, n), no_throw);
    if (write_ec)
      co_return write_ec;
  }
}

// Returns what ended the connection.
asio::awaitable<std::string> session(server& s, tls_stream& client) {
  // Several reads and writes, each bounded by the stream; a peer that sends one
  // byte now and then must not keep it going, so all together are bounded too.
  auto [handshake_ec] = co_await client.async_handshake(
      tls_stream::server, timeout_after(s.handshake, no_throw));
  if (handshake_ec)
    co_return "in the handshake: " + handshake_ec.message();

  const error_code ec = co_await echo(client);
  std::string reason = ec.message();

  // A timeout only cancelled the read or the write: the TLS connection is
  // whole, so the peer is told the end. It is to answer, which may take time.
  if (ec == asio::error::eof || ec == asio_wheel::condition::timeout) {
    auto [shutdown_ec] =
        co_await client.async_shutdown(timeout_after(s.shutdown, no_throw));
    if (shutdown_ec)
      reason += "; in the shutdown: " + shutdown_ec.message();
  }
  co_return reason;
}

asio::awaitable<void> accept_all(server& s) {
  while (s.acceptor.is_open()) {
    auto [ec, socket] = co_await s.acceptor.async_accept(no_throw);
    if (!ec) {
      const auto client =
          s.open.emplace(s.open.end(), std::move(socket), s.tls);
      client->next_layer().timeouts(s.timeouts);
      co_spawn(s.io, session(s, *client),
               [&s, client](std::exception_ptr e, const std::string& reason) {
                 if (e) // no memory: let it end the server
                   std::rethrow_exception(e);
                 ++s.ended[reason];
                 s.open.erase(client); // closes the socket
               });
    } else if (s.acceptor.is_open()) { // no more descriptors, most likely
      asio_wheel::wheel_timer pause(s.io, 100ms);
      co_await pause.async_wait(use_awaitable);
    }
  }
}

// The order of a graceful stop: no new connections; those that fall silent are
// let go, one after the other; after two seconds the busy ones go too.
asio::awaitable<void> stop_on_signal(server& s) {
  asio::signal_set signals(s.io, SIGINT, SIGTERM);
  co_await signals.async_wait(use_awaitable);
  signals.clear(); // a second one kills

  s.acceptor.close();
  co_await asio_wheel::use_wheel(s.io).async_drain(2s, no_throw);
  error_code ignored;
  for (tls_stream& client : s.open)
    client.next_layer().close(ignored);
}

// So that the server runs from a fresh clone: a new key, and a certificate for
// "localhost" that is signed with the key itself.
void use_self_signed(ssl::context& tls) {
  const auto check = [](bool ok) {
    if (!ok)
      throw std::runtime_error("OpenSSL cannot make a certificate");
  };
  EVP_PKEY* raw_key = nullptr;
  const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> generator(
      EVP_PKEY_CTX_new_id(EVP_PKEY_RSA, nullptr), EVP_PKEY_CTX_free);
  check(generator && EVP_PKEY_keygen_init(generator.get()) == 1 &&
        EVP_PKEY_keygen(generator.get(), &raw_key) == 1); // 2048 bits
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(raw_key,
                                                                EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> cert(X509_new(), X509_free);
  check(cert != nullptr);
  constexpr long day = 24 * 60 * 60;
  X509_set_version(cert.get(), 2); // that is version 3
  ASN1_INTEGER_set(X509_get_serialNumber(cert.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(cert.get()), -day);
  X509_gmtime_adj(X509_getm_notAfter(cert.get()), 30 * day);
  X509_NAME* name = X509_get_subject_name(cert.get());
  check(X509_NAME_add_entry_by_txt(
            name, "CN", MBSTRING_ASC,
            reinterpret_cast<const unsigned char*>("localhost"), -1, -1,
            0) == 1 &&
        X509_set_issuer_name(cert.get(), name) == 1 &&
        X509_set_pubkey(cert.get(), key.get()) == 1 &&
        X509_sign(cert.get(), key.get(), EVP_sha256()) != 0 &&
        SSL_CTX_use_certificate(tls.native_handle(), cert.get()) == 1 &&
        SSL_CTX_use_PrivateKey(tls.native_handle(), key.get()) == 1);
}

void set_up_tls(ssl::context& tls, const po::variables_map& args) {
  if (args.count("cert") != args.count("key"))
    throw std::invalid_argument("--cert and --key go together");
  tls.set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 |
                  ssl::context::no_tlsv1_1);
  if (args.count("cert")) {
    const auto& cert = args["cert"].as<std::string>();
    const auto& key = args["key"].as<std::string>();
    error_code ec;
    tls.use_certificate_chain_file(cert, ec);
    if (ec)
      throw std::runtime_error("--cert " + cert + ": " + ec.message());
    tls.use_private_key_file(key, ssl::context::pem, ec);
    if (ec)
      throw std::runtime_error("--key " + key + ": " + ec.message());
  } else {
    use_self_signed(tls);
  }
}

void print_summary(const server& s) {
  std::size_t connections = 0;
  for (const auto& [reason, count] : s.ended)
    connections += count;
  std::cout << "connections: " << connections << '\n';
  for (const auto& [reason, count] : s.ended)
    std::cout << std::setw(10) << count << "  " << reason << '\n';
}

std::chrono::milliseconds seconds_of(const po::variables_map& args,
                                     const char* name) {
  const double value = args[name].as<double>();
  if (!(value >= 0.001 && value <= 1e6))
    throw std::invalid_argument("--" + std::string(name) +
                                ": from 0.001 to 1000000 seconds, please");
  return std::chrono::milliseconds(static_cast<std::int64_t>(value * 1000));
}

int main(int argc, char* argv[]) {
  try {
    po::options_description usage("Options");
    usage.add_options()("help", "print this");
    usage.add_options()("port", po::value<std::uint16_t>()->default_value(0),
                        "port on 127.0.0.1; 0: any free one");
    usage.add_options()("cert", po::value<std::string>(),
                        "file with the certificate chain, PEM");
    usage.add_options()("key", po::value<std::string>(),
                        "file with its private key, PEM");
    usage.add_options()("handshake", po::value<double>()->default_value(5),
                        "seconds that the whole handshake may take");
    usage.add_options()("idle", po::value<double>()->default_value(30),
                        "seconds for which no byte may move, either way");
    usage.add_options()("write", po::value<double>()->default_value(10),
                        "seconds for which the peer may accept nothing");
    usage.add_options()("shutdown", po::value<double>()->default_value(2),
                        "seconds that the peer may take to agree to the end");
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

    server s;
    set_up_tls(s.tls, args);
    s.timeouts.idle = seconds_of(args, "idle");
    s.timeouts.write = seconds_of(args, "write");
    s.handshake = seconds_of(args, "handshake");
    s.shutdown = seconds_of(args, "shutdown");
    s.acceptor = {s.io, tcp::endpoint(asio::ip::address_v4::loopback(),
                                      args["port"].as<std::uint16_t>())};
    std::cout << "listening on " << s.acceptor.local_endpoint() << std::endl;

    co_spawn(s.io, accept_all(s), asio::detached);
    co_spawn(s.io, stop_on_signal(s), asio::detached);
    s.io.run(); // returns when the last connection is gone
    print_summary(s);
  } catch (const boost::system::system_error& e) { // the port is in use, say
    std::cerr << "tls_echo_server: " << e.code().message() << '\n';
    return 1;
  } catch (const std::exception& e) {
    std::cerr << "tls_echo_server: " << e.what() << '\n';
    return 1;
  }
}
