// link_modes: highest rate of a network port, independent of its present one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "probes/core/units.h"

namespace assay {

/// The rate of one direction of the fastest mode in a bitmap of ETHTOOL_LINK_MODE_… bits (linux/ethtool.h), 32 bits a
/// word; nothing if it has none. Bits of kernels later than 6.12 are not known.
std::optional<BytesPerSecond> fastest_mode(std::span<const std::uint32_t> modes);

/// The fastest mode that the port and its driver support (ETHTOOL_GLINKSETTINGS); nothing for ports that do not report
/// it: virtual ones, and those that are not there.
std::optional<BytesPerSecond> fastest_mode_of(const std::string& interface);

}  // namespace assay
