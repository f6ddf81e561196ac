// probe_check: metrics, units, references, conditions and numbers of samples against a probe's description.
#include "orchestrator/plan/probe_check.h"

#include <fmt/format.h>

#include "orchestrator/plan/contrast.h"
#include "orchestrator/plan/derived.h"
#include "probes/core/statistics.h"
#include "probes/core/suggest.h"

namespace assay::plan {
namespace {

/// Input of the derived figure of a limit or ceiling that the probe does not record.
std::optional<InputError> check_derived(const Requirement& requirement, const Description& probe,
                                        const std::string& here) {
  std::vector<std::string> names;
  if (requirement.limit.reference == Reference::derived) names.push_back(requirement.limit.name);
  if (requirement.ceiling && requirement.ceiling->reference == Reference::derived)
    names.push_back(requirement.ceiling->name);
  for (const auto& name : names) {
    const DerivedFigure& figure = *derived_figure(name);
    for (const auto part : figure.parts) {
      if (figure.from == DerivedFrom::metric && probe.metric(part) == nullptr)
        return InputError{here + ".limit.of", fmt::format("{} measures no '{}'", probe.name, part), ""};
      if (figure.from == DerivedFrom::conditions && !probe.has_condition(part))
        return InputError{here + ".limit.of", fmt::format("{} records no '{}'", probe.name, part), ""};
    }
  }
  return std::nullopt;
}

std::string nearest_sizes(const UnusableSize& size) {
  if (size.fewer && size.greater) return fmt::format("{} and {}", *size.fewer, *size.greater);
  if (const auto& one = size.fewer ? size.fewer : size.greater) return fmt::format("{}", *one);
  return "";
}

}  // namespace

std::optional<InputError> check_against(const Requirement& requirement, const Description& probe,
                                        const std::string& here) {
  if (requirement.demand) return check_recorded(*requirement.demand, probe, here + ".demand");
  std::vector<std::string> metrics;
  for (const auto& metric : probe.metrics) metrics.push_back(metric.name);
  const auto* metric = probe.metric(requirement.metric);
  if (metric == nullptr) {
    return InputError{here + ".metric", fmt::format("{} measures no '{}'", probe.name, requirement.metric),
                      suggestion(requirement.metric, metrics)};
  }
  if (requirement.contrast) {
    if (auto problem = check_contrast(requirement, probe, here)) return problem;
  } else if (metric->unit != requirement.limit.unit) {
    return InputError{
        here + ".limit.unit",
        fmt::format("'{}', but {} of {} is in '{}'", requirement.limit.unit, metric->name, probe.name, metric->unit),
        "a limit has the unit of its metric, also when it is a share of something"};
  }
  if (requirement.knee && metric->better != "higher")
    return InputError{here + ".knee", fmt::format("{} of {} is not the better the higher", metric->name, probe.name),
                      "a knee is of a rate or a share that falls where more nodes work together"};
  if (requirement.rise && metric->course != Course::since_boot && metric->course != Course::for_life) {
    return InputError{here + ".rise", fmt::format("{} of {} is no counter", metric->name, probe.name),
                      "a figure that each run measures anew does not rise; judge the figure itself"};
  }
  if (requirement.limit.reference == Reference::metric) {
    const auto* reference = probe.metric(requirement.limit.name);
    if (reference == nullptr || reference->unit != metric->unit) {
      return InputError{here + ".limit.of",
                        fmt::format("{} measures no '{}' in {}", probe.name, requirement.limit.name, metric->unit),
                        suggestion(requirement.limit.name, metrics)};
    }
  }
  if (auto problem = check_derived(requirement, probe, here)) return problem;
  for (std::size_t i = 0; i < requirement.conditions.size(); ++i) {
    if (auto problem = check_recorded(requirement.conditions[i], probe, fmt::format("{}.conditions[{}]", here, i)))
      return problem;
  }
  return std::nullopt;
}

std::optional<InputError> check_samples(const Requirement& requirement, const Values& parameters, double confidence,
                                        const std::string& here) {
  const auto parameter = parameters.find("max_samples");
  const auto* const of_one = parameter == parameters.end() ? nullptr : std::get_if<std::int64_t>(&parameter->second);
  if (of_one == nullptr || *of_one < 1) return std::nullopt;
  if (requirement.repeat_n > *of_one) {
    return InputError{here + ".repeat.n",
                      fmt::format("demands {} samples, and max_samples allows {}", requirement.repeat_n, *of_one),
                      "raise max_samples, or demand fewer: the result would be inconclusive for certain"};
  }
  const auto fraction = quantile_of(requirement.statistic);
  if (!fraction) return std::nullopt;
  const std::int64_t most = *of_one * requirement.attempts;
  const std::vector<double> samples(static_cast<std::size_t>(most), 0.0);
  if (order_statistic_interval(samples, *fraction, confidence)) return std::nullopt;
  return InputError{
      here + ".statistic",
      fmt::format(
          "{} samples, as max_samples and attempts allow, are too few for an interval of the {} at {:g} % confidence",
          most, requirement.statistic, confidence * 100),
      "raise max_samples or attempts, or judge another statistic: the result would be inconclusive for certain"};
}

std::optional<InputError> check_group_sizes(const std::vector<Spot>& spots, const Description& probe,
                                            const Values& parameters, const std::string& here) {
  if (probe.group_size.empty()) return std::nullopt;
  for (const auto& spot : spots) {
    if (spot.nodes.empty()) continue;
    const auto unusable = unusable_size(probe.group_size, parameters, spot.nodes.size());
    if (!unusable) continue;
    const std::string nearest = nearest_sizes(*unusable);
    return InputError{here + ".scope",
                      fmt::format("{} cannot work on the {} {}: {}", probe.name, spot.subject.kind, spot.subject.id,
                                  unusable->reason),
                      nearest.empty() ? "no number of nodes would do with these parameters"
                                      : fmt::format("the nearest numbers of nodes that would do: {}; name so many in "
                                                    "the site file, or give the probe other parameters",
                                                    nearest)};
  }
  return std::nullopt;
}

}  // namespace assay::plan
