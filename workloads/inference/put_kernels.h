// put_kernels: GPUs that put parts into the memory of others through windows of NCCL, without its proxies or kernels.
#pragma once

#include "probes/core/units.h"
#include "probes/cuda/device.h"
#include "workloads/inference/put_plan.h"

struct ncclWindow_vidmem;  // the target of ncclWindow_t

namespace assay::inference {

/// The version of NCCL whose windows these kernels read, as 22809; 0: they were not built, and nothing below is called.
int nccl_of_put_kernels();

/// Enqueues: the parts of `sent` of `plan` into `window` of their ranks.
void enqueue_puts(const std::byte* sent, ncclWindow_vidmem* window, const PutPlan& plan, const cuda::Stream& stream);

/// Enqueues: raises the counts of `plan` in `window` of the others, when all work before is done and seen there, and
/// waits for the awaited in its own; gives up after `limit`, so that the checks find missing parts.
void enqueue_signals(ncclWindow_vidmem* window, const SignalPlan& plan, Seconds limit, const cuda::Stream& stream);

}  // namespace assay::inference
