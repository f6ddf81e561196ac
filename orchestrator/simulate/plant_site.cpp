// plant_site: two feeds, a cooling unit and BMCs for each rack.
#include "orchestrator/simulate/plant_site.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace assay::simulate {
namespace {

constexpr const char* kDocument = "simulated: made up";
constexpr double kWholeNode_w = 6100, kMargin = 0.03;
constexpr double kFeedShare = 1.2;  // of a rack's power: rating of one feed when the other is lost

Meter made_up(const std::string& name, MeterKind kind, const char* subject, const std::string& rack) {
  Meter meter{.name = name, .kind = kind, .address = name + ".simulated.invalid", .subject = subject, .rack = rack};
  meter.credentials = "/simulated";
  meter.accuracy_source = kDocument;
  return meter;
}

Meter feed(const std::string& rack, const char* letter, const std::vector<std::string>& nodes, double rating_w) {
  Meter meter = made_up(fmt::format("{}-{}", rack, letter), MeterKind::snmp, "feed", rack);
  meter.feed = letter;
  meter.model = MeterModel::raritan_pdu2;
  for (std::size_t i = 0; i < nodes.size(); ++i) meter.outlets.emplace(static_cast<int>(i) + 1, nodes[i]);
  meter.averaging_s = 1;
  meter.accuracy = 0.01;
  meter.rating_w = rating_w;
  return meter;
}

Meter redfish(const std::string& name, const char* subject, const std::string& rack, const char* resource) {
  Meter meter = made_up(name, MeterKind::redfish, subject, rack);
  meter.resources = {resource};
  meter.public_key = "sha256//" + std::string(43, 'A') + "=";
  return meter;
}

Meter cooling(const std::string& rack) {
  Meter meter = redfish(rack + "-cdu", "cdu", rack, "/redfish/v1/ThermalEquipment/CDUs/1/PrimaryCoolantConnectors/1");
  meter.averaging_s = 1;
  meter.accuracy = 0.02;
  return meter;
}

Meter bmc(const std::string& node) {
  Meter meter = redfish(node + "-bmc", "node", "", "/redfish/v1/Chassis/1/EnvironmentMetrics");
  meter.nodes = {node};
  meter.averaging_s = 5;
  meter.accuracy = 0.03;
  return meter;
}

Meter intake() {
  Meter meter = made_up("intake", MeterKind::modbus, "meter", "");
  meter.credentials.clear();
  meter.registers = {{.quantity = Quantity::power}};
  meter.averaging_s = 1;
  meter.accuracy = 0.01;
  return meter;
}

}  // namespace

bool judges_by_meters(const plan::Profile& profile) {
  return std::ranges::any_of(
      profile.requirements, [](const auto& one) { return !one.during.empty() && one.probe != plan::kSwitchCompanion; });
}

double full_rack_w(const plan::Profile& profile, std::size_t nodes) {
  std::optional<double> low, high;
  for (const auto& one : profile.requirements) {
    if (one.during.empty() || one.metric != "total_power") continue;
    if (one.limit.at_least) low = std::max(low.value_or(0), *one.limit.at_least);
    if (one.limit.at_most) high = std::min(high.value_or(*one.limit.at_most), *one.limit.at_most);
  }
  if (low && high) return (*low + *high) / 2;
  if (low) return *low * (1 + kMargin);
  if (high) return *high * (1 - kMargin);
  return kWholeNode_w * static_cast<double>(nodes);
}

void add_meters(const plan::Profile& profile, site::Site& site) {
  std::vector<std::pair<std::string, std::vector<std::string>>> racks;
  for (const auto& node : site.nodes) {
    if (node.rack.empty()) continue;
    if (racks.empty() || racks.back().first != node.rack) racks.push_back({node.rack, {}});
    racks.back().second.push_back(node.name);
  }
  double limit_w = 0;
  for (const auto& [rack, nodes] : racks) {
    constexpr std::size_t kOfRack = 3, kOfSite = 1;  // two feeds and a cooling unit; the intake
    if (site.meters.size() + kOfRack + nodes.size() + kOfSite > kMostMeters) break;
    const double rating_w = kFeedShare * full_rack_w(profile, nodes.size());
    for (const char* letter : {"a", "b"}) site.meters.push_back(feed(rack, letter, nodes, rating_w));
    site.meters.push_back(cooling(rack));
    for (const auto& node : nodes) site.meters.push_back(bmc(node));
    limit_w += rating_w;
  }
  if (site.meters.empty()) return;
  site.meters.push_back(intake());
  site.load_test = site::LoadTest{.consent = "simulated: no rack is loaded", .limit_w = limit_w};
}

}  // namespace assay::simulate
