// row_kernels: the work on rows of an exchange on the current GPU, one block for a row.
#pragma once

#include "probes/cuda/device.h"
#include "workloads/inference/exchange_rows.h"

namespace assay::inference {

/// Enqueues `work` on the first `rows` rows of its kind.
void enqueue_rows(RowWork work, const RowView& view, std::uint64_t rows, const cuda::Stream& stream);

}  // namespace assay::inference
