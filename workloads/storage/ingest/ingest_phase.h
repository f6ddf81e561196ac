// ingest_phase: all ranks write the samples of a data set; then readers of each feed its accelerators from those of
// another.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "probes/core/rendezvous.h"
#include "probes/core/units.h"
#include "workloads/storage/ingest/ingest_plan.h"
#include "workloads/storage/shared/cold_read.h"

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

/// Settings of all repetitions.
struct IngestSettings {
  std::string folder;  ///< shared by all ranks
  double record = 0, deviation = 0;
  std::uint64_t batch = 1, steps = 1;  ///< of one accelerator
  double compute_s = 0;
  std::size_t accelerators = 1, readers = 1;  ///< of each rank; of each accelerator
  std::uint64_t ahead = 1;                    ///< steps that are read before they are due
  bool direct = false;
  int shift = 1;  ///< rank r reads the files written by rank r - shift
  std::uint64_t nonce = 0;

  /// Samples that one rank writes.
  [[nodiscard]] std::uint64_t samples() const { return accelerators * steps * batch; }
};

/// Samples fed to one rank's accelerators.
struct IngestClient {
  double utilisation = 1;  ///< of the accelerator that was fed worst
  double starved = 0;      ///< steps of all its accelerators that had to wait
  double time_s = 0;       ///< from the common start until its last step was over
  double samples = 0;
  std::uint64_t mismatches = 0;  ///< B
  std::string first_wrong;
  ColdReader cold;
};

/// Every rank makes the same calls.
class IngestGroup {
 public:
  IngestGroup(Rendezvous& group, const IngestSettings& settings) : group_(group), settings_(settings) {}
  /// Writes this rank's samples of a set durably; how long it took. Throws std::system_error with the path.
  Seconds write(std::uint64_t set);
  /// Feeds all accelerators; results by rank.
  std::vector<IngestClient> feed(std::uint64_t set);

 private:
  struct Reader;
  [[nodiscard]] std::string path(std::uint64_t set, std::uint64_t rank, std::uint64_t sample) const;
  [[nodiscard]] std::uint64_t size_of(std::uint64_t set, std::uint64_t rank, std::uint64_t sample) const;
  void side_by_side(std::size_t threads, const std::function<void(std::size_t)>& work);
  void write_sample(std::uint64_t set, std::uint64_t sample) const;
  void read_sample(std::uint64_t set, std::uint64_t sample, Reader& reader) const;
  [[nodiscard]] std::uint64_t writer() const;

  Rendezvous& group_;
  IngestSettings settings_;
  std::atomic<bool> abandoned_ = false;  ///< another rank has ended early
};

}  // namespace assay::cluster_storage
