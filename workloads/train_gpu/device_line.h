// device_line: the line of the executor on a device: collectives in the stream of what computes, or in one beside it.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "workloads/train/executor.h"
#include "workloads/train/host_memory.h"

namespace assay::train {

/// Throws BadParameter for models with experts, which the engine on devices does not run; for buckets that do not
/// divide among their replicas, since a device's collectives have even shares; and for widths that its products do not
/// take.
void check_device_engine(const ModelShape& model, const ParallelPlan& plan);

/// `Collectives` does them among a group of the plan, in place, and only enqueues: all_reduce(group, data, count,
/// lane), all_gather and reduce_scatter (group, data, count of one share, lane); send and receive (channel, peer, data,
/// count): a send may end later, and its data may be used at once, else two ranks of a pipeline would wait for each
/// other. Channel 0 is for activations, 1 for gradients. Lane 0 is the stream of what computes, lane 1 is beside;
/// fork() makes lane 1 wait for what lane 0 has so far, note(n) marks the end of the n-th collective in lane 1, join(n)
/// makes lane 0 wait for that mark.
template <class Collectives>
class DeviceLine {
 public:
  DeviceLine(const ParallelPlan& plan, std::int64_t rank, const std::vector<Op>& ops, const std::vector<Call>& calls,
             Collectives& collectives)
      : ops_(ops), collectives_(collectives) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      data_.push_back(calls[i].out);
      members_.push_back(members_of(plan, ops[i].group, rank).size());
    }
  }

  void restart() { posted_ = 0; }
  void carry(std::size_t op) { enqueue(op, 0); }
  void post(std::size_t op) {
    collectives_.fork();
    enqueue(op, 1);
    collectives_.note(posted_++);
  }
  void wait(std::size_t posted) { collectives_.join(posted - 1); }

 private:
  void enqueue(std::size_t place, int lane) {
    const Op& op = ops_[place];
    const std::span<float> data = data_[place];
    const std::size_t share = data.size() / members_[place];
    switch (op.motion) {
      case Motion::all_reduce:
        return collectives_.all_reduce(op.group, data.data(), data.size(), lane);
      case Motion::all_gather:
      case Motion::exchange:
        return collectives_.all_gather(op.group, data.data(), share, lane);
      case Motion::reduce_scatter:
      case Motion::exchange_sums:
        return collectives_.reduce_scatter(op.group, data.data(), share, lane);
      case Motion::send:
        return collectives_.send(channel(op), op.peer, data.data(), data.size());
      case Motion::receive:
        return collectives_.receive(channel(op), op.peer, data.data(), data.size());
      default:
        throw std::logic_error("check_device_engine() refuses plans with other collectives");
    }
  }

  static int channel(const Op& op) { return op.pass == Pass::forward ? 0 : 1; }

  const std::vector<Op>& ops_;
  Collectives& collectives_;
  std::vector<std::span<float>> data_;
  std::vector<std::size_t> members_;
  std::size_t posted_ = 0;
};

}  // namespace assay::train
