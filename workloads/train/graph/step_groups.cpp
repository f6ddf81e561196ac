// step_groups: the members of the groups of a plan, and the payloads of their operations.
#include "workloads/train/graph/step_groups.h"

#include <algorithm>
#include <cmath>

namespace assay::train {
namespace {

constexpr std::int64_t kLeast = 64 << 10, kMost = 16 << 20;
constexpr std::int64_t kMostPasses = 1000;  // a kind that is so much faster than another never fills its time

}  // namespace

std::vector<std::size_t> group_kinds(const ParallelPlan& plan) {
  std::vector<std::size_t> kinds;
  for (std::size_t i = 0; i < kGroupKinds.size(); ++i) {
    const auto members = members_of(plan, kGroupKinds[i], 0);
    const bool shown = kGroupKinds[i] == Group::replicas && members == members_of(plan, Group::ep, 0);
    if (members.size() > 1 && !shown) kinds.push_back(i);
  }
  return kinds;
}

std::array<std::int64_t, kGroupKinds.size()> group_messages(const ModelShape& model, const ParallelPlan& plan) {
  std::array<std::int64_t, kGroupKinds.size()> messages;
  messages.fill(kLeast);
  for (const Op& op : step_graph(model, plan, 0)) {
    const auto kind = std::ranges::find(kGroupKinds, op.group) - kGroupKinds.begin();
    if (kind == static_cast<std::ptrdiff_t>(kGroupKinds.size())) continue;
    auto& most = messages.at(static_cast<std::size_t>(kind));
    most = std::clamp(op.bytes, most, kMost);
  }
  return messages;
}

std::vector<std::int64_t> even_passes(const std::vector<double>& alone_s, std::int64_t passes) {
  const double whole_s = *std::ranges::max_element(alone_s) * static_cast<double>(passes);
  std::vector<std::int64_t> all;
  for (const double one_s : alone_s)
    all.push_back(one_s > 0 ? std::min<std::int64_t>(kMostPasses, std::llround(std::ceil(whole_s / one_s))) : 0);
  return all;
}

}  // namespace assay::train
