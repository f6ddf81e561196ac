// optics: light, currents and alarms of a pluggable module, from its memory.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "probes/health/ethtool_netlink.h"

namespace assay::health {

/// One lane of an optical module. Light below -30 dBm is dark: such a lane has nothing to compare.
struct OpticalLane {
  int number = 1;  ///< counted from 1
  std::optional<double> rx_power_w, tx_power_w;
  std::optional<double> tx_bias_share;  ///< laser current over the current at which the module alarms
  bool near_alarm = false;  ///< its light is within 1 dB of a threshold at which the module alarms, or beyond
};

/// Values of a module; unreported ones are absent.
struct Optics {
  std::string form;  ///< "SFF-8636" or "CMIS"
  std::string vendor, part, serial;
  bool optical = false;  ///< it has lasers: no copper cable
  std::optional<double> temperature_c;
  std::vector<OpticalLane> lanes;  ///< those with light in either direction
  int alarms = 0;                  ///< alarm flags that are raised, of temperature, voltage, light and laser current
  std::string alarm_names;         ///< which; empty if none is
  std::string absence;             ///< why nothing is known; empty if the module answered
};

/// Reads one half of the memory of the module in `interface`.
using ModuleReader = std::function<ModuleAnswer(const std::string& interface, ModulePlace place)>;

/// The module in `interface`: SFF-8636 (QSFP+, QSFP28) or CMIS (QSFP-DD, OSFP and others). Flags are latched and
/// cleared by reading them, as `ethtool -m` does too.
Optics read_optics(const ModuleReader& read, const std::string& interface);

}  // namespace assay::health
