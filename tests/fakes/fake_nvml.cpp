// fake_nvml: a libnvidia-ml.so.1 that replays a made-up node from a JSON file: the one that ASSAY_FAKE_NVML names, else
// state.json beside the library as it was opened. Its driver version says "simulated", so that no record taken with it
// can look like a real one. What the file does not have is answered as not supported.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/nvml/nvml_api.h"
#include "tests/fakes/attesting_gpu.h"
#include "tests/fakes/fake_nvml_fields.h"

namespace assay::nvml_api {

/// One GPU of the file.
struct DeviceTag {
  nlohmann::json state;
};

/// A listener: the Xids of its GPU's "xids" that it has not been told yet.
struct EventSetTag {
  std::vector<unsigned> xids;
  Device device = nullptr;
};

namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

/// The file, with what its "base" says merged under it (RFC 7386) and "gpu" under every GPU.
struct Node {
  json state;
  std::vector<DeviceTag> gpus;
  Clock::time_point begin = Clock::now();
};

json read_state(const std::filesystem::path& path) {
  json given = json::parse(std::ifstream(path));
  if (!given.contains("base")) return given;
  json merged = read_state(path.parent_path() / given["base"].get<std::string>());
  merged.merge_patch(given);
  return merged;
}

std::filesystem::path state_path() {
  if (const char* given = std::getenv("ASSAY_FAKE_NVML"); given != nullptr) return given;
  Dl_info self = {};
  dladdr(reinterpret_cast<const void*>(&state_path), &self);
  return std::filesystem::path(self.dli_fname).parent_path() / "state.json";
}

/// The node; without GPUs when the file cannot be read, after saying so.
const Node& node() {
  static const Node the_node = [] {
    Node node;
    try {
      node.state = read_state(state_path());
      for (const auto& [index, own] : node.state.at("gpus").items()) {
        json gpu = node.state.value("gpu", json::object());
        gpu.merge_patch(own);
        for (const auto& key : gpu.value("not_supported", std::vector<std::string>{})) gpu.erase(key);
        node.gpus.push_back({std::move(gpu)});
      }
    } catch (const std::exception& error) {
      std::cerr << "fake_nvml: " << state_path() << ": " << error.what() << '\n';
      node.state = {{"init", kUnknown}};
    }
    return node;
  }();
  return the_node;
}

/// A number, or {"start": a, "rate": b}: a + b times the seconds since the library was first asked.
double number_of(const json& value) {
  if (!value.is_object()) return value.get<double>();
  const double elapsed_s = std::chrono::duration<double>(Clock::now() - node().begin).count();
  return value.at("start").get<double>() + value.at("rate").get<double>() * elapsed_s;
}

/// The number `key` of a GPU in `out`, after the "delay_ms" that each answer of it takes.
template <class T>
Return number(Device device, const std::string& key, T* out) {
  std::this_thread::sleep_for(std::chrono::milliseconds(device->state.value("delay_ms", 0)));
  if (device->state.value("lost", false)) return kGpuIsLost;
  const auto found = device->state.find(key);
  if (found == device->state.end()) return kNotSupported;
  *out = static_cast<T>(number_of(*found));
  return kSuccess;
}

Return put(const std::string& text, char* out, unsigned length) {
  if (text.size() >= length) return kInsufficientSize;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return kSuccess;
}

Return text(Device device, const char* key, char* out, unsigned length) {
  if (device->state.value("lost", false)) return kGpuIsLost;
  const auto found = device->state.find(key);
  return found == device->state.end() ? kNotSupported : put(found->get<std::string>(), out, length);
}

Return processes(Device device, const char* key, unsigned* count, Process* out) {
  if (device->state.value("lost", false)) return kGpuIsLost;
  auto pids = device->state.value(key, std::vector<unsigned>{});
  if (device->state.value("lists_caller", false)) pids.push_back(static_cast<unsigned>(getpid()));
  const auto room = *count;
  *count = static_cast<unsigned>(pids.size());
  if (pids.size() > room) return kInsufficientSize;
  for (std::size_t i = 0; i < pids.size(); ++i)
    out[i] = {.pid = pids[i], .used_memory = 1 << 30, .gpu_instance = ~0U, .compute_instance = ~0U};
  return kSuccess;
}

bool has_link(Device device, unsigned link) { return link < device->state.value("links", 0U); }

/// The key of what the file says of a field: of the link itself, or of "every" one: "link_every_speed_mbps". Empty for
/// one of "silent_links".
std::string key_in(Device device, unsigned field, unsigned scope) {
  const std::string every = key_of_link(field, "every");
  const auto silent = device->state.value("silent_links", std::vector<unsigned>{});
  if (!every.empty() && std::ranges::count(silent, scope) > 0) return "";
  const std::string own = key_of(field, scope);
  const bool is_there =
      every.starts_with("c2c") ? scope < device->state.value("c2c_links", 0U) : has_link(device, scope);
  return device->state.contains(own) || every.empty() || !is_there ? own : every;
}

/// One field; a link that is there and of which the file says nothing has counted no error. A text is a number of type
/// double: "nan".
void answer(Device device, FieldValue& field) {
  const bool of_link = field.field_id >= kFieldLinkReplay && field.field_id <= kFieldLinkCrc;
  const std::string key = key_in(device, field.field_id, field.scope_id);
  const auto found = device->state.find(key);
  field.type = ValueType::uint64;
  if (of_link && !has_link(device, field.scope_id)) {
    field.result = kInvalidArgument;
  } else if (found != device->state.end() && found->is_string()) {
    field.type = ValueType::real;
    field.value.real = std::strtod(found->get<std::string>().c_str(), nullptr);
    field.result = kSuccess;
  } else {
    field.value.uint64 = 0;
    if (key == device->state.value("failing_field", "none")) return void(field.result = kUnknown);
    field.result = number(device, key, &field.value.uint64);
    if (of_link && field.result == kNotSupported) field.result = kSuccess;
  }
}

/// The content of the file at this path.
std::string content_of(const json& path) {
  std::ifstream file(path.get<std::string>(), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

extern "C" {

Return nvmlInit_v2() { return node().state.value("init", kSuccess); }
Return nvmlShutdown() { return kSuccess; }
const char* nvmlErrorString(Return code) {
  switch (code) {
    case kDriverNotLoaded:
      return "Driver Not Loaded";
    case kGpuIsLost:
      return "GPU is lost";
    case kNotFound:
      return "Not Found";
    case kInsufficientResources:
      return "Insufficient Resources";
    default:
      return "Unknown Error";
  }
}
Return nvmlSystemGetDriverVersion(char* out, unsigned length) {
  return put("simulated " + node().state.value("driver", ""), out, length);
}
Return nvmlDeviceGetCount_v2(unsigned* count) {
  *count = static_cast<unsigned>(node().gpus.size());
  return kSuccess;
}
Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  if (index >= node().gpus.size()) return kInvalidArgument;
  *device = const_cast<Device>(&node().gpus[index]);  // the library's handles are not const, the state is
  return (*device)->state.value("unreachable", false) ? kGpuIsLost : kSuccess;
}
Return nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, Device* device) {
  const auto tail = [](std::string address) {
    std::ranges::transform(address, address.begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return address.substr(address.size() - std::min<std::size_t>(address.size(), 12));  // a domain of four digits
  };
  for (unsigned index = 0; index < node().gpus.size(); ++index) {
    if (tail(node().gpus[index].state.at("bus_id")) == tail(bus_id))
      return nvmlDeviceGetHandleByIndex_v2(index, device);
  }
  return kNotFound;
}
Return nvmlSystemGetConfComputeState(ConfidentialState* state) {
  if (!node().state.contains("confidential_computing")) return kNotSupported;
  *state = {.environment = 2, .feature = node().state["confidential_computing"].get<unsigned>(), .devtools = 0};
  return kSuccess;
}
Return nvmlDeviceGetConfComputeGpuCertificate(Device d, GpuCertificates* out) {
  if (!d->state.contains("certificates")) return kNotSupported;
  const std::string pem = content_of(d->state["certificates"]);
  if (pem.size() > sizeof out->attestation_chain) return kInsufficientSize;
  out->attestation_size = static_cast<unsigned>(pem.size());
  std::ranges::copy(pem, out->attestation_chain);
  return kSuccess;
}
Return nvmlDeviceGetConfComputeGpuAttestationReport(Device d, AttestationReport* out) {
  if (d->state.contains("attestation_result")) return d->state["attestation_result"].get<Return>();
  if (!d->state.contains("attestation_key")) return kNotSupported;
  const std::string pem = content_of(d->state["attestation_key"]);
  const std::unique_ptr<BIO, int (*)(BIO*)> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  const fakes::Handle<EVP_PKEY> key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
  const auto bytes =
      fakes::signed_report(key.get(), {.nonce = std::string(out->nonce, out->nonce + sizeof out->nonce)});
  out->size = static_cast<unsigned>(bytes.size());
  std::ranges::copy(bytes, out->report);
  return kSuccess;
}
Return nvmlDeviceGetName(Device d, char* out, unsigned n) { return text(d, "name", out, n); }
Return nvmlDeviceGetUUID(Device d, char* out, unsigned n) { return text(d, "uuid", out, n); }
Return nvmlDeviceGetSerial(Device d, char* out, unsigned n) { return text(d, "serial", out, n); }
Return nvmlDeviceGetBoardPartNumber(Device d, char* out, unsigned n) { return text(d, "part", out, n); }
Return nvmlDeviceGetVbiosVersion(Device d, char* out, unsigned n) { return text(d, "vbios", out, n); }
Return nvmlDeviceGetInforomImageVersion(Device d, char* out, unsigned n) { return text(d, "inforom", out, n); }
Return nvmlDeviceGetGspFirmwareVersion(Device d, char* out) { return text(d, "gsp_firmware", out, 64); }
Return nvmlDeviceGetPciInfo_v3(Device d, PciInfo* out) {
  *out = {};
  return text(d, "bus_id", out->bus_id, sizeof out->bus_id);
}
Return nvmlDeviceGetMemoryInfo(Device d, Memory* out) {
  *out = {};
  return number(d, "memory", &out->total);
}
Return nvmlDeviceGetMemoryInfo_v2(Device d, MemoryParts* out) {
  if (out->version != version_of<MemoryParts>(2)) return kArgumentVersionMismatch;
  return number(d, "memory_used", &out->used);
}
Return nvmlEventSetCreate(EventSet* set) {
  *set = new EventSetTag;
  return kSuccess;
}
Return nvmlEventSetFree(EventSet set) {
  delete set;
  return kSuccess;
}
Return nvmlDeviceRegisterEvents(Device d, unsigned long long types, EventSet set) {
  if (d->state.value("lost", false)) return kGpuIsLost;
  if (types != kEventXid) return kNotSupported;
  set->device = d;
  set->xids = d->state.value("xids", std::vector<unsigned>{});
  return kSuccess;
}
Return nvmlEventSetWait_v2(EventSet set, Event* event, unsigned) {
  if (set->xids.empty()) return kTimeout;
  *event = {.device = set->device,
            .type = kEventXid,
            .data = set->xids.front(),
            .gpu_instance = ~0U,
            .compute_instance = ~0U};
  set->xids.erase(set->xids.begin());
  return kSuccess;
}
Return nvmlDeviceGetClockInfo(Device d, int which, unsigned* out) {
  return number(d, which == kClockSm ? "sm_clock_mhz" : "memory_clock_mhz", out);
}
Return nvmlDeviceGetMaxClockInfo(Device d, int which, unsigned* out) {
  return number(d, which == kClockSm ? "sm_clock_max_mhz" : "memory_clock_max_mhz", out);
}
Return nvmlDeviceGetTemperature(Device d, int, unsigned* out) { return number(d, "temperature_c", out); }
Return nvmlDeviceGetPowerUsage(Device d, unsigned* out) { return number(d, "power_average_mw", out); }
Return nvmlDeviceGetEnforcedPowerLimit(Device d, unsigned* out) { return number(d, "power_limit_mw", out); }
Return nvmlDeviceGetCurrPcieLinkGeneration(Device d, unsigned* out) { return number(d, "pcie_generation", out); }
Return nvmlDeviceGetCurrPcieLinkWidth(Device d, unsigned* out) { return number(d, "pcie_width", out); }
Return nvmlDeviceGetMaxPcieLinkGeneration(Device d, unsigned* out) { return number(d, "pcie_generation_max", out); }
Return nvmlDeviceGetMaxPcieLinkWidth(Device d, unsigned* out) { return number(d, "pcie_width_max", out); }
Return nvmlDeviceGetGpuMaxPcieLinkGeneration(Device d, unsigned* out) {
  return number(d, "pcie_generation_device", out);
}
Return nvmlDeviceGetPcieReplayCounter(Device d, unsigned* out) { return number(d, "pcie_replays", out); }
Return nvmlDeviceGetPersistenceMode(Device d, unsigned* out) { return number(d, "persistence_mode", out); }
Return nvmlDeviceGetRetiredPagesPendingStatus(Device d, unsigned* out) { return number(d, "retired_pending", out); }
Return nvmlDeviceGetTotalEnergyConsumption(Device d, unsigned long long* out) { return number(d, "energy_mj", out); }
Return nvmlDeviceGetEccMode(Device d, unsigned* now, unsigned* pending) {
  *pending = 1;
  return number(d, "ecc_mode", now);
}
Return nvmlDeviceGetMigMode(Device d, unsigned* now, unsigned* pending) {
  *pending = 0;
  return number(d, "mig_mode", now);
}
Return nvmlDeviceGetMaxMigDeviceCount(Device d, unsigned* out) {
  *out = 7;
  return d->state.contains("mig_instances") ? kSuccess : kNotSupported;
}
Return nvmlDeviceGetMigDeviceHandleByIndex(Device d, unsigned index, Device* out) {
  *out = d;
  unsigned made = 0;
  const Return code = number(d, "mig_instances", &made);
  return code == kSuccess && index >= made ? kNotFound : code;
}
Return nvmlDeviceGetTotalEccErrors(Device d, int kind, int period, unsigned long long* out) {
  return number(
      d,
      fmt::format("ecc_{}{}", kind == kCorrected ? "corrected" : "uncorrected", period == kLifetime ? "_lifetime" : ""),
      out);
}
Return nvmlDeviceGetRemappedRows(Device d, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                                 unsigned* failed) {
  (void)number(d, "remapped_corrected", corrected);  // the last one says whether the GPU has rows to remap
  (void)number(d, "remapped_uncorrected", uncorrected);
  (void)number(d, "remapping_pending", pending);
  return number(d, "remapping_failed", failed);
}
Return nvmlDeviceGetComputeRunningProcesses_v3(Device d, unsigned* count, Process* out) {
  return processes(d, "compute_processes", count, out);
}
Return nvmlDeviceGetGraphicsRunningProcesses_v3(Device d, unsigned* count, Process* out) {
  return processes(d, "graphics_processes", count, out);
}
Return nvmlDeviceGetNvLinkState(Device d, unsigned link, unsigned* active) {
  if (d->state.value("lost", false)) return kGpuIsLost;
  if (!has_link(d, link)) return kInvalidArgument;
  const auto dead = d->state.value("dead_links", std::vector<unsigned>{});
  *active = std::ranges::find(dead, link) == dead.end() ? 1 : 0;
  return kSuccess;
}
Return nvmlDeviceGetNvLinkRemoteDeviceType(Device d, unsigned link, int* out) {
  if (!has_link(d, link)) return kInvalidArgument;
  return number(d, "remote_kind", out);
}
Return nvmlDeviceGetNvLinkRemotePciInfo_v2(Device d, unsigned link, PciInfo* out) {
  if (!has_link(d, link)) return kInvalidArgument;
  *out = {};
  const auto ends = d->state.value("remote_bus_ids", std::vector<std::string>{});
  return ends.empty() ? kNotSupported : put(ends[link % ends.size()], out->bus_id, sizeof out->bus_id);
}
Return nvmlDeviceGetFieldValues(Device d, int count, FieldValue* values) {
  if (d->state.value("lost", false)) return kGpuIsLost;
  for (FieldValue& field : std::span(values, static_cast<std::size_t>(count))) answer(d, field);
  return kSuccess;
}
Return nvmlDeviceGetViolationStatus(Device d, int policy, ViolationTime* out) {
  *out = {};
  return number(d, policy == kPolicyPower ? "violation_power_ns" : "violation_thermal_ns", &out->violation_ns);
}
Return nvmlDeviceGetGpuFabricInfoV(Device d, FabricInfo* out) {
  const auto newest = d->state.value("fabric_version", 3U);
  if (out->version != kFabricVersions[0] && out->version != kFabricVersions[1]) return kArgumentVersionMismatch;
  if (out->version >> 24U > newest) return kArgumentVersionMismatch;
  (void)number(d, "fabric_status", &out->status);  // success unless the file says otherwise
  (void)number(d, "fabric_health", &out->health_mask);
  (void)number(d, "fabric_clique", &out->clique);
  (void)number(d, "fabric_uuid", out->cluster_uuid);  // its first byte
  if (newest > 2) (void)number(d, "fabric_summary", &out->health_summary);
  return number(d, "fabric_state", &out->state);
}

}  // extern "C"

}  // namespace assay::nvml_api
