// drift_command: `assay drift` and `assay history`: the history of nightly sweeps, and its report.
#pragma once

#include <string>

#include "orchestrator/cli/options.h"
#include "orchestrator/drift/policy.h"
#include "orchestrator/drift/report.h"
#include "orchestrator/history/history.h"

namespace assay::cli {

/// Of `assay drift` and its commands.
struct DriftArguments {
  std::string database, policy, as_of, from, to, out, flag;
  unsigned threads = 2;
  bool json = false;
};

/// Of `assay history` and its commands.
struct HistoryArguments {
  std::string database, run, unit, kind, scope, at, text, who, out, policy;
  std::vector<std::string> keys;
  int keep_days = 90;
  bool retest = false, json = false, unsigned_too = false, from_records = false;
};

/// Of `assay simulate --nights`.
struct NightsArguments {
  int nights = 0;
  std::size_t nodes = 100, metrics = 10;
  std::uint64_t seed = 1;
  std::string faults, policy, database, out;
  int retests = 3;
  unsigned threads = 2;
};

/// Adds `assay drift`, `assay history`, and `assay simulate --nights`.
void add_drift(Command& app, DriftArguments& given, Action& action);
void add_history(Command& app, HistoryArguments& given, Action& action);
void add_nights(Command& app, NightsArguments& given, Action& action);

/// The policy in `file`; the default one if it is empty.
std::expected<drift::Policy, InputError> policy_in(const std::string& file);

/// With how many threads, and whether the state of the night before the last is saved, which needs write access.
struct JudgingHow {
  unsigned threads = 2;
  bool keep = true;
};

/// Judges the nights of `history` up to `as_of`, from its saved state if there is one.
history::Result<drift::DriftReport> judge_history(history::History& history, const drift::Policy& policy,
                                                  drift::Date as_of, JudgingHow how);

/// Prints a failure; gives its exit code.
int report_failure(const history::Failure& failure);

}  // namespace assay::cli
