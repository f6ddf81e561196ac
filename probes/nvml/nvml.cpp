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

namespace assay::nvml_api {

Symbol Functions::find(const char* symbol) const { return Symbol(dlsym(handle, symbol)); }

}  // namespace assay::nvml_api

namespace assay::nvml {

namespace api = nvml_api;
namespace {

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
  functions_ = std::make_unique<api::Functions>(handle_.get());
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
