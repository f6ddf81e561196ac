// judge: from a plan, a journal and evidence to a verdict, as a pure function.
#pragma once

#include <expected>
#include <functional>
#include <string>

#include "orchestrator/journal.h"
#include "orchestrator/plan.h"
#include "orchestrator/verdict.h"

namespace assay {

/// The bytes of one evidence file by its path in the run directory; an error when it is missing or not what was
/// journalled.
using EvidenceReader = std::function<std::expected<std::string, InputError>(const EvidenceFile&)>;

/// Judges every planned cell. Never passes by omission: no record, no metric, no condition, no samples each have an
/// outcome that is not pass.
Verdict judge(const Plan& plan, const std::string& plan_sha256, const Journal& journal, const EvidenceReader& evidence);

/// A run directory read whole.
struct Run {
  Plan plan;
  std::string plan_sha256;
  Journal journal;
};

/// Reads plan.json and journal.jsonl of `directory`. An error when either is missing or damaged, or when the journal
/// belongs to another plan.
std::expected<Run, InputError> read_run(const std::string& directory);

/// Reads evidence under `directory`; a file whose SHA-256 or size is not the journalled one is an error.
EvidenceReader evidence_in(const std::string& directory);

/// The record of an attempt's rank 0 in `run`, parsed with the plan's own description of the probe.
std::expected<Record, InputError> record_of(const Plan& plan, const Attempt& attempt, const EvidenceReader& evidence);

}  // namespace assay
