// snmp: objects of a strip over SNMP.
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "probes/meters/session.h"
#include "probes/meters/snmp_client.h"
#include "probes/meters/strip.h"

namespace assay::meters {
namespace {

std::optional<double> number_of(const SnmpVariable& variable) {
  switch (variable.type) {
    case SnmpType::integer:
      return static_cast<double>(variable.integer);
    case SnmpType::gauge:
    case SnmpType::counter32:
    case SnmpType::ticks:
      return static_cast<double>(variable.count);
    default:
      return std::nullopt;
  }
}

/// A strip that is read by one client.
struct Strip {
  Meter meter;
  SnmpClient client;
  std::vector<StripObject> objects;

  [[nodiscard]] std::vector<MeterReading> read() const {
    std::vector<Oid> wanted;
    for (const auto& object : objects) {
      for (const auto* name : {&object.oid, &object.other_oid, &object.digits_oid})
        if (!name->empty()) wanted.push_back(oid_of(*name));
    }
    std::map<Oid, std::optional<double>> found;
    const double before_s = utc_now_s();
    ask(client, wanted, std::numeric_limits<double>::infinity(),
        [&](const SnmpVariable& one) { found[one.name] = number_of(one); });
    const double taken_s = (before_s + utc_now_s()) / 2;
    std::vector<MeterReading> readings;
    for (const auto& object : objects) {
      auto number = found[oid_of(object.oid)];
      // On newer firmware the old column may answer 0 while the signed one has the value.
      if (const auto other = found[oid_of(object.other_oid)]; !object.other_oid.empty() && other) number = other;
      MeterReading one =
          strip_reading(object, number, object.digits_oid.empty() ? 0 : found[oid_of(object.digits_oid)].value_or(-1));
      one.taken_s = taken_s;
      one.averaging_s = meter.averaging_s;
      one.accuracy = meter.accuracy;
      readings.push_back(std::move(one));
    }
    return readings;
  }
};

}  // namespace

MeterSession open_snmp(const Meter& meter, MeterLogin login) {
  const auto strip = std::make_shared<const Strip>(
      Strip{.meter = meter, .client = open_snmp_client(meter, std::move(login)), .objects = strip_objects(meter)});
  return [strip] { return strip->read(); };
}

}  // namespace assay::meters
