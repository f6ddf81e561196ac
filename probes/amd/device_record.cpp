// device_record: facts of one GPU from the runtime and from AMD SMI.
#include "probes/amd/device_record.h"

#include <fmt/format.h>

#include "probes/amd/gpu_facts.h"
#include "probes/amd/hip.h"
#include "probes/core/recorder.h"

namespace assay::amd {

namespace api = hip_api;

void record_device(Recorder& record, const cuda::Device& device) {
  constexpr Seconds kAnswerLimit = {30};
  const auto say = [&](const char* name, Value value) { record.condition(name, std::move(value), device.subject()); };
  const auto attribute = [&](int which) -> std::optional<int> {
    int value = 0;
    return hip().attribute(&value, which, device.ordinal) == api::kSuccess ? std::optional(value) : std::nullopt;
  };
  say("device_name", device.name);
  say("pci_bus_id", device.pci_bus_id);
  say("architecture", device.compute_capability());
  say("compute_units", std::int64_t{device.sm_count});
  say("memory_bytes", static_cast<std::int64_t>(device.memory.count));
  say("last_cache_bytes", static_cast<std::int64_t>(device.l2.count));
  if (const auto khz = attribute(api::kMemoryClockKhz); khz && *khz > 0) say("memory_clock_hz", *khz * 1e3);
  if (const auto bits = attribute(api::kBusWidth); bits && *bits > 0) say("memory_bus_bits", std::int64_t{*bits});
  if (const auto ecc = attribute(api::kEcc)) say("ecc", *ecc != 0);
  say("hip_version", hip_version());
  const AmdSmi* smi = smi_beside();
  const auto gpu = smi == nullptr ? std::nullopt : smi->gpu_at(device.pci_bus_id);
  if (!gpu) return;
  AnswerLimit limit(kAnswerLimit);
  limit.asking(device.uuid + ": its driver and partitions");
  if (const auto version = driver_version(*smi, *gpu)) say("driver_version", *version);
  if (const auto mode = gpu->compute_partition().value) say("compute_partition", *mode);
  if (const auto mode = gpu->memory_partition().value) say("memory_partition", *mode);
}

}  // namespace assay::amd
