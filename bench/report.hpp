//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BENCH_REPORT_HPP
#define ASIO_WHEEL_BENCH_REPORT_HPP

#include <boost/json/object.hpp>

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
    at_most,
    /// The median itself, at least.
    at_least
  };
  kind what;
  double value;
};

/// How a contestant's ratio to the first one is formed, so that more is better.
enum class comparison {
  /// Of what takes time or room: the first one's median divided by this one's.
  less_is_better,
  /// Of a throughput: this one's divided by the first one's.
  more_is_better,
  /// No ratio: the figure is one itself, or means nothing beside another.
  none
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
  comparison compared = comparison::less_is_better;

  double median() const;
  double least() const;
  double most() const;
};

/// Collects the figures, and what went wrong.
class report {
public:
  /// @param program Its name, for the JSON file.
  explicit report(std::string program);

  /// What else the figures depend on, such as the version of a library.
  void add_machine(std::string name, std::string value) {
    machine_.emplace_back(std::move(name), std::move(value));
  }
  void add(figure f) { figures_.push_back(std::move(f)); }
  void add_failure(std::string what) { failures_.push_back(std::move(what)); }
  bool failed() const noexcept { return !failures_.empty(); }

  void print_machine(std::ostream& out) const;
  void print_table(std::ostream& out) const;
  /// @param settings What the program was told to do.
  /// @throws std::runtime_error if the file cannot be written.
  void write_json(const std::string& file, boost::json::object settings) const;

private:
  /// The first contestant at the same workload, size and fence; null if that
  /// is f itself.
  const figure* base_of(const figure& f) const;
  std::optional<double> ratio_of(const figure& f) const;
  std::optional<bool> met(const figure& f) const;
  std::string cells(const figure& f) const;

  std::string program_;
  std::vector<std::pair<std::string, std::string>> machine_;
  std::vector<figure> figures_;
  std::vector<std::string> failures_;
};

} // namespace bench

#endif // ASIO_WHEEL_BENCH_REPORT_HPP
