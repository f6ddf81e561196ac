// nvlinks: link by link, because the driver's totals cover only the first twelve.
#include "probes/nvml/nvlinks.h"

#include <algorithm>
#include <array>

namespace assay::nvml {

namespace api = nvml_api;
namespace {

constexpr std::array kErrorFields = {api::kFieldLinkReplay,    api::kFieldLinkRecovery,      api::kFieldLinkCrc,
                                     api::kFieldLinkMalformed, api::kFieldLinkOverrun,       api::kFieldLinkReceive,
                                     api::kFieldLinkIntegrity, api::kFieldLinkRecoveryEvents};

/// Errors of one link; nothing if the driver counts none. Sets `code` when a question failed.
std::optional<std::uint64_t> errors_of(const NvmlGpu& gpu, unsigned link, api::Return& code) {
  std::optional<std::uint64_t> sum;
  const auto fields = gpu.fields(kErrorFields, link);
  if (fields.failed()) code = fields.code;
  if (fields.value) {
    for (const auto& number : *fields.value) {
      if (number) sum = sum.value_or(0) + static_cast<std::uint64_t>(*number);
    }
  }
  if (sum) return sum;
  for (int counter = 0; counter < api::kLinkErrorCounters; ++counter) {
    const auto errors = gpu.link_errors(link, counter);
    if (errors.failed()) code = errors.code;
    if (errors.value) sum = sum.value_or(0) + *errors.value;
  }
  return sum;
}

}  // namespace

Answer<NvLinks> read_nvlinks(const NvmlGpu& gpu) {
  const auto told = gpu.field(api::kFieldLinkCount);
  if (told.failed()) return {.value = std::nullopt, .code = told.code};
  const unsigned count = told.value ? std::min(static_cast<unsigned>(*told.value), api::kMaxLinks) : api::kMaxLinks;
  NvLinks links;
  api::Return code = api::kSuccess;
  for (unsigned link = 0; link < count; ++link) {
    const auto active = gpu.link_active(link);
    if (active.failed()) code = active.code;
    // A link that the driver counts and does not answer for is not up.
    if (!active.value && !told.value) continue;
    ++(active.value.value_or(false) ? links.active : links.inactive);
    if (const auto errors = errors_of(gpu, link, code)) links.errors = links.errors.value_or(0) + *errors;
  }
  if (code != api::kSuccess) return {.value = std::nullopt, .code = code};
  if (links.active + links.inactive == 0) return {.value = std::nullopt, .code = api::kNotSupported};
  return {.value = links, .code = api::kSuccess};
}

}  // namespace assay::nvml
