// lint: finds metrics of kind fault that a step measures and no requirement judges.
#include "orchestrator/plan/lint.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "probes/core/sizes.h"

namespace assay::plan {
namespace {

/// Whether `judging`, all of one metric, see it wherever it is measured.
bool sees_all(const std::vector<const Requirement*>& judging, const std::vector<std::int64_t>& sizes) {
  std::set<std::int64_t> seen;
  for (const Requirement* requirement : judging) {
    if (requirement->at_every || (sizes.empty() && requirement->at.empty())) return true;
    const auto size = requirement->at.find("size");
    if (requirement->at.size() != 1 || size == requirement->at.end()) continue;
    if (const auto* bytes = std::get_if<std::int64_t>(&size->second)) seen.insert(*bytes);
  }
  return !sizes.empty() && std::ranges::all_of(sizes, [&](std::int64_t size) { return seen.contains(size); });
}

}  // namespace

std::vector<std::int64_t> sizes_in(const Values& parameters) {
  const auto given = parameters.find("sizes");
  const auto* text = given == parameters.end() ? nullptr : std::get_if<std::string>(&given->second);
  std::vector<std::int64_t> sizes;
  if (text == nullptr) return sizes;
  try {
    for (const Bytes size : parse_sizes(*text)) sizes.push_back(static_cast<std::int64_t>(size.count));
  } catch (const BadParameter&) {  // the probe will say so; here no size is known
    sizes.clear();
  }
  return sizes;
}

std::optional<InputError> unjudged_fault(const Description& probe, const Values& parameters,
                                         std::span<const Requirement* const> requirements, const std::string& where) {
  const bool any_required = std::ranges::any_of(requirements, &Requirement::required);
  for (const auto& metric : probe.metrics) {
    if (metric.kind != MetricKind::fault) continue;
    std::vector<const Requirement*> judging;
    for (const Requirement* requirement : requirements) {
      if (requirement->metric == metric.name && (requirement->required || !any_required))
        judging.push_back(requirement);
    }
    if (sees_all(judging, sizes_in(parameters))) continue;
    return InputError{
        where,
        fmt::format("{} of {} is {} where {} is measured: faults there would change no verdict", metric.name,
                    probe.name, judging.empty() ? "judged by no requirement" : "not judged at every size",
                    requirements.front()->id),
        fmt::format("add a requirement on it with the same probe, parameters and place: \"metric\": \"{}\", \"at\": "
                    "\"every\", \"statistic\": \"max\", \"limit\": {{\"at_most\": 0, \"unit\": \"{}\"}}, \"repeat\": "
                    "{{\"n\": 1}}",
                    metric.name, metric.unit)};
  }
  return std::nullopt;
}

}  // namespace assay::plan
