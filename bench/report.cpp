//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include "report.hpp"

#include "machine.hpp"

// Boost.JSON without its library: compiled here, for the whole program.
#include <boost/json/src.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <ostream>
#include <stdexcept>
#include <utility>

namespace bench {

namespace {

template <typename... Args> std::string format(const char* f, Args... args) {
  char text[256];
  std::snprintf(text, sizeof text, f, args...);
  return text;
}

// Enough digits to tell, no more than were measured.
std::string number(double x) {
  return format(x < 9.95 ? "%.2f" : x < 99.5 ? "%.1f" : "%.0f", x);
}

// How a target is written in the table.
const char* in_table(target::kind k) {
  switch (k) {
  case target::kind::at_most:
    return "<=%g";
  case target::kind::at_least:
    return ">=%g";
  case target::kind::times_faster:
    break;
  }
  return "%gx";
}

// What it is called in the JSON file.
const char* in_json(target::kind k) {
  switch (k) {
  case target::kind::at_most:
    return "target_at_most";
  case target::kind::at_least:
    return "target_at_least";
  case target::kind::times_faster:
    break;
  }
  return "target_ratio";
}

} // namespace

double figure::median() const {
  auto sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  const auto middle = sorted.size() / 2;
  return sorted.size() % 2 != 0 ? sorted[middle]
                                : (sorted[middle - 1] + sorted[middle]) / 2;
}

double figure::least() const {
  return *std::min_element(samples.begin(), samples.end());
}

double figure::most() const {
  return *std::max_element(samples.begin(), samples.end());
}

report::report(std::string program)
    : program_(std::move(program)), machine_(describe_machine()) {}

const figure* report::base_of(const figure& f) const {
  const auto same =
      std::find_if(figures_.begin(), figures_.end(), [&](const figure& g) {
        return g.workload == f.workload && g.size == f.size &&
               g.fenced == f.fenced && g.unit == f.unit;
      });
  return &*same == &f ? nullptr : &*same;
}

std::optional<double> report::ratio_of(const figure& f) const {
  const auto base = base_of(f);
  if (!base || f.compared == comparison::none)
    return {};
  double dividend = base->median(), divisor = f.median();
  if (f.compared == comparison::more_is_better)
    std::swap(dividend, divisor);
  if (divisor == 0)
    return {};
  return dividend / divisor;
}

std::optional<bool> report::met(const figure& f) const {
  if (!f.wanted)
    return {};
  switch (f.wanted->what) {
  case target::kind::at_most:
    return f.median() <= f.wanted->value;
  case target::kind::at_least:
    return f.median() >= f.wanted->value;
  case target::kind::times_faster:
    break;
  }
  const auto ratio = ratio_of(f);
  if (!ratio)
    return {};
  return *ratio >= f.wanted->value;
}

void report::print_machine(std::ostream& out) const {
  for (const auto& [name, value] : machine_)
    out << format("%-23s ", (name + ":").c_str()) << value << '\n';
}

// Median, range, ratio and target of one figure.
std::string report::cells(const figure& f) const {
  std::string range, ratio, wanted;
  if (f.samples.size() > 1)
    range = number(f.least()) + "-" + number(f.most());
  if (const auto r = ratio_of(f))
    ratio = number(*r) + "x";
  if (f.wanted) {
    wanted = format(in_table(f.wanted->what), f.wanted->value);
    if (const auto ok = met(f))
      wanted += *ok ? " met" : " MISSED";
  }
  return format("%7s  %-11s %6s  %-12s", number(f.median()).c_str(),
                range.c_str(), ratio.c_str(), wanted.c_str());
}

void report::print_table(std::ostream& out) const {
  const std::string titles =
      format("%7s  %-11s %6s  %-12s", "median", "min-max", "ratio", "target");
  int widest = 15;
  bool any_fenced = false;
  for (const auto& f : figures_) {
    widest = std::max(widest, static_cast<int>(f.who.size()));
    any_fenced = any_fenced || f.fenced;
  }
  out << format("\n%*s", widest + 2, "") << titles;
  if (any_fenced)
    out << "| " << titles << " (fenced)";
  out << '\n';

  const figure* last = nullptr;
  for (const auto& f : figures_) {
    if (f.fenced)
      continue; // stands in the line of the figure without
    if (!last || last->workload != f.workload || last->size != f.size ||
        last->unit != f.unit)
      out << '\n'
          << f.workload << ", " << f.size << " timers, " << f.unit << '\n';
    last = &f;

    auto line = format("  %-*s", widest, f.who.c_str()) + cells(f);
    const auto fenced =
        std::find_if(figures_.begin(), figures_.end(), [&](const figure& g) {
          return g.fenced && g.workload == f.workload && g.size == f.size &&
                 g.who == f.who;
        });
    if (fenced != figures_.end())
      line += "| " + cells(*fenced);
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
  out << '\n';
  for (const auto& what : failures_)
    out << "FAILED: " << what << '\n';
}

void report::write_json(const std::string& file,
                        boost::json::object settings) const {
  namespace json = boost::json;
  json::object machine;
  for (const auto& [name, value] : machine_)
    machine[name] = value;

  json::array figures;
  for (const auto& f : figures_) {
    json::object o;
    o["workload"] = f.workload;
    o["timers"] = f.size;
    o["who"] = f.who;
    o["fenced"] = f.fenced;
    o["unit"] = f.unit;
    o["median"] = f.median();
    o["min"] = f.least();
    o["max"] = f.most();
    o["samples"] = json::array(f.samples.begin(), f.samples.end());
    if (const auto ratio = ratio_of(f))
      o["ratio"] = *ratio;
    if (f.wanted) {
      o[in_json(f.wanted->what)] = f.wanted->value;
      if (const auto ok = met(f))
        o["met"] = *ok;
    }
    figures.push_back(std::move(o));
  }

  const json::object all{
      {"program", program_},
      {"machine", std::move(machine)},
      {"settings", std::move(settings)},
      {"figures", std::move(figures)},
      {"failures", json::array(failures_.begin(), failures_.end())}};

  std::ofstream out(file);
  out << all << '\n';
  if (!out.flush())
    throw std::runtime_error("cannot write " + file);
}

} // namespace bench
