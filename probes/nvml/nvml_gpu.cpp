// nvml_gpu: one query per function; the library's units become base units here and nowhere else.
#include "probes/nvml/nvml_gpu.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace assay::nvml {

namespace api = nvml_api;

namespace {

constexpr double kMegahertz = 1e6;
constexpr double kMilliwatt = 1e-3;

/// The same answer with its value changed by `change`.
template <class To, class From, class Change>
Answer<To> changed(const Answer<From>& answer, Change change) {
  if (!answer.value) return {.value = std::nullopt, .code = answer.code};
  return {.value = change(*answer.value), .code = answer.code};
}

/// A field that this driver or GPU does not know is answered as invalid.
api::Return of_unknown_as_absent(api::Return code) { return code == api::kInvalidArgument ? api::kNotSupported : code; }

double number_in(const api::FieldValue& field) {
  switch (field.type) {
    case api::ValueType::real:
      return field.value.real;
    case api::ValueType::uint32:
      return field.value.uint32;
    case api::ValueType::ulong:
      return static_cast<double>(field.value.ulong);
    case api::ValueType::uint64:
      return static_cast<double>(field.value.uint64);
    case api::ValueType::int64:
      return static_cast<double>(field.value.int64);
    case api::ValueType::int32:
      return field.value.int32;
    case api::ValueType::uint16:
      return field.value.uint16;
  }
  return 0;
}

bool known_type(const api::FieldValue& field) {
  return field.type >= api::ValueType::real && field.type <= api::ValueType::uint16;
}

/// The address in `pci`, whose text may fill its whole place.
std::string address_in(const api::PciInfo& pci) {
  const std::string_view whole(pci.bus_id, sizeof pci.bus_id);
  return pci_address_of(whole.substr(0, whole.find('\0')));
}

}  // namespace

