// fault_plan: lists the cases in a fixed order, and finds the operation of a graph at which a fault strikes.
#include "workloads/train/faults/fault_plan.h"

#include <functional>

#include <fmt/format.h>

namespace assay::train {
namespace {

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

std::string text_of(const FaultCase& one) {
  return fmt::format("{} of rank {} in {} of step {}", word_of(one.kind), one.rank, word_of(one.phase), one.step);
}

std::string key_of(const FaultCase& one) { return fmt::format("{}:{}", word_of(one.kind), word_of(one.phase)); }

FaultPlan fault_plan(std::string_view kinds, std::string_view phases, std::int64_t rounds, std::int64_t save_every,
                     std::int64_t ranks) {
  FaultPlan plan{.save_every = save_every, .steps = 0, .cases = {}};
  for (std::int64_t round = 0; round < rounds; ++round) {
    for (const auto& [kind, kind_word] : words_of(FaultKind{})) {
      if (kinds != "all" && kinds != kind_word) continue;
      for (const auto& [phase, phase_word] : words_of(StepPhase{})) {
        if (phases != "all" && phases != phase_word) continue;
        const bool saving = phase == StepPhase::save;
        const std::int64_t into = saving ? plan.steps_per_case() : save_every + save_every / 2;
        plan.cases.push_back({.kind = kind,
                              .phase = phase,
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
