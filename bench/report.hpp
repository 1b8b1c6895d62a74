//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BENCH_REPORT_HPP
#define ASIO_WHEEL_BENCH_REPORT_HPP

#include "settings.hpp"

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// What the project wants a figure to be.
struct target {
  enum class kind {
    /// The first contestant's median divided by this one's, at least.
    times_faster,
    /// The median itself, at most.
    at_most
  };
  kind what;
  double value;
};

/// One contestant's figure for one workload.
struct figure {
  std::string workload;
  std::size_t size;
  std::string who;
  bool fenced;
  std::string unit;
  /// One for each round.
  std::vector<double> samples;
  std::optional<target> wanted;

  double median() const;
  double least() const;
  double most() const;
};

/// Collects the figures, and what went wrong.
class report {
public:
  report();

  void add_machine(std::string name, std::string value) {
    machine_.emplace_back(std::move(name), std::move(value));
  }
  void add(figure f) { figures_.push_back(std::move(f)); }
  void add_failure(std::string what) { failures_.push_back(std::move(what)); }
  bool failed() const noexcept { return !failures_.empty(); }

  void print_machine(std::ostream& out) const;
  void print_table(std::ostream& out) const;
  /// @throws std::runtime_error if the file cannot be written.
  void write_json(const std::string& file, const settings& s) const;

private:
  /// The first contestant at the same workload, size and fence; null if that
  /// is f itself.
  const figure* base_of(const figure& f) const;
  std::optional<double> ratio_of(const figure& f) const;
  std::optional<bool> met(const figure& f) const;
  std::string cells(const figure& f) const;

  std::vector<std::pair<std::string, std::string>> machine_;
  std::vector<figure> figures_;
  std::vector<std::string> failures_;
};

} // namespace bench

#endif // ASIO_WHEEL_BENCH_REPORT_HPP
