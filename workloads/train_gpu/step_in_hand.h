// step_in_hand: the operation of a step that a device is at.
#pragma once

#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "probes/cuda/patience.h"
#include "workloads/train/engine/executor.h"

namespace assay::train_gpu {

/// "all_reduce", or the kind of an operation that moves nothing.
constexpr std::string_view word_of(const train::Op& op) {
  return op.kind == train::OpKind::collective ? assay::word_of(op.motion) : assay::word_of(op.kind);
}

/// The call that a device is at: the first whose mark it has not passed, as has_passed(place of the call) says. A rank
/// that is at a collective, or waits for one that was posted, waits for the others of its group.
template <class HasPassed>
cuda::InHand step_in_hand(const std::vector<train::Op>& ops, const std::vector<train::Instruction>& calls,
                          const HasPassed& has_passed) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (has_passed(i)) continue;
    const std::string at = fmt::format("call {} of {}", i + 1, calls.size());
    if (calls[i].call == train::Instruction::Call::wait)
      return {.words = at + " (wait for collectives)", .waits = true};
    const train::Op& op = ops.at(calls[i].op);
    const bool collective = op.kind == train::OpKind::collective;
    const std::string layer = op.layer < 0 ? "" : fmt::format(", layer {}", op.layer);
    return {.words = fmt::format("{} ({}{})", at, word_of(op), layer), .waits = collective};
  }
  return {};
}

}  // namespace assay::train_gpu
