// executor: walks the operations of one rank in one step, by calls of two interfaces: a core that computes and a line
// that communicates. Which calls, and in which order, is settled before the first step and is the same for every
// engine.
#pragma once

#include <concepts>
#include <cstddef>
#include <span>
#include <vector>

#include "workloads/train/graph/step_job.h"

namespace assay::train {

/// One call.
struct Instruction {
  enum class Call {
    compute,  ///< the core does the operation
    carry,    ///< the line does the collective; later calls use it
    post,     ///< the line starts the collective, concurrent with later calls
    wait,     ///< later calls need the first `posted` of the posted collectives
  };
  Call call = Call::compute;
  std::size_t op = 0;      ///< place in the operations; of the wait at the end of a step: how many there are
  std::size_t posted = 0;  ///< of a post: how many there are with it; of a wait: how many must be done
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

/// The part of a step that is walked. gradients: forward and backward, nothing reduced; update: the rest.
enum class Part { full, computation, communication, gradients, update };

/// The calls of `part` in their order. `beside`: collectives that may overlap with computation are posted; else, and if
/// nothing is computed, each is carried in turn.
std::vector<Instruction> instructions_of(const std::vector<Op>& ops, Part part, bool beside);

/// The compute side. No call may allocate, nor wait for a device. An engine that only enqueues its work orders the
/// calls of core and line among each other as they are made.
///   compute(op)   the operation at this place.
///   lend(op)      hands the input of the collective `op` to the line; take(op) uses its output.
///   begin(calls)  before the first of so many calls; mark(call) notes the time after each; end() waits for all.
///   seconds(call) from the begin of the step to the mark of this call, after end().
template <class Core>
concept ComputeCore = requires(Core core, std::size_t place) {
  core.begin(place);
  core.compute(place);
  core.lend(place);
  core.take(place);
  core.mark(place);
  core.end();
  { core.seconds(place) } -> std::convertible_to<double>;
};

/// The communication side.
///   restart()     before a step: forgets posted collectives; all are done.
///   carry(op)     the collective at this place; it is done when the call returns.
///   post(op)      starts it behind those posted before. wait(posted) is as the call of this name.
template <class Line>
concept CommunicationLine = requires(Line line, std::size_t place) {
  line.restart();
  line.carry(place);
  line.post(place);
  line.wait(place);
};

/// The times of a step, from the seconds of its calls; `spans` has a place for every operation.
template <class Seconds>
StepTimes times_of(const std::vector<Op>& ops, const std::vector<Instruction>& calls, std::span<OpSpan> spans,
                   const Seconds& seconds) {
  for (OpSpan& span : spans) span = {};
  StepTimes times;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const double begin_s = times.wall_s, took_s = (times.wall_s = seconds(i)) - begin_s;
    if (calls[i].call == Instruction::Call::wait) {
      times.collective_s += took_s;
      continue;
    }
    const Op& op = ops[calls[i].op];
    spans[calls[i].op] = {.begin_s = begin_s, .end_s = times.wall_s};
    if (op.kind == OpKind::collective) times.collective_s += took_s;
    if (op.kind == OpKind::optimizer) times.optimizer_s += took_s;
  }
  return times;
}

/// One rank's executor. Operations, core and line outlive it. After its construction it allocates nothing.
template <ComputeCore Core, CommunicationLine Line>
class Executor {
 public:
  Executor(const std::vector<Op>& ops, bool beside, Core& core, Line& line)
      : ops_(ops), core_(core), line_(line), spans_(ops.size()) {
    for (const Part part : {Part::full, Part::computation, Part::communication, Part::gradients, Part::update})
      calls_.push_back(instructions_of(ops, part, beside));
  }

  /// Walks `part`. `before` and `after` are called with the place of every operation, around it. Errors of core and
  /// line are passed through.
  template <class Before, class After>
  StepTimes walk(Part part, const Before& before, const After& after) {
    const std::vector<Instruction>& calls = calls_[static_cast<std::size_t>(part)];
    core_.begin(calls.size());
    line_.restart();
    for (std::size_t i = 0; i < calls.size(); ++i) {
      const Instruction& one = calls[i];
      if (one.call == Instruction::Call::wait) {
        line_.wait(one.posted);
        core_.mark(i);
        continue;
      }
      before(one.op);
      make(one);
      core_.mark(i);
      after(one.op);
    }
    core_.end();
    return times(part);
  }

  /// The times of the last walk of `part`, or of a graph that was recorded from one.
  StepTimes times(Part part) {
    return times_of(ops_, calls_[static_cast<std::size_t>(part)], spans_,
                    [this](std::size_t call) { return core_.seconds(call); });
  }

  /// The calls of `part`.
  [[nodiscard]] const std::vector<Instruction>& calls(Part part) const {
    return calls_[static_cast<std::size_t>(part)];
  }

  /// Of the last walk.
  [[nodiscard]] std::span<const OpSpan> spans() const { return spans_; }

 private:
  void make(const Instruction& one) {
    switch (one.call) {
      case Instruction::Call::compute:
        return core_.compute(one.op);
      case Instruction::Call::carry:
        core_.lend(one.op);
        line_.carry(one.op);
        return core_.take(one.op);
      case Instruction::Call::post:
        return line_.post(one.op);
      case Instruction::Call::wait:
        return line_.wait(one.posted);
    }
  }

  const std::vector<Op>& ops_;
  Core& core_;
  Line& line_;
  std::vector<std::vector<Instruction>> calls_;  ///< by part
  std::vector<OpSpan> spans_;
};

}  // namespace assay::train
