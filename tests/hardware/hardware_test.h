// hardware_test: what the tests of accelerator probes share: run a probe, read its record strictly, check claims. They
// assert contracts, never speeds.
#pragma once

#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/probe_process.h"

namespace assay {

/// Claims checked so far, and what became of them.
class Claims {
 public:
  /// Prints and counts one claim.
  void expect(bool holds, const std::string& claim) {
    std::cout << (holds ? "ok    " : "FAILED ") << claim << '\n';
    failed_ = failed_ || !holds;
    checked_ = true;
  }
  /// Runs `probe` with `arguments`. Nothing when it skipped (its reason is printed) or when what it printed is no
  /// complete record (a claim that failed).
  std::optional<Record> measured(const std::string& probe, const std::vector<std::string>& arguments) {
    std::string what = probe.substr(probe.rfind('/') + 1);
    for (const auto& argument : arguments) what += " " + argument;
    const auto record = record_of(probe, arguments);
    if (record.end.status == Status::skip) {
      std::cout << "skip  " << what << ": " << record.end.reason << '\n';
      return std::nullopt;
    }
    const bool complete = record.end.status == Status::complete;
    expect(complete, what + " completes" + (complete ? "" : ": " + record.end.reason));
    return complete ? std::optional(record) : std::nullopt;
  }
  /// Exit code: 1 when a claim failed, 77 when none was checked because everything skipped, else 0.
  [[nodiscard]] int exit_code() const { return failed_ ? 1 : checked_ ? 0 : 77; }

 private:
  bool failed_ = false, checked_ = false;
};

/// Every sample of `metric` on all its subjects.
inline std::vector<double> all_samples(const Record& record, const std::string& metric) {
  std::vector<double> samples;
  for (const auto& measurement : record.measurements) {
    if (measurement.metric == metric)
      samples.insert(samples.end(), measurement.samples.begin(), measurement.samples.end());
  }
  return samples;
}

/// The body of a hardware test's main: reads the folder of the probes from the arguments, runs `test` with it, and
/// turns an exception into a failed claim.
inline int hardware_main(int argc, char** argv, void (*test)(const std::string& folder, Claims& claims)) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " FOLDER-OF-PROBES\n";
    return 2;
  }
  Claims claims;
  try {
    test(argv[1], claims);
  } catch (const std::exception& failure) {
    claims.expect(false, failure.what());
  }
  return claims.exit_code();
}

}  // namespace assay
