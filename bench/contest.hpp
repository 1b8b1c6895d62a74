//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BENCH_CONTEST_HPP
#define ASIO_WHEEL_BENCH_CONTEST_HPP

#include "report.hpp"
#include "settings.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace bench {

/// One side of a contest: a set of timers and what is done to them.
class contestant {
public:
  virtual ~contestant() = default;

  /// Bring everything into the state that run() starts from. Not timed.
  virtual void prepare() = 0;

  /// Do the workload once. Returns the CPU time it took, in nanoseconds.
  virtual double run(bool fenced) = 0;

  /// Let all end. Returns what did not go as it must; empty if all did.
  virtual std::string verify() = 0;
};

/// One workload at one size, done by each contestant in turn.
class contest {
public:
  /**
   * @param operations What the CPU time of one run is divided by.
   * @param runs How many runs make a round.
   * @param fenced Whether there is a second figure, with a fence before each
   * operation.
   */
  contest(std::string workload, std::size_t size, std::size_t operations,
          std::size_t runs, bool fenced);

  /// The first one is the one the others are compared with.
  template <typename Contestant, typename... Args>
  void add(std::string who, std::optional<target> wanted,
           std::optional<target> wanted_fenced, const Args&... args) {
    add(std::move(who), wanted, wanted_fenced,
        [&args...]() -> std::unique_ptr<contestant> {
          return std::make_unique<Contestant>(args...);
        });
  }

  /// One that is made elsewhere.
  void add(std::string who, std::optional<target> wanted,
           std::optional<target> wanted_fenced,
           std::function<std::unique_ptr<contestant>()> make) {
    entries_.push_back({std::move(who),
                        wanted,
                        wanted_fenced,
                        std::move(make),
                        nullptr,
                        {},
                        {}});
  }

  /// Warm up, measure, verify.
  /**
   * Round by round, the contestants in turn, so that whatever happens to the
   * machine meanwhile happens to all.
   */
  void hold(const settings& s, report& r);

private:
  struct entry {
    std::string who;
    std::optional<target> wanted, wanted_fenced;
    std::function<std::unique_ptr<contestant>()> make;
    std::unique_ptr<contestant> it;
    std::vector<double> samples, samples_fenced;
  };

  double round(contestant& c, bool fenced) const;

  std::string workload_;
  std::size_t size_, operations_, runs_;
  bool fenced_;
  std::vector<entry> entries_;
};

} // namespace bench

#endif // ASIO_WHEEL_BENCH_CONTEST_HPP
