// executor: binds the operations to calls of the core and the line, once for each part of a step.
#include "workloads/train/engine/executor.h"

#include <map>

namespace assay::train {
namespace {

bool belongs(const Op& op, Part part) {
  const bool collective = op.kind == OpKind::collective;
  const bool late = op.pass == Pass::update || op.role == Role::gradients;
  switch (part) {
    case Part::full:
      return true;
    case Part::computation:
      return !collective;
    case Part::communication:
      return collective;
    case Part::gradients:
      return !late;
    case Part::update:
      return late;
  }
  return false;
}

}  // namespace

std::vector<Instruction> instructions_of(const std::vector<Op>& ops, Part part, bool beside) {
  using Call = Instruction::Call;
  std::vector<Instruction> calls;
  std::map<std::int64_t, std::size_t> posted_by;  // by bucket
  std::size_t posted = 0, waited = 0;
  const auto wait = [&](std::size_t op, std::size_t count) {
    if (count <= waited) return;
    calls.push_back({.call = Call::wait, .op = op, .posted = count});
    waited = count;
  };
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Op& op = ops[i];
    if (!belongs(op, part)) continue;
    if (op.kind != OpKind::collective) {
      if (op.kind == OpKind::optimizer && posted_by.contains(op.bucket)) wait(i, posted_by[op.bucket]);
      calls.push_back({.call = Call::compute, .op = i});
    } else if (op.beside && beside && part != Part::communication) {
      posted_by[op.bucket] = ++posted;
      calls.push_back({.call = Call::post, .op = i, .posted = posted});
    } else {
      calls.push_back({.call = Call::carry, .op = i});
    }
  }
  wait(ops.size(), posted);
  return calls;
}

}  // namespace assay::train
