//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//
#include "peers.hpp"

#include <iostream>

namespace bench {

namespace {

#if !defined(BENCH_HAS_LIBUV) || !defined(BENCH_HAS_LIBEVENT) ||               \
    !defined(BENCH_HAS_LIBEV)
void left_out(const char* name, const char* package) {
  std::cerr << "skipped: " << name << "; to have it, install " << package
            << " (Debian's name) and configure again\n";
}
#endif

} // namespace

std::vector<peer_library> peer_libraries() {
  std::vector<peer_library> all;
#if defined(BENCH_HAS_LIBUV)
  all.push_back(libuv());
#else
  left_out("libuv", "libuv1-dev");
#endif
#if defined(BENCH_HAS_LIBEVENT)
  all.push_back(libevent());
#else
  left_out("libevent", "libevent-dev");
#endif
#if defined(BENCH_HAS_LIBEV)
  all.push_back(libev());
#else
  left_out("libev", "libev-dev");
#endif
  return all;
}

} // namespace bench
