// subject_count: how many subjects one step may show, so that no node can speak for more than it has.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "orchestrator/judge/cells/pool.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::judge {

/// The most subjects of the scope of `requirement` that `step` can show: its nodes' by design, of nodes that work
/// together the ordered pairs of their ranks. Nothing if neither profile nor site says.
std::optional<std::size_t> most_subjects(const plan::Plan& plan, const plan::Requirement& requirement,
                                         const plan::Step& step);

/// `node`, the result of a node's own cell, when `pools` are of more or fewer subjects than a node of this design has:
/// the missing one is the one that is broken. Instances of GPUs (MIG) are no GPUs; their number is that of gpu_instance
/// of the node in the site.
std::optional<Result> wrong_number(const plan::Plan& plan, const plan::Requirement& requirement,
                                   const std::map<Subject, Pool>& pools, Result node);

/// How many figures the plan wants that vary between runs, one of each subject, by the design of its nodes.
double figures_of(const plan::Plan& plan);

/// The medians of all steps in one row. Where the profile does not say how many subjects a node has, a step with more
/// than twice as many as the middle one is left out: it would outvote the others.
std::vector<double> fleet_of(const std::vector<std::vector<double>>& of_steps);

}  // namespace assay::judge
