// contrast: checks of contrasts in a profile and against its probe; its parameters and words.
#include "orchestrator/plan/contrast.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/plan/repeat.h"
#include "probes/core/json_io.h"
#include "probes/core/scale.h"
#include "probes/core/suggest.h"
#include "probes/core/text.h"

namespace assay::plan {

std::optional<InputError> check_target(const nlohmann::json& entry, const std::string& here) {
  const bool limit = entry.contains("limit");
  const bool contrast = entry.contains("contrast");
  if (limit && contrast)
    return InputError{here + ".contrast", "is given together with limit",
                      "the gain of a contrast is its limit: at_least"};
  if (limit || contrast) return std::nullopt;
  return InputError{here, "the field 'limit' is missing", "give `limit`, or `contrast` for a feature that is switched"};
}

std::optional<InputError> check_contrast(const Requirement& requirement, const std::string& here) {
  if (!requirement.contrast) return std::nullopt;
  const Contrast& contrast = *requirement.contrast;
  const auto refuse = [&](const std::string& field, const std::string& hint) {
    return InputError{here + "." + field, "does not go with contrast", hint};
  };
  if (requirement.parameters.contains(contrast.parameter))
    return InputError{here + ".parameters." + contrast.parameter, "is the parameter of the contrast",
                      "leave it out: the contrast gives both of its values"};
  const std::string& name = contrast.parameter;
  if (name == "allow_settings" || (!requirement.plane.empty() && (name == "interface" || name == "device")))
    return InputError{here + ".contrast.parameter", fmt::format("'{}' is no switch", name),
                      "the site gives the ports of a plane, and the user the permission to change settings"};
  if (requirement.rise) return refuse("rise", "a rise is of one counter");
  if (!requirement.during.empty()) return refuse("during", "figures of the site's meters have no switch");
  if (requirement.ceiling) return refuse("ceiling", "a ratio has no physical limit");
  if (requirement.at_every) return refuse("at", "name one coordinate");
  if (!varies_between_runs(requirement.statistic)) return refuse("statistic", "use median or a percentile");
  return std::nullopt;
}

std::optional<InputError> check_contrast(const Requirement& requirement, const Description& probe,
                                         const std::string& here) {
  const Contrast& contrast = *requirement.contrast;
  const auto names_of = [](const auto& list) {
    std::vector<std::string> names;
    for (const auto& one : list) names.push_back(one.name);
    return names;
  };
  const auto parameters = names_of(probe.parameters);
  if (std::ranges::find(parameters, contrast.parameter) == parameters.end())
    return InputError{here + ".contrast.parameter",
                      fmt::format("{} has no parameter '{}'", probe.name, contrast.parameter),
                      suggestion(contrast.parameter, parameters)};
  if (!probe.has_condition(contrast.shown_by))
    return InputError{here + ".contrast.shown_by", fmt::format("{} records no '{}'", probe.name, contrast.shown_by),
                      suggestion(contrast.shown_by, names_of(probe.conditions))};
  const auto on = probe.resolve({{contrast.parameter, contrast.on}}, false);
  const auto off = probe.resolve({{contrast.parameter, contrast.off}}, false);
  if (on && off && *on == *off)
    return InputError{here + ".contrast.off", "is the same value as `on`", "name the value without the feature"};
  const auto& metric = *probe.metric(requirement.metric);
  if (metric.kind == MetricKind::fault || (metric.better != "higher" && metric.better != "lower"))
    return InputError{here + ".metric", fmt::format("{} has no better side to gain on", metric.name),
                      "judge a rate or a time by the contrast"};
  return std::nullopt;
}

Values parameters_of(const Requirement& requirement, bool on) {
  Values all = requirement.parameters;
  if (const auto& contrast = requirement.contrast) all[contrast->parameter] = on ? contrast->on : contrast->off;
  return all;
}

std::string gain_words(const Contrast& contrast) {
  constexpr double kPerCent = 100;
  const std::string amount = for_people(std::abs(contrast.at_least) * kPerCent, "1");
  return contrast.at_least < 0 ? fmt::format("a loss of at most {} % is allowed", amount)
                               : fmt::format("a gain of at least {} % is demanded", amount);
}

std::string switch_words(const Contrast& contrast, bool on) {
  const Value& value = on ? contrast.on : contrast.off;
  const auto* text = std::get_if<std::string>(&value);
  return fmt::format("{} = {}", contrast.parameter, text != nullptr ? harmless(*text) : assay::to_json(value).dump());
}

}  // namespace assay::plan
