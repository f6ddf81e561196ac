// gpu_errors: the facts of each GPU at both ends.
#include "probes/amd/gpu_errors.h"

#include "probes/amd/hip.h"

namespace assay::amd {
namespace {

GpuFacts facts_of(const AmdGpu& gpu) {
  AnswerLimit limit({30});  // answers take milliseconds
  return read_gpu_facts(*smi_beside(), gpu, 0, limit);
}

/// How far `name` went; nothing if it was not reported twice or went back (the driver was loaded anew).
std::optional<double> grown(const GpuFacts& begin, const GpuFacts& end, std::string_view name) {
  const auto before = begin.state.metrics.find(name), after = end.state.metrics.find(name);
  if (before == begin.state.metrics.end() || after == end.state.metrics.end() || after->second < before->second)
    return std::nullopt;
  return after->second - before->second;
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
      const auto more = grown(begin_[i], end, counted);
      if (!more) return std::nullopt;
      sum += *more;
    }
    for (const char* if_there : {"ecc_deferred", "retired_pages", "retired_pages_pending", "xgmi_errors"})
      sum += grown(begin_[i], end, if_there).value_or(0);
  }
  return static_cast<std::int64_t>(sum);
}

}  // namespace assay::amd
