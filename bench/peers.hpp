//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//
#ifndef ASIO_WHEEL_BENCH_PEERS_HPP
#define ASIO_WHEEL_BENCH_PEERS_HPP

#include "contest.hpp"
#include "expiry.hpp"
#include "footprint.hpp"
#include "plan.hpp"
#include "random_access.hpp"
#include "settings.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// Timers of other event loops that Debian has packages of. Each library is used
// in a file of its own, through its cheapest public interface, by a class that
// looks like timer_set; whatever of these libraries is missing is left out.
// They run on one thread without a lock, and call plain functions, which are
// not told of a cancellation.

namespace bench {

/// A kind of a library's timers, and the workloads that it can do.
struct peer {
  /// One that is pending from `first` on, each changed as the last plan says.
  using changing_function = std::unique_ptr<contestant>(const settings&,
                                                        std::size_t,
                                                        const plan& first,
                                                        const plan&);

  std::string who;
  /// Only for timers that all have one delay.
  bool one_delay;
  std::unique_ptr<contestant> (*add)(const settings&, std::size_t, const plan&);
  changing_function* cancel_and_add;
  changing_function* refresh;
  std::unique_ptr<contestant> (*expire_overdue)(const settings&, std::size_t,
                                                const plan&);
  double (*footprint)(const settings&, std::size_t, const plan&);
};

struct peer_library {
  std::string name, version;
  std::vector<peer> peers;
};

/// Defined if the program was built with it.
peer_library libuv();
peer_library libevent();
peer_library libev();

/// Those the program was built with; says which it was built without.
std::vector<peer_library> peer_libraries();

template <typename Timers> peer make_peer(std::string who, bool one_delay) {
  peer p;
  p.who = std::move(who);
  p.one_delay = one_delay;
  p.add = [](const settings& s, std::size_t size,
             const plan& steps) -> std::unique_ptr<contestant> {
    return std::make_unique<adding<Timers>>(s, size, steps);
  };
  p.cancel_and_add = [](const settings& s, std::size_t size, const plan& first,
                        const plan& steps) -> std::unique_ptr<contestant> {
    return std::make_unique<changing<Timers, cancel_and_add>>(s, size, first,
                                                              steps);
  };
  p.refresh = [](const settings& s, std::size_t size, const plan& first,
                 const plan& steps) -> std::unique_ptr<contestant> {
    return std::make_unique<changing<Timers, refresh>>(s, size, first, steps);
  };
  p.expire_overdue = [](const settings& s, std::size_t size,
                        const plan& steps) -> std::unique_ptr<contestant> {
    return std::make_unique<expiring_overdue<Timers>>(s, size, steps);
  };
  p.footprint = footprint_of_timers<Timers>;
  return p;
}

} // namespace bench

#endif // ASIO_WHEEL_BENCH_PEERS_HPP
