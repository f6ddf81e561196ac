// step_groups: the kinds of groups of a plan whose messages can meet on their way, and how to load them alike.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "workloads/train/graph/step_graph.h"

namespace assay::train {

/// The kinds of groups whose messages can meet on their way.
inline constexpr std::array<Group, 5> kGroupKinds = {Group::tp, Group::cp, Group::ep, Group::replicas, Group::pp};
/// Their words, in this order.
inline constexpr std::array<std::string_view, 5> kGroupWords = {"tp", "cp", "ep", "replicas", "pp"};

/// Those of several ranks, as places in kGroupKinds. replicas are left out where ep has the same ranks.
std::vector<std::size_t> group_kinds(const ParallelPlan& plan);

/// B of one message of each kind in kGroupKinds: the largest payload that a rank of the plan's first pipeline place has
/// for it in a step, from 64 KiB to 16 MiB.
std::array<std::int64_t, kGroupKinds.size()> group_messages(const ModelShape& model, const ParallelPlan& plan);

/// By place in kGroupKinds, so many passes of each kind that all take about as long as `passes` of the slowest;
/// `alone_s` is the time of one pass of each, 0 if there is none.
std::vector<std::int64_t> even_passes(const std::vector<double>& alone_s, std::int64_t passes);

}  // namespace assay::train
