// result_words: the texts by which outcomes, subjects, targets and placements are named on a page.
#pragma once

#include <string>

#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/profile.h"
#include "reports/figures/scale.h"

namespace assay::figures {

/// The word of `outcome` as people read it: "conditional pass".
std::string outcome_words(judge::Outcome outcome);
/// The same as a labelled box.
std::string outcome_box(judge::Outcome outcome);
/// One letter for the coverage matrix: P p f F ? - E.
std::string outcome_letter(judge::Outcome outcome);
/// "R3": the number of the requirement in the profile, from 1.
std::string requirement_number(const plan::Profile& profile, const std::string& id);
/// The promise in words: "at least 0.9 × peak fp64 (1.2 TFLOP/s)", with absolute limits exact in base units.
std::string target_words(const plan::Profile& profile, const plan::Requirement& requirement);
/// Through which plane, on which pairs or groups, and what ran meanwhile: "through the plane parameter; pairs across
/// leaves, each alone". Empty for nodes by themselves on no plane.
std::string placement_words(const plan::Requirement& requirement);
/// The scale on which value, limits and acceptance limits of `result` stand side by side.
Scale result_scale(const judge::Result& result);
/// "n01", or "n01 · gpu GPU-8f2…" for finer subjects.
std::string subject_words(const judge::Result& result);

}  // namespace assay::figures
