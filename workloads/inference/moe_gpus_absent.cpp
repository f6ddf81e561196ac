// moe_gpus_absent: moe_dispatch of a build without CUDA: reports that it has no GPUs.
#include "workloads/inference/moe_gpus.h"

namespace assay::inference {

void take_part_with_gpus(const Parameters& /*given*/, const Placement& /*placement*/, Recorder& /*record*/,
                         Rendezvous* /*group*/) {
  throw Skip("engine: this program was built without CUDA and cannot send between GPUs");
}

std::optional<int> gpu_rank_main(int /*argc*/, char** /*argv*/) { return std::nullopt; }

}  // namespace assay::inference
