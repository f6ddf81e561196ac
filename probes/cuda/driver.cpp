// driver: looks up driver functions by name and GPUs by UUID.
#include "probes/cuda/driver.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/host_facts.h"
#include "probes/core/library.h"
#include "probes/core/probe.h"
#include "probes/cuda/choice.h"

namespace assay::cuda {

namespace api = cuda_api;
namespace {

constexpr int kTextSize = 96;  // an address takes 13 characters with its zero; the longest names some 40

bool same_letters(std::string_view a, std::string_view b) {
  const auto low = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return std::ranges::equal(a, b, {}, low, low);
}

}  // namespace

struct CudaDriver::State {
  api::Functions functions = {.library = Library::open(api::kLibrary, "the CUDA driver's library")};
};

CudaDriver::CudaDriver() : state_(std::make_unique<State>()) {
  const api::Result code = functions().init(0);
  if (code == api::kNoDevice) throw Skip(fmt::format("the CUDA driver at {} shows no GPU to this process", path()));
  if (code == api::kStubLibrary) throw Skip(fmt::format("{} is the Toolkit's stub and no driver", path()));
  demand(code, "cuInit");
}

CudaDriver::CudaDriver(CudaDriver&&) noexcept = default;
CudaDriver::~CudaDriver() = default;
const std::string& CudaDriver::path() const { return state_->functions.library.path(); }
const api::Functions& CudaDriver::functions() const { return state_->functions; }

std::string CudaDriver::words(api::Result code) const {
  const char* text = nullptr;
  const bool known = functions().error_string(code, &text) == api::kSuccess && text != nullptr;
  return fmt::format("{} (CUDA error {})", known ? text : "an error without a name", code);
}

void CudaDriver::demand(api::Result code, std::string_view what) const {
  if (code != api::kSuccess) throw std::runtime_error(fmt::format("{}: {}", what, words(code)));
}

std::string CudaDriver::version() const {
  constexpr int kMajor = 1000, kMinor = 10;  // 13.0 is 13000, 11.7 is 11070 (cuDriverGetVersion)
  int version = 0;
  demand(functions().driver_version(&version), "cuDriverGetVersion");
  return fmt::format("{}.{}", version / kMajor, version % kMajor / kMinor);
}

std::vector<DriverGpu> CudaDriver::gpus() const {
  const auto& f = functions();
  int count = 0;
  demand(f.count(&count), "cuDeviceGetCount");
  std::vector<DriverGpu> gpus;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    api::Device device = 0;
    std::array<char, kTextSize> name = {}, address = {};
    api::Uuid uuid = {}, whole = {};
    demand(f.device(&device, ordinal), "cuDeviceGet");
    demand(f.name(name.data(), kTextSize - 1, device), "cuDeviceGetName");
    demand(f.pci_bus_id(address.data(), kTextSize - 1, device), "cuDeviceGetPCIBusId");
    demand(f.uuid(&uuid, device), "cuDeviceGetUuid");
    const bool mig = f.uuid_whole != nullptr && f.uuid_whole(&whole, device) == api::kSuccess &&
                     !std::ranges::equal(whole.bytes, uuid.bytes);
    const auto attribute = [&](int which) {
      int value = 0;
      // A driver that is older than an attribute does not know it, and then the GPU cannot do it.
      return f.attribute(&value, which, device) == api::kSuccess ? value : 0;
    };
    gpus.push_back({.ordinal = device,
                    .uuid = uuid_text(uuid.bytes, mig),
                    .pci_bus_id = pci_bus_id_text(address.data()),
                    .name = name.data(),
                    .dma_buf = attribute(api::kAttributeDmaBuf) != 0,
                    .peermem = attribute(api::kAttributeRdma) != 0,
                    .flushes = (attribute(api::kAttributeFlush) & api::kFlushByHost) != 0,
                    .posix_handles = attribute(api::kAttributeDescriptors) != 0,
                    .fabric_handles = attribute(api::kAttributeFabricHandles) != 0,
                    .multicast = attribute(api::kAttributeMulticast) != 0});
  }
  if (gpus.empty()) throw Skip(fmt::format("the CUDA driver at {} shows no GPU to this process", path()));
  std::ranges::sort(gpus, {}, &DriverGpu::pci_bus_id);
  return gpus;
}

std::string words_for_old_driver(std::string_view supported, std::string_view needed, const std::string& root) {
  const auto version = read_fact(root + "/sys/module/nvidia/version");
  // Table 3 of the CUDA Toolkit release notes, drivers for Linux.
  const std::string_view major = needed.substr(0, needed.find('.'));
  const std::string_view oldest = major == "13" ? "580.65.06" : major == "12" ? "525.60.13" : "";
  return fmt::format(
      "the NVIDIA driver {}supports CUDA {} at most, this build of the probe needs CUDA {}{}; hint: update the driver",
      version ? *version + " " : "", supported, needed,
      oldest.empty() ? "" : fmt::format(", that is driver {} or newer", oldest));
}

const DriverGpu& gpu_named(const std::vector<DriverGpu>& gpus, std::string_view wanted) {
  const auto found = std::ranges::find_if(gpus, [&](const DriverGpu& gpu) {
    return same_letters(gpu.uuid, wanted) || gpu.pci_bus_id == pci_bus_id_text(wanted);
  });
  if (found != gpus.end()) return *found;
  std::vector<std::string> there;
  for (const auto& gpu : gpus) there.push_back(fmt::format("{} at {}", gpu.uuid, gpu.pci_bus_id));
  throw Skip(fmt::format("gpu: this node has no GPU '{}'; it has {}; hint: give a UUID, a PCI bus id, or affine",
                         wanted, fmt::join(there, ", ")));
}

}  // namespace assay::cuda
