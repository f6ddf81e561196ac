// smi: functions are found by name, so that an older library lacks facts and not the whole.
#include "probes/amd/smi.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <stdexcept>

#include <fmt/format.h>

#include "probes/amd/rocm_library.h"
#include "probes/core/probe.h"

namespace assay::amd {
namespace {

constexpr const char* kTitle = "AMD SMI";
constexpr unsigned kMostListed = 1024;  // GPUs, pages or processes: more is no answer

/// The library at the path `wanted`, or by its name.
Library open_library(const std::string& wanted) {
  if (!wanted.empty() && wanted != smi::kLibrary) return Library::open(wanted, kTitle);
  return open_of_rocm({.title = kTitle,
                       .names = {smi::kLibrary},
                       .older = {std::begin(smi::kOlder), std::end(smi::kOlder)},
                       .first = smi::kFirstRocm});
}

/// A list of a function that is first asked for its length. Between the two questions it may grow: then it is asked
/// again.
template <class T, class Function>
Answer<std::vector<T>> listed(const Function& function) {
  constexpr int kTries = 3;
  smi::Status code = smi::kSuccess;
  for (int i = 0; i < kTries; ++i) {
    std::uint32_t count = 0;
    code = function(&count, nullptr);
    if (code != smi::kSuccess) break;
    if (count == 0) return {.value = std::vector<T>{}, .code = code};
    if (count > kMostListed) return {.value = std::nullopt, .code = smi::kInput};
    std::vector<T> all(2 * count);  // room for items that are added meanwhile
    std::uint32_t got = static_cast<std::uint32_t>(all.size());
    code = function(&got, all.data());
    if (code != smi::kSuccess || got > all.size()) continue;
    all.resize(got);
    return {.value = std::move(all), .code = code};
  }
  return {.value = std::nullopt, .code = code == smi::kSuccess ? smi::kInput : code};
}

}  // namespace

bool is_absent(smi::Status code) {
  constexpr std::array kAbsent = {smi::kNotSupported, smi::kNotYetImplemented, smi::kNoSymbol, smi::kNoPermission,
                                  smi::kNoData,       smi::kSettingUnavailable};
  return std::ranges::find(kAbsent, code) != kAbsent.end();
}

std::optional<std::string> text_in(const char (&text)[smi::kText]) {
  std::string found(text, strnlen(text, sizeof text));
  found.erase(found.find_last_not_of(" \n") + 1);
  return found.empty() || found == "N/A" ? std::nullopt : std::optional(std::move(found));
}

std::string pci_address_of(std::uint64_t bits) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", bits >> 16, bits >> 8 & 0xff, bits >> 3 & 0x1f, bits & 0x7);
}

AmdSmi::AmdSmi(const std::string& wanted) {
  const Library library = open_library(wanted);
  path_ = library.path();
  functions_ = std::make_unique<smi::Functions>(library);
  const smi::Functions& f = *functions_;
  if (f.init == nullptr || f.shut_down == nullptr || f.version == nullptr || f.sockets == nullptr ||
      f.processors == nullptr || f.type == nullptr) {
    throw Skip(fmt::format("{} lacks a function that {} has always had; it is another library", path_, kTitle));
  }
  const auto version = std::make_unique<smi::Roomy<smi::Version>>();
  if (f.version(&version->value) == smi::kSuccess) {
    const smi::Version& v = version->value;
    library.require_major(static_cast<int>(v.major), smi::kMajor);
    version_ = fmt::format("{}.{}.{}", v.major, v.minor, v.release);
  }
  if (const smi::Status code = f.init(smi::kInitGpus); code != smi::kSuccess)
    throw Skip(fmt::format("{} finds no working driver: {}; {}", path_, words(code), reach_hint()));
  initialised_.reset(functions_.get());
}

void AmdSmi::ShutDown::operator()(smi::Functions* functions) const { (void)functions->shut_down(); }  // a deleter

