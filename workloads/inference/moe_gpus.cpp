// moe_gpus: the leader of a node's GPUs. Its ranks are this program again, see moe_gpu_rank.
#include "workloads/inference/moe_gpus.h"

#include <unistd.h>

#include <fmt/format.h>

#include "probes/cuda/device.h"
#include "probes/cuda/device_record.h"
#include "probes/nccl/communicator.h"
#include "probes/nccl/environment.h"
#include "probes/nccl/outcome.h"
#include "probes/nvml/gpu_errors.h"
#include "workloads/inference/moe_job.h"
#include "workloads/inference/moe_part.h"
#include "workloads/inference/row_plan.h"

namespace assay::inference {
namespace {

constexpr const char* kThisProgram = "/proc/self/exe";  // also where it runs from sealed memory and has no path

std::vector<std::string> addresses_of(const std::vector<cuda::Device>& devices) {
  std::vector<std::string> addresses;
  for (const auto& device : devices) addresses.push_back(device.pci_bus_id);
  return addresses;
}

/// The engine nccl; see take_part().
class GpuSide {
 public:
  GpuSide(const Parameters& given, const Placement& placement)
      : devices_(cuda::chosen_devices(given)), errors_(addresses_of(devices_)) {
    (void)nccl::Nccl();  // a node without NCCL is a skip of the probe, not an error of a rank
    const auto here = static_cast<std::int64_t>(devices_.size());
    job_ = exchange_job(given, here * placement.world);
    job_.rank = here * placement.rank;
    job_.ranks_per_node = here;
  }

  [[nodiscard]] const ExchangeJob& job() const { return job_; }
  [[nodiscard]] std::vector<std::string> titles() const {
    std::vector<std::string> titles;
    for (const auto& device : devices_) titles.push_back(device.uuid);
    return titles;
  }
  [[nodiscard]] std::vector<collective::RankProgram> programs() const {
    std::vector<collective::RankProgram> programs;
    ExchangeJob mine = job_;
    const auto node = std::get<std::string>(host_facts().at("name"));
    for (const auto& device : devices_) {
      programs.push_back({.path = kThisProgram,
                          .arguments = moe_arguments({.job = mine, .address = device.uuid}),
                          .environment = nccl::rank_environment(environ, {}),
                          .title = fmt::format("rank {} ({} {})", mine.rank, node, device.uuid)});
      ++mine.rank;
    }
    return programs;
  }
  [[nodiscard]] EngineRules rules(bool /*several*/) const {
    return {.admit = nccl::admitted,
            .needs = [](const ExchangeJob& job) { return RowRooms(job).all(); },
            .entered = nullptr};
  }

  void begin(Recorder& record) const {
    for (const auto& device : devices_) cuda::record_device(record, device);
  }
  void conclude(Recorder& record, const EngineRules::Answers& facts, const Subject& /*all*/) const {
    nccl::record_facts(record, facts);
  }
  void follow(Recorder& record, const EngineRules::Answers& facts) const { nccl::record_facts(record, facts); }
  void end(Recorder& record) const {
    if (const auto grown = errors_.growth()) record.condition(nvml::kGpuErrorsCondition.name, *grown);
  }

 private:
  std::vector<cuda::Device> devices_;
  nvml::GpuErrors errors_;
  ExchangeJob job_;
};

}  // namespace

void take_part_with_gpus(const Parameters& given, const Placement& placement, Recorder& record, Rendezvous* group) {
  take_part<GpuSide>(given, placement, record, group);
}

}  // namespace assay::inference
