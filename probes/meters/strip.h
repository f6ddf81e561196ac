// strip: the objects of rack power strips by model, and the scale of each. Pure: numbers in, readings out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "probes/core/meter_list.h"
#include "probes/meters/reading.h"

namespace assay::meters {

/// One object of a strip: its OID and the meaning of its whole number.
struct StripObject {
  std::string oid;  ///< "1.3.6.1.4.1.318.…", with its instance
  Quantity quantity = Quantity::power;
  int outlet = 0;          ///< 0: the whole strip
  double scale = 1;        ///< to the base unit, before decimal digits
  std::string digits_oid;  ///< the object with its decimal digits; empty: it has none
  std::string other_oid;   ///< the object to prefer if it is there: Raritan's signed column
};

/// The objects to read of a meter of kind snmp, whole strip first, then its outlets.
///
/// apc_rpdu2: PowerNet-MIB, table rPDU2Device and the first phase. Power and apparent power are in 0.01 kW, which one
/// of two public exporters reads as W and another as 10 W; energy in 0.1 kWh, current in 0.1 A, power factor in 0.01.
/// raritan_pdu2: PDU2-MIB, inlet 1 of unit 1: value x 10^-digits, in A, V, W, VA, Wh.
std::vector<StripObject> strip_objects(const Meter& meter);

/// The reading of `object` from its whole `number`; absent without one. `digits` are its decimal digits, 0 to 6.
MeterReading strip_reading(const StripObject& object, std::optional<double> number, double digits);

}  // namespace assay::meters