std::vector<AmdGpu> AmdSmi::gpus() const {
  const auto check = [this](smi::Status code, const char* what) {
    if (code != smi::kSuccess) throw std::runtime_error(fmt::format("{} cannot list {}: {}", path_, what, words(code)));
  };
  std::vector<AmdGpu> all;
  const auto sockets = listed<smi::Handle>(functions_->sockets);
  check(sockets.code, "the sockets");
  for (const smi::Handle socket : *sockets.value) {
    const auto processors = listed<smi::Handle>(
        [&](std::uint32_t* count, smi::Handle* to) { return functions_->processors(socket, count, to); });
    check(processors.code, "the GPUs of a socket");
    for (const smi::Handle processor : *processors.value) {
      unsigned type = smi::kTypeGpu;
      if (functions_->type(processor, &type) == smi::kSuccess && type != smi::kTypeGpu) continue;
      all.emplace_back(*this, processor);
    }
  }
  return all;
}

std::optional<AmdGpu> AmdSmi::gpu_at(std::string_view pci_address) const {
  for (const AmdGpu& gpu : gpus()) {
    if (gpu.pci_address().value == pci_address) return gpu;
  }
  return std::nullopt;
}

std::string AmdSmi::words(smi::Status code) const {
  const char* text = nullptr;
  if (functions_->words != nullptr) (void)functions_->words(code, &text);  // no words are no reason to stop
  return fmt::format("{} (AMD SMI {})", text == nullptr ? "no words" : text, code);
}

Answer<std::string> AmdGpu::uuid() const {
  const auto function = library_->functions().uuid;
  if (function == nullptr) return {.value = std::nullopt, .code = smi::kNoSymbol};
  char text[smi::kText] = {};
  unsigned length = sizeof text;
  const smi::Status code = function(handle_, &length, text);
  return {.value = code == smi::kSuccess ? text_in(text) : std::nullopt, .code = code};
}

Answer<std::string> AmdGpu::pci_address() const {
  const auto bits = ask<std::uint64_t>(library_->functions().address);
  return {.value = bits.value ? std::optional(pci_address_of(*bits.value)) : std::nullopt, .code = bits.code};
}

Answer<std::string> AmdGpu::partition(smi::Functions::Call<smi::Handle, char*, std::uint32_t> function) const {
  if (function == nullptr) return {.value = std::nullopt, .code = smi::kNoSymbol};
  char text[smi::kText] = {};
  const smi::Status code = function(handle_, text, sizeof text);
  return {.value = code == smi::kSuccess ? text_in(text) : std::nullopt, .code = code};
}
Answer<std::string> AmdGpu::compute_partition() const { return partition(library_->functions().compute_partition); }
Answer<std::string> AmdGpu::memory_partition() const { return partition(library_->functions().memory_partition); }

Answer<AmdGpu::BadPages> AmdGpu::bad_pages() const {
  const auto function = library_->functions().pages;
  if (function == nullptr) return {.value = std::nullopt, .code = smi::kNoSymbol};
  const auto pages =
      listed<smi::Page>([&](std::uint32_t* count, smi::Page* to) { return function(handle_, count, to); });
  if (!pages.value) return {.value = std::nullopt, .code = pages.code};
  BadPages counts;
  for (const smi::Page& page : *pages.value)
    ++(page.state == 0 ? counts.retired : page.state == 1 ? counts.pending : counts.unreservable);
  return {.value = counts, .code = pages.code};
}

Answer<std::vector<std::uint32_t>> AmdGpu::processes() const {
  const auto function = library_->functions().processes;
  if (function == nullptr) return {.value = std::nullopt, .code = smi::kNoSymbol};
  const auto all =
      listed<smi::Process>([&](std::uint32_t* count, smi::Process* to) { return function(handle_, count, to); });
  if (!all.value) return {.value = std::nullopt, .code = all.code};
  std::vector<std::uint32_t> ids;
  std::ranges::transform(*all.value, std::back_inserter(ids), &smi::Process::pid);
  return {.value = std::move(ids), .code = all.code};
}

