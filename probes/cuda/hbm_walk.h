// hbm_walk: all available memory of a GPU in slices of one size, each read separately.
#pragma once

#include <cstdint>
#include <vector>

#include "probes/core/units.h"
#include "probes/cuda/device.h"
#include "probes/cuda/device_words.h"

namespace assay::cuda {

/// The slices of one GPU, each filled with a payload of its own. Calls make the GPU current.
class HbmWalk {
 public:
  /// Takes slices of `slice` (a multiple of kVectorBytes) until little is left, fills and waits. A GPU with less free
  /// memory than one slice has none.
  HbmWalk(const Device& device, Bytes slice);

  [[nodiscard]] std::size_t slices() const { return memory_.size(); }
  /// Memory that was free and is not in any slice.
  [[nodiscard]] Bytes left() const { return left_; }
  /// Share, 0..1, of the GPU's memory that lies in slices.
  [[nodiscard]] double coverage() const;

  /// Enqueues one read of each slice from `first` to before `last`, with a mark around each.
  void enqueue(std::size_t first, std::size_t last, const Stream& stream);
  /// Appends the B/s of each slice of the last enqueue to its samples; waits for them.
  void collect(std::size_t first, std::size_t last);
  /// B/s of each slice, in the order of collect().
  [[nodiscard]] const std::vector<std::vector<double>>& samples() const { return samples_; }

  /// Patterns that mismatches() compares: the payload and its complement.
  static constexpr int kPatterns = 2;
  /// Words that are not what was written, of the payload and then of its complement, which it writes, and 1 more when
  /// the sum over all `sweeps` reads of all slices is wrong.
  std::uint64_t mismatches(std::size_t sweeps);

 private:
  Device device_;
  Bytes slice_;
  Bytes left_;
  std::vector<DeviceBuffer> memory_;
  DeviceWords sums_;
  Stream stream_;
  std::vector<Event> marks_;
  std::vector<std::vector<double>> samples_;
};

}  // namespace assay::cuda
