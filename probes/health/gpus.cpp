// gpus: states and health bits of the fabric as nvml.h numbers them (NVML_GPU_FABRIC_*).
#include "probes/health/gpus.h"

#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/recorder.h"

namespace assay::health {
namespace {

constexpr unsigned char kFabricCompleted = 3;

}  // namespace

std::string fabric_state_word(const nvml_api::FabricInfo& fabric) {
  constexpr std::array kWords = {"not_supported", "not_started", "in_progress", "completed"};
  if (fabric.state >= kWords.size()) return fmt::format("unknown_{}", fabric.state);
  if (fabric.state == kFabricCompleted && fabric.status != nvml_api::kSuccess) return "failed";
  return kWords[fabric.state];
}

std::optional<std::string> fabric_health_words(const nvml_api::FabricInfo& fabric) {
  // Two bits each: 0 not reported, 1 true, 2 false.
  constexpr std::array<std::pair<unsigned, const char*>, 4> kAilments = {
      {{0, "degraded_bandwidth"}, {2, "route_recovery"}, {4, "route_unhealthy"}, {6, "access_timeout_recovery"}}};
  constexpr unsigned kConfigurationShift = 8;  // four bits: 0 not reported, 1 right, above wrong in some way
  if (fabric.state != kFabricCompleted) return std::nullopt;
  std::vector<const char*> ailments;
  const unsigned configuration = fabric.health_mask >> kConfigurationShift & 0xFU;
  bool told = configuration != 0;
  for (const auto& [shift, word] : kAilments) {
    const unsigned bits = fabric.health_mask >> shift & 0x3U;
    told = told || bits != 0;
    if (bits == 1) ailments.push_back(word);
  }
  if (configuration > 1) ailments.push_back("incorrect_configuration");
  if (!told) return std::nullopt;
  return ailments.empty() ? "healthy" : fmt::format("{}", fmt::join(ailments, " "));
}

Gpu read_gpu(const nvml::NvmlGpu& gpu) {
  const auto fabric = gpu.fabric().value;
  return {.subject = {.kind = "gpu", .id = gpu.uuid().value.value_or(fmt::format("index-{}", gpu.index()))},
          .model = gpu.name().value,
          .serial = gpu.serial().value,
          .part = gpu.part().value,
          .vbios = gpu.vbios().value,
          .inforom = gpu.inforom().value,
          .firmware = gpu.gsp_firmware().value,
          .pci_address = gpu.pci_address().value,
          .fabric_state = fabric ? std::optional(fabric_state_word(*fabric)) : std::nullopt,
          .fabric_health = fabric ? fabric_health_words(*fabric) : std::nullopt,
          .memory = gpu.memory().value};
}

void record_gpu(const Gpu& gpu, Recorder& record) {
  const std::pair<std::string_view, const std::optional<std::string>&> facts[] = {{"model", gpu.model},
                                                                                  {"serial", gpu.serial},
                                                                                  {"part", gpu.part},
                                                                                  {"vbios", gpu.vbios},
                                                                                  {"inforom", gpu.inforom},
                                                                                  {"firmware", gpu.firmware},
                                                                                  {"pci_address", gpu.pci_address},
                                                                                  {"fabric_state", gpu.fabric_state},
                                                                                  {"fabric_health", gpu.fabric_health}};
  for (const auto& [name, fact] : facts) {
    if (fact) record.condition(name, *fact, gpu.subject);
  }
}

}  // namespace assay::health
