// knee_curves: turns the points of a knee into curves.
#include "reports/figures/knee_curves.h"

#include <fmt/format.h>

#include "probes/core/scale.h"
#include "reports/figures/html.h"

namespace assay::figures {
namespace {

/// Sizes near the knee have no label, so that there is room for its own.
std::string label_of(const judge::KneeFound& knee, std::size_t nodes) {
  constexpr std::size_t kNear = 2;
  if (knee.state != judge::KneeState::found) return std::to_string(nodes);
  if (nodes == knee.kept) return fmt::format("knee {}", nodes);
  return nodes <= kNear * knee.kept && knee.kept <= kNear * nodes ? "" : std::to_string(nodes);
}

Curve figure_of(const plan::Requirement& requirement, const judge::KneeFound& knee) {
  const bool sum = requirement.limit.reference == plan::Reference::smallest_group_by_nodes;
  Curve curve{.title = fmt::format("{}{}: {}", knee.requirement, knee.rail.empty() ? "" : ", rail " + knee.rail,
                                   requirement.title),
              .description = knee.reason,
              .x_name = "nodes that work together",
              .y_name = requirement.metric + (sum ? " / nodes" : ""),
              .unit = requirement.limit.unit,
              .points = {},
              .lines = {}};
  for (const auto& point : knee.points) {
    CurvePoint drawn{.x = static_cast<double>(point.nodes), .label = label_of(knee, point.nodes), .subjects = 1};
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
              .unit = "1",
              .points = {},
              .lines = {}};
  for (const auto& point : knee.points) {
    if (!point.counter) continue;
    CurvePoint drawn{.x = static_cast<double>(point.nodes), .label = label_of(knee, point.nodes), .subjects = 1};
    drawn.value = point.counter;
    drawn.passes = true;
    curve.points.push_back(std::move(drawn));
  }
  return curve;
}

}  // namespace

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