Answer<double> AmdGpu::energy_j() const {
  constexpr double kMicro = 1e-6;
  const auto function = library_->functions().energy;
  if (function == nullptr) return {.value = std::nullopt, .code = smi::kNoSymbol};
  std::uint64_t counts = 0, time = 0;
  float resolution = 0;
  const smi::Status code = function(handle_, &counts, &resolution, &time);
  if (code != smi::kSuccess) return {.value = std::nullopt, .code = code};
  if (!reported(counts) || !(resolution > 0)) return {.value = std::nullopt, .code = smi::kNotSupported};
  return {.value = static_cast<double>(counts) * static_cast<double>(resolution) * kMicro, .code = code};
}

Answer<LinkFacts> AmdGpu::link_to(const AmdGpu& other) const {
  const auto function = library_->functions().link;
  if (function == nullptr) return {.value = std::nullopt, .code = smi::kNoSymbol};
  std::uint64_t hops = 0;
  unsigned type = 0;
  const smi::Status code = function(handle_, other.handle_, &hops, &type);
  if (code != smi::kSuccess || (type != smi::kLinkPcie && type != smi::kLinkXgmi))
    return {.value = std::nullopt, .code = code};
  return {.value = LinkFacts{.is_xgmi = type == smi::kLinkXgmi, .hops = static_cast<std::int64_t>(hops)}, .code = code};
}

namespace {

/// The number that `pick` finds in an answer, or the status "not supported".
template <class T, class Pick>
Answer<double> number_of(const Answer<T>& answer, Pick pick) {
  if (!answer.value) return {.value = std::nullopt, .code = answer.code};
  const std::optional<double> number = pick(*answer.value);
  return {.value = number, .code = number ? answer.code : smi::kNotSupported};
}
template <class Number>
std::optional<double> scaled(std::optional<Number> number, double unit) {
  return number ? std::optional(static_cast<double>(*number) * unit) : std::nullopt;
}

}  // namespace

Answer<double> AmdGpu::power_w() const {
  return number_of(ask<smi::Power>(library_->functions().power), [](const smi::Power& power) -> std::optional<double> {
    constexpr std::uint32_t kNone = 0xffff;  // of the table of 16 bit numbers that it is from
    const std::uint32_t now = power.now < kNone ? power.now : power.average;
    return now < kNone ? std::optional<double>(now) : std::nullopt;
  });
}
Answer<double> AmdGpu::power_limit_w() const {
  constexpr double kMicro = 1e-6;
  return number_of(ask<smi::PowerCap>(library_->functions().power_cap, 0U),
                   [](const smi::PowerCap& cap) { return scaled(reported(cap.now), kMicro); });
}
Answer<double> AmdGpu::temperature_c(unsigned where) const {
  return number_of(ask<std::int64_t>(library_->functions().temperature, where, smi::kTemperatureNow),
                   [](std::int64_t now) { return std::optional(static_cast<double>(now)); });
}
Answer<double> AmdGpu::gfx_clock_hz() const {
  constexpr double kMega = 1e6;
  return number_of(ask<smi::Clock>(library_->functions().clock, smi::kClockGfx),
                   [](const smi::Clock& clock) { return scaled(reported(clock.now), kMega); });
}

Answer<std::uint64_t> AmdGpu::last_cache() const {
  constexpr std::uint64_t kKibi = 1024;
  const auto caches = ask<smi::Caches>(library_->functions().caches);
  if (!caches.value) return {.value = std::nullopt, .code = caches.code};
  std::uint64_t largest = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(caches.value->count, smi::kCacheTypes); ++i)
    largest = std::max<std::uint64_t>(largest, caches.value->list[i].size_kb * kKibi);
  return {.value = largest > 0 ? std::optional(largest) : std::nullopt, .code = caches.code};
}

}  // namespace assay::amd
