//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include "machine.hpp"

#include <boost/version.hpp>

#include <cctype>
#include <fstream>
#include <string>
#include <thread>

#include <gnu/libc-version.h>
#include <sys/utsname.h>
#include <unistd.h>

namespace bench {

namespace {

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(": ");
    if (line.compare(0, 10, "model name") == 0 && colon != std::string::npos)
      return line.substr(colon + 2);
  }
  return "unknown";
}

std::string kernel() {
  utsname u;
  return uname(&u) == 0
             ? std::string(u.sysname) + " " + u.release + " " + u.machine
             : "unknown";
}

// The kernel marks the setting in force with brackets.
std::string huge_pages() {
  std::ifstream in("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string line;
  std::getline(in, line);
  const auto open = line.find('['), close = line.find(']');
  if (open == std::string::npos || close == std::string::npos)
    return "unknown";
  return line.substr(open + 1, close - open - 1);
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#elif defined(__GNUC__)
  return "gcc " __VERSION__;
#else
  return "unknown";
#endif
}

// The build says them in BENCH_FLAGS; the rest shows in macros.
std::string flags() {
  std::string all;
#if defined(BENCH_FLAGS)
  all = BENCH_FLAGS;
#elif defined(__OPTIMIZE__)
  all = "optimised";
#endif
#if !defined(__OPTIMIZE__)
  all += " (NOT OPTIMISED: the figures mean nothing)";
#endif
#if !defined(NDEBUG)
  all += " (with assertions)";
#endif
  return all;
}

std::string boost_version() {
  return std::to_string(BOOST_VERSION / 100000) + "." +
         std::to_string(BOOST_VERSION / 100 % 1000) + "." +
         std::to_string(BOOST_VERSION % 100);
}

} // namespace

void start_idle_thread() {
  std::thread([] {
    for (;;)
      ::pause();
  }).detach();
}

std::vector<std::pair<std::string, std::string>> describe_machine() {
  return {
      {"processor", cpu_model()},
      {"cores", std::to_string(std::thread::hardware_concurrency())},
      {"kernel", kernel()},
      {"transparent huge pages", huge_pages()},
      {"C library", std::string("glibc ") + gnu_get_libc_version()},
      {"compiler", compiler()},
      {"flags", flags()},
      {"Boost", boost_version()},
      {"fence", fence_name()},
  };
}

} // namespace bench
