// smbios: the memory slots in the firmware's SMBIOS table (DMTF DSP0134).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/units.h"

namespace assay::health {

/// One module in its slot, from a Memory Device structure (type 17). Unreported values are absent.
struct Dimm {
  std::string slot;  ///< its locator ("DIMM_A1"); with its bank or handle in front where locators repeat
  std::optional<Bytes> size;
  std::optional<std::string> memory_type;       ///< "DDR5"
  std::optional<double> transfers_per_s;        ///< configured
  std::optional<double> transfers_per_s_rated;  ///< the module's maximum
  std::optional<std::string> manufacturer, part, serial;
};

/// The slots of a machine, in the order of the table.
struct MemorySlots {
  std::vector<Dimm> dimms;
  int empty = 0;  ///< slots without a module
};

/// Modules whose capacity or configured rate is not that of most; nothing unless both are known of all.
std::optional<std::int64_t> dimms_unlike(const MemorySlots& slots);
/// Modules that run at less than they are made for; nothing unless both rates are known of all.
std::optional<std::int64_t> dimms_slow(const MemorySlots& slots);
/// Summed capacity in B; nothing unless known of all.
std::optional<double> memory_fitted(const MemorySlots& slots);
/// Bytes a second of all channels, 8 B a transfer; nothing unless the rate is known of all. Modules whose slots differ
/// only in their last digits ("DIMM_A1", "DIMM_A2") share a channel, whose rate is that of the slowest. Where slots are
/// numbered through, that counts too few channels, never too many.
std::optional<double> memory_rate(const MemorySlots& slots);

/// Reads the raw table (/sys/firmware/dmi/tables/DMI). Structures that are cut off end the reading; nothing if the
/// table holds no Memory Device at all.
std::optional<MemorySlots> read_memory_slots(std::string_view table);

}  // namespace assay::health
