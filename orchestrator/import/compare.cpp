// compare: matches imported figures with the results of a run, and prints both.
#include "orchestrator/import/compare.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "orchestrator/import/quantities.h"
#include "probes/core/scale.h"
#include "probes/core/text.h"

namespace assay::imports {
namespace {

/// The parameters of the steps that the requirement is judged from, and their number of nodes; all steps of one
/// requirement have the same.
Values parameters_of(const plan::Plan& plan, const plan::Requirement& requirement) {
  for (const auto& step : plan.steps) {
    if (step.probe != requirement.probe ||
        std::ranges::find(step.requirements, requirement.id) == step.requirements.end())
      continue;
    Values parameters = step.parameters;
    if (!step.nodes.empty()) parameters["nodes"] = static_cast<std::int64_t>(step.nodes.size());
    return parameters;
  }
  return requirement.parameters;
}

}  // namespace

std::vector<Comparison> compare(const judge::Import& import, const plan::Plan& plan, const judge::Verdict& verdict) {
  std::map<std::string_view, std::vector<double>> values;
  for (const auto& result : verdict.results) {
    if (result.value) values[result.requirement].push_back(*result.value);
  }
  std::vector<Comparison> all;
  for (std::size_t i = 0; i < import.figures.size(); ++i) {
    const auto& figure = import.figures[i];
    for (const auto& requirement : plan.profile.requirements) {
      const auto ours = values.find(requirement.id);
      if (ours == values.end() || requirement.contrast) continue;
      const Values parameters = parameters_of(plan, requirement);
      if (!same_quantity(import.source.tool, figure, requirement, parameters)) continue;
      if (auto differs = first_difference(import.source, figure, requirement, parameters, false); !differs.empty()) {
        all.push_back({.figure = i, .requirement = requirement.id, .differs = std::move(differs)});
        continue;
      }
      std::ranges::sort(ours->second);
      const auto& sorted = ours->second;
      all.push_back({.figure = i,
                     .requirement = requirement.id,
                     .metric = fmt::format("{} {} {}", requirement.probe, requirement.metric, requirement.statistic),
                     .cells = sorted.size(),
                     .lowest = sorted.front(),
                     .median = (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2,
                     .highest = sorted.back()});
    }
  }
  return all;
}

std::string comparison_text(const judge::Import& import, const plan::Plan& plan, const judge::Verdict& verdict) {
  const auto pairs = compare(import, plan, verdict);
  std::string text =
      fmt::format("{}{}{} beside {}run {}. Imported figures are not judged; their origin is not verified.\n",
                  import.source.tool, import.source.version.empty() ? "" : " ", harmless(import.source.version),
                  verdict.simulated ? "simulated " : "", harmless(verdict.run_id));
  std::set<std::size_t> met;
  for (const auto& pair : pairs) {
    const auto& theirs = import.figures[pair.figure];
    const auto shown = [&](double value) { return for_people(value, theirs.unit); };
    if (met.insert(pair.figure).second) {
      text += fmt::format("{} {}, {} ({}): {}\n", theirs.statistic, theirs.metric, coordinates(theirs.at),
                          harmless(theirs.from), shown(theirs.value));
    }
    if (!pair.differs.empty()) {
      text += fmt::format("    not comparable with requirement {}: {}\n", pair.requirement, pair.differs);
      continue;
    }
    const std::string range = pair.cells == 1 ? ""
                                              : fmt::format(" (median of {} cells, {} to {})", pair.cells,
                                                            shown(pair.lowest), shown(pair.highest));
    const std::string ratio = theirs.value > 0 ? fmt::format(", ratio {:.4g}", pair.median / theirs.value) : "";
    text += fmt::format("    assay{}: {}{}{}, requirement {}: {}\n", verdict.simulated ? " (simulated)" : "",
                        shown(pair.median), range, ratio, pair.requirement, pair.metric);
  }
  return text + fmt::format("{} of {} figures have no counterpart in this run\n", import.figures.size() - met.size(),
                            import.figures.size());
}

}  // namespace assay::imports
