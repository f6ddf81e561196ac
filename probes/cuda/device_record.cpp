// device_record: facts of one GPU from the runtime and from the kernel driver.
#include "probes/cuda/device_record.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "probes/core/host_facts.h"
#include "probes/core/recorder.h"
#include "probes/cuda/device.h"

namespace assay::cuda {
namespace {

int attribute(const Device& device, cudaDeviceAttr name) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, name, device.ordinal), "reading an attribute of " + device.uuid);
  return value;
}

}  // namespace

void record_device(Recorder& record, const Device& device) {
  const auto say = [&](const char* name, Value value) { record.condition(name, std::move(value), device.subject()); };
  say("device_name", device.name);
  say("pci_bus_id", device.pci_bus_id);
  say("mig", device.is_mig());
  say("compute_capability", device.compute_capability());
  say("sm_count", std::int64_t{device.sm_count});
  say("memory_bytes", static_cast<std::int64_t>(device.memory.count));
  say("l2_bytes", static_cast<std::int64_t>(device.l2.count));
  // The attribute is in kHz and deprecated: 0 where a driver no longer reports it.
  if (const int khz = attribute(device, cudaDevAttrMemoryClockRate); khz > 0) say("memory_clock_hz", khz * 1e3);
  say("memory_bus_bits", std::int64_t{attribute(device, cudaDevAttrGlobalMemoryBusWidth)});
  say("ecc", attribute(device, cudaDevAttrEccEnabled) != 0);
  if (const auto driver = read_fact("/sys/module/nvidia/version")) say("driver_version", *driver);
  say("cuda_driver_version", cuda_driver_version());
  say("cuda_runtime_version", cuda_runtime_version());
}

}  // namespace assay::cuda
