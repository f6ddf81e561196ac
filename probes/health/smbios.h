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
  std::string channel;   ///< as the firmware states it; empty: it does not
  std::string position;  ///< where a text states it: locator and bank without last digits, alike for all on a channel
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
/// Bytes a second of all channels, 8 B a transfer, a channel's rate that of its slowest module. Nothing unless rate and
/// channel are known of all; one module alone has a channel of its own. Channels come from Memory Channel structures
/// (type 37) or from a locator that says "channel" ("P0_Node0_Channel1_Dimm0"), never from the form of a slot's name:
/// "A1" and "A2" are slots of one channel on one board and of two on the next. Nothing, too, where modules of one
/// stated channel differ in more than their last digits, or are more than a channel can hold.
std::optional<double> memory_rate(const MemorySlots& slots);

/// Reads the raw table (/sys/firmware/dmi/tables/DMI). Structures that are cut off end the reading; nothing if the
/// table holds no Memory Device at all.
std::optional<MemorySlots> read_memory_slots(std::string_view table);

}  // namespace assay::health
