// decode_cuda: decode_step on the GPUs of a node. In a build without the CUDA Toolkit it only says so.
#pragma once

#include "probes/core/parameters.h"
#include "probes/core/recorder.h"
#include "workloads/inference/decode_run.h"

namespace assay::inference {

/// Measures every shape of `plan` on each chosen GPU, one after the other, and records it. Throws Skip where there is
/// no driver, no GPU, or no CUDA in this build, BadParameter as check_kernels_take() and check_room() do.
void decode_on_gpus(const Parameters& given, const DecodePlan& plan, Recorder& record);

}  // namespace assay::inference
