// network_curves: figures that requirements share which differ only in the size of the message or of the group, and
// those of growing groups with the counter that rose where they fall.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reports/figures/captions.h"
#include "reports/figures/curve.h"

namespace assay::figures {

/// The results of each requirement, by id, in the verdict's order.
using ResultsOf = std::map<std::string, std::vector<const judge::Result*>>;

/// The part of a run that the curves are drawn from; all of it must outlive them.
struct CurveSources {
  const plan::Plan& plan;
  const StepIndex& steps;
  const ResultsOf& results;
  const std::map<std::string, double>& wire_limits;  ///< B/s by step, where a record has it
};

/// A curve with its caption, HTML.
struct NetworkCurve {
  Curve curve;
  std::string caption;
};

/// Over the size of messages: requirements on a probe of several nodes that agree in everything but that size, at two
/// sizes or more. At each size the line has the worst result (is_worse), and no value if that has none.
std::vector<NetworkCurve> size_curves(const CurveSources& sources);

/// Over the number of nodes that work together: requirements that agree in probe, parameters, metric and coordinates,
/// on groups of two or more sizes of at least two nodes. The smallest groups' worst value is the reference. One node
/// alone uses no network and is left out.
std::vector<NetworkCurve> scaling_curves(const CurveSources& sources);

/// For each knee of `verdict` with two groups or more the figure per node over the number of nodes, with its limits,
/// and below it the counter that rose, if one did. Groups that fall out are crosses; the knee has its name below the
/// axis.
std::vector<NetworkCurve> knee_curves(const plan::Plan& plan, const judge::Verdict& verdict);

}  // namespace assay::figures
