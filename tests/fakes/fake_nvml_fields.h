// fake_nvml_fields: the names under which fake_nvml's files have the fields of NVML.
#pragma once

#include <map>
#include <string>

#include <fmt/format.h>

#include "probes/nvml/nvml_api.h"

namespace assay::nvml_api {

/// The key of a field of one link, or of "every" link; empty for others.
inline std::string key_of_link(unsigned field, const std::string& link) {
  static const std::map<unsigned, const char*> kNames = {{kFieldLinkSpeed, "link_{}_speed_mbps"},
                                                         {kFieldLinkState, "link_{}_state"},
                                                         {kFieldLinkRecoveryEvents, "link_{}_recovery_events"},
                                                         {kFieldLinkEffectiveBer, "link_{}_effective_ber"},
                                                         {kFieldLinkSymbolBer, "link_{}_symbol_ber"},
                                                         {kFieldC2cState, "c2c_{}_state"},
                                                         {kFieldC2cSpeed, "c2c_{}_speed_mbps"},
                                                         {kFieldC2cReplay, "c2c_{}_replays"}};
  const auto found = kNames.find(field);
  return found == kNames.end() ? "" : fmt::format(fmt::runtime(found->second), link);
}

/// The key under which the file has a field; empty for a field that no file has.
inline std::string key_of(unsigned field, unsigned scope) {
  switch (field) {
    case kFieldRetiredSingleBit:
      return "retired_single_bit";
    case kFieldRetiredDoubleBit:
      return "retired_double_bit";
    case kFieldPowerCap:
      return "throttle_power_cap_ns";
    case kFieldMemoryTemperature:
      return "memory_temperature_c";
    case kFieldLinkCount:
      return "links";
    case kFieldPowerAverage:
      return scope == kScopeModule ? "module_power_average_mw" : "power_average_mw";
    case kFieldPowerInstant:
      return scope == kScopeModule ? "module_power_instant_mw" : "power_instant_mw";
    case kFieldPowerDefaultLimit:
      return "power_default_limit_mw";
    case kFieldRecoveryAction:
      return "recovery_action";
    case kFieldSwThermal:
      return "throttle_sw_thermal_ns";
    case kFieldHwThermal:
      return "throttle_hw_thermal_ns";
    case kFieldPowerBrake:
      return "throttle_power_brake_ns";
    case kFieldLinkReplay:
      return fmt::format("link_{}_replays", scope);
    case kFieldLinkRecovery:
      return fmt::format("link_{}_recoveries", scope);
    case kFieldLinkCrc:
      return fmt::format("link_{}_crc", scope);
    case kFieldC2cCount:
      return "c2c_links";
    default:
      break;
  }
  return key_of_link(field, std::to_string(scope));
}

}  // namespace assay::nvml_api
