// hbm_arrays: the three arrays of cuda_hbm_bandwidth on one GPU, and the check of their values.
#pragma once

#include <cstdint>

#include "probes/core/units.h"
#include "probes/cuda/device.h"
#include "probes/cuda/device_words.h"
#include "probes/cuda/fold.h"
#include "probes/cuda/memory_kernels.h"
#include "probes/cuda/stream_values.h"

namespace assay::cuda {

/// Three arrays of doubles on one GPU. Every call makes the GPU current.
class HbmArrays {
 public:
  /// `each` is a multiple of kVectorBytes. Throws std::runtime_error when the GPU has not that much left.
  HbmArrays(const Device& device, Bytes each);

  /// Fills the arrays with what `kernel` starts from; what it is going to write holds something else.
  void prepare(HbmKernel kernel);
  /// Enqueues `passes` passes of `kernel`.
  void enqueue(HbmKernel kernel, std::size_t passes, const Stream& stream) const;
  /// 1 when the sum or the fold of the passes of read or dot since the last call is not what it must be, else 0; for
  /// other kernels 0.
  std::uint64_t wrong_sum(HbmKernel kernel, std::size_t passes);
  /// Elements of all three arrays that differ from what `kernel` must have made of them.
  std::uint64_t mismatches(HbmKernel kernel);
  /// Bytes that `passes` passes of `kernel` move.
  [[nodiscard]] double bytes(HbmKernel kernel, std::size_t passes) const;

 private:
  [[nodiscard]] Bytes each() const { return {elements_ * sizeof(double)}; }
  [[nodiscard]] double* array(HbmArray which) const;

  Device device_;
  std::uint64_t elements_;
  Folded of_pass_;  ///< of the kernel that was prepared last
  DeviceBuffer a_, b_, c_;
  DeviceWords sums_, wrong_;
  Stream stream_;
};

}  // namespace assay::cuda
