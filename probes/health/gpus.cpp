// gpus: states and health bits of the fabric as nvml.h numbers them (NVML_GPU_FABRIC_*).
#include "probes/health/gpus.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/machine_tree.h"
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

bool is_completed(const nvml_api::FabricInfo& fabric) { return fabric.state == kFabricCompleted; }

std::string fabric_uuid(const nvml_api::FabricInfo& fabric) {
  if (std::ranges::all_of(fabric.cluster_uuid, [](unsigned char byte) { return byte == 0; })) return "";
  constexpr std::array<std::size_t, 4> kDashes = {4, 6, 8, 10};
  std::string text;
  for (std::size_t i = 0; i < std::size(fabric.cluster_uuid); ++i)
    text += fmt::format("{}{:02x}", std::ranges::count(kDashes, i) > 0 ? "-" : "", fabric.cluster_uuid[i]);
  return text;
}

std::optional<std::vector<std::string>> fabric_ailments(const nvml_api::FabricInfo& fabric) {
  // Two bits each: 0 not reported, 1 true, 2 false.
  constexpr std::array<std::pair<unsigned, const char*>, 4> kAilments = {
      {{0, "degraded_bandwidth"}, {2, "route_recovery"}, {4, "route_unhealthy"}, {6, "access_timeout_recovery"}}};
  // Four bits: 0 not reported, 1 right, above wrong in this way.
  constexpr unsigned kConfigurationShift = 8;
  constexpr std::array kConfigurations = {"",
                                          "",
                                          "incorrect_system_guid",
                                          "incorrect_chassis_serial",
                                          "no_partition",
                                          "insufficient_nvlinks",
                                          "incompatible_gpu_firmware",
                                          "invalid_location",
                                          "gpu_state_invalid"};
  constexpr std::array kSummaries = {"", "", "unhealthy", "limited_capacity"};
  if (!is_completed(fabric)) return std::nullopt;
  std::vector<std::string> ailments;
  const unsigned configuration = fabric.health_mask >> kConfigurationShift & 0xFU;
  bool told = configuration != 0 || fabric.health_summary != 0;
  for (const auto& [shift, word] : kAilments) {
    const unsigned bits = fabric.health_mask >> shift & 0x3U;
    told = told || bits != 0;
    if (bits == 1) ailments.emplace_back(word);
  }
  if (configuration > 1)
    ailments.emplace_back(configuration < kConfigurations.size() ? kConfigurations[configuration]
                                                                 : "incorrect_configuration");
  if (ailments.empty() && fabric.health_summary > 1)
    ailments.emplace_back(fabric.health_summary < kSummaries.size() ? kSummaries[fabric.health_summary] : "unhealthy");
  return told ? std::optional(ailments) : std::nullopt;
}

std::optional<std::string> fabric_health_words(const nvml_api::FabricInfo& fabric) {
  const auto ailments = fabric_ailments(fabric);
  if (!ailments) return std::nullopt;
  return ailments->empty() ? "healthy" : fmt::format("{}", fmt::join(*ailments, " "));
}

Gpu read_gpu(const nvml::NvmlGpu& gpu) {
  const auto fabric = gpu.fabric().value;
  const auto mig = gpu.mig_mode().value;
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
          .memory = gpu.memory().value,
          .mig_mode = mig ? std::optional(mig->now) : std::nullopt,
          .instances = gpu.mig_instances().value};
}

std::vector<Gpu> read_amd_gpus(const MachineTree& tree) {
  constexpr std::string_view kAmd = "0x1002", kAccelerator = "0x12";  // vendor, first byte of the class
  const std::string all = "sys/bus/pci/devices";
  std::vector<Gpu> gpus;
  for (const std::string& address : tree.names(all)) {
    const auto told = [&](const char* file) { return tree.text(fmt::format("{}/{}/{}", all, address, file)); };
    if (told("vendor") != kAmd || tree.target_name(fmt::format("{}/{}/driver", all, address)) != "amdgpu") continue;
    const auto model = told("product_name");
    if (!model && !told("class").value_or("").starts_with(kAccelerator)) continue;
    const auto memory = tree.number(fmt::format("{}/{}/mem_info_vram_total", all, address));
    gpus.push_back({.subject = {.kind = "gpu", .id = address},
                    .model = model,
                    .serial = told("serial_number"),
                    .part = told("product_number"),
                    .vbios = told("vbios_version"),
                    .pci_address = address,
                    .memory = memory ? std::optional(static_cast<std::uint64_t>(*memory)) : std::nullopt});
  }
  return gpus;
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
