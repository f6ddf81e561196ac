// switch_tables: walks of columns, and questions for the objects of the ports that are to be read.
#include "probes/meters/switch_tables.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "probes/core/text.h"

namespace assay::meters {
namespace {

constexpr int kRowsOfOne = 24;  // of one answer, so that it fits a datagram
constexpr int kDeepest = 16;    // entities in entities: chassis, card, module, sensor
constexpr std::size_t kLongestName = 120;

constexpr const char* kName = "1.3.6.1.2.1.31.1.1.1.1";            // ifName
constexpr const char* kDescription = "1.3.6.1.2.1.2.2.1.2";        // ifDescr
constexpr const char* kStatus = "1.3.6.1.2.1.2.2.1.8";             // ifOperStatus
constexpr const char* kLastChange = "1.3.6.1.2.1.2.2.1.9";         // ifLastChange
constexpr const char* kSpeed = "1.3.6.1.2.1.31.1.1.1.15";          // ifHighSpeed, Mb/s
constexpr const char* kDiscontinuity = "1.3.6.1.2.1.31.1.1.1.19";  // ifCounterDiscontinuityTime
constexpr const char* kUptime = "1.3.6.1.2.1.1.3.0";               // sysUpTime.0
constexpr const char* kIfIndex = "1.3.6.1.2.1.2.2.1.1";            // ifIndex
constexpr const char* kAlias = "1.3.6.1.2.1.47.1.3.2.1.2";         // entAliasMappingIdentifier
constexpr const char* kContainedIn = "1.3.6.1.2.1.47.1.1.1.1.4";   // entPhysicalContainedIn
constexpr const char* kEntityName = "1.3.6.1.2.1.47.1.1.1.1.7";    // entPhysicalName
constexpr const char* kSensor = "1.3.6.1.2.1.99.1.1.1.";           // type 1, scale 2, precision 3, value 4, status 5
constexpr const char* kLocalPort = "1.0.8802.1.1.2.1.3.7.1.";      // lldpLocPortTable: id type 2, id 3, description 4
constexpr const char* kRemotePort = "1.0.8802.1.1.2.1.4.1.1.";  // lldpRemTable: id type 6, id 7, description 8, name 9
constexpr std::int64_t kWatts = 6, kCelsius = 8;                // EntitySensorDataType
constexpr std::int64_t kOk = 1;                                 // EntitySensorStatus
constexpr std::int64_t kMacAddress = 3, kNetworkAddress = 4, kLocal = 7;  // LldpPortIdSubtype
constexpr double kBytesOfMegabit = 1e6 / 8;

bool begins_with(const Oid& name, const Oid& front) {
  return name.size() > front.size() && std::equal(front.begin(), front.end(), name.begin());
}

Oid joined(const Oid& column, std::uint32_t index) {
  Oid name = column;
  name.push_back(index);
  return name;
}

std::string text_of(const std::map<Oid, SnmpVariable>& rows, const Oid& index) {
  const auto found = rows.find(index);
  return found == rows.end() || found->second.type != SnmpType::text ? "" : printable(found->second.text, kLongestName);
}

std::optional<std::int64_t> integer_of(const std::map<Oid, SnmpVariable>& rows, const Oid& index) {
  const auto found = rows.find(index);
  if (found == rows.end() || found->second.type != SnmpType::integer) return std::nullopt;
  return found->second.integer;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Answers to many single objects, by their names.
std::map<Oid, SnmpVariable> ask_for(const SnmpClient& client, const std::vector<Oid>& names, double limit_s) {
  std::map<Oid, SnmpVariable> found;
  ask(client, names, limit_s, [&](SnmpVariable& one) { found.insert_or_assign(one.name, one); });
  return found;
}

/// The port behind an entity: its own, or that of one that it is contained in.
std::optional<std::uint32_t> port_of(std::uint32_t entity, const std::map<std::uint32_t, std::uint32_t>& ports,
                                     const std::map<Oid, SnmpVariable>& contained_in) {
  for (int i = 0; i < kDeepest; ++i) {
    if (const auto found = ports.find(entity); found != ports.end()) return found->second;
    const auto outer = integer_of(contained_in, {entity});
    if (!outer || *outer <= 0) return std::nullopt;
    entity = static_cast<std::uint32_t>(*outer);
  }
  return std::nullopt;
}

/// The interface of each entity that has exactly one.
std::map<std::uint32_t, std::uint32_t> ports_of_entities(const std::map<Oid, SnmpVariable>& aliases) {
  const Oid column = oid_of(kIfIndex);
  std::map<std::uint32_t, std::set<std::uint32_t>> all;
  for (const auto& [index, alias] : aliases) {
    if (!index.empty() && alias.type == SnmpType::oid && begins_with(alias.oid, column))
      all[index.front()].insert(alias.oid.back());
  }
  std::map<std::uint32_t, std::uint32_t> ports;
  for (const auto& [entity, those] : all)
    if (those.size() == 1) ports.emplace(entity, *those.begin());
  return ports;
}

std::optional<Count> count_of(const std::map<Oid, SnmpVariable>& found, const PortCounter& counter,
                              std::uint32_t port) {
  const auto wide = found.find(joined(oid_of(counter.wide), port));
  if (wide != found.end() && wide->second.type == SnmpType::counter64)
    return Count{.value = wide->second.count, .wide = true};
  const auto narrow = found.find(joined(oid_of(counter.narrow), port));
  if (narrow != found.end() && narrow->second.type == SnmpType::counter32)
    return Count{.value = narrow->second.count, .wide = false};
  return std::nullopt;
}

PortReading port_in(const std::map<Oid, SnmpVariable>& found, std::uint32_t port) {
  PortReading one;
  const auto look = [&](const char* column, SnmpType type) -> const SnmpVariable* {
    const auto at = found.find(joined(oid_of(column), port));
    return at == found.end() || at->second.type != type ? nullptr : &at->second;
  };
  for (const char* column : {kDescription, kName})
    if (const auto* text = look(column, SnmpType::text)) one.name = printable(text->text, kLongestName);
  if (const auto* status = look(kStatus, SnmpType::integer)) one.up = status->integer == 1;
  if (const auto* speed = look(kSpeed, SnmpType::gauge); speed != nullptr && speed->count > 0)
    one.rate = static_cast<double>(speed->count) * kBytesOfMegabit;
  if (const auto* time = look(kLastChange, SnmpType::ticks)) one.last_change = time->count;
  if (const auto* time = look(kDiscontinuity, SnmpType::ticks)) one.discontinuity = time->count;
  for (std::size_t i = 0; i < kPortCounters.size(); ++i) one.counts[i] = count_of(found, kPortCounters[i], port);
  return one;
}

}  // namespace

std::map<Oid, SnmpVariable> walk(const SnmpClient& client, const Oid& column, double limit_s) {
  std::map<Oid, SnmpVariable> rows;
  Oid last = column;
  while (true) {
    if (utc_now_s() > limit_s) client.fail(fmt::format("its table is not over after {} rows", rows.size()));
    const auto answer = client.next(last, kRowsOfOne);
    if (answer.empty()) return rows;
    for (const auto& one : answer) {
      if (one.type == SnmpType::end) return rows;
      if (one.name <= last) client.fail("answers rows of a table out of order, so that its end cannot be known");
      if (!begins_with(one.name, column)) return rows;
      if (rows.size() == kMostRows) client.fail(fmt::format("has a table of over {} rows", kMostRows));
      last = one.name;
      rows.emplace(Oid(last.begin() + static_cast<std::ptrdiff_t>(column.size()), last.end()), one);
    }
  }
}

std::optional<double> sensor_value(std::int64_t scale, std::int64_t precision, std::int64_t value) {
  constexpr std::int64_t kUnits = 9, kTera = 13, kMostDigits = 9, kLeastDigits = -8, kOverflow = 1'000'000'000;
  if (scale < 1 || scale > kTera || precision < kLeastDigits || precision > kMostDigits) return std::nullopt;
  if (value >= kOverflow || value <= -kOverflow) return std::nullopt;
  return static_cast<double>(value) *
         std::pow(10.0, static_cast<double>(3 * (scale - kUnits) - std::max<std::int64_t>(precision, 0)));
}

SwitchView find_ports(const SnmpClient& client, const std::vector<std::string>& wanted, double limit_s) {
  SwitchView view;
  std::map<std::string, std::set<std::uint32_t>> names, descriptions;
  const auto take = [&](const char* column, std::map<std::string, std::set<std::uint32_t>>& into) {
    for (const auto& [index, row] : walk(client, oid_of(column), limit_s))
      if (index.size() == 1 && row.type == SnmpType::text) into[row.text].insert(index.front());
  };
  take(kName, names);
  take(kDescription, descriptions);
  for (const auto& port : wanted) {
    const auto& those = names.contains(port) ? names[port] : descriptions[port];
    if (those.size() == 1) {
      view.ports.emplace(port, *those.begin());
      for (const auto* table : {&descriptions, &names})
        for (const auto& [name, indices] : *table)
          if (indices == those) view.called.insert_or_assign(name, port);
    } else {
      view.missing.emplace(port, those.empty() ? "the switch has no port of this name (ifName, ifDescr)"
                                               : "the switch has several ports of this name");
    }
  }
  return view;
}

void find_neighbours(const SnmpClient& client, double limit_s, SwitchView& view) {
  const auto column = [&](const char* table, int number) {
    return walk(client, oid_of(table + std::to_string(number)), limit_s);
  };
  try {
    const auto systems = column(kRemotePort, 9);
    if (systems.empty()) {
      view.neighbours_unread = "the switch reports no neighbours";
      return;
    }
    const auto kinds = column(kRemotePort, 6), ids = column(kRemotePort, 7), descriptions = column(kRemotePort, 8);
    const auto local_kinds = column(kLocalPort, 2), local_ids = column(kLocalPort, 3);
    const auto local_descriptions = column(kLocalPort, 4);
    for (const auto& [index, row] : systems) {
      if (index.size() != 3 || row.type != SnmpType::text) continue;  // time mark, local port, number
      const Oid local = {index[1]};
      const std::string id = text_of(local_ids, local), description = text_of(local_descriptions, local);
      std::string port = integer_of(local_kinds, local) == kMacAddress ? description : id;
      for (const auto& name : {description, id})
        if (const auto known = view.called.find(name); known != view.called.end()) port = known->second;
      Neighbour one{.interface = std::move(port),
                    .system = printable(row.text, kLongestName),
                    .system_port = text_of(ids, index),
                    .other_name = text_of(descriptions, index)};
      const auto kind = integer_of(kinds, index).value_or(kLocal);
      // An address, or an SNMP index that is assigned locally, is no name of a port.
      const bool is_name = kind != kMacAddress && kind != kNetworkAddress &&
                           !(kind == kLocal && is_number(one.system_port) && !one.other_name.empty());
      if (!is_name) one.system_port = std::exchange(one.other_name, "");
      if (!one.interface.empty() && !one.system.empty()) view.neighbours.push_back(std::move(one));
    }
  } catch (const MeterFault& fault) {
    view.neighbours_unread = fault.what();
  }
}

void find_sensors(const SnmpClient& client, double limit_s, SwitchView& view) {
  try {
    const auto ports = ports_of_entities(walk(client, oid_of(kAlias), limit_s));
    if (ports.empty()) {
      view.sensors_unread = "the switch does not say which entity is which port (entAliasMappingTable)";
      return;
    }
    const auto contained_in = walk(client, oid_of(kContainedIn), limit_s);
    const auto column = [&](int number) { return walk(client, oid_of(kSensor + std::to_string(number)), limit_s); };
    const auto types = column(1), scales = column(2), precisions = column(3);
    const auto names = walk(client, oid_of(kEntityName), limit_s);
    for (const auto& [index, row] : types) {
      const auto type = integer_of(types, index), scale = integer_of(scales, index);
      const auto precision = integer_of(precisions, index);
      if (index.size() != 1 || !scale || !precision || (type != kWatts && type != kCelsius)) continue;
      const auto port = port_of(index.front(), ports, contained_in);
      const bool read = port && std::ranges::any_of(view.ports, [&](const auto& one) { return one.second == *port; });
      if (!read) continue;
      std::string name = text_of(names, index);
      const bool taken = std::ranges::any_of(
          view.sensors, [&](const PortSensor& other) { return other.port == *port && other.name == name; });
      if (name.empty() || taken) name += fmt::format("#{}", index.front());
      view.sensors.push_back({.entity = index.front(),
                              .port = *port,
                              .name = std::move(name),
                              .of_light = type == kWatts,
                              .scale = *scale,
                              .precision = *precision});
    }
  } catch (const MeterFault& fault) {
    view.sensors_unread = fault.what();
  }
}

SwitchReading read_switch(const SnmpClient& client, const SwitchView& view, double limit_s) {
  SwitchReading reading{.begin_s = utc_now_s()};
  std::vector<Oid> names = {oid_of(kUptime)};
  for (const auto& [name, port] : view.ports) {
    for (const char* column : {kName, kDescription, kStatus, kLastChange, kSpeed, kDiscontinuity})
      names.push_back(joined(oid_of(column), port));
    for (const auto& counter : kPortCounters) {
      for (const auto column : {counter.wide, counter.narrow})
        if (!column.empty()) names.push_back(joined(oid_of(column), port));
    }
  }
  for (const auto& sensor : view.sensors) {
    for (const int column : {4, 5}) names.push_back(joined(oid_of(kSensor + std::to_string(column)), sensor.entity));
  }
  const auto found = ask_for(client, names, limit_s);
  if (const auto up = found.find(names.front()); up != found.end() && up->second.type == SnmpType::ticks)
    reading.uptime = up->second.count;
  for (const auto& [name, port] : view.ports) {
    PortReading one = port_in(found, port);
    if (!one.name.empty() || one.up) reading.ports.emplace(port, std::move(one));
  }
  for (const auto& sensor : view.sensors) {
    const auto value = integer_of(found, joined(oid_of(std::string(kSensor) + "4"), sensor.entity));
    const auto status = integer_of(found, joined(oid_of(std::string(kSensor) + "5"), sensor.entity));
    if (!value || status != kOk) continue;
    if (const auto base = sensor_value(sensor.scale, sensor.precision, *value))
      reading.sensors.emplace(sensor.entity, *base);
  }
  reading.end_s = utc_now_s();
  return reading;
}

}  // namespace assay::meters
