// gemm_operands: sets of matrices in the memory of a GPU, made there, checked from there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "probes/cuda/device.h"
#include "probes/cuda/fault_classes.h"
#include "probes/cuda/gemm_check.h"
#include "probes/cuda/gemm_type.h"
#include "probes/cuda/whole.h"

namespace assay::cuda {

/// Enqueues: fills `count` elements of `format` at `target` with the stream of numbers `seed`. Formats without block
/// scales.
void fill_elements(const Stream& stream, std::byte* target, Format format, std::size_t count, std::uint64_t seed,
                   Pattern pattern);

/// Enqueues: fills `lines` lines of `k` elements with blocks of `scaling` (mx or nv) and their scales, in the layout of
/// scale_index. k must be a multiple of the block.
void fill_blocks(const Stream& stream, std::byte* target, std::byte* scales, Scaling scaling, std::size_t lines,
                 std::size_t k, std::uint64_t seed, Pattern pattern);

/// Enqueues: writes to `sums[i]` 64 bits of the `size` bytes (a multiple of 4) at `first` + i `stride`, for i <
/// `count`, which differ with all but certainty when any bit there or its place differs.
void sum_up(const Stream& stream, const std::byte* first, std::size_t stride, Bytes size, std::size_t count,
            std::uint64_t* sums);

/// Where the matrices of one set are, for one product.
struct OperandSet {
  const std::byte* a;
  const std::byte* b;
  std::byte* d;
  const void* a_scale;  ///< null without scales
  const void* b_scale;
};

/// Elements of each result that sample() takes at most.
inline constexpr std::size_t kSampledElements = std::size_t{64} * 64;

/// Sets of A, B and D on one device, different in every set, D all ones bits until it is computed.
class GemmOperands {
 public:
  /// Makes as many sets as pass twice the second-level cache (see operand_sets), on the current device, which is
  /// `device`; numbers and sampled places follow from `seed`. Throws std::runtime_error when they would take more than
  /// 80 % of the memory that is free.
  GemmOperands(const Device& device, const GemmType& type, const GemmShape& shape, Pattern pattern, std::uint64_t seed);

  [[nodiscard]] std::size_t sets() const { return sets_; }
  [[nodiscard]] OperandSet set(std::size_t index) const;
  /// Bytes of all sets, block scales included.
  [[nodiscard]] Bytes size() const;
  /// Enqueues: 64 bits for the result of every set, to `sums[0..sets())` in the memory of the device.
  void sum_results(const Stream& stream, std::uint64_t* sums) const;
  /// Puts faults of every class into results, sums them again, and takes the faults out; waits. Results
  /// of less than kLeastFaultWords have none.
  [[nodiscard]] FaultCounts put_faults(const Stream& stream) const;
  /// Forgets the results, so that what a product does not write is seen; waits.
  void clear_results(const Stream& stream) const;
  /// Fills set 0 with whole numbers instead (see whole.h), every block's scale 1, and forgets its result; waits.
  void make_whole(const Stream& stream, WholeForm form);
  /// Lines of the result of set 0 that are not exact after make_whole() and a product; waits.
  [[nodiscard]] std::uint64_t wrong_whole_lines(const Stream& stream, WholeForm form) const;
  /// Copies the results that the check of set `index` needs; the product must be done.
  [[nodiscard]] SampledProduct sample(std::size_t index) const;

 private:
  /// A of all sets, or B: `lines` lines of k numbers in each.
  struct Matrices {
    Format format = Format::fp64;
    std::size_t lines = 0;
    float tensor_scale = 1;
    std::size_t stride = 0, scale_stride = 0;  ///< in B, from set to set
    DeviceBuffer data = {}, scales = {};
  };
  [[nodiscard]] WholeNumbers whole(WholeForm form) const;
  [[nodiscard]] Matrices laid_out(Format format, std::size_t lines, float tensor_scale) const;
  void make(Matrices& matrices, const Stream& stream, std::uint64_t first_seed, Pattern pattern) const;
  [[nodiscard]] std::vector<double> sample_lines(const Matrices& matrices, std::size_t set,
                                                 std::span<const std::size_t> chosen) const;

  const GemmType& type_;
  GemmShape shape_;
  std::uint64_t seed_;
  Matrices a_, b_;
  std::size_t d_stride_ = 0;
  std::size_t sets_ = 0;
  DeviceBuffer d_;
};

}  // namespace assay::cuda
