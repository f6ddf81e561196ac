// device_line: the line of the executor on a device: collectives in the compute stream, or in a second one.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "workloads/train/engine/executor.h"
#include "workloads/train/engine/host_memory.h"

namespace assay::train_gpu {

/// Throws BadParameter for buckets that do not divide among their replicas, since a device's collectives have even
/// shares, and for widths that its products do not take.
void check_device_engine(const train::ModelShape& model, const train::ParallelPlan& plan, train::FactorType factors);

/// Throws Skip for a GPU, called `title`, whose compute capability has no products of FP8.
void demand_fp8(int major, int minor, std::string_view title);

/// Messages of one channel that are kept on their way: as many as interleaved stages run ahead.
constexpr std::int64_t message_rooms(const train::ParallelPlan& plan) {
  return plan.pp == 1 ? 0 : 2 * plan.pp * plan.virtual_stages;
}

/// `Collectives` does them, of BF16 or fp32 numbers, among a group of the plan, in place, and only enqueues:
/// all_reduce(group, data, count, lane), all_gather and reduce_scatter (group, data, count of one share, lane);
/// all_to_all(group, sent, to, data, from), in lane 0 and with counts for each member in its order; send and receive
/// (channel, peer, data, count): a send may end later, and its data may be used at once, else two ranks of a pipeline
/// would wait for each other. Channel 0 is for activations, 1 for gradients. StreamWork 0 is the compute stream, 1 the
/// second one; fork() makes lane 1 wait for what lane 0 has so far, note(n) marks the end of the n-th collective in
/// lane 1, join(n) makes lane 0 wait for that mark.
template <class Collectives, class Number = float>
class DeviceLine {
 public:
  /// Of the rank of `core`.
  template <class Core>
  DeviceLine(const train::RankJob& job, const Core& core, Collectives& collectives)
      : ops_(core.ops()), collectives_(collectives), exchanges_(ops_.size()) {
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      const train::Op& op = ops_[i];
      const train::CallOf<Number>& call = core.calls()[i];
      data_.push_back({call.out, call.sums});
      members_.push_back(train::members_of(job.plan, op.group, job.rank).size());
      if (op.motion != train::Motion::all_to_all) continue;
      exchanges_[i] = {.sent = call.sent,
                       .counts = train::exchange_counts(op, core.routes().at(op.layer, op.micro_batch),
                                                        train::sized(job.model.hidden))};
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
    const auto& [numbers, sums] = data_[place];
    return sums.empty() ? enqueue(place, lane, numbers) : enqueue(place, lane, sums);
  }
  template <class Kind>
  void enqueue(std::size_t place, int lane, std::span<Kind> data) {
    const train::Op& op = ops_[place];
    const std::size_t share = data.size() / members_[place];
    switch (op.motion) {
      case train::Motion::all_reduce:
        return collectives_.all_reduce(op.group, data.data(), data.size(), lane);
      case train::Motion::all_gather:
      case train::Motion::exchange:
        return collectives_.all_gather(op.group, data.data(), share, lane);
      case train::Motion::reduce_scatter:
      case train::Motion::exchange_sums:
        return collectives_.reduce_scatter(op.group, data.data(), share, lane);
      case train::Motion::send:
        return collectives_.send(channel(op), op.peer, data.data(), data.size());
      case train::Motion::receive:
        return collectives_.receive(channel(op), op.peer, data.data(), data.size());
      case train::Motion::all_to_all: {
        const Exchange& one = exchanges_[place];
        return collectives_.all_to_all(op.group, one.sent.data(), one.counts.to, data_[place].first.data(),
                                       one.counts.from);
      }
      default:
        throw std::logic_error("the graph has no other collectives");
    }
  }

  static int channel(const train::Op& op) { return op.pass == train::Pass::forward ? 0 : 1; }

  struct Exchange {
    std::span<Number> sent;
    train::ExchangeCounts counts;
  };

  const std::vector<train::Op>& ops_;
  Collectives& collectives_;
  std::vector<Exchange> exchanges_;                                   ///< by operation; empty for all but all_to_all
  std::vector<std::pair<std::span<Number>, std::span<float>>> data_;  ///< one of both is empty
  std::vector<std::size_t> members_;
  std::size_t posted_ = 0;
};

}  // namespace assay::train_gpu
