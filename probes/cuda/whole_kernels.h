// whole_kernels: whole numbers (whole.h) in the memory of a GPU, and their product checked there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "probes/cuda/device.h"
#include "probes/cuda/gemm_type.h"
#include "probes/cuda/whole.h"

namespace assay::cuda {

/// Enqueues: fills `lines` lines of A or B at `target` with their whole numbers as `format` stores them.
void fill_whole(const Stream& stream, std::byte* target, Format format, const WholeNumbers& numbers, WholeStream matrix,
                std::size_t lines);

/// Enqueues: adds to *wrong how many lines of the result at `d` (m x n elements of `format`, column-major), multiplied
/// by `factor`, are not exact. `terms` has room for k words.
void check_whole(const Stream& stream, const std::byte* d, Format format, double factor, const WholeNumbers& numbers,
                 std::uint64_t* terms, std::uint64_t* wrong);

}  // namespace assay::cuda
