// load_choice: makes the parts of a load that the parameters name.
#include "probes/power/load_choice.h"

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include <cblas.h>
#include <fmt/format.h>

#include "probes/amd/rocm_library.h"
#include "probes/core/recorder.h"
#include "probes/host/blas_kernels.h"
#include "probes/power/host_load.h"

namespace assay::power {
namespace {

std::size_t order_of(const Parameters& given) {
  constexpr std::int64_t kLeast = 64, kMost = 16384;
  const std::int64_t order = given.count("order");
  if (order < kLeast || order > kMost || order % kLeast != 0)
    throw BadParameter(fmt::format("order: {} is not a multiple of {} up to {}", order, kLeast, kMost));
  return static_cast<std::size_t>(order);
}

}  // namespace

std::vector<LoadedGpu> gpu_load(const GpuLoad& asked) {
  try {
    return nvidia_load(asked);
  } catch (const Skip& of_nvidia) {
    try {
      return amd_load(asked);
    } catch (const Skip& of_amd) {
      std::error_code failed;  // then it is not known to be there
      const bool of_nvidia_alone = std::filesystem::exists("/sys/module/nvidia", failed) && !amd::has_driver();
      throw Skip(of_nvidia_alone ? of_nvidia.what() : fmt::format("{}; AMD: {}", of_nvidia.what(), of_amd.what()));
    }
  }
}

ChosenLoad::ChosenLoad(const Parameters& given) : engine_name_(given.text("engine")) {
  const bool on_gpus = engine_name_ != "cpu";
  threads_ = static_cast<std::size_t>(given.count("threads"));
  if (threads_ == 0 && !on_gpus) threads_ = std::max(1U, std::thread::hardware_concurrency());
  std::vector<LoadPart> parts;
  if (on_gpus) {
    gpus_ = gpu_load({.device = given.text("gpus"),
                      .library_path = given.text("library_path"),
                      .order = order_of(given),
                      .job = is_job()});
    for (LoadedGpu& gpu : gpus_) parts.push_back(std::move(gpu.part));
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
  for (LoadedGpu& gpu : gpus_)
    if (is_job()) gpu.watch.start();
}

void ChosenLoad::end_watch() {
  for (LoadedGpu& gpu : gpus_) gpu.watch.stop();
}

void ChosenLoad::record(Recorder& record) const {
  record.condition("engine", engine_name_ == "job" ? "gpu_job" : engine_name_ + "_gemm");
  record.condition("threads", static_cast<std::int64_t>(threads_));
  for (const LoadedGpu& gpu : gpus_) {
    record.condition("gpu_load", gpu.words, gpu.subject);
    for (const auto& [name, mode] : gpu.partitions) record.condition(name, mode, gpu.subject);
    if (is_job()) gpu.watch.record(record, gpu.subject);
  }
  engine_->each([&](const LoadUnit& unit) { unit.record(record); });
}

}  // namespace assay::power
