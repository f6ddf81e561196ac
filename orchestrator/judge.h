// judge: from a plan, a journal and evidence to a verdict, as a pure function.
#pragma once

#include <string>

#include "orchestrator/evidence.h"
#include "orchestrator/verdict.h"

namespace assay {

/// Judges every planned cell. Never passes by omission: no record, no metric, no condition, no samples each have an
/// outcome that is not pass.
Verdict judge(const Plan& plan, const std::string& plan_sha256, const Journal& journal, const EvidenceReader& evidence);

/// Whether a step with planned looks left is worth another one: none of its attempts broke, and at least one of its
/// cells lies within the guard band, where more samples can decide.
bool another_look_decides(const Plan& plan, const Step& step, const Journal& journal, const EvidenceReader& evidence);

}  // namespace assay
