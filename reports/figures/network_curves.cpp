// network_curves: curves over the size of messages and over the number of nodes, those of a knee among them.
#include "reports/figures/network_curves.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "probes/core/scale.h"
#include "reports/figures/axis.h"
#include "reports/figures/html.h"
#include "reports/figures/result_text.h"

namespace assay::figures {
namespace {

/// Results by size.
using Sizes = std::map<double, std::vector<const judge::Result*>>;

/// Requirements that may share a curve have one key: probe, metric, statistic, which nodes at once (of the sizes of
/// only messages), plane, parameters, coordinates.
using Key = std::tuple<std::string, std::string, plan::Statistic, std::string, std::string, Values, Values>;

struct Family {
  const plan::Requirement* first = nullptr;
  Sizes sizes;
};

/// Families in the profile's order.
class Families {
 public:
  Sizes& sizes_of(const plan::Requirement& requirement, const Key& key) {
    const auto [place, is_new] = index_.try_emplace(key, families_.size());
    if (is_new) families_.push_back({.first = &requirement});
    return families_[place->second].sizes;
  }
  [[nodiscard]] const std::vector<Family>& all() const { return families_; }

 private:
  std::map<Key, std::size_t> index_;
  std::vector<Family> families_;
};

Values without_size(Values values) {
  values.erase("size");
  return values;
}

const Description* description_of(const plan::Plan& plan, const plan::Requirement& requirement) {
  const auto probe = plan.probes.find(requirement.probe);
  return probe == plan.probes.end() ? nullptr : &probe->second.description;
}

/// The size of the message in bytes: a coordinate of the figure, or a parameter of its step.
std::optional<double> message_size(const plan::Requirement& requirement, const plan::Step* step) {
  const auto whole = [](const Values& values) -> std::optional<double> {
    const auto found = values.find("size");
    if (found == values.end()) return std::nullopt;
    const auto* size = std::get_if<std::int64_t>(&found->second);
    return size != nullptr && *size > 0 ? std::optional(static_cast<double>(*size)) : std::nullopt;
  };
  if (const auto size = whole(requirement.at)) return size;
  return step == nullptr ? std::nullopt : whole(step->parameters);
}

const plan::Step* step_of(const CurveSources& sources, const judge::Result& result) {
  const auto found = sources.steps.find(result.step);
  return found == sources.steps.end() ? nullptr : found->second;
}

/// Whether something can be seen: two sizes or more, and a value above 0 somewhere.
bool is_drawn(const Family& family) {
  if (family.sizes.size() < 2) return false;
  return std::ranges::any_of(family.sizes, [](const auto& size) {
    return std::ranges::any_of(size.second, [](const judge::Result* one) { return one->value && *one->value > 0; });
  });
}

CurvePoint point_of(double x, std::string label, const std::vector<const judge::Result*>& results) {
  CurvePoint point{.x = x, .label = std::move(label)};
  for (const judge::Result* one : results) {
    if (!one->value) continue;
    ++point.subjects;
    point.low = std::min(point.low.value_or(*one->value), *one->value);
    point.high = std::max(point.high.value_or(*one->value), *one->value);
  }
  const judge::Result& worst = *worst_of(results, 1).front();
  point.value = worst.value;
  point.interval = worst.interval;
  point.limit = worst.limit_low ? worst.limit_low : worst.limit_high;
  point.acceptance = worst.acceptance_low ? worst.acceptance_low : worst.acceptance_high;
  point.passes = worst.outcome == judge::Outcome::pass;
  return point;
}

template <class Label>
std::vector<CurvePoint> points_of(const Sizes& sizes, const Label& label) {
  std::vector<CurvePoint> points;
  for (const auto& [x, results] : sizes) points.push_back(point_of(x, label(x), results));
  return points;
}

std::vector<const judge::Result*> all_of(const Sizes& sizes) {
  std::vector<const judge::Result*> all;
  for (const auto& [x, results] : sizes) all.insert(all.end(), results.begin(), results.end());
  return all;
}

std::string line_words(const Curve& curve) {
  const bool several = std::ranges::any_of(curve.points, [](const CurvePoint& point) { return point.subjects > 1; });
  return several ? "Band: smallest to largest judged value; line: the worst value at each size with its interval; dot: "
                   "pass; cross: no pass; “?”: the worst result has no value. "
                 : "Line: judged value with its interval; dot: pass; cross: no pass; “?”: no value. ";
}

std::string limit_words(const Curve& curve) {
  return std::ranges::any_of(curve.points, [](const CurvePoint& point) { return point.limit.has_value(); })
             ? "Solid: limit; dashed: acceptance limit. "
             : "";
}

/// The slowest wire of all steps of `results`, as a line; nothing if a measured step records none.
std::optional<CurveLine> wire_line(const CurveSources& sources, const plan::Requirement& requirement,
                                   const std::vector<const judge::Result*>& results) {
  std::optional<double> slowest;
  for (const judge::Result* one : results) {
    if (!one->value) continue;
    const auto wire = sources.wire_limits.find(one->step);
    if (wire == sources.wire_limits.end()) return std::nullopt;
    slowest = std::min(slowest.value_or(wire->second), wire->second);
  }
  if (!slowest || requirement.limit.unit != "B/s") return std::nullopt;
  return CurveLine{.value = *slowest, .words = "wire " + for_people(*slowest, "B/s"), .css_class = "wire"};
}

/// The peak that caps a limit of `results`, as a line; nothing if none is capped.
std::optional<CurveLine> promised_ceiling(const plan::Profile& profile,
                                          const std::vector<const judge::Result*>& results) {
  for (const auto& requirement : profile.requirements) {
    const auto is_its = [&](const judge::Result* one) { return one->requirement == requirement.id; };
    if (requirement.limit.capped_by.empty() || std::ranges::none_of(results, is_its)) continue;
    const plan::Peak& peak = profile.peaks.at(requirement.limit.capped_by);
    return CurveLine{
        .value = peak.value, .words = "promised " + for_people(peak.value, peak.unit), .css_class = "reference"};
  }
  return std::nullopt;
}

/// The worst named with their sizes.
std::string worst_at(const Sizes& sizes, const std::vector<CurvePoint>& points) {
  std::map<const judge::Result*, const std::string*> label_of;
  std::vector<const judge::Result*> worst;
  std::size_t i = 0;
  for (const auto& [x, results] : sizes) {
    worst.push_back(worst_of(results, 1).front());
    label_of[worst.back()] = &points[i++].label;
  }
  constexpr std::size_t kNamed = 3;
  std::string words;
  for (const judge::Result* one : worst_of(worst, kNamed)) {
    words +=
        fmt::format("{}{} at {} ({}{})", words.empty() ? "Worst: " : ", ", escape(subject_words(*one)), *label_of[one],
                    outcome_words(one->outcome), one->value ? ", " + escape(value_text(*one)) : "");
  }
  return words + ".";
}

NetworkCurve size_curve(const CurveSources& sources, const Family& family) {
  const plan::Requirement& requirement = *family.first;
  const auto all = all_of(family.sizes);
  NetworkCurve drawn;
  Curve& curve = drawn.curve;
  plan::Requirement without = requirement;
  without.at = without_size(requirement.at);
  without.parameters = without_size(requirement.parameters);
  curve.title = fmt::format("{} ({}) per {} over message size{}", requirement.metric, requirement.statistic,
                            requirement.scope, setting_words(without));
  curve.x_name = "message size (logarithmic)";
  curve.y_name = requirement.metric;
  curve.unit = requirement.limit.unit;
  curve.points = points_of(family.sizes, size_words);
  curve.description = fmt::format("{} sizes from {} to {}. {}.", curve.points.size(), curve.points.front().label,
                                  curve.points.back().label, outcome_counts(all));
  if (const auto wire = wire_line(sources, requirement, all)) curve.lines.push_back(*wire);
  drawn.caption = fmt::format("{}Measured by {}. {}{}", kind_words(sources.plan), escape(requirement.probe),
                              line_words(curve), limit_words(curve));
  if (!curve.lines.empty()) drawn.caption += "Dotted: recorded rate of the slowest port in one direction. ";
  drawn.caption += fmt::format("Results: {}. {}", outcome_counts(all), worst_at(family.sizes, curve.points));
  return drawn;
}

NetworkCurve scaling_curve(const CurveSources& sources, const Family& family) {
  const plan::Requirement& requirement = *family.first;
  const auto all = all_of(family.sizes);
  NetworkCurve drawn;
  Curve& curve = drawn.curve;
  curve.title = fmt::format("{} ({}) over number of nodes{}", requirement.metric, requirement.statistic,
                            setting_words(requirement));
  curve.x_name = "nodes in the group (logarithmic)";
  curve.y_name = requirement.metric;
  curve.unit = requirement.limit.unit;
  curve.points = points_of(family.sizes, [](double nodes) { return fmt::format("{:.0f}", nodes); });
  curve.description = fmt::format("Groups of {} to {} nodes. {}.", curve.points.front().label,
                                  curve.points.back().label, outcome_counts(all));
  drawn.caption = fmt::format("{}Measured by {}. {}{}", kind_words(sources.plan), escape(requirement.probe),
                              line_words(curve), limit_words(curve));
  if (const auto& reference = curve.points.front().value) {
    curve.lines.push_back({.value = *reference,
                           .words = fmt::format("as {} nodes", curve.points.front().label),
                           .css_class = "reference"});
    drawn.caption += fmt::format("Dotted: the worst value of {} nodes, the reference for larger groups. ",
                                 curve.points.front().label);
  }
  if (const auto ceiling = promised_ceiling(sources.plan.profile, all)) {
    curve.lines.push_back(*ceiling);
    drawn.caption += "Dotted, promised: the ceiling, beyond which larger groups owe no more. ";
  }
  drawn.caption += fmt::format("Results: {}. {}", outcome_counts(all), worst_at(family.sizes, curve.points));
  return drawn;
}

/// A group of so many nodes, without its figure.
CurvePoint group_of(const judge::KneeFound& knee, std::size_t nodes) {
  const bool is_knee = knee.state == judge::KneeState::found && nodes == knee.kept;
  return {.x = static_cast<double>(nodes),
          .label = fmt::format("{}{}", is_knee ? "knee " : "", nodes),
          .marked = is_knee,
          .subjects = 1};
}

Curve figure_of(const plan::Requirement& requirement, const judge::KneeFound& knee) {
  const bool sum = requirement.limit.reference == plan::Reference::smallest_group_by_nodes;
  Curve curve{.title = fmt::format("{}{}: {}", knee.requirement, knee.rail.empty() ? "" : ", rail " + knee.rail,
                                   requirement.title),
              .description = knee.reason,
              .x_name = "nodes that work together",
              .y_name = requirement.metric + (sum ? " / nodes" : ""),
              .unit = requirement.limit.unit};
  for (const auto& point : knee.points) {
    CurvePoint drawn = group_of(knee, point.nodes);
    drawn.value = point.value;
    drawn.limit = point.limit;
    drawn.passes = point.kept;
    curve.points.push_back(std::move(drawn));
  }
  return curve;
}

Curve counter_of(const judge::KneeFound& knee) {
  Curve curve{.title = fmt::format("{}: {}", knee.requirement, knee.counter->name),
              .description = knee.counter->name,
              .x_name = "nodes that work together",
              .y_name = knee.counter->name + " of a node",
              .unit = "1"};
  for (const auto& point : knee.points) {
    if (!point.counter) continue;
    CurvePoint drawn = group_of(knee, point.nodes);
    drawn.value = point.counter;
    drawn.passes = true;
    curve.points.push_back(std::move(drawn));
  }
  return curve;
}

}  // namespace

std::vector<NetworkCurve> size_curves(const CurveSources& sources) {
  Families families;
  for (const auto& requirement : sources.plan.profile.requirements) {
    const auto* probe = description_of(sources.plan, requirement);
    const auto results = sources.results.find(requirement.id);
    if (probe == nullptr || probe->scope == "node" || results == sources.results.end() || requirement.contrast)
      continue;
    Sizes& sizes = families.sizes_of(
        requirement, {requirement.probe, requirement.metric, requirement.statistic,
                      fmt::format("{}{}", requirement.scope, placement_words(requirement)), requirement.plane,
                      without_size(requirement.parameters), without_size(requirement.at)});
    for (const judge::Result* one : results->second) {
      if (const auto size = message_size(requirement, step_of(sources, *one))) sizes[*size].push_back(one);
    }
  }
  std::vector<NetworkCurve> drawn;
  for (const auto& family : families.all()) {
    if (is_drawn(family)) drawn.push_back(size_curve(sources, family));
  }
  return drawn;
}

std::vector<NetworkCurve> scaling_curves(const CurveSources& sources) {
  Families families;
  for (const auto& requirement : sources.plan.profile.requirements) {
    const auto results = sources.results.find(requirement.id);
    if (results == sources.results.end() || requirement.contrast) continue;
    Sizes& sizes = families.sizes_of(requirement, {requirement.probe, requirement.metric, requirement.statistic, "",
                                                   requirement.plane, requirement.parameters, requirement.at});
    for (const judge::Result* one : results->second) {
      const plan::Step* step = step_of(sources, *one);
      if (step != nullptr && step->nodes.size() > 1) sizes[static_cast<double>(step->nodes.size())].push_back(one);
    }
  }
  std::vector<NetworkCurve> drawn;
  for (const auto& family : families.all()) {
    if (is_drawn(family)) drawn.push_back(scaling_curve(sources, family));
  }
  return drawn;
}

std::vector<NetworkCurve> knee_curves(const plan::Plan& plan, const judge::Verdict& verdict) {
  std::vector<NetworkCurve> all;
  for (const auto& knee : verdict.knees) {
    const auto* requirement = plan.requirement(knee.requirement);
    if (requirement == nullptr || knee.points.size() < 2) continue;
    all.push_back({.curve = figure_of(*requirement, knee),
                   .caption = escape(knee.reason) +
                              " Dots keep the plateau, the best of the smaller groups, within the "
                              "guard band of the limit; crosses do not."});
    if (!knee.counter) continue;
    Curve counter = counter_of(knee);
    if (counter.points.size() > 1)
      all.push_back(
          {.curve = std::move(counter),
           .caption = escape(fmt::format(
               "{} as a mean over nodes: {} where the figure falls out, {} before, with a standard deviation of {}.",
               knee.counter->name, for_people(knee.counter->at, "1"), for_people(knee.counter->before, "1"),
               for_people(knee.counter->spread, "1")))});
  }
  return all;
}

}  // namespace assay::figures
