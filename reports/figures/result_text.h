// result_text: texts for outcomes, subjects, targets and placements.
#pragma once

#include <string>
#include <vector>

#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/profile.h"
#include "reports/figures/plot.h"
#include "reports/figures/scale.h"

namespace assay::figures {

/// `outcome` for people: "conditional pass".
std::string outcome_words(judge::Outcome outcome);
/// The same as a labelled box.
std::string outcome_box(judge::Outcome outcome);
/// One or two letters for the coverage matrix, which differ in more than their case: P CP CF F I N E.
std::string outcome_letter(judge::Outcome outcome);
/// "R3": the number of the requirement in the profile, from 1.
std::string requirement_number(const plan::Profile& profile, const std::string& id);
/// The limit: "≥ 0.9 × design peak fp64 (1.200 TFLOP/s)"; a rounded number is followed by the exact one in base units.
std::string target_words(const plan::Profile& profile, const plan::Requirement& requirement);
/// Plane, pairs or groups, and concurrency: "plane parameter; pairs across leaves, one pair at a time". Empty for
/// single nodes on no plane.
std::string placement_words(const plan::Requirement& requirement);
/// One scale for value, limits and acceptance limits of `result`.
Scale result_scale(const judge::Result& result);
/// "n01", or "n01 · gpu GPU-8f2…" for finer subjects.
std::string subject_words(const judge::Result& result);

/// The row of a strip plot or a distribution for `result`; `samples` are those it was judged by.
PlotRow plot_row(const judge::Result& result, std::vector<double> samples);

}  // namespace assay::figures
