// captions: texts that several captions share.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"
#include "probes/core/record.h"
#include "reports/figures/axis.h"

namespace assay::figures {

/// A figure and the HTML of its caption; both empty if there is nothing to draw.
struct Chart {
  std::string svg, caption;
};

/// `text` with its ASCII letters in upper case, as in a heading.
std::string upper_case(std::string text);

/// The steps of a plan by id.
using StepIndex = std::unordered_map<std::string_view, const plan::Step*>;

/// Every step of `plan`, which must outlive the answer.
StepIndex index_of_steps(const plan::Plan& plan);

/// "1270 pass, 3 fail": how many of `results` have which outcome, from good to bad.
std::string outcome_counts(std::span<const judge::Result* const> results);

/// The worst of `results` by is_worse, the worst first and equals in their order, at most `most`, which is small.
std::vector<const judge::Result*> worst_of(std::span<const judge::Result* const> results, std::size_t most);

/// "Worst: n03+n05 (fail, 5.10 GB/s), ….", escaped: the three worst; empty without results.
std::string worst_words(std::span<const judge::Result* const> results);

/// Lines of the worst next to a figure, and their heading.
inline constexpr std::size_t kWorstLines = 5;
inline constexpr const char* kWorstHeading = "The worst:";

/// "n03+n05 5.1 GB/s": one line next to a figure; the outcome if there is no value.
std::string line_of(std::string_view name, const judge::Result& result);

/// The heading, then kWorstLines lines at most, each with its subject.
std::vector<std::string> worst_lines(std::span<const judge::Result* const> results);

/// ", size 1 GiB, operation all_reduce": coordinates and parameters that distinguish the figures of one metric; empty
/// if there are none.
std::string setting_words(const plan::Requirement& requirement);

/// One prefix for the numbers in a chart's cells, with four digits of the largest in base unit `unit`; small shares as
/// "10^-3".
Scale cell_scale(std::span<const judge::Result* const> results, std::string_view unit);

/// The number in the cell of `result`; empty without a value, and for inconclusive results, which are hatched.
std::string cell_text(const judge::Result& result, const Scale& scale);

/// "Simulated, not measured. " where `plan` is of a simulation; else empty.
std::string kind_words(const plan::Plan& plan);

/// Whether it is the first of the profile's requirements on its measurement: figures of a record are drawn with that
/// one alone.
bool is_first_of_measurement(const plan::Plan& plan, const plan::Requirement& requirement);

/// The steps that `results` come from.
std::set<std::string> steps_of(const std::vector<const judge::Result*>& results);

/// Where `record` of `step` was made, for a title: the node that the plan names, else the host's own name, else the
/// step.
std::string place_of(const plan::Plan& plan, const std::string& step, const Record& record);

/// The number of condition `name` in `record`; nothing if it is none.
std::optional<double> number_of(const Record& record, std::string_view name);

}  // namespace assay::figures
