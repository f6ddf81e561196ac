// fault_plan: lists the cases in a fixed order, and finds the operation of a graph at which a fault strikes.
#include "workloads/train/faults/fault_plan.h"

#include <array>
#include <functional>

#include <fmt/format.h>

namespace assay::train {
namespace {

constexpr std::array<std::string_view, 4> kKinds = {"kill", "hang", "cut", "slow"};
constexpr std::array<std::string_view, 5> kPhases = {"forward", "backward", "reduce", "optimizer", "save"};

constexpr std::array<std::string_view, 4> kTiers = {"own", "memory", "local", "shared"};

using Wanted = std::function<bool(const Op&)>;

/// The middle one of those that are wanted.
std::optional<std::size_t> middle(const std::vector<Op>& ops, const Wanted& wanted) {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (wanted(ops[i])) all.push_back(i);
  }
  if (all.empty()) return std::nullopt;
  return all[all.size() / 2];
}

std::optional<std::size_t> reduction(const std::vector<Op>& ops) {
  const auto gradients = std::ranges::find(ops, Role::gradients, &Op::role);
  if (gradients != ops.end()) return static_cast<std::size_t>(gradients - ops.begin());
  std::optional<std::size_t> last;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].kind == OpKind::collective && ops[i].pass != Pass::update) last = i;
  }
  return last;
}

}  // namespace

std::string_view word_of(FaultKind kind) { return kKinds.at(static_cast<std::size_t>(kind)); }
std::string_view word_of(StepPhase phase) { return kPhases.at(static_cast<std::size_t>(phase)); }

std::string_view word_of(Tier tier) { return kTiers.at(static_cast<std::size_t>(tier)); }

std::string text_of(const FaultCase& one) {
  return fmt::format("{} of rank {} in {} of step {}", word_of(one.kind), one.rank, word_of(one.phase), one.step);
}

std::string key_of(const FaultCase& one) { return fmt::format("{}:{}", word_of(one.kind), word_of(one.phase)); }

FaultPlan fault_plan(std::string_view kinds, std::string_view phases, std::int64_t rounds, std::int64_t save_every,
                     std::int64_t ranks) {
  FaultPlan plan{.save_every = save_every, .steps = 0, .cases = {}};
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
      if (kinds != "all" && kinds != kKinds[kind]) continue;
      for (std::size_t phase = 0; phase < kPhases.size(); ++phase) {
        if (phases != "all" && phases != kPhases[phase]) continue;
        const bool saving = kPhases[phase] == "save";
        const std::int64_t into = saving ? plan.steps_per_case() : save_every + save_every / 2;
        plan.cases.push_back({.kind = static_cast<FaultKind>(kind),
                              .phase = static_cast<StepPhase>(phase),
                              .step = plan.steps + into,
                              .rank = static_cast<std::int64_t>(plan.cases.size()) % ranks});
        plan.steps += plan.steps_per_case();
      }
    }
  }
  return plan;
}

std::optional<std::size_t> op_of(StepPhase phase, const std::vector<Op>& ops) {
  switch (phase) {
    case StepPhase::forward:
      return middle(ops, [](const Op& op) { return op.kind == OpKind::gemm && op.pass == Pass::forward; });
    case StepPhase::backward:
      return middle(ops, [](const Op& op) { return op.kind == OpKind::gemm && op.pass == Pass::input; });
    case StepPhase::reduce:
      return reduction(ops);
    case StepPhase::optimizer:
      return middle(ops, [](const Op& op) { return op.kind == OpKind::optimizer; });
    case StepPhase::save:
      break;
  }
  return std::nullopt;
}

}  // namespace assay::train
