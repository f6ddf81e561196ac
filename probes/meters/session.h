// session: one meter that is being read, of any protocol. Every wait ends after the meter's timeout.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "probes/core/meter_list.h"
#include "probes/meters/reading.h"

namespace assay::meters {

/// A missing or invalid answer: the meter, the request, and the cause. Never holds a secret.
struct MeterFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Login of a meter; fields that its kind does not use are empty.
struct MeterLogin {
  std::string user, password, community, privacy_password;
};

/// Reads the credentials of `meter`. Throws MeterFault when the file is refused (secret_file.h), is no JSON object of
/// user, password, community and privacy_password, or lacks a field that the meter's kind needs. A meter of kind modbus
/// has none.
MeterLogin login_of(const Meter& meter);

/// Reads a meter once: every number that it has, in the order of the protocol. Throws MeterFault when the meter does
/// not answer in time or answers nonsense, and Skip when the library of its protocol is not there. Used by one thread
/// at a time; it connects again after a fault.
using MeterSession = std::function<std::vector<MeterReading>()>;

/// A session with `meter`; nothing is sent before it is called. Throws as login_of, and Skip when this build or this
/// machine has no library for the meter's kind.
MeterSession open_meter(const Meter& meter);

/// The same, by protocol. The libraries are opened at run time: libfreeipmi, libcurl, libsnmp (Net-SNMP), libmodbus.
MeterSession open_ipmi(const Meter& meter, MeterLogin login);
MeterSession open_redfish(const Meter& meter, MeterLogin login);
MeterSession open_snmp(const Meter& meter, MeterLogin login);
MeterSession open_modbus(const Meter& meter);

/// UTC now, in s since 1970.
double utc_now_s();

/// "pdu-a1: no answer within 2 s from 10.0.9.1": the beginning of every MeterFault.
std::string fault_text(const Meter& meter, const std::string& what);

}  // namespace assay::meters
