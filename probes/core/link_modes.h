// link_modes: how fast a network port could be, whatever it runs at now.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "probes/core/units.h"

namespace assay {

/// The rate of one direction of the fastest mode in a bitmap of ETHTOOL_LINK_MODE_… bits (linux/ethtool.h), 32 bits a
/// word; nothing when it has none. Bits of kernels later than 6.12 are not known.
std::optional<BytesPerSecond> fastest_mode(std::span<const std::uint32_t> modes);

/// The fastest mode that the port and its driver support (ETHTOOL_GLINKSETTINGS); nothing for ports that do not tell:
/// virtual ones, and those that are not there.
std::optional<BytesPerSecond> fastest_mode_of(const std::string& interface);

}  // namespace assay
