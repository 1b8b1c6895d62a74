//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/wheel_options.hpp>

#define BOOST_TEST_MODULE wheel_options
#include <boost/test/unit_test.hpp>

#include <asio_wheel/wheel_service.hpp>
#include <asio_wheel/wheel_timer.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace asio = boost::asio;
using namespace std::chrono_literals;
using asio_wheel::make_wheel;
using asio_wheel::wheel_options;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The message of a refusal has to name the field and both ends of its range.
void check_refused(const wheel_options& o, const char* field, const char* least,
                   const char* most) {
  asio::io_context io;
  BOOST_CHECK_EXCEPTION(make_wheel(io, o), std::invalid_argument,
                        [&](const std::invalid_argument& e) {
                          BOOST_TEST_MESSAGE(e.what());
                          return contains(e.what(), field) &&
                                 contains(e.what(), least) &&
                                 contains(e.what(), most);
                        });
  // Nothing was left behind.
  BOOST_TEST(!asio::has_service<asio_wheel::wheel_service>(io));
  BOOST_CHECK_NO_THROW(make_wheel(io, wheel_options()));
}

void check_accepted(const wheel_options& o) {
  asio::io_context io;
  BOOST_CHECK_NO_THROW(make_wheel(io, o));
  asio_wheel::wheel_timer t(io);
  bool fired = false;
  t.async_wait([&](auto ec) { fired = !ec; });
  io.run();
  BOOST_TEST(fired);
}

} // namespace

BOOST_AUTO_TEST_CASE(defaults_are_the_hierarchical_wheel) {
  const wheel_options o, h = wheel_options::hierarchical();
  BOOST_TEST((o.tick == 1ms));
  BOOST_TEST(o.levels > 1u);
  BOOST_TEST(o.shards == 1u);
  BOOST_TEST(o.max_pending == 0u);
  BOOST_TEST(!o.single_threaded);
  BOOST_TEST(!o.clock);
  BOOST_TEST((h.tick == o.tick));
  BOOST_TEST(h.slots == o.slots);
  BOOST_TEST(h.levels == o.levels);
  check_accepted(h);
}

BOOST_AUTO_TEST_CASE(hashed_is_one_level_of_512_slots_of_100_ms) {
  const wheel_options o = wheel_options::hashed();
  BOOST_TEST((o.tick == 100ms));
  BOOST_TEST(o.slots == 512u);
  BOOST_TEST(o.levels == 1u);
  check_accepted(o);
}

BOOST_AUTO_TEST_CASE(tick_is_from_1_us_to_1_h) {
  wheel_options o;
  for (const std::chrono::nanoseconds t :
       {std::chrono::nanoseconds(0), std::chrono::nanoseconds(-1),
        std::chrono::nanoseconds(999), std::chrono::nanoseconds(1h) + 1ns,
        std::chrono::nanoseconds::max(), std::chrono::nanoseconds::min()}) {
    o.tick = t;
    check_refused(o, "tick", "1 us", "1 h");
  }
  for (const std::chrono::nanoseconds t :
       {std::chrono::nanoseconds(1us), std::chrono::nanoseconds(1001),
        std::chrono::nanoseconds(7ms), std::chrono::nanoseconds(1h)}) {
    o.tick = t;
    check_accepted(o);
  }
}

BOOST_AUTO_TEST_CASE(slots_are_a_power_of_two_from_2_to_65536) {
  wheel_options o;
  o.levels = 1;
  for (const std::size_t n :
       {std::size_t(0), std::size_t(1), std::size_t(3), std::size_t(255),
        std::size_t(65535), std::size_t(65537), std::size_t(131072),
        SIZE_MAX}) {
    o.slots = n;
    asio::io_context io;
    BOOST_CHECK_EXCEPTION(make_wheel(io, o), std::invalid_argument,
                          [](const std::invalid_argument& e) {
                            const std::string what = e.what();
                            return contains(what, "slots") &&
                                   contains(what, "2") &&
                                   (contains(what, "65536") ||
                                    contains(what, "65,536"));
                          });
  }
  for (std::size_t n = 2; n <= 65536; n *= 2) {
    o.slots = n;
    check_accepted(o);
  }
}

BOOST_AUTO_TEST_CASE(levels_are_as_many_as_fit_63_bits) {
  wheel_options o;
  o.slots = 2;
  o.levels = 0;
  check_refused(o, "levels", "1", "63");
  o.levels = 64;
  check_refused(o, "levels", "1", "63");
  o.levels = SIZE_MAX;
  check_refused(o, "levels", "1", "63");
  o.levels = 63;
  check_accepted(o);
  o.slots = 512;
  o.levels = 7;
  check_accepted(o);
  o.levels = 8;
  check_refused(o, "levels", "1", "63");
  o.slots = 65536;
  o.levels = 3;
  check_accepted(o);
  o.levels = 4;
  check_refused(o, "levels", "1", "63");
  o.slots = 256;
  o.levels = SIZE_MAX / 8 + 2; // times 8 bits it wraps to something small
  check_refused(o, "levels", "1", "63");
}

BOOST_AUTO_TEST_CASE(shards_are_from_1_to_1024) {
  wheel_options o;
  o.slots = 2;
  o.shards = 0;
  check_refused(o, "shards", "1", "1024");
  o.shards = 1025;
  check_refused(o, "shards", "1", "1024");
  o.shards = SIZE_MAX;
  check_refused(o, "shards", "1", "1024");
  o.shards = 1024;
  check_accepted(o);
}

BOOST_AUTO_TEST_CASE(expiry_batch_has_a_range) {
  wheel_options o;
  o.expiry_batch = 0;
  check_refused(o, "expiry_batch", "1",
                std::to_string(wheel_options::max_expiry_batch).c_str());
  o.expiry_batch = wheel_options::max_expiry_batch + 1;
  check_refused(o, "expiry_batch", "1",
                std::to_string(wheel_options::max_expiry_batch).c_str());
  o.expiry_batch = 1;
  check_accepted(o);
  o.expiry_batch = wheel_options::max_expiry_batch;
  check_accepted(o);
}

BOOST_AUTO_TEST_CASE(max_pending_may_be_anything) {
  wheel_options o;
  for (const std::size_t n : {std::size_t(0), std::size_t(1), SIZE_MAX}) {
    o.max_pending = n;
    check_accepted(o);
  }
}

BOOST_AUTO_TEST_CASE(options_are_kept_as_they_were_given) {
  asio::io_context io;
  wheel_options o;
  o.tick = 3ms;
  o.slots = 64;
  o.levels = 6;
  o.shards = 2;
  o.max_pending = 17;
  o.expiry_batch = 5;
  o.single_threaded = true;
  o.clock.emplace();
  const auto& kept = make_wheel(io, o).options();
  BOOST_TEST((kept.tick == o.tick));
  BOOST_TEST(kept.slots == o.slots);
  BOOST_TEST(kept.levels == o.levels);
  BOOST_TEST(kept.shards == o.shards);
  BOOST_TEST(kept.max_pending == o.max_pending);
  BOOST_TEST(kept.expiry_batch == o.expiry_batch);
  BOOST_TEST(kept.single_threaded == o.single_threaded);
  BOOST_TEST((kept.clock == o.clock));
}
