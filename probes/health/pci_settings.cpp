// pci_settings: walks the capability lists; offsets and bits are those of linux/pci_regs.h.
#include "probes/health/pci_settings.h"

#include <cstddef>
#include <utility>

#include <linux/pci_regs.h>

#include "probes/core/machine_tree.h"

namespace assay::health {
namespace {

constexpr std::size_t kConventional = PCI_CFG_SPACE_SIZE, kExtended = PCI_CFG_SPACE_EXP_SIZE;
constexpr unsigned kDwordMask = 3;

std::optional<unsigned> number_at(std::string_view space, std::size_t offset, std::size_t bytes) {
  if (offset > space.size() || bytes > space.size() - offset) return std::nullopt;
  unsigned value = 0;
  for (std::size_t i = bytes; i > 0; --i) value = value << 8 | static_cast<unsigned char>(space[offset + i - 1]);
  return value;
}

/// Offset of the capability `id` in the first 256 bytes; 0 if there is none, nothing if the list leads out of `space`.
std::optional<std::size_t> capability(std::string_view space, unsigned id) {
  constexpr int kMost = 48;  // as many as fit; PCI_FIND_CAP_TTL of the kernel
  const auto status = number_at(space, PCI_STATUS, 2);
  if (!status) return std::nullopt;
  if ((*status & PCI_STATUS_CAP_LIST) == 0) return 0;
  auto next = number_at(space, PCI_CAPABILITY_LIST, 1);
  for (int i = 0; i < kMost && next && (*next & ~kDwordMask) != 0; ++i) {
    const std::size_t at = *next & ~kDwordMask;
    const auto found = number_at(space, at + PCI_CAP_LIST_ID, 1);
    if (!found) return std::nullopt;
    if (*found == id) return at;
    next = number_at(space, at + PCI_CAP_LIST_NEXT, 1);
  }
  if (next && (*next & ~kDwordMask) == 0) return 0;
  return std::nullopt;
}

/// The same of an extended capability, in a whole space.
std::optional<std::size_t> extended_capability(std::string_view space, unsigned id) {
  constexpr int kMost = (kExtended - kConventional) / 8;
  std::size_t at = kConventional;
  for (int i = 0; i < kMost; ++i) {
    const auto header = number_at(space, at, 4);
    if (!header || *header == 0xFFFFFFFF) return std::nullopt;
    if (*header == 0) return 0;
    if (PCI_EXT_CAP_ID(*header) == id) return at;
    at = PCI_EXT_CAP_NEXT(*header);
    if (at < kConventional) return at == 0 ? std::optional<std::size_t>(0) : std::nullopt;
  }
  return std::nullopt;
}

/// Bytes of a size field of three bits; codes above 4096 are reserved.
std::optional<std::int64_t> size_of(unsigned code) {
  constexpr unsigned kLargest = 5;
  if (code > kLargest) return std::nullopt;
  return std::int64_t{128} << code;
}

/// ACS Control of a space with its PCI Express capability at `express`.
std::optional<unsigned> acs_of(std::string_view space, std::size_t express) {
  // A function of conventional PCI has 256 bytes, and no extended capability.
  if (express == 0) return space.size() >= kConventional ? std::optional(0U) : std::nullopt;
  if (space.size() < kExtended) return std::nullopt;
  const auto at = extended_capability(space, PCI_EXT_CAP_ID_ACS);
  if (!at) return std::nullopt;
  if (*at == 0) return 0;
  constexpr unsigned kBits = PCI_ACS_SV | PCI_ACS_TB | PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_UF | PCI_ACS_EC | PCI_ACS_DT;
  const auto control = number_at(space, *at + PCI_ACS_CTRL, 2);
  return control ? std::optional(*control & kBits) : std::nullopt;
}

}  // namespace

PciSettings parse_pci_settings(std::string_view space) {
  PciSettings settings;
  const auto vendor = number_at(space, PCI_VENDOR_ID, 2);
  if (!vendor || *vendor == 0xFFFF || *vendor == 0) return settings;  // a function that does not answer reads as ones
  const auto express = capability(space, PCI_CAP_ID_EXP);
  if (!express) return settings;
  settings.acs = acs_of(space, *express);
  if (*express == 0) return settings;
  const auto able = number_at(space, *express + PCI_EXP_DEVCAP, 4);
  const auto control = number_at(space, *express + PCI_EXP_DEVCTL, 2);
  if (!able || !control) return settings;
  constexpr int kPayloadShift = 5, kReadShift = 12;
  settings.relaxed_ordering = (*control & PCI_EXP_DEVCTL_RELAX_EN) != 0;
  settings.max_payload = size_of((*control & PCI_EXP_DEVCTL_PAYLOAD) >> kPayloadShift);
  settings.max_read_request = size_of((*control & PCI_EXP_DEVCTL_READRQ) >> kReadShift);
  settings.max_payload_could = size_of(*able & PCI_EXP_DEVCAP_PAYLOAD);
  return settings;
}

PciSettings read_pci_settings(const MachineTree& tree, const std::string& address) {
  return parse_pci_settings(tree.bytes("sys/bus/pci/devices/" + address + "/config", kExtended).value_or(""));
}

std::string acs_words(unsigned control) {
  constexpr std::pair<unsigned, const char*> kWords[] = {
      {PCI_ACS_SV, "SrcValid"},    {PCI_ACS_TB, "TransBlk"},   {PCI_ACS_RR, "ReqRedir"},   {PCI_ACS_CR, "CmpltRedir"},
      {PCI_ACS_UF, "UpstreamFwd"}, {PCI_ACS_EC, "EgressCtrl"}, {PCI_ACS_DT, "DirectTrans"}};
  std::string words;
  for (const auto& [bit, word] : kWords) {
    if ((control & bit) != 0) words += (words.empty() ? "" : " ") + std::string(word);
  }
  return words.empty() ? "none" : words;
}

}  // namespace assay::health
