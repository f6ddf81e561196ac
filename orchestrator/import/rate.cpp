// rate: matches imported figures with the results of a run, or looks for the limit of each and says on which side of it
// the figure is.
#include "orchestrator/import/rate.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "orchestrator/import/quantities.h"
#include "orchestrator/plan/catalogue.h"
#include "orchestrator/plan/lint.h"
#include "probes/core/description.h"
#include "probes/core/scale.h"
#include "probes/core/text.h"

namespace assay::imports {
namespace {

/// The requirement's parameters, and the choices of a known probe for all others.
Values full_parameters(const plan::Requirement& requirement) {
  const plan::KnownProbe* latest = nullptr;
  for (const auto& known : plan::known_probes()) {
    if (known.name == requirement.probe && (latest == nullptr || known.revision > latest->revision)) latest = &known;
  }
  if (latest == nullptr) return requirement.parameters;
  const auto description = read_description(latest->document.dump(), latest->name);
  const auto all =
      description ? description->resolve(requirement.parameters, false) : std::unexpected(description.error());
  return all ? *all : requirement.parameters;
}

/// The same, and for a collective the run by its scope: one node or two, with all of their GPUs.
Values parameters_of(const plan::Profile& profile, const plan::Requirement& requirement) {
  Values parameters = full_parameters(requirement);
  const bool pair = requirement.scope == plan::JudgedScope::pair;
  if (!requirement.probe.ends_with("_collective") || (!pair && requirement.scope != plan::JudgedScope::node))
    return parameters;
  const std::int64_t nodes = pair ? 2 : 1;
  parameters.emplace("type", std::string("fp32"));  // nccl_collective's own choice
  parameters.emplace("nodes", nodes);
  const auto gpus = profile.per_node.find("gpu");
  if (gpus == profile.per_node.end() || gpus->second == plan::kOfSite) return parameters;
  parameters.emplace("ranks", nodes * gpus->second);
  parameters.emplace("npus_per_node", std::int64_t{gpus->second});
  return parameters;
}

/// A requirement of every size as one of the figure's, if it is among them.
plan::Requirement at_size_of(plan::Requirement requirement, const judge::Figure& figure) {
  const auto size = figure.at.find("size");
  if (!requirement.at_every || size == figure.at.end()) return requirement;
  const auto sizes = plan::sizes_in(requirement.parameters);
  const auto* whole = std::get_if<std::int64_t>(&size->second);
  if (whole != nullptr && std::ranges::find(sizes, *whole) != sizes.end()) requirement.at = {{"size", *whole}};
  return requirement;
}

/// The limits in the figure's unit; not of a limit that other measurements or the machine set.
struct Bounds {
  std::optional<double> least, most;
};

std::optional<Bounds> bounds_of(const plan::Profile& profile, const plan::Limit& limit) {
  double times = 1;
  if (limit.reference == plan::Reference::peak)
    times = profile.peaks.at(limit.name).value;
  else if (limit.reference != plan::Reference::none)
    return std::nullopt;
  const auto scaled = [&](const std::optional<double>& bound) { return bound ? std::optional(*bound * times) : bound; };
  return Bounds{.least = scaled(limit.at_least), .most = scaled(limit.at_most)};
}

/// "312.9 GB/s, at least 314.0 GB/s": with as many digits as it takes to part the value from its bounds.
std::string limit_text(const Bounds& bounds, double value, const std::string& unit) {
  std::vector<double> shown{value};
  for (const auto& bound : {bounds.least, bounds.most})
    if (bound) shown.push_back(*bound);
  const Scale scale = scale_for(shown, unit);
  std::string text = scale.text(value);
  if (bounds.least) text += fmt::format(", at least {}", scale.text(*bounds.least));
  if (bounds.most) text += fmt::format(", at most {}", scale.text(*bounds.most));
  return text;
}

/// Whether a figure is the requirement's only in a place or at a time that the output of no tool shows: a group of
/// nodes, chosen pairs, a plane, a load, the end of a run.
bool is_placed(const plan::Requirement& requirement) {
  const bool group = plan::is_together(requirement.scope) && requirement.scope != plan::JudgedScope::pair;
  return group || requirement.pairs || !requirement.plane.empty() || !requirement.during.empty() || requirement.after;
}

/// A condition that no output of a tool shows and without which a figure may be another. One of no errors meanwhile
/// ("gpu_errors_delta at most 0") decides only about an acceptance, which an import never is.
bool names_another(const plan::RequiredCondition& condition) {
  return !condition.name.ends_with("_delta") || condition.at_most != 0.0;
}

Rated rated_by(const judge::Import& import, std::size_t at, const plan::Profile& profile,
               const plan::Requirement& requirement, const Values& parameters) {
  const judge::Figure& figure = import.figures[at];
  Rated rated{.figure = at, .requirement = requirement.id, .required = requirement.required};
  rated.differs = first_difference(import.source, figure, requirement, parameters, true);
  const auto condition = std::ranges::find_if(requirement.conditions, names_another);
  if (rated.differs.empty() && condition != requirement.conditions.end())
    rated.differs = fmt::format("an import does not show the condition {}", condition->name);
  if (rated.differs.empty() && is_placed(requirement))
    rated.differs = "an import does not show at which place or time of a run it was measured";
  const auto bounds = bounds_of(profile, requirement.limit);
  if (rated.differs.empty() && (!bounds || requirement.limit.unit != figure.unit))
    rated.differs = bounds ? fmt::format("its unit is {}", figure.unit) : "its limit is not an absolute one";
  if (!rated.differs.empty()) return rated;
  rated.limit = limit_text(*bounds, figure.value, figure.unit);
  rated.meets =
      figure.value >= bounds->least.value_or(figure.value) && figure.value <= bounds->most.value_or(figure.value);
  return rated;
}

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

std::vector<Rated> rate(const judge::Import& import, const plan::Profile& profile) {
  std::vector<Values> parameters;
  for (const auto& one : profile.requirements) parameters.push_back(parameters_of(profile, one));
  std::vector<Rated> all;
  for (std::size_t i = 0; i < import.figures.size(); ++i) {
    for (std::size_t k = 0; k < parameters.size(); ++k) {
      const plan::Requirement& one = profile.requirements[k];
      if (one.contrast || one.demand || one.rise) continue;
      const plan::Requirement requirement = at_size_of(one, import.figures[i]);
      if (same_quantity(import.source.tool, import.figures[i], requirement, parameters[k]))
        all.push_back(rated_by(import, i, profile, requirement, parameters[k]));
    }
  }
  return all;
}

std::string rating_text(const judge::Import& import, const plan::Profile& profile, const std::vector<Rated>& rated) {
  std::string text = fmt::format(
      "{}{}{} against profile {}. The figures are imported, their origin is not verified: nothing is accepted by "
      "them.\n",
      import.source.tool, import.source.version.empty() ? "" : " ", harmless(import.source.version), profile.name);
  std::set<std::size_t> met;
  for (const auto& one : rated) {
    const judge::Figure& figure = import.figures[one.figure];
    if (met.insert(one.figure).second)
      text += fmt::format("{} {}, {} ({}): {}\n", figure.statistic, figure.metric, coordinates(figure.at),
                          harmless(figure.from), for_people(figure.value, figure.unit));
    const char* severity = one.required ? "" : " (advisory)";
    if (!one.differs.empty())
      text += fmt::format("    not comparable with requirement {}{}: {}\n", one.requirement, severity, one.differs);
    else
      text += fmt::format("    imported, {} requirement {}{}: {}\n", one.meets ? "meets" : "MISSES", one.requirement,
                          severity, one.limit);
  }
  const auto count = [&](bool meets) {
    return std::ranges::count_if(rated, [&](const Rated& one) { return one.differs.empty() && one.meets == meets; });
  };
  return text +
         fmt::format("imported: {} limits met, {} missed; {} of {} figures have no counterpart in this profile\n",
                     count(true), count(false), import.figures.size() - met.size(), import.figures.size());
}

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
