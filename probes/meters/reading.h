// reading: one number that a meter gave, with everything that says how far it can be trusted.
#pragma once

#include <optional>
#include <string>

#include "probes/core/meter_list.h"

namespace assay::meters {

/// Whether a number was measured, or computed from others by the instrument (Redfish Sensor.Implementation).
enum class Origin { measured, synthesised, unknown };

constexpr auto words_of(Origin) { return names_as_words<Origin>(); }

/// One answer of an instrument. Times are in seconds of UTC since 1970, by this machine's clock.
struct MeterReading {
  Quantity quantity = Quantity::power;
  int outlet = 0;          ///< of a strip's outlet, from 1; 0: the whole
  double value = 0;        ///< in the quantity's base unit, finite
  double taken_s = 0;      ///< half way between question and answer
  double quantum = 0;      ///< the least step of the number; 0: unknown
  std::string instrument;  ///< "snmp apc-rpdu2 1.3.6.1.4.1.318.1.1.26.4.3.1.5.1", never with a secret
  Origin origin = Origin::unknown;
  bool part = false;    ///< of one power supply: the chassis draws the sum of all that the site names
  bool absent = false;  ///< the instrument said that it has none: null, State Absent, noSuchInstance, inactive
  std::optional<double> averaging_s = {};  ///< the window it is the mean of, as the instrument states
  std::optional<double> accuracy = {};     ///< relative, as the instrument states
  std::optional<double> stated_s = {};     ///< when the instrument says that it was taken, by its own clock
};

}  // namespace assay::meters
