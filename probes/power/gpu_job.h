// gpu_job: the load of a training job on a GPU, besides its products and at the same time: copies, and a walk through
// the rest of the memory; and the checks of all of it. Compiled for each vendor's runtime (CMakeLists.txt).
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "probes/cuda/device.h"
#include "probes/cuda/device_words.h"
#include "probes/cuda/gemm_operands.h"
#include "probes/cuda/hbm_walk.h"

namespace assay::cuda {

/// The checks of one GPU. Its device must be current in every call.
class GpuJob {
 public:
  /// Takes the memory that is left on `device`, which is current. `operands` are those of the products; a copy has
  /// `copied`, a step of the walk four times that.
  GpuJob(const Device& device, const GemmOperands& operands, Bytes copied);

  /// Enqueues the sums of the products in `products`, one copy with its check, and one step of the walk, which run
  /// at once. `turn` is 0 or 1, in turns.
  void enqueue(const Stream& products, std::size_t turn);
  /// Waits for what `turn` enqueued, and counts its errors.
  void finish(std::size_t turn);
  /// Adds results that a check of the caller's found wrong.
  void add_wrong(std::uint64_t results) { wrong_results_ += results; }
  /// Results of products, words of copies and words of the walk that were wrong so far.
  [[nodiscard]] std::uint64_t mismatches() const { return wrong_results_ + wrong_words_; }
  /// Records mismatches and the conditions of power::kJobConditions and kWalkConditions; nothing may be enqueued.
  void record(Recorder& record) const;

 private:
  /// Results of one turn, for the host.
  struct Turn {
    Event summed = make_event(), copied = make_event(), walked = make_event();
    DeviceBuffer sums;
    PinnedBuffer told;  ///< sums of the results of all sets, wrong words of copies, and of the walk
    bool open = false;  ///< whether it is still to be waited for
  };
  void enqueue_checked_copy();
  void tell(const std::byte* source, std::size_t words, std::size_t place, Turn& turn, const Stream& stream);

  Device device_;
  Bytes copied_;
  const GemmOperands& operands_;
  Stream copies_ = make_stream(), steps_ = make_stream();
  DeviceBuffer source_, target_;
  DeviceWords wrong_copies_;
  std::array<Turn, 2> turns_;
  std::optional<HbmWalk> walk_;
  std::chrono::steady_clock::time_point begin_, last_;
  std::vector<std::uint64_t> first_sums_;  ///< of each set
  std::uint64_t wrong_results_ = 0, wrong_words_ = 0, rounds_ = 0, walk_steps_ = 0;
};

}  // namespace assay::cuda
