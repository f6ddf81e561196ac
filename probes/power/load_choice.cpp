// load_choice: makes the parts of a load that the parameters name.
#include "probes/power/load_choice.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <cblas.h>

#include "probes/core/recorder.h"
#include "probes/host/blas_kernels.h"
#include "probes/power/gpu_load.h"
#include "probes/power/host_load.h"

namespace assay::power {

ChosenLoad::ChosenLoad(const Parameters& given) : on_gpus_(given.text("engine") == "gpu") {
  threads_ = static_cast<std::size_t>(given.count("threads"));
  if (threads_ == 0 && !on_gpus_) threads_ = std::max(1U, std::thread::hardware_concurrency());
  std::vector<LoadPart> parts;
  if (on_gpus_) {
    for (auto& gpu : gpu_load(given.text("gpus"), given.text("library_path"))) {
      gpus_.emplace_back(gpu.subject, gpu.words);
      parts.push_back(std::move(gpu.part));
    }
  }
  if (threads_ > 0) {
    host::require_wide_kernels(openblas_get_corename());
    for (auto& part : host_load(threads_)) {
      part.counted = !on_gpus_;
      parts.push_back(std::move(part));
    }
  }
  engine_ = std::make_unique<LoadEngine>(std::move(parts));
}

void ChosenLoad::record(Recorder& record) const {
  record.condition("engine", std::string(on_gpus_ ? "gpu_gemm" : "cpu_gemm"));
  record.condition("threads", static_cast<std::int64_t>(threads_));
  for (const auto& [subject, words] : gpus_) record.condition("gpu_load", words, subject);
}

}  // namespace assay::power
