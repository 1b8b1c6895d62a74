//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include "contest.hpp"

#include <algorithm>
#include <iostream>
#include <utility>

namespace bench {

contest::contest(std::string workload, std::size_t size, std::size_t operations,
                 std::size_t runs, bool fenced)
    : workload_(std::move(workload)), size_(size), operations_(operations),
      runs_(runs), fenced_(fenced) {}

double contest::round(contestant& c, bool fenced) const {
  double total = 0;
  for (std::size_t i = 0; i < runs_; ++i) {
    c.prepare();
    total += c.run(fenced);
  }
  return total / static_cast<double>(runs_ * operations_);
}

void contest::hold(const settings& s, report& r) {
  if (workload_.find(s.only) == std::string::npos)
    return;
  const auto uninvited = [&](const entry& e) {
    return e.who.find(s.who) == std::string::npos;
  };
  entries_.erase(std::remove_if(entries_.begin(), entries_.end(), uninvited),
                 entries_.end());

  std::cerr << workload_ << ", " << size_ << " timers:" << std::flush;
  for (auto& e : entries_) {
    e.it = e.make();
    round(*e.it, false);
  }
  std::cerr << " warm" << std::flush;
  for (std::size_t i = 0; i < s.rounds; ++i) {
    for (auto& e : entries_)
      e.samples.push_back(round(*e.it, false));
    if (fenced_)
      for (auto& e : entries_)
        e.samples_fenced.push_back(round(*e.it, true));
    std::cerr << ' ' << i + 1 << std::flush;
  }
  std::cerr << '\n';

  for (auto& e : entries_) {
    const auto wrong = e.it->verify();
    if (!wrong.empty())
      r.add_failure(workload_ + ", " + std::to_string(size_) + " timers, " +
                    e.who + ": " + wrong);
    e.it.reset();
    r.add(
        {workload_, size_, e.who, false, "ns", std::move(e.samples), e.wanted});
    if (fenced_)
      r.add({workload_, size_, e.who, true, "ns", std::move(e.samples_fenced),
             e.wanted_fenced});
  }
}

} // namespace bench
