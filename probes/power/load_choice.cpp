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

ChosenLoad::ChosenLoad(const Parameters& given) : engine_name_(given.text("engine")) {
  const bool on_gpus = engine_name_ != "cpu";
  threads_ = static_cast<std::size_t>(given.count("threads"));
  if (threads_ == 0 && !on_gpus) threads_ = std::max(1U, std::thread::hardware_concurrency());
  std::vector<LoadPart> parts;
  if (on_gpus) {
    for (auto& gpu : gpu_load(given.text("gpus"), given.text("library_path"), is_job())) {
      gpus_.push_back({.subject = gpu.subject, .words = gpu.words, .watch = nvml::GpuWatch(gpu.pci_bus_id)});
      parts.push_back(std::move(gpu.part));
    }
  }
  if (threads_ > 0) {
    host::require_wide_kernels(openblas_get_corename());
    for (auto& part : host_load(threads_)) {
      part.counted = !on_gpus;
      parts.push_back(std::move(part));
    }
  }
  engine_ = std::make_unique<LoadEngine>(std::move(parts));
}

std::uint64_t ChosenLoad::mismatches() const {
  std::uint64_t all = 0;
  engine_->each([&](const LoadUnit& unit) { all += unit.mismatches(); });
  return all;
}

void ChosenLoad::watch() {
  for (Gpu& gpu : gpus_)
    if (is_job()) gpu.watch.start();
}

void ChosenLoad::end_watch() {
  for (Gpu& gpu : gpus_) gpu.watch.stop();
}

void ChosenLoad::record(Recorder& record) const {
  record.condition("engine", engine_name_ == "job" ? "gpu_job" : engine_name_ + "_gemm");
  record.condition("threads", static_cast<std::int64_t>(threads_));
  for (const Gpu& gpu : gpus_) {
    record.condition("gpu_load", gpu.words, gpu.subject);
    if (is_job()) gpu.watch.record(record, gpu.subject);
  }
  engine_->each([&](const LoadUnit& unit) { unit.record(record); });
}

}  // namespace assay::power
