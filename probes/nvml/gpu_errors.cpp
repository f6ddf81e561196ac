// gpu_errors: differences of counters, and events.
#include "probes/nvml/gpu_errors.h"

#include "probes/nvml/nvlinks.h"
#include "probes/nvml/xid_watch.h"

namespace assay::nvml {

ErrorCounts read_error_counts(const NvmlGpu& gpu, std::int64_t& failures) {
  const auto told = [&](const auto& answer) {
    if (answer.failed()) ++failures;
    return answer.value;
  };
  ErrorCounts counts;
  counts.ecc_corrected = told(gpu.ecc_errors(nvml_api::kCorrected, nvml_api::kSinceDriverLoad));
  counts.ecc_uncorrected = told(gpu.ecc_errors(nvml_api::kUncorrected, nvml_api::kSinceDriverLoad));
  if (const auto replays = told(gpu.pcie_replays())) counts.pcie_replays = *replays;
  if (const auto links = told(read_nvlinks(gpu))) counts.nvlink_errors = links->errors;
  if (const auto rows = told(gpu.remapped_rows())) {
    counts.remapped_rows =
        std::uint64_t{rows->corrected} + rows->uncorrected + (rows->pending ? 1U : 0U) + (rows->failed ? 1U : 0U);
  }
  return counts;
}

std::optional<std::uint64_t> growth(const std::optional<std::uint64_t>& before,
                                    const std::optional<std::uint64_t>& after) {
  if (!before || !after || *after < *before) return std::nullopt;
  return *after - *before;
}

/// One GPU from the beginning on.
struct GpuErrors::Counted {
  explicit Counted(const NvmlGpu& of) : gpu(of), xids(std::make_unique<XidWatch>(gpu)) {
    std::int64_t failures = 0;
    begin = read_error_counts(gpu, failures);
  }
  NvmlGpu gpu;
  std::unique_ptr<XidWatch> xids;
  ErrorCounts begin;
};

GpuErrors::GpuErrors(const std::vector<std::string>& pci_bus_ids) {
  try {
    nvml_ = std::make_unique<Nvml>();
  } catch (const Skip&) {
    return;  // nothing is known, and the condition that is then absent says so
  }
  for (const auto& address : pci_bus_ids) {
    const auto found = nvml_->gpu_at(address);
    if (!found.value) {
      counted_.clear();
      nvml_.reset();
      return;
    }
    counted_.emplace_back(*found.value);
  }
}

GpuErrors::~GpuErrors() { counted_.clear(); }  // before the library that its handles belong to

std::optional<std::int64_t> GpuErrors::growth() const {
  if (!nvml_) return std::nullopt;
  std::uint64_t sum = 0;
  for (const Counted& one : counted_) {
    std::int64_t failures = 0;
    const ErrorCounts end = read_error_counts(one.gpu, failures);
    const auto xids = one.xids->take();
    const auto ecc = assay::nvml::growth(one.begin.ecc_uncorrected, end.ecc_uncorrected);
    const auto replays = assay::nvml::growth(one.begin.pcie_replays, end.pcie_replays);
    if (failures > 0 || !xids || !ecc || !replays) return std::nullopt;
    sum += *ecc + *replays + xids->size() +
           assay::nvml::growth(one.begin.remapped_rows, end.remapped_rows).value_or(0) +
           assay::nvml::growth(one.begin.nvlink_errors, end.nvlink_errors).value_or(0);
  }
  return static_cast<std::int64_t>(sum);
}

}  // namespace assay::nvml
