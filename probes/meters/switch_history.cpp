// switch_history: rises from reading to reading, so that a reset in between is seen even when the sums look plausible.
#include "probes/meters/switch_history.h"

#include <algorithm>

#include <fmt/format.h>

namespace assay::meters {
namespace {

constexpr double kTicksOfSecond = 100;
constexpr double kTicks = 4294967296.0;       // sysUpTime has 32 bits
constexpr double kHalf = 2147483648.0;        // of a 32-bit counter
constexpr std::size_t kMostSamples = 20'000;  // of a sensor
constexpr const char* kReset = "the counters were reset while they were watched";

/// The neighbour of each port; of several only their names.
void record_neighbours(const std::string& name, const std::vector<Neighbour>& neighbours, Recorder& record) {
  std::map<std::string, std::vector<const Neighbour*>> ports;
  for (const auto& one : neighbours) ports[one.interface].push_back(&one);
  for (const auto& [port, those] : ports) {
    const Subject subject = switch_port_subject(name, port);
    std::string systems;
    for (const auto* one : those) systems += (systems.empty() ? "" : ",") + one->system;
    record.condition("neighbour", systems.substr(0, kLongestValue), subject);
    if (those.size() > 1) continue;
    const Neighbour& one = *those.front();
    if (!one.system_port.empty()) record.condition("neighbour_port", one.system_port, subject);
    if (!one.other_name.empty()) record.condition("neighbour_port_name", one.other_name, subject);
  }
}

}  // namespace

std::optional<double> rise_of(const Count& before, const Count& now) {
  if (before.wide != now.wide) return std::nullopt;
  if (now.value >= before.value) return static_cast<double>(now.value - before.value);
  const auto was = static_cast<double>(before.value), is = static_cast<double>(now.value);
  if (before.wide || was < kHalf || is >= kHalf) return std::nullopt;
  return is + kTicks - was;
}

std::optional<bool> restarted(const SwitchReading& before, const SwitchReading& now) {
  constexpr double kSlack_s = 10, kShare = 0.9;
  if (!before.uptime || !now.uptime) return std::nullopt;
  const double elapsed_s = now.begin_s - before.begin_s;
  double advanced_s = (static_cast<double>(*now.uptime) - static_cast<double>(*before.uptime)) / kTicksOfSecond;
  const double left_s = (kTicks - static_cast<double>(*before.uptime)) / kTicksOfSecond;
  if (advanced_s < 0 && left_s < elapsed_s + kSlack_s) advanced_s += kTicks / kTicksOfSecond;
  return advanced_s < 0 || advanced_s < kShare * elapsed_s - kSlack_s;
}

void SwitchHistory::take_port(PortHistory& port, const PortReading& before, const PortReading& now, bool reset,
                              double now_s) {
  if (before.name != now.name) {
    port.gone = "another port has its number (ifIndex) now";
    return;
  }
  if (before.discontinuity != now.discontinuity) reset = true;
  bool moved = false;
  for (std::size_t i = 0; i < kPortCounters.size(); ++i) {
    const auto &was = before.counts[i], &is = now.counts[i];
    port.reported[i] = port.reported[i] || was || is;
    if (!port.uncounted[i].empty() || (!was && !is)) continue;
    const auto rise = was && is && !reset ? rise_of(*was, *is) : std::nullopt;
    if (!rise) {
      port.uncounted[i] = was && is ? kReset : "the switch reported it for a part of the time only";
      continue;
    }
    port.rises[i] += *rise;
    if (i < 2 && *rise > 0) moved = true;  // bytes in and out
  }
  if (moved && port.moved_s) port.refresh_s = std::min(port.refresh_s.value_or(now_s), now_s - *port.moved_s);
  if (moved) port.moved_s = now_s;
  if (before.up != now.up || before.last_change != now.last_change) ++port.link_changes;
}

void SwitchHistory::take(const SwitchReading& reading) {
  const auto reset = last_ ? restarted(*last_, reading) : std::optional(false);
  for (const auto& [name, index] : view_.ports) {
    PortHistory& port = ports_[index];
    const auto now = reading.ports.find(index);
    if (!port.gone.empty()) continue;
    if (now == reading.ports.end()) {
      port.gone = "the switch does not answer for this port, or no longer";
      continue;
    }
    // Without sysUpTime a reset cannot be excluded.
    if (last_) take_port(port, last_->ports.at(index), now->second, reset.value_or(true), reading.end_s);
    port.up = now->second.up;
    port.was_down = port.was_down || port.up == false;
    port.rate = now->second.rate;
    if (port.rate) port.rate_min = std::min(port.rate_min.value_or(*port.rate), *port.rate);
  }
  for (const auto& [entity, value] : reading.sensors)
    if (auto& samples = sensors_[entity]; samples.size() < kMostSamples) samples.push_back(value);
  if (!first_) first_ = reading;
  last_ = reading;
}

void SwitchHistory::record(Recorder& record) const {
  for (const auto& [port, why] : view_.missing) record.condition("unread", why, switch_port_subject(name_, port));
  record_neighbours(name_, view_.neighbours, record);
  const Subject device{.kind = "meter", .id = name_};
  record.condition("neighbours", view_.neighbours_unread.empty() ? "read" : "absent: " + view_.neighbours_unread,
                   device);
  record.condition("sensors", view_.sensors_unread.empty() ? "read" : "absent: " + view_.sensors_unread, device);
  if (!last_) return;
  for (const auto& [name, index] : view_.ports) {
    const Subject subject = switch_port_subject(name_, name);
    const PortHistory& port = ports_.at(index);
    if (!port.gone.empty()) {
      record.condition("unread", port.gone, subject);
      continue;
    }
    const Values at = {{"from_s", first_->end_s}, {"to_s", last_->begin_s}};
    std::string uncounted, why;
    for (std::size_t i = 0; i < kPortCounters.size(); ++i) {
      const std::string metric(kPortCounters[i].metric);
      if (!port.reported[i]) continue;
      if (port.uncounted[i].empty()) {
        record.measurement(metric, port.rises[i], subject, at);
        continue;
      }
      uncounted += (uncounted.empty() ? "" : ",") + metric;
      why = port.uncounted[i];
    }
    if (!uncounted.empty()) record.condition("uncounted", uncounted, subject);
    if (!why.empty()) record.condition("uncounted_why", why, subject);
    if (port.up) record.measurement("link_up", port.was_down ? 0.0 : 1.0, subject, at);
    if (port.rate_min) record.measurement("link_rate", *port.rate_min, subject, at);
    record.measurement("link_changes", port.link_changes, subject, at);
    if (port.refresh_s) record.condition("refresh_s", *port.refresh_s, subject);
    for (const auto& sensor : view_.sensors) {
      const auto samples = sensors_.find(sensor.entity);
      if (sensor.port != index || samples == sensors_.end()) continue;
      Values where = at;
      where.emplace("sensor", sensor.name);
      record.measurement(sensor.of_light ? "optical_power" : "module_temperature",
                         {.samples = samples->second, .warmup = {}, .stopped = "time_cap"}, subject, std::move(where));
    }
  }
}

}  // namespace assay::meters
