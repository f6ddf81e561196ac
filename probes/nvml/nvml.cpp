// nvml: functions are found by name, so that an older library lacks facts and not the whole.
#include "probes/nvml/nvml.h"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <ranges>
#include <system_error>

#include <dlfcn.h>

#include <fmt/format.h>

#include "probes/core/library.h"
#include "probes/core/probe.h"
#include "probes/nvml/nvml_gpu.h"

namespace assay::nvml {

namespace api = nvml_api;
namespace {

/// Looks functions up in an open library.
class Symbols {
 public:
  explicit Symbols(void* handle) : handle_(handle) {}

  /// Sets `function` to the library's symbol `name`; null when it exports nothing of that name.
  template <class Function>
  void find(Function& function, const char* name) const {
    // POSIX says that a function's address may travel through void*.
    function = reinterpret_cast<Function>(dlsym(handle_, name));
  }

 private:
  void* handle_;
};

api::Functions find_functions(const Symbols& in) {
  api::Functions f;
  in.find(f.init, "nvmlInit_v2");
  in.find(f.shutdown, "nvmlShutdown");
  in.find(f.error_string, "nvmlErrorString");
  in.find(f.driver_version, "nvmlSystemGetDriverVersion");
  in.find(f.count, "nvmlDeviceGetCount_v2");
  in.find(f.by_index, "nvmlDeviceGetHandleByIndex_v2");
  in.find(f.by_pci_bus_id, "nvmlDeviceGetHandleByPciBusId_v2");
  in.find(f.name, "nvmlDeviceGetName");
  in.find(f.uuid, "nvmlDeviceGetUUID");
  in.find(f.serial, "nvmlDeviceGetSerial");
  in.find(f.part, "nvmlDeviceGetBoardPartNumber");
  in.find(f.vbios, "nvmlDeviceGetVbiosVersion");
  in.find(f.inforom, "nvmlDeviceGetInforomImageVersion");
  in.find(f.gsp_firmware, "nvmlDeviceGetGspFirmwareVersion");
  in.find(f.pci_info, "nvmlDeviceGetPciInfo_v3");
  in.find(f.memory, "nvmlDeviceGetMemoryInfo");
  in.find(f.memory_parts, "nvmlDeviceGetMemoryInfo_v2");
  in.find(f.event_set_create, "nvmlEventSetCreate");
  in.find(f.register_events, "nvmlDeviceRegisterEvents");
  in.find(f.event_set_wait, "nvmlEventSetWait_v2");
  in.find(f.event_set_free, "nvmlEventSetFree");
  in.find(f.clock, "nvmlDeviceGetClockInfo");
  in.find(f.clock_max, "nvmlDeviceGetMaxClockInfo");
  in.find(f.temperature, "nvmlDeviceGetTemperature");
  in.find(f.temperature_v, "nvmlDeviceGetTemperatureV");
  in.find(f.power, "nvmlDeviceGetPowerUsage");
  in.find(f.power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  in.find(f.pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration");
  in.find(f.pcie_width, "nvmlDeviceGetCurrPcieLinkWidth");
  in.find(f.pcie_generation_max, "nvmlDeviceGetMaxPcieLinkGeneration");
  in.find(f.pcie_width_max, "nvmlDeviceGetMaxPcieLinkWidth");
  in.find(f.pcie_generation_device, "nvmlDeviceGetGpuMaxPcieLinkGeneration");
  in.find(f.pcie_replays, "nvmlDeviceGetPcieReplayCounter");
  in.find(f.persistence, "nvmlDeviceGetPersistenceMode");
  in.find(f.retired_pending, "nvmlDeviceGetRetiredPagesPendingStatus");
  in.find(f.energy, "nvmlDeviceGetTotalEnergyConsumption");
  in.find(f.ecc_mode, "nvmlDeviceGetEccMode");
  in.find(f.mig_mode, "nvmlDeviceGetMigMode");
  in.find(f.mig_most, "nvmlDeviceGetMaxMigDeviceCount");
  in.find(f.mig_device, "nvmlDeviceGetMigDeviceHandleByIndex");
  in.find(f.ecc_errors, "nvmlDeviceGetTotalEccErrors");
  in.find(f.remapped_rows, "nvmlDeviceGetRemappedRows");
  in.find(f.compute_processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  in.find(f.graphics_processes, "nvmlDeviceGetGraphicsRunningProcesses_v3");
  in.find(f.link_state, "nvmlDeviceGetNvLinkState");
  in.find(f.link_errors, "nvmlDeviceGetNvLinkErrorCounter");
  in.find(f.link_remote_kind, "nvmlDeviceGetNvLinkRemoteDeviceType");
  in.find(f.link_remote_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  in.find(f.peer_status, "nvmlDeviceGetP2PStatus");
  in.find(f.fields, "nvmlDeviceGetFieldValues");
  in.find(f.fabric, "nvmlDeviceGetGpuFabricInfoV");
  in.find(f.violation, "nvmlDeviceGetViolationStatus");
  in.find(f.confidential_state, "nvmlSystemGetConfComputeState");
  in.find(f.certificates, "nvmlDeviceGetConfComputeGpuCertificate");
  in.find(f.attestation, "nvmlDeviceGetConfComputeGpuAttestationReport");
  return f;
}

/// The file that a symbol was found in, links followed; `otherwise` when the loader does not report.
std::string path_of(const void* symbol, const std::string& otherwise) {
  Dl_info found = {};
  if (dladdr(symbol, &found) == 0 || found.dli_fname == nullptr) return otherwise;
  std::error_code error;
  const auto real = std::filesystem::canonical(found.dli_fname, error);
  return error ? std::string(found.dli_fname) : real.string();
}

}  // namespace

Availability told_by(api::Return code) {
  switch (code) {
    case api::kSuccess:
      return Availability::told;
    case api::kNotSupported:
    case api::kNoPermission:
    case api::kNotFound:
    case api::kFunctionNotFound:
    case api::kNoData:
    case api::kArgumentVersionMismatch:
    case api::kDeprecated:
      return Availability::absent;
    default:
      return Availability::failed;
  }
}

void Nvml::Close::operator()(void* handle) const { (void)dlclose(handle); }  // a deleter reports nothing

void Nvml::Shutdown::operator()(api::Functions* functions) const { (void)functions->shutdown(); }  // likewise

std::string Nvml::default_library() {
  const char* given = std::getenv("ASSAY_NVML_LIBRARY");
  if (given != nullptr && *given != '\0') return given;
  const char* folders = std::getenv(kLibraryPathVariable);
  for (const auto part : std::views::split(std::string_view(folders == nullptr ? "" : folders), ':')) {
    const auto file = std::filesystem::path(std::string_view(part.begin(), part.end())) / api::kLibrary;
    std::error_code failed;
    if (!part.empty() && std::filesystem::exists(file, failed)) return file.string();
  }
  return api::kLibrary;
}

std::string Nvml::confidential_computing() const {
  api::ConfidentialState state = {};
  if (functions_->confidential_state == nullptr || functions_->confidential_state(&state) != api::kSuccess)
    return "not_reported";
  if (state.feature == 0) return "off";
  return state.devtools == 0 ? "on" : "devtools";
}

Nvml::Nvml(const std::string& wanted) {
  const std::string library = wanted.empty() || wanted == api::kLibrary ? default_library() : wanted;
  handle_.reset(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!handle_) {
    const char* why = dlerror();
    throw Skip(
        fmt::format("NVML cannot be opened: {}; it comes with the NVIDIA driver", why == nullptr ? library : why));
  }
  functions_ = std::make_unique<api::Functions>(find_functions(Symbols(handle_.get())));
  const api::Functions& f = *functions_;
  if (f.init == nullptr || f.shutdown == nullptr || f.count == nullptr || f.by_index == nullptr ||
      f.by_pci_bus_id == nullptr || f.driver_version == nullptr) {
    throw Skip(fmt::format("{} lacks a function that NVML has had since driver 319; it is not NVIDIA's NVML", library));
  }
  path_ = path_of(reinterpret_cast<const void*>(f.init), library);
  if (const api::Return code = f.init(); code != api::kSuccess) {
    throw Skip(fmt::format("{} finds no working NVIDIA driver: {}", path_, words(code)));
  }
  initialised_.reset(functions_.get());
  std::array<char, api::kTextSize> text = {};
  if (f.driver_version(text.data(), api::kTextSize) == api::kSuccess) driver_version_ = text.data();
}

std::vector<NvmlGpu> Nvml::gpus() const {
  unsigned count = 0;
  if (const api::Return code = functions_->count(&count); code != api::kSuccess) {
    throw std::runtime_error(fmt::format("{} cannot count the GPUs: {}", path_, words(code)));
  }
  std::vector<NvmlGpu> all;
  for (unsigned index = 0; index < count; ++index) {
    api::Device device = nullptr;
    const api::Return code = functions_->by_index(index, &device);
    all.emplace_back(*functions_, code == api::kSuccess ? device : nullptr, index, code);
  }
  return all;
}

Answer<NvmlGpu> Nvml::gpu_at(const std::string& address) const {
  api::Device device = nullptr;
  const api::Return code = functions_->by_pci_bus_id(address.c_str(), &device);
  if (code != api::kSuccess) return {.value = std::nullopt, .code = code};
  return {.value = NvmlGpu(*functions_, device, 0, code), .code = code};
}

std::string Nvml::words(api::Return code) const {
  const char* text = functions_->error_string == nullptr ? nullptr : functions_->error_string(code);
  return fmt::format("{} (NVML {})", text == nullptr ? "no words" : text, code);
}

std::string pci_address_of(std::string_view bus_id) {
  constexpr std::size_t kDomainDigits = 4;  // NVML writes eight, the kernel as many as needed and at least four
  std::string result(bus_id);
  for (char& c : result) {
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  }
  const auto colon = result.find(':');
  if (colon == std::string::npos) return std::string(bus_id);
  std::size_t zeros = 0;
  while (colon - zeros > kDomainDigits && result[zeros] == '0') ++zeros;
  return result.substr(zeros);
}

std::string absent_because(std::string_view reason) {
  return fmt::format("absent: {}", reason.substr(0, reason.find('\n')));
}

}  // namespace assay::nvml
