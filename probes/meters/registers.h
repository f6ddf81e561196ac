// registers: numbers in 16-bit registers and in the answers of BMCs. Pure functions on bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "probes/core/meter_list.h"

namespace assay::meters {

/// The number in `words`, as many as registers_of(one.type) says, before its scale; nothing for a float that is no
/// number and for the patterns that stand for none (all bits of an unsigned number, the least signed one).
std::optional<double> number_of(std::span<const std::uint16_t> words, const MeterRegister& one);

/// A BMC's reading of a node's power (DCMI 1.5, 6.6.1, Get Power Reading).
struct DcmiPower {
  double current_w = 0, least_w = 0, most_w = 0, mean_w = 0;
  std::uint32_t stated_s = 0;  ///< the BMC's clock
  double period_s = 0;         ///< that least, most and mean are of
  bool measuring = false;
};

/// The request: command 02h of group DCh, mode 01h.
inline constexpr std::uint8_t kDcmiNetFn = 0x2c;
inline constexpr std::uint8_t kDcmiPowerRequest[] = {0x02, 0xdc, 0x01, 0x00, 0x00};

/// A power limit of a node (DCMI 1.5, 6.6.2, Get Power Limit).
struct DcmiLimit {
  double limit_w = 0;
  double correction_s = 0;  ///< after which the power is to be within it
};

/// The request: command 03h of group DCh. A BMC without a limit in force answers with kDcmiNoLimit.
inline constexpr std::uint8_t kDcmiLimitRequest[] = {0x03, 0xdc, 0x00, 0x00};
inline constexpr std::uint8_t kDcmiNoLimit = 0x80;

/// Reads an answer to it, from its completion code on: 0, then DCh and 13 bytes. Nothing if it is another.
std::optional<DcmiLimit> dcmi_limit_of(std::span<const std::uint8_t> answer);

/// Reads an answer that begins with its completion code: 0, then DCh and 17 bytes. Nothing if it is another.
std::optional<DcmiPower> dcmi_power_of(std::span<const std::uint8_t> answer);

}  // namespace assay::meters
