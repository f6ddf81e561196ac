// pci_settings: settings of the traffic of a PCI function, from its configuration space.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace assay {
class MachineTree;
}  // namespace assay

namespace assay::health {

/// Settings of one function; absent if its configuration space does not show them. Without root the kernel shows the
/// first 64 bytes, which seldom hold any of this.
struct PciSettings {
  std::optional<bool> relaxed_ordering;           ///< Device Control: the function may use it
  std::optional<std::int64_t> max_read_request;   ///< bytes
  std::optional<std::int64_t> max_payload;        ///< bytes, as set
  std::optional<std::int64_t> max_payload_could;  ///< bytes, of which the function is capable
  std::optional<unsigned>
      acs;  ///< bits of ACS Control, 0 without that capability; only if the whole space was readable
};

/// Those in the bytes of a configuration space, of any length and content.
PciSettings parse_pci_settings(std::string_view space);

/// Those of the function at `address` under sys/bus/pci/devices.
PciSettings read_pci_settings(const MachineTree& tree, const std::string& address);

/// The bits of ACS Control that are set, as lspci names them: "SrcValid ReqRedir"; "none".
std::string acs_words(unsigned control);

}  // namespace assay::health
