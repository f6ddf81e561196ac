// ingest_feed: readers that fetch the samples of one accelerator ahead of it, and the accelerator, which sleeps.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "workloads/storage/ingest/ingest_plan.h"

namespace assay::cluster_storage {

/// Which samples are ready. Readers take the next in order, at most `ahead` steps before the accelerator.
class IngestFeed {
 public:
  /// `abandoned`: ends every wait when it turns true.
  IngestFeed(std::uint64_t steps, std::uint64_t batch, std::uint64_t ahead, const std::atomic<bool>& abandoned)
      : batch_(batch), samples_(steps * batch), ahead_(ahead), abandoned_(abandoned) {}

  /// The place of the next sample to read, waiting until the accelerator is near enough; nothing if there are no more.
  /// Throws std::runtime_error when a signal asks to stop or the group has ended. The same for the others.
  std::optional<std::uint64_t> next();
  /// The sample at a place has been read.
  void ready(std::uint64_t place);
  /// Waits until all samples of this step are ready.
  void wait_for(std::uint64_t step);
  /// The accelerator: waits for each step and sleeps `compute_s`. `starved_after_s`: a shorter wait is none.
  IngestTimes run(double compute_s, double starved_after_s);

 private:
  template <class Condition>
  void wait_until(std::unique_lock<std::mutex>& lock, Condition condition);
  void check() const;

  std::uint64_t batch_, samples_, ahead_;
  const std::atomic<bool>& abandoned_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t taken_ = 0, step_ = 0;
  std::vector<std::uint64_t> read_of_step_ = std::vector<std::uint64_t>(samples_ / batch_);
};

}  // namespace assay::cluster_storage
