// switch_tables: names, neighbours, sensors and counters of the ports of a switch, out of the answers of its
// agent. Nothing here believes an agent: tables have an end, an order and types, and others are refused.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/lldp.h"
#include "probes/core/switch_list.h"
#include "probes/meters/snmp_client.h"

namespace assay::meters {

/// The most rows of one table that are read; the largest chassis have a few thousand interfaces.
inline constexpr std::size_t kMostRows = 8192;

/// The rows of `column` by the index behind it. Throws MeterFault when the agent answers out of order, has more than
/// kMostRows rows, or is not at the end by `limit_s` (s since 1970).
std::map<Oid, SnmpVariable> walk(const SnmpClient& client, const Oid& column, double limit_s);

/// A counter of a port: the metric that it is recorded as, and its columns.
struct PortCounter {
  std::string_view metric;
  std::string_view wide;    ///< of 64 bits, preferred; empty: there is none
  std::string_view narrow;  ///< of 32 bits; empty: it would wrap within a second
};

/// IF-MIB (RFC 2863) and EtherLike-MIB (RFC 3635).
inline constexpr std::array<PortCounter, 10> kPortCounters = {{
    {"in_bytes", "1.3.6.1.2.1.31.1.1.1.6", ""},
    {"out_bytes", "1.3.6.1.2.1.31.1.1.1.10", ""},
    {"in_errors", "", "1.3.6.1.2.1.2.2.1.14"},
    {"out_errors", "", "1.3.6.1.2.1.2.2.1.20"},
    {"in_discards", "", "1.3.6.1.2.1.2.2.1.13"},
    {"out_discards", "", "1.3.6.1.2.1.2.2.1.19"},
    {"fcs_errors", "1.3.6.1.2.1.10.7.11.1.2", "1.3.6.1.2.1.10.7.2.1.3"},
    {"symbol_errors", "1.3.6.1.2.1.10.7.11.1.6", "1.3.6.1.2.1.10.7.2.1.18"},
    {"in_pause_frames", "1.3.6.1.2.1.10.7.10.1.5", "1.3.6.1.2.1.10.7.10.1.3"},
    {"out_pause_frames", "1.3.6.1.2.1.10.7.10.1.6", "1.3.6.1.2.1.10.7.10.1.4"},
}};

/// One sensor of a port by ENTITY-SENSOR-MIB (RFC 3433): light of a module, or its temperature.
struct PortSensor {
  std::uint32_t entity = 0;
  std::uint32_t port = 0;  ///< ifIndex
  std::string name;        ///< as the switch calls it (entPhysicalName), printable
  bool of_light = false;   ///< in W; else in degC
  std::int64_t scale = 0, precision = 0;
};

/// `value` of a sensor in its base unit: value x 10^(3 (scale - 9)) x 10^-precision, with a negative precision as 0.
/// Nothing for the values that stand for overflow, for scales over tera and for numbers that the MIB does not define.
std::optional<double> sensor_value(std::int64_t scale, std::int64_t precision, std::int64_t value);

/// Facts that do not change while a switch is watched.
struct SwitchView {
  std::map<std::string, std::uint32_t> ports;  ///< ifIndex of each port that is to be read
  std::map<std::string, std::string> missing;  ///< why others are not
  std::map<std::string, std::string> called;   ///< by each name of a port (ifName, ifDescr): its name in `ports`
  std::vector<Neighbour> neighbours;           ///< of all its ports, named as in `ports` if they are there
  std::string neighbours_unread;               ///< why there are none; empty if they were read
  std::vector<PortSensor> sensors;             ///< of the ports to be read
  std::string sensors_unread;                  ///< likewise
};

/// The ports of `wanted` by ifName, else by ifDescr; a name of none or of several is missing. Throws as walk().
SwitchView find_ports(const SnmpClient& client, const std::vector<std::string>& wanted, double limit_s);

/// Adds neighbours by LLDP-MIB (IEEE 802.1AB-2005) and sensors, which many agents do not have.
void find_neighbours(const SnmpClient& client, double limit_s, SwitchView& view);
void find_sensors(const SnmpClient& client, double limit_s, SwitchView& view);

/// A counter at one time.
struct Count {
  std::uint64_t value = 0;
  bool wide = false;  ///< of 64 bits
};

/// One port at one time. Objects that the agent does not have, or of another type, are absent.
struct PortReading {
  std::string name;
  std::optional<bool> up;
  std::optional<double> rate;  ///< B/s
  std::optional<std::uint64_t> last_change, discontinuity;
  std::array<std::optional<Count>, kPortCounters.size()> counts;
};

struct SwitchReading {
  double begin_s = 0, end_s = 0;               ///< of the questions, s since 1970
  std::optional<std::uint64_t> uptime;         ///< sysUpTime before the first of them, in hundredths of a second
  std::map<std::uint32_t, PortReading> ports;  ///< by ifIndex; without those that are no longer there
  std::map<std::uint32_t, double> sensors;     ///< by entity, those that are in order
};

/// Reads everything once. Throws MeterFault as the client does, and past `limit_s`.
SwitchReading read_switch(const SnmpClient& client, const SwitchView& view, double limit_s);

}  // namespace assay::meters
