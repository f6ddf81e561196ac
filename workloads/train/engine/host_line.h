// host_line: the line of the engine on hosts: collectives by a function, one after the other or by a thread beside.
#pragma once

#include <optional>
#include <utility>

#include "workloads/train/engine/collective_queue.h"

namespace assay::train {

/// Calls a Carry. Without one a step of several ranks cannot be walked.
class HostLine {
 public:
  /// `posted` is the largest number of collectives that are posted in a step; 0: none is, and no thread is made.
  void connect(Carry carry, std::size_t posted) {
    carry_ = std::move(carry);
    if (posted > 0) lane_.emplace(carry_, posted);
  }
  /// Ends the thread; the collective that is under way is waited for.
  void disconnect() {
    lane_.reset();
    carry_ = nullptr;
  }

  void restart() {
    if (lane_) lane_->restart();
  }
  void carry(std::size_t op) { carry_(op); }
  void post(std::size_t op) { (void)lane_.value().post(op); }  // the executor has counted it
  void wait(std::size_t posted) { lane_.value().wait(posted); }

 private:
  Carry carry_;
  std::optional<CollectiveQueue> lane_;
};

}  // namespace assay::train
