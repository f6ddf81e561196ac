// snmp_client: one SNMP agent that is asked for objects, and for rows of a table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/meter_list.h"
#include "probes/meters/session.h"

namespace assay::meters {

/// An object identifier; its order is that of the agent's tables.
using Oid = std::vector<std::uint32_t>;

/// "1.3.6.1.2.1.1.3.0" as numbers, up to the first part that is none.
Oid oid_of(std::string_view text);

/// Type of an answer. none: there is no such object, or its type is none of these; end: behind the last object.
enum class SnmpType { none, end, integer, gauge, counter32, counter64, ticks, text, oid };

/// The most objects of one request, so that an answer fits a datagram.
inline constexpr std::size_t kMostObjects = 16;

/// One object of an answer; the member of its type holds the value.
struct SnmpVariable {
  Oid name = {};
  SnmpType type = SnmpType::none;
  std::int64_t integer = 0;  ///< of integer
  std::uint64_t count = 0;   ///< of gauge, both counters and ticks (hundredths of a second)
  std::string text = {};     ///< the first 255 bytes
  Oid oid = {};
};

/// An agent. Both questions throw MeterFault when it does not answer in time or answers with an error; one thread asks
/// at a time, and it connects again after a fault.
struct SnmpClient {
  Meter device;
  std::function<std::vector<SnmpVariable>(const std::vector<Oid>& names)> get;     ///< these objects
  std::function<std::vector<SnmpVariable>(const Oid& after, int rows)> next = {};  ///< the objects behind this one

  /// Throws MeterFault with the device's name.
  [[noreturn]] void fail(const std::string& what) const;
};

/// Hands each answer about `names` to `take`, in requests of kMostObjects. Throws MeterFault when there are questions
/// left at `limit_s` (s since 1970), and those of `get`.
void ask(const SnmpClient& client, const std::vector<Oid>& names, double limit_s,
         const std::function<void(SnmpVariable&)>& take);

/// The agent of `device` by Net-SNMP, read only; nothing is sent before it is asked. Throws Skip without the library.
SnmpClient open_snmp_client(const Meter& device, MeterLogin login);

}  // namespace assay::meters
