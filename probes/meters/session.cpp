// session: logs in to a meter with the protocol that the site names.
#include "probes/meters/session.h"

#include <chrono>

#include <fmt/format.h>

#include "probes/core/json_io.h"
#include "probes/core/secret_file.h"
#include "probes/core/strict_object.h"

namespace assay::meters {

double utc_now_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string fault_text(const Meter& meter, const std::string& what) {
  return fmt::format("{} at {}: {}", meter.name, meter.address, what);
}

MeterLogin login_of(const Meter& meter) {
  if (meter.kind == MeterKind::modbus) return {};
  const auto bytes = read_secret_file(meter.credentials);
  if (!bytes) throw MeterFault(bytes.error().text());
  // The parser's message may quote its input, so it is dropped.
  const auto document = parse_json(*bytes, meter.credentials);
  if (!document)
    throw MeterFault(
        fmt::format("{}: is no JSON; hint: docs/FORMATS.md has the form of credentials", meter.credentials));
  const auto login = read_strictly(meter.credentials, [&] {
    StrictObject fields(*document, "", "docs/FORMATS.md has the fields of each kind of meter");
    MeterLogin found;
    const auto take = [&](const char* name, std::string& into) {
      if (fields.optional(name) != nullptr) into = fields.text(name);
    };
    take("user", found.user);
    take("password", found.password);
    take("community", found.community);
    take("privacy_password", found.privacy_password);
    fields.done();
    const bool v2c = meter.kind == MeterKind::snmp && !found.community.empty();
    if (!v2c && (found.user.empty() || found.password.empty()))
      fields.refuse("user", meter.kind == MeterKind::snmp ? "and password are missing, and community as well"
                                                          : "or password is missing");
    constexpr std::size_t kShortestOfV3 = 8;  // RFC 3414, 11.2
    if (meter.kind == MeterKind::snmp && !v2c &&
        (found.password.size() < kShortestOfV3 || found.privacy_password.size() < kShortestOfV3))
      fields.refuse("password", "or privacy_password is shorter than 8 characters, which SNMP v3 refuses");
    return found;
  });
  if (!login) throw MeterFault(login.error().text());
  return *login;
}

MeterSession open_meter(const Meter& meter) {
  switch (meter.kind) {
    case MeterKind::ipmi:
      return open_ipmi(meter, login_of(meter));
    case MeterKind::redfish:
      return open_redfish(meter, login_of(meter));
    case MeterKind::snmp:
      return open_snmp(meter, login_of(meter));
    case MeterKind::modbus:
      return open_modbus(meter);
  }
  throw MeterFault(fault_text(meter, "is of no known kind"));
}

}  // namespace assay::meters
