// gpu_errors: the facts of each GPU at both ends.
#include "probes/amd/gpu_errors.h"

#include "probes/amd/hip.h"

namespace assay::amd {
namespace {

GpuFacts facts_of(const AmdGpu& gpu) {
  AnswerLimit limit({30});  // answers take milliseconds
  return read_gpu_facts(*smi_beside(), gpu, 0, limit);
}

}  // namespace

GpuErrors::GpuErrors(const std::vector<std::string>& pci_addresses) {
  if (smi_beside() == nullptr) return;  // nothing is known, and the condition that is then absent says so
  for (const auto& address : pci_addresses) {
    const auto gpu = smi_beside()->gpu_at(address);
    if (!gpu) {
      gpus_.clear();
      return;
    }
    gpus_.push_back(*gpu);
  }
  for (const AmdGpu& gpu : gpus_) begin_.push_back(facts_of(gpu));
}

std::optional<std::int64_t> GpuErrors::growth() const {
  if (gpus_.empty()) return std::nullopt;
  double sum = 0;
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    const GpuFacts end = facts_of(gpus_[i]);
    for (const char* counted : {"ecc_uncorrected", "pcie_replays"}) {
      const auto more = growth_of(counted, begin_[i], end);
      if (!more) return std::nullopt;
      sum += *more;
    }
    for (const char* if_there : {"ecc_deferred", "retired_pages", "retired_pages_pending", "xgmi_errors"})
      sum += growth_of(if_there, begin_[i], end).value_or(0);
  }
  return static_cast<std::int64_t>(sum);
}

}  // namespace assay::amd
