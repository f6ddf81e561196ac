// choice: names of GPUs and the choice among them.
#include "probes/cuda/choice.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/probe.h"

namespace assay::cuda {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

bool is_index(std::string_view text, std::size_t& index) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  return error == std::errc{} && rest == text.data() + text.size();
}

}  // namespace

std::string Device::compute_capability() const { return fmt::format("{}.{}", compute_major, compute_minor); }

std::string uuid_text(std::span<const std::byte, 16> bytes, bool mig) {
  std::string text = mig ? "MIG" : "GPU";
  constexpr std::array<std::size_t, 5> kGroups = {4, 2, 2, 2, 6};
  std::size_t at = 0;
  for (const std::size_t group : kGroups) {
    text += '-';
    for (std::size_t i = 0; i < group; ++i) text += fmt::format("{:02x}", std::to_integer<int>(bytes[at++]));
  }
  return text;
}

std::string pci_bus_id_text(std::string_view text) {
  constexpr std::size_t kDomainDigits = 4;
  std::string result = lower(text);
  const auto colon = result.find(':');
  if (colon == std::string::npos || colon <= kDomainDigits) return result;
  const auto zeros = result.find_first_not_of('0');
  return result.substr(std::min(zeros, colon - kDomainDigits));
}

std::vector<Device> choose_devices(std::vector<Device> all, std::string_view wanted) {
  std::ranges::sort(all, {}, &Device::pci_bus_id);
  if (wanted == "all") return all;
  std::size_t index = 0;
  if (is_index(wanted, index) && index < all.size()) return {all[index]};
  for (const auto& device : all) {
    if (lower(wanted) == lower(device.uuid) || pci_bus_id_text(wanted) == device.pci_bus_id) return {device};
  }
  std::vector<std::string> there;
  there.reserve(all.size());
  for (const auto& device : all) there.push_back(fmt::format("{} at {}", device.uuid, device.pci_bus_id));
  throw Skip(fmt::format("device: this node has no GPU '{}'; it has {}", wanted, fmt::join(there, ", ")));
}

namespace {
thread_local std::string current;
}  // namespace

void note_current(const Device& device) { current = " of " + device.uuid; }
std::string of_current() { return current; }

}  // namespace assay::cuda
