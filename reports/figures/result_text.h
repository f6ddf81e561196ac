// result_text: texts for outcomes, subjects, targets and placements.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/profile.h"
#include "reports/figures/axis.h"
#include "reports/figures/plot.h"

namespace assay::figures {

/// `outcome` for people: "conditional pass".
std::string outcome_words(judge::Outcome outcome);
/// The same as a labelled box.
std::string outcome_box(judge::Outcome outcome);
/// One or two letters for the coverage matrix, which differ in more than their case: P CP CF F I N E.
std::string outcome_letter(judge::Outcome outcome);
/// "R3": the number of the requirement in the profile, from 1.
std::string requirement_number(const plan::Profile& profile, const std::string& id);
/// "median of bandwidth", "condition iommu_mode".
std::string judged_words(const plan::Requirement& requirement);
/// The limit: "≥ 0.9 × design peak fp64 (1.200 TFLOP/s)"; a rounded number is followed by the exact one in base units.
std::string target_words(const plan::Profile& profile, const plan::Requirement& requirement);
/// Plane, pairs or groups, and concurrency: "plane parameter; pairs across leaves, one pair at a time". Empty for
/// single nodes on no plane.
std::string placement_words(const plan::Requirement& requirement);
/// The unit in which the values of `results` stand below one another: that of the smallest value, or of the largest
/// if it is over 10,000 times as large. Without a value the limits decide.
Scale column_scale(std::span<const judge::Result* const> results);
/// `number` of `result` in the unit of `column`, without the unit: four significant digits, and more if it would look
/// like another of its limits.
std::string number_text(const Scale& column, const judge::Result& result, double number);
/// The same with the unit.
std::string text_in(const Scale& column, const judge::Result& result, double number);
/// The value of `result` in a unit of its own, "—" without one; of a demand what was seen, "-" for nothing.
std::string value_text(const judge::Result& result);
/// The same in HTML; texts of demands wrap.
std::string value_html(const judge::Result& result);
/// "≥ 450.0 GB/s", "≤ 3.000 µs" or both, with `separator` between: the limits of `result`, "—" without one; of a
/// demand what is demanded, as HTML.
std::string limit_text(const Scale& column, const judge::Result& result, std::string_view separator);
/// The same of the acceptance limits. Where the guard band is wider than an upper limit no number is shown: a time
/// below 0 would be one that nothing can reach.
std::string acceptance_text(const Scale& column, const judge::Result& result, std::string_view separator);
/// "n01", or "n01 · gpu GPU-8f2…" for finer subjects.
std::string subject_words(const judge::Result& result);

/// The row of a strip plot or a distribution for `result`; `samples` are those it was judged by.
PlotRow plot_row(const judge::Result& result, std::vector<double> samples);

}  // namespace assay::figures
