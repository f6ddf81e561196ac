// link_claims: what the hardware tests of memory and links share.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "tests/hardware/hardware_test.h"

namespace assay {

/// Every subject of `metric`.
inline std::set<Subject> subjects_of(const Record& record, const std::string& metric) {
  std::set<Subject> subjects;
  for (const auto& measurement : record.measurements) {
    if (measurement.metric == metric) subjects.insert(measurement.subject);
  }
  return subjects;
}

/// Claims that `metric` was measured and that every sample lies between 0, left out, and `most`.
inline void expect_below(const Record& record, const std::string& metric, double most, Claims& claims) {
  const auto samples = all_samples(record, metric);
  claims.expect(
      !samples.empty() && std::ranges::all_of(samples, [most](double value) { return value > 0 && value < most; }),
      metric + " is positive and below what any GPU can do");
}

/// Claims that `mismatches` was counted on `subjects` subjects and is 0 on all.
inline void expect_no_mismatches(const Record& record, std::size_t subjects, Claims& claims) {
  const auto counts = all_samples(record, "mismatches");
  claims.expect(
      counts.size() == subjects && subjects > 0 && std::ranges::all_of(counts, [](double count) { return count == 0; }),
      "mismatches is 0 on every subject");
}

/// The conditions called `name` that hold a double, on any subject.
inline std::vector<double> numbers_of(const Record& record, const std::string& name) {
  std::vector<double> values;
  for (const auto& condition : record.conditions) {
    if (condition.name == name && std::holds_alternative<double>(condition.value))
      values.push_back(std::get<double>(condition.value));
  }
  return values;
}

/// Claims that the condition `name` was recorded and is a share: above 0, at most 1.
inline void expect_share(const Record& record, const std::string& name, Claims& claims) {
  const auto shares = numbers_of(record, name);
  claims.expect(!shares.empty() && std::ranges::all_of(shares, [](double share) { return share > 0 && share <= 1; }),
                name + " is a share above 0");
}

}  // namespace assay
