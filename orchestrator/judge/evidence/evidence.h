// evidence: a run directory on disk, and the files of each step in it.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/judge/evidence/evidence_reader.h"
#include "orchestrator/judge/evidence/journal.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// A run directory read whole.
struct Run {
  plan::Plan plan;
  std::string plan_sha256;
  Journal journal;
};

/// Nothing if plan and journal agree on whether anything was measured. A simulation has a plan, records and a journal
/// that each say so; leaving it out of one of them makes no measurement of it.
std::optional<InputError> check_kind(const plan::Plan& plan, const Journal& journal);

/// Which nodes are one machine, by their agents' facts: host name and boot.
class Machines {
 public:
  /// Looks at every node of `journal` once.
  explicit Machines(const Journal& journal);
  /// Another node that is the same machine as `node`; nothing if there is none.
  [[nodiscard]] std::optional<std::string> twin_of(const std::string& node) const;

 private:
  std::map<std::string, std::string> machine_of_;             ///< by node
  std::map<std::string, std::vector<std::string>> nodes_of_;  ///< by machine
};

/// Reads plan.json and journal.jsonl of `directory`. An error when either is missing or damaged, or when the journal
/// belongs to another plan.
std::expected<Run, InputError> read_run(const std::string& directory);

/// Reads evidence under `directory`; a file whose SHA-256 or size is not the journalled one is an error. `records`:
/// those of the same run that were read before.
EvidenceReader evidence_in(const std::string& directory, KeptRecords records = {});

/// Path in the run directory of the output of a rank of an attempt; of its companion when one is named.
std::string record_path(const std::string& step, int attempt, int rank = 0, const std::string& companion = "");

/// Path in the run directory of a probe's stderr.
std::string log_path(const std::string& step, int attempt, int rank = 0, const std::string& companion = "");

/// The rank that left the file `path`, a record or a log; nothing for any other file.
std::optional<int> rank_in(std::string_view path);

/// The record of a rank of an attempt of `step`, or of its companion, parsed with the plan's own description of the
/// probe.
std::expected<Record, InputError> record_of(const plan::Plan& plan, const plan::Step& step, const Attempt& attempt,
                                            const EvidenceReader& evidence, int rank = 0,
                                            const std::string& companion = "");

/// Whether `requirement` judges `measured`: its metric, coordinates and kind of subject. Ranks of several nodes cannot
/// know the plan's name of their place, so pair, group and cluster are one kind here.
bool is_judged(const Measurement& measured, const plan::Requirement& requirement);

/// How far the clocks of a node and of the head may differ before the records of the node are said to be of another
/// time, in seconds: five minutes, Kerberos's default, so no node of a working cluster is further off.
inline constexpr double kMostClockDifference_s = 300;

/// By how much the times of a record are outside of its attempt by the head's clock, in seconds: negative before its
/// begin, positive after its end, 0 within. 0 also if there are no times.
double outside_of_attempt_s(const LineTimes& times, const Attempt& attempt);

/// The evidence of one step, over all its attempts.
struct StepEvidence {
  std::vector<Record> records;              ///< rank 0's, of attempts that completed, in order
  std::vector<std::vector<Record>> others;  ///< the other ranks' records of the same attempts
  std::vector<int> numbers;                 ///< of those attempts
  std::size_t first_stage = 0;              ///< how many of them the first stage made; they come first
  SharedList<std::string> paths;            ///< evidence of every attempt
  int attempts = 0;                         ///< that measured or should have; interrupted ones do not count
  int more_attempts = 0;                    ///< those of them that the second stage made
  Outcome absence = Outcome::not_measured;  ///< the outcome of the step's cells when there is no record
  std::string reason;                       ///< why there is none, or the failure
  bool broken = false;                      ///< an attempt failed in a way that a good one does not mend
  bool skipped = false;                     ///< an attempt skipped; a record before or after it is no proof
  std::string cut_short;                    ///< how a fault ended a load early: its fails stand, nothing passes by it
  int interrupted = 0;                      ///< attempts that a killed run left behind
  int lost = 0;                             ///< attempts whose node went away
  std::map<std::string, double> outside_s;  ///< by node: how far its records are outside of their attempts, the
                                            ///< furthest; only values over kMostClockDifference_s
};

/// Reads the records of `step` in `attempts` that `evidence` does not keep yet, so that collect() finds them there.
void read_ahead(const plan::Plan& plan, const plan::Step& step, const std::vector<Attempt>& attempts,
                const EvidenceReader& evidence);

/// Collects the evidence of `step` from its `attempts`. Hostile records are refused here: of another probe, step,
/// revision, rank or host than was asked for, made up in a measured run, or measured in a made up one. The attempts
/// must be numbered from `first` without a gap.
StepEvidence collect(const plan::Plan& plan, const plan::Step& step, const std::vector<Attempt>& attempts,
                     const Journal& journal, const Machines& machines, const EvidenceReader& evidence, int first = 1);

}  // namespace assay::judge
