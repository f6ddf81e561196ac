// arrival: a wait for the other ranks while messages keep moving.
#pragma once

#include <atomic>
#include <future>

#include "probes/core/rendezvous.h"

namespace assay::verbs {

/// A barrier that a second thread waits in while the first keeps moving messages. The group is the second thread's
/// until get().
class Arrival {
 public:
  explicit Arrival(Rendezvous& group)
      : waiting_(std::async(std::launch::async, [this, &group] {
          const Mark mark{here_};
          group.barrier();
        })) {}
  /// Whether the other ranks have come, or will not come any more.
  [[nodiscard]] bool here() const { return here_.load(std::memory_order_acquire); }
  /// Rethrows the barrier's error.
  void get() { waiting_.get(); }

 private:
  struct Mark {
    std::atomic<bool>& flag;
    ~Mark() { flag.store(true, std::memory_order_release); }
  };
  std::atomic<bool> here_ = false;
  std::future<void> waiting_;
};

}  // namespace assay::verbs
