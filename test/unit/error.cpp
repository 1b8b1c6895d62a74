//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/error.hpp>

#define BOOST_TEST_MODULE unit_error
#include <boost/test/unit_test.hpp>

#include <boost/asio/error.hpp>
#include <boost/system/errc.hpp>
#include <boost/system/system_error.hpp>

#include <cerrno>
#include <cstdint>
#include <set>
#include <string>
#include <system_error>
#include <type_traits>
#include <vector>

namespace asio = boost::asio;
namespace sys = boost::system;
using asio_wheel::condition;
using asio_wheel::error;
using asio_wheel::error_code;
using asio_wheel::error_condition;

namespace {

const std::vector<error> timeouts = {
    error::idle_timeout,    error::read_timeout,      error::write_timeout,
    error::connect_timeout, error::operation_timeout, error::deadline_exceeded,
};
const std::vector<error> others = {
    error::too_slow,
    error::too_many_pending,
    error::wheel_stopped,
    error::operation_in_progress,
};
// One that comes later than the last, so that a new error has to be added here.
constexpr int past_the_last = 11;

std::vector<error> all_errors() {
  std::vector<error> all = timeouts;
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

// What a code compares equal to.
struct row {
  const char* name;
  error_code code;
  bool timeout;           // condition::timeout
  bool errc_timed_out;    // boost::system::errc::timed_out
  bool asio_timed_out;    // asio::error::timed_out
  bool operation_aborted; // asio::error::operation_aborted
};

const bool yes = true, no = false;

std::vector<row> truth_table() {
  const auto& generic = sys::generic_category();
  const auto& system = sys::system_category();
  const auto& ours = asio_wheel::wheel_category();
  return {
      // clang-format off
      // our errors                                   timeout errc asio aborted
      {"idle_timeout", error::idle_timeout,               yes, yes, no,  no},
      {"read_timeout", error::read_timeout,               yes, yes, no,  no},
      {"write_timeout", error::write_timeout,             yes, yes, no,  no},
      {"connect_timeout", error::connect_timeout,         yes, yes, no,  no},
      {"operation_timeout", error::operation_timeout,     yes, yes, no,  no},
      {"deadline_exceeded", error::deadline_exceeded,     yes, yes, no,  no},
      {"too_slow", error::too_slow,                       no,  no,  no,  no},
      {"too_many_pending", error::too_many_pending,       no,  no,  no,  no},
      {"wheel_stopped", error::wheel_stopped,             no,  no,  no,  no},
      {"operation_in_progress", error::operation_in_progress,
                                                          no,  no,  no,  no},
      // Asio's
      {"asio timed_out", asio::error::timed_out,          yes, yes, yes, no},
      {"asio aborted", asio::error::operation_aborted,    no,  no,  no,  yes},
      {"asio eof", asio::error::eof,                      no,  no,  no,  no},
      {"asio not_found", asio::error::not_found,          no,  no,  no,  no},
      {"asio refused", asio::error::connection_refused,   no,  no,  no,  no},
      {"asio would_block", asio::error::would_block,      no,  no,  no,  no},
      // The generic category
      {"generic timed out",
       sys::errc::make_error_code(sys::errc::timed_out),  yes, yes, no,  no},
      {"generic canceled",
       sys::errc::make_error_code(
           sys::errc::operation_canceled),                no,  no,  no,  no},
      {"generic 1", {1, generic},                         no,  no,  no,  no},
      {"generic 2", {2, generic},                         no,  no,  no,  no},
      {"generic 0", {0, generic},                         no,  no,  no,  no},
      // The system category: the numbers of our errors are not ours there
      {"system 1", {1, system},                           no,  no,  no,  no},
      {"system 5", {5, system},                           no,  no,  no,  no},
      {"success", {},                                     no,  no,  no,  no},
      // Values that are none of ours
      {"ours, 0", {0, ours},                              no,  no,  no,  no},
      {"ours, -1", {-1, ours},                            no,  no,  no,  no},
      {"ours, next", {past_the_last, ours},               no,  no,  no,  no},
      {"ours, ETIMEDOUT", {ETIMEDOUT, ours},              no,  no,  no,  no},
      {"ours, large", {2147483647, ours},                 no,  no,  no,  no},
      // The standard library's, carried in a boost::system::error_code
      {"std timed out",
       std::make_error_code(std::errc::timed_out),        yes, yes, no,  no},
      {"std canceled",
       std::make_error_code(std::errc::operation_canceled), no, no, no,  no},
      // clang-format on
  };
}

} // namespace

BOOST_AUTO_TEST_CASE(each_code_compares_as_the_truth_table_says) {
  for (const row& r : truth_table()) {
    BOOST_TEST_CONTEXT(r.name) {
      BOOST_TEST((r.code == condition::timeout) == r.timeout);
      BOOST_TEST((r.code == sys::errc::timed_out) == r.errc_timed_out);
      BOOST_TEST((r.code == asio::error::timed_out) == r.asio_timed_out);
      BOOST_TEST((r.code == asio::error::operation_aborted) ==
                 r.operation_aborted);
      // The other way round, and negated.
      BOOST_TEST((condition::timeout == r.code) == r.timeout);
      BOOST_TEST((sys::errc::timed_out == r.code) == r.errc_timed_out);
      BOOST_TEST((r.code != condition::timeout) == !r.timeout);
      BOOST_TEST((r.code != sys::errc::timed_out) == !r.errc_timed_out);
      BOOST_TEST((r.code != asio::error::timed_out) == !r.asio_timed_out);
      BOOST_TEST((r.code != asio::error::operation_aborted) ==
                 !r.operation_aborted);
      // An error of ours that compares equal to the condition of the standard
      // does so to ours, and the reverse.
      BOOST_TEST(r.timeout == r.errc_timed_out);
    }
  }
}

#if !defined(_WIN32)
BOOST_AUTO_TEST_CASE(the_systems_own_timeout_is_one) {
  const error_code code(ETIMEDOUT, sys::system_category());
  BOOST_TEST((code == condition::timeout));
  BOOST_TEST((code == sys::errc::timed_out));
  BOOST_TEST((code == asio::error::timed_out));
  BOOST_TEST((code != asio::error::operation_aborted));
  const error_code cancelled(ECANCELED, sys::system_category());
  BOOST_TEST((cancelled != condition::timeout));
  BOOST_TEST((cancelled == asio::error::operation_aborted));
}
#endif

BOOST_AUTO_TEST_CASE(each_error_equals_itself_only) {
  const auto all = all_errors();
  for (error a : all) {
    const error_code code = a;
    BOOST_TEST((code == a));
    BOOST_TEST((code == make_error_code(a)));
    for (error b : all)
      BOOST_TEST((code == b) == (a == b));
    BOOST_TEST((code != error_code(code.value(), sys::generic_category())));
    BOOST_TEST((code != error_code(code.value(), sys::system_category())));
  }
}

BOOST_AUTO_TEST_CASE(the_values_are_fixed) {
  BOOST_TEST(static_cast<int>(error::idle_timeout) == 1);
  BOOST_TEST(static_cast<int>(error::read_timeout) == 2);
  BOOST_TEST(static_cast<int>(error::write_timeout) == 3);
  BOOST_TEST(static_cast<int>(error::connect_timeout) == 4);
  BOOST_TEST(static_cast<int>(error::operation_timeout) == 5);
  BOOST_TEST(static_cast<int>(error::deadline_exceeded) == 6);
  BOOST_TEST(static_cast<int>(error::too_slow) == 7);
  BOOST_TEST(static_cast<int>(error::too_many_pending) == 8);
  BOOST_TEST(static_cast<int>(error::wheel_stopped) == 9);
  BOOST_TEST(static_cast<int>(error::operation_in_progress) == 10);
  BOOST_TEST(static_cast<int>(condition::timeout) == 1);
  BOOST_TEST(all_errors().size() == past_the_last - 1u);
}

BOOST_AUTO_TEST_CASE(errors_are_failures_and_convert_implicitly) {
  static_assert(sys::is_error_code_enum<error>::value);
  static_assert(sys::is_error_condition_enum<condition>::value);
  static_assert(!sys::is_error_condition_enum<error>::value);
  static_assert(!sys::is_error_code_enum<condition>::value);
  static_assert(std::is_convertible_v<error, error_code>);
  static_assert(std::is_convertible_v<condition, error_condition>);
  static_assert(noexcept(make_error_code(error::too_slow)));
  static_assert(noexcept(make_error_condition(condition::timeout)));
  for (error e : all_errors()) {
    const error_code code = e;
    BOOST_TEST(code.failed());
    BOOST_TEST((code.category() == asio_wheel::wheel_category()));
  }
  const error_condition timeout = condition::timeout;
  BOOST_TEST((timeout.category() == asio_wheel::wheel_condition_category()));
  BOOST_TEST(timeout.value() == 1);
}

BOOST_AUTO_TEST_CASE(the_default_condition_of_a_timeout_is_timed_out) {
  for (error e : timeouts)
    BOOST_TEST((error_code(e).default_error_condition() ==
                make_error_condition(sys::errc::timed_out)));
  for (error e : others) {
    const auto c = error_code(e).default_error_condition();
    BOOST_TEST((c.category() == asio_wheel::wheel_category()));
    BOOST_TEST(c.value() == static_cast<int>(e));
  }
}

BOOST_AUTO_TEST_CASE(a_condition_is_not_another_one) {
  const error_condition ours = condition::timeout;
  BOOST_TEST((ours != make_error_condition(sys::errc::timed_out)));
  // An unknown condition of ours matches no timeout.
  const error_condition unknown(2, asio_wheel::wheel_condition_category());
  for (const row& r : truth_table())
    BOOST_TEST((r.code != unknown));
  // Nor is a code of the condition's category ever one of ours.
  const error_code odd(1, asio_wheel::wheel_condition_category());
  BOOST_TEST((odd != error::idle_timeout));
}

BOOST_AUTO_TEST_CASE(categories_have_names_and_are_distinct) {
  const auto& ours = asio_wheel::wheel_category();
  const auto& conditions = asio_wheel::wheel_condition_category();
  BOOST_TEST(ours.name() == std::string("asio_wheel"));
  BOOST_TEST(conditions.name() == std::string("asio_wheel.condition"));
  const std::vector<const sys::error_category*> all = {
      &ours,
      &conditions,
      &sys::generic_category(),
      &sys::system_category(),
      &asio::error::get_misc_category(),
      &asio::error::get_netdb_category(),
      &asio::error::get_addrinfo_category(),
  };
  for (const auto* a : all)
    for (const auto* b : all)
      BOOST_TEST((*a == *b) == (a == b));
  BOOST_TEST(&ours == &asio_wheel::wheel_category());
}

BOOST_AUTO_TEST_CASE(category_ids_are_fixed) {
  // Two copies of the library in one process have to agree, so the ids are part
  // of the interface: categories are equal if their ids are.
  struct lookalike : sys::error_category {
    explicit lookalike(std::uint64_t id) : error_category(id) {}
    const char* name() const noexcept override { return "lookalike"; }
    std::string message(int) const override { return "lookalike"; }
  };
  const lookalike errors(0x6177'5f65'7272'0001);
  const lookalike conditions(0x6177'5f63'6f6e'0001);
  const lookalike stranger(0x6177'5f65'7272'0002);
  BOOST_TEST((errors == asio_wheel::wheel_category()));
  BOOST_TEST((conditions == asio_wheel::wheel_condition_category()));
  BOOST_TEST((stranger != asio_wheel::wheel_category()));
  BOOST_TEST((stranger != asio_wheel::wheel_condition_category()));
  BOOST_TEST((error_code(2, errors) == error::read_timeout));
}

BOOST_AUTO_TEST_CASE(messages_are_distinct_and_not_empty) {
  std::set<std::string> seen;
  for (error e : all_errors()) {
    const std::string message = error_code(e).message();
    BOOST_TEST(!message.empty());
    BOOST_TEST(seen.insert(message).second);
  }
  for (int unknown : {0, -1, past_the_last, 9999}) {
    const error_code code(unknown, asio_wheel::wheel_category());
    BOOST_TEST(!code.message().empty());
    BOOST_TEST(seen.count(code.message()) == 0u);
    BOOST_TEST(code.message() ==
               error_code(0, asio_wheel::wheel_category()).message());
  }
  const auto timeout = make_error_condition(condition::timeout).message();
  const auto unknown =
      error_condition(2, asio_wheel::wheel_condition_category()).message();
  BOOST_TEST(!timeout.empty());
  BOOST_TEST(!unknown.empty());
  BOOST_TEST(timeout != unknown);
}

BOOST_AUTO_TEST_CASE(messages_without_allocation_say_the_same) {
  char buffer[8]; // not needed: the texts are literals
  for (int value = -1; value <= past_the_last; ++value) {
    const error_code code(value, asio_wheel::wheel_category());
    BOOST_TEST(code.message() == code.message(buffer, sizeof(buffer)));
    const error_condition c(value, asio_wheel::wheel_condition_category());
    BOOST_TEST(c.message() == c.message(buffer, sizeof(buffer)));
  }
}

BOOST_AUTO_TEST_CASE(a_system_error_says_what) {
  try {
    throw sys::system_error(error::read_timeout, "session");
  } catch (const sys::system_error& e) {
    BOOST_TEST((e.code() == error::read_timeout));
    const std::string what = e.what();
    BOOST_TEST((what.find("session") != std::string::npos));
    BOOST_TEST((what.find("read timeout") != std::string::npos));
  }
}

BOOST_AUTO_TEST_CASE(codes_of_the_standard_library_compare_alike) {
  const std::error_condition timeout = make_error_condition(condition::timeout);
  for (error e : all_errors()) {
    const error_code code = e;
    const std::error_code as_std = code;
    const bool is_timeout = code == condition::timeout;
    BOOST_TEST_CONTEXT(code.message()) {
      BOOST_TEST(as_std.value() == code.value());
      BOOST_TEST(as_std.category().name() == std::string("asio_wheel"));
      BOOST_TEST(as_std.message() == code.message());
      BOOST_TEST((as_std == std::errc::timed_out) == is_timeout);
      BOOST_TEST((as_std == timeout) == is_timeout);
      BOOST_TEST((as_std != std::errc::operation_canceled));
      BOOST_TEST((as_std == std::error_code(make_error_code(e))));
      // And back again.
      const error_code back = as_std;
      BOOST_TEST((back == e));
      BOOST_TEST((back == condition::timeout) == is_timeout);
    }
  }
  BOOST_TEST((std::make_error_code(std::errc::timed_out) == timeout));
  BOOST_TEST((std::make_error_code(std::errc::operation_canceled) != timeout));
}