std::optional<std::uint64_t> whole(const std::optional<double>& number) {
  constexpr double kBeyond = 9.2e18;  // a count that no driver reaches and that fits
  if (!number || !(*number >= 0 && *number < kBeyond)) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

template <class T, class Call, class... Given>
Answer<T> NvmlGpu::ask(Call call, Given... given) const {
  if (device_ == nullptr) return {.value = std::nullopt, .code = code_};
  if (call == nullptr) return {.value = std::nullopt, .code = api::kFunctionNotFound};
  T value = {};
  const api::Return code = call(device_, given..., &value);
  if (code != api::kSuccess) return {.value = std::nullopt, .code = code};
  return {.value = value, .code = code};
}

Answer<std::string> NvmlGpu::text(api::TextCall call) const {
  if (device_ == nullptr) return {.value = std::nullopt, .code = code_};
  if (call == nullptr) return {.value = std::nullopt, .code = api::kFunctionNotFound};
  std::array<char, api::kTextSize> buffer = {};
  const api::Return code = call(device_, buffer.data(), api::kTextSize);
  if (code != api::kSuccess) return {.value = std::nullopt, .code = code};
  buffer.back() = '\0';
  std::string result = buffer.data();
  while (result.ends_with(' ')) result.pop_back();
  if (result.empty() || result == "N/A") return {.value = std::nullopt, .code = api::kNoData};
  return {.value = std::move(result), .code = code};
}

Answer<Mode> NvmlGpu::mode(api::Call<api::Device, unsigned*, unsigned*> call) const {
  if (device_ == nullptr) return {.value = std::nullopt, .code = code_};
  if (call == nullptr) return {.value = std::nullopt, .code = api::kFunctionNotFound};
  unsigned now = 0;
  unsigned pending = 0;
  const api::Return code = call(device_, &now, &pending);
  if (code != api::kSuccess) return {.value = std::nullopt, .code = code};
  return {.value = Mode{.now = now != 0, .pending = pending != 0}, .code = code};
}

Answer<double> NvmlGpu::clock_hz(api::Call<api::Device, int, unsigned*> call, int which) const {
  return changed<double>(ask<unsigned>(call, which), [](unsigned mhz) { return mhz * kMegahertz; });
}

Answer<std::string> NvmlGpu::uuid() const { return text(functions_->uuid); }
Answer<std::string> NvmlGpu::name() const { return text(functions_->name); }
Answer<std::string> NvmlGpu::serial() const { return text(functions_->serial); }
Answer<std::string> NvmlGpu::part() const { return text(functions_->part); }
Answer<std::string> NvmlGpu::vbios() const { return text(functions_->vbios); }
Answer<std::string> NvmlGpu::inforom() const { return text(functions_->inforom); }

Answer<std::string> NvmlGpu::gsp_firmware() const {
  if (device_ == nullptr) return {.value = std::nullopt, .code = code_};
  if (functions_->gsp_firmware == nullptr) return {.value = std::nullopt, .code = api::kFunctionNotFound};
  std::array<char, api::kTextSize> buffer = {};  // the library writes up to 64 bytes and takes no length
  const api::Return code = functions_->gsp_firmware(device_, buffer.data());
  if (code != api::kSuccess) return {.value = std::nullopt, .code = code};
  return {.value = std::string(buffer.data()), .code = code};
}

Answer<std::string> NvmlGpu::pci_address() const {
  return changed<std::string>(ask<api::PciInfo>(functions_->pci_info), address_in);
}

Answer<std::uint64_t> NvmlGpu::memory() const {
  return changed<std::uint64_t>(ask<api::Memory>(functions_->memory),
                                [](const api::Memory& memory) { return memory.total; });
}

Answer<double> NvmlGpu::sm_clock_hz() const { return clock_hz(functions_->clock, api::kClockSm); }
Answer<double> NvmlGpu::sm_clock_max_hz() const { return clock_hz(functions_->clock_max, api::kClockSm); }
Answer<double> NvmlGpu::memory_clock_hz() const { return clock_hz(functions_->clock, api::kClockMemory); }
Answer<double> NvmlGpu::memory_clock_max_hz() const { return clock_hz(functions_->clock_max, api::kClockMemory); }

Answer<double> NvmlGpu::temperature_c() const {
  if (functions_->temperature_v != nullptr && device_ != nullptr) {
    api::Temperature asked = {
        .version = api::version_of<api::Temperature>(1), .sensor = api::kTemperatureGpu, .temperature_c = 0};
    if (functions_->temperature_v(device_, &asked) == api::kSuccess) {
      return {.value = asked.temperature_c, .code = api::kSuccess};
    }
  }
  // Drivers before 570 have only this call; it is deprecated since 13.0 and still exported.
  return changed<double>(ask<unsigned>(functions_->temperature, api::kTemperatureGpu),
                         [](unsigned degrees) { return degrees; });
}

Answer<double> NvmlGpu::memory_temperature_c() const { return field(api::kFieldMemoryTemperature); }

Answer<double> NvmlGpu::power_w() const {
  const auto instant = power_field_w(api::kFieldPowerInstant, api::kScopeGpu);
  if (instant.value || instant.failed()) return instant;
  return changed<double>(ask<unsigned>(functions_->power), [](unsigned mw) { return mw * kMilliwatt; });
}

Answer<double> NvmlGpu::power_limit_w() const {
  return changed<double>(ask<unsigned>(functions_->power_limit), [](unsigned mw) { return mw * kMilliwatt; });
}

Answer<double> NvmlGpu::power_field_w(unsigned id, unsigned scope) const {
  return changed<double>(field(id, scope), [](double mw) { return mw * kMilliwatt; });
}

Answer<std::uint64_t> NvmlGpu::energy_mj() const {
  return changed<std::uint64_t>(ask<unsigned long long>(functions_->energy), [](unsigned long long mj) { return mj; });
}

Answer<ThrottleTimes> NvmlGpu::throttle() const {
  constexpr std::array kReasons = {api::kFieldPowerCap, api::kFieldSwThermal, api::kFieldHwThermal,
                                   api::kFieldPowerBrake};
  const auto ns = fields(kReasons);
  if (ns.failed()) return {.value = std::nullopt, .code = ns.code};
  ThrottleTimes times;
  if (ns.value) {
    times = {.power_cap_ns = whole((*ns.value)[0]),
             .sw_thermal_ns = whole((*ns.value)[1]),
             .hw_thermal_ns = whole((*ns.value)[2]),
             .power_brake_ns = whole((*ns.value)[3])};
  }
  if (times.sw_thermal_ns && times.hw_thermal_ns) times.thermal_ns = *times.sw_thermal_ns + *times.hw_thermal_ns;
  for (auto [time, policy] :
       {std::pair(&times.power_cap_ns, api::kPolicyPower), std::pair(&times.thermal_ns, api::kPolicyThermal)}) {
    if (*time) continue;
    // Drivers before 575 have only this call; it is deprecated since 13.0. Delete it when no such driver is met any
    // more.
    const auto violation = ask<api::ViolationTime>(functions_->violation, policy);
    if (violation.failed()) return {.value = std::nullopt, .code = violation.code};
    if (violation.value) *time = violation.value->violation_ns;
  }
  return {.value = times, .code = api::kSuccess};
}

Answer<unsigned> NvmlGpu::pcie_generation() const { return ask<unsigned>(functions_->pcie_generation); }
Answer<unsigned> NvmlGpu::pcie_generation_max() const { return ask<unsigned>(functions_->pcie_generation_max); }
Answer<unsigned> NvmlGpu::pcie_generation_device() const { return ask<unsigned>(functions_->pcie_generation_device); }
Answer<unsigned> NvmlGpu::pcie_width() const { return ask<unsigned>(functions_->pcie_width); }
Answer<unsigned> NvmlGpu::pcie_width_max() const { return ask<unsigned>(functions_->pcie_width_max); }
Answer<unsigned> NvmlGpu::pcie_replays() const { return ask<unsigned>(functions_->pcie_replays); }

Answer<Mode> NvmlGpu::ecc_mode() const { return mode(functions_->ecc_mode); }
Answer<Mode> NvmlGpu::mig_mode() const { return mode(functions_->mig_mode); }

Answer<unsigned> NvmlGpu::mig_instances() const {
  Answer<unsigned> found = ask<unsigned>(functions_->mig_most);
  const unsigned most = found.value.value_or(0);
  if (found.value) found.value = 0;
  for (unsigned i = 0; i < most; ++i) {
    const auto instance = ask<api::Device>(functions_->mig_device, i);
    if (!instance.value && instance.code != api::kNotFound) return {.value = std::nullopt, .code = instance.code};
    if (instance.value) ++*found.value;
  }
  return found;
}

Answer<bool> NvmlGpu::persistence_mode() const {
  return changed<bool>(ask<unsigned>(functions_->persistence), [](unsigned on) { return on != 0; });
}

Answer<std::uint64_t> NvmlGpu::ecc_errors(int kind, int period) const {
  return changed<std::uint64_t>(ask<unsigned long long>(functions_->ecc_errors, kind, period),
                                [](unsigned long long count) { return count; });
}

Answer<RemappedRows> NvmlGpu::remapped_rows() const {
  if (device_ == nullptr) return {.value = std::nullopt, .code = code_};
  if (functions_->remapped_rows == nullptr) return {.value = std::nullopt, .code = api::kFunctionNotFound};
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  const api::Return code = functions_->remapped_rows(device_, &corrected, &uncorrected, &pending, &failed);
  if (code != api::kSuccess) return {.value = std::nullopt, .code = code};
  return {.value = RemappedRows{corrected, uncorrected, pending != 0, failed != 0}, .code = code};
}

Answer<unsigned> NvmlGpu::retired_pages() const {
  constexpr std::array kCauses = {api::kFieldRetiredSingleBit, api::kFieldRetiredDoubleBit};
  const auto pages = fields(kCauses);
  if (!pages.value) return {.value = std::nullopt, .code = pages.code};
  const auto& [single, twice] = std::pair((*pages.value)[0], (*pages.value)[1]);
  if (!single && !twice) return {.value = std::nullopt, .code = api::kNotSupported};
  return {.value = static_cast<unsigned>(single.value_or(0) + twice.value_or(0)), .code = api::kSuccess};
}

Answer<bool> NvmlGpu::retired_pages_pending() const {
  return changed<bool>(ask<unsigned>(functions_->retired_pending), [](unsigned pending) { return pending != 0; });
}

Answer<std::vector<GpuProcess>> NvmlGpu::processes() const {
  constexpr unsigned kMost = 1024;  // contexts on one GPU; more are counted as these
  if (device_ == nullptr) return {.value = std::nullopt, .code = code_};
  std::vector<GpuProcess> processes;
  bool told = false;
  api::Return code = api::kFunctionNotFound;
  for (const auto call : {functions_->compute_processes, functions_->graphics_processes}) {
    if (call == nullptr) continue;
    std::vector<api::Process> found(kMost);
    unsigned count = kMost;
    code = call(device_, &count, found.data());
    if (told_by(code) == Availability::failed && code != api::kInsufficientSize)
      return {.value = std::nullopt, .code = code};
    if (told_by(code) == Availability::absent) continue;
    told = true;
    for (unsigned i = 0; i < std::min(count, kMost); ++i) {
      const auto memory = found[i].used_memory;
      processes.push_back(
          {.pid = found[i].pid,
           .memory = memory == api::kMemoryNotTold ? std::nullopt : std::optional<std::uint64_t>(memory)});
    }
  }
  if (!told) return {.value = std::nullopt, .code = code};
  std::ranges::stable_sort(processes, {}, &GpuProcess::pid);
  const auto repeated = std::ranges::unique(processes, {}, &GpuProcess::pid);
  processes.erase(repeated.begin(), repeated.end());
  return {.value = std::move(processes), .code = api::kSuccess};
}

Answer<std::uint64_t> NvmlGpu::memory_used() const {
  if (device_ == nullptr) return {.value = std::nullopt, .code = code_};
  if (functions_->memory_parts == nullptr) return {.value = std::nullopt, .code = api::kFunctionNotFound};
  api::MemoryParts memory = {};
  memory.version = api::version_of<api::MemoryParts>(2);
  const api::Return code = functions_->memory_parts(device_, &memory);
  if (code != api::kSuccess) return {.value = std::nullopt, .code = code};
  return {.value = memory.used, .code = code};
}

Answer<Attestation> NvmlGpu::attestation(std::string_view nonce) const {
  if (device_ == nullptr) return {.value = std::nullopt, .code = code_};
  if (functions_->attestation == nullptr) return {.value = std::nullopt, .code = api::kFunctionNotFound};
  api::AttestationReport report = {};
  std::ranges::copy(nonce.substr(0, sizeof report.nonce), report.nonce);
  const api::Return code = functions_->attestation(device_, &report);
  if (code != api::kSuccess) return {.value = std::nullopt, .code = code};
  const auto chain = ask<api::GpuCertificates>(functions_->certificates);
  if (!chain.value) return {.value = std::nullopt, .code = chain.code};
  const auto bytes = [](const auto& all, unsigned size) {
    return std::string(all, all + std::min<std::size_t>(size, sizeof all));
  };
  return {.value = Attestation{.report = bytes(report.report, report.size),
                               .certificates = bytes(chain.value->attestation_chain, chain.value->attestation_size)},
          .code = code};
}

Answer<api::FabricInfo> NvmlGpu::fabric() const {
  if (device_ == nullptr) return {.value = std::nullopt, .code = code_};
  if (functions_->fabric == nullptr) return {.value = std::nullopt, .code = api::kFunctionNotFound};
  api::Return code = api::kArgumentVersionMismatch;
  for (const unsigned version : api::kFabricVersions) {
    api::FabricInfo info = {};
    info.version = version;
    code = functions_->fabric(device_, &info);
    if (code == api::kSuccess) return {.value = info, .code = code};
    if (code != api::kArgumentVersionMismatch && code != api::kInvalidArgument) break;
  }
  return {.value = std::nullopt, .code = of_unknown_as_absent(code)};
}

Answer<bool> NvmlGpu::link_active(unsigned link) const {
  auto answer = changed<bool>(ask<unsigned>(functions_->link_state, link), [](unsigned active) { return active != 0; });
  answer.code = of_unknown_as_absent(answer.code);
  return answer;
}

Answer<std::uint64_t> NvmlGpu::link_errors(unsigned link, int counter) const {
  auto answer = changed<std::uint64_t>(ask<unsigned long long>(functions_->link_errors, link, counter),
                                       [](unsigned long long count) { return count; });
  answer.code = of_unknown_as_absent(answer.code);
  return answer;
}

Answer<int> NvmlGpu::link_remote_kind(unsigned link) const {
  auto answer = ask<int>(functions_->link_remote_kind, link);
  answer.code = of_unknown_as_absent(answer.code);
  return answer;
}

Answer<std::string> NvmlGpu::link_remote_address(unsigned link) const {
  auto answer = changed<std::string>(ask<api::PciInfo>(functions_->link_remote_pci, link), address_in);
  answer.code = of_unknown_as_absent(answer.code);
  return answer;
}

Answer<bool> NvmlGpu::reaches_over_nvlink(const NvmlGpu& other) const {
  if (other.device_ == nullptr) return {.value = std::nullopt, .code = other.code_};
  return changed<bool>(ask<int>(functions_->peer_status, other.device_, api::kPeerOverNvLink),
                       [](int status) { return status == api::kPeerOk; });
}

Answer<std::vector<std::optional<double>>> NvmlGpu::fields(std::span<const unsigned> ids, unsigned scope) const {
  if (device_ == nullptr) return {.value = std::nullopt, .code = code_};
  if (functions_->fields == nullptr) return {.value = std::nullopt, .code = api::kFunctionNotFound};
  std::vector<api::FieldValue> asked(ids.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    asked[i].field_id = ids[i];
    asked[i].scope_id = scope;
    asked[i].result = api::kNotSupported;  // untouched by the library: not reported
  }
  const api::Return code = functions_->fields(device_, static_cast<int>(asked.size()), asked.data());
  if (code != api::kSuccess) return {.value = std::nullopt, .code = of_unknown_as_absent(code)};
  std::vector<std::optional<double>> numbers;
  for (const api::FieldValue& field : asked) {
    const api::Return result = of_unknown_as_absent(field.result);
    if (told_by(result) == Availability::failed) return {.value = std::nullopt, .code = result};
    const bool told = result == api::kSuccess && known_type(field) && std::isfinite(number_in(field));
    numbers.push_back(told ? std::optional(number_in(field)) : std::nullopt);
  }
  return {.value = std::move(numbers), .code = api::kSuccess};
}

Answer<double> NvmlGpu::field(unsigned id, unsigned scope) const {
  const auto answer = fields(std::span(&id, 1), scope);
  if (!answer.value) return {.value = std::nullopt, .code = answer.code};
  const auto& number = answer.value->front();
  return {.value = number, .code = number ? api::kSuccess : api::kNotSupported};
}

}  // namespace assay::nvml
