// site_agreement: windows of a load of nine stairs, in which the two sides of a node or a rack are compared:
//
//   stair  0    1    2    3    4 = all processors, then down again; used are 0, 2 and 4 of the way up
//   one of them, hold_s long:   |.. settles ..|w1|w2|w3|w4|w5|     five windows of a minute, up to its end
//
// agreement_of() (probes/meters) compares the windows; the line through the three levels gives gain and offset.
#include "orchestrator/judge/metering/site_agreement.h"

#include <optional>
#include <set>

#include <fmt/format.h>

#include "probes/meters/agreement.h"

namespace assay::judge {
namespace {

constexpr double kWindow_s = 60, kSettle_s = 60;
constexpr std::array kStairsUsed = {0, 2, 4};  // of the nine: none, half and all, on the way up

using Refusal = std::unexpected<std::string>;
using Points = std::map<MeterPoint, std::vector<meters::MeterReading>>;
using Readings = std::vector<meters::MeterReading>;

/// One side of a comparison: the meters' points whose sum it is.
struct MeterSide {
  std::set<MeterPoint> points;
  [[nodiscard]] std::string words() const {
    std::string all;
    for (const auto& [meter, outlet] : points) {
      if (!all.empty()) all += " + ";
      all += outlet == 0 ? meter : fmt::format("{}/{}", meter, outlet);
    }
    return all;
  }
};

/// The whole of the node's own meter; nothing if it has none.
std::optional<MeterPoint> meter_of_node(const site::Site& site, const std::string& node) {
  for (const auto& meter : site.meters)
    if (meter.subject == "node" && meter.nodes == std::vector{node}) return MeterPoint{meter.name, 0};
  return std::nullopt;
}

MeterSide outlets_of_node(const site::Site& site, const std::string& node) {
  MeterSide side;
  for (const auto& meter : site.meters) {
    for (const auto& [outlet, mapped] : meter.outlets)
      if (mapped == node) side.points.emplace(meter.name, outlet);
  }
  return side;
}

/// A rack's own meter, else its feeds, else its shelves.
MeterSide meters_of_rack(const site::Site& site, const std::string& rack) {
  for (const char* subject : {"rack", "feed", "shelf"}) {
    MeterSide side;
    for (const auto& meter : site.meters) {
      if (meter.rack != rack || meter.subject != subject) continue;
      if (std::string_view(subject) != "rack" || side.points.empty()) side.points.emplace(meter.name, 0);
    }
    if (!side.points.empty()) return side;
  }
  return {};
}

/// The sum of a side's readings, whose doubts were asked for; why there is none.
std::expected<Readings, std::string> readings_of(const MeterSide& side, const Points& readings,
                                                 const std::map<int, Record>& watches) {
  std::vector<Readings> parts;
  for (const auto& point : side.points) {
    const auto found = readings.find(point);
    if (found == readings.end())
      return Refusal(point.second == 0 ? fmt::format("{} gave no power.", point.first)
                                       : fmt::format("{} gave no power of outlet {}.", point.first, point.second));
    if (auto doubt = doubt_of_meter(watches, point.first)) return Refusal(*doubt);
    parts.push_back(found->second);
  }
  return meters::sum_of(parts);
}

std::expected<SidesAgreement, std::string> compared(const MeterSide& meter, const MeterSide& reference,
                                                    const HeldLoad& load, const Points& readings,
                                                    const std::map<int, Record>& watches) {
  const auto mine = readings_of(meter, readings, watches), others = readings_of(reference, readings, watches);
  if (!mine) return Refusal(mine.error());
  if (!others) return Refusal(others.error());
  std::vector<double> begins_s;
  for (const int stair : kStairsUsed)
    begins_s.push_back(load.begin_s + (stair + 1) * load.hold_s - meters::kWindows * kWindow_s);
  const auto found = meters::agreement_of(*mine, *others, begins_s, {.window_s = kWindow_s}, 1);
  if (found.finding == meters::Finding::undecided)
    return Refusal(fmt::format("{} and {} are not compared: {}.", meter.words(), reference.words(),
                               meters::text_of(found.doubts)));
  const auto line = meters::line_through(found.reference_w, found.mean_w);
  if (!line) return Refusal(fmt::format("{} hardly moved with the load.", reference.words()));
  SidesAgreement made{.ratio = found.worst_ratio,
                      .gain = line->gain,
                      .offset_w = line->offset_w,
                      .meter_w = found.mean_w,
                      .reference_w = found.reference_w};
  made.words = fmt::format("{} over {}:", meter.words(), reference.words());
  for (std::size_t i = 0; i < found.mean_w.size(); ++i)
    made.words += fmt::format("{} {:.4g} of {:.4g} W at {} %", i == 0 ? "" : ",", found.mean_w[i], found.reference_w[i],
                              kAgreementLoads.at(i));
  return made;
}

/// Why the load shows nothing of the kind; nothing if it does.
std::optional<std::string> unfit_for_levels(const HeldLoad& load) {
  if (load.shape != "stairs")
    return fmt::format("The load has the shape {}; meters are compared at idle and two loads, by stairs.", load.shape);
  const double needed_s = kSettle_s + meters::kWindows * kWindow_s;
  if (load.hold_s >= needed_s) return std::nullopt;
  return fmt::format("A stair lasts {:g} s; a minute to settle and five windows of a minute need {:g} s.", load.hold_s,
                     needed_s);
}

}  // namespace

std::map<Subject, std::expected<SidesAgreement, std::string>> agreements(const site::Site& site, const HeldLoad& load,
                                                                         const std::map<int, Record>& watches) {
  const auto readings = power_readings(watches);
  const auto why = unfit_for_levels(load);
  std::map<Subject, std::expected<SidesAgreement, std::string>> all;
  std::map<std::string, MeterSide> racks;  // their nodes' own meters
  std::set<std::string> without_meter;     // racks of which a node has none
  const auto add = [&](const Subject& subject, const MeterSide& meter, const MeterSide& reference) {
    all.emplace(subject, why ? Refusal(*why) : compared(meter, reference, load, readings, watches));
  };
  for (const auto& node : site.nodes) {
    const auto own = meter_of_node(site, node.name);
    if (!own) {
      without_meter.insert(node.rack);
      continue;
    }
    racks[node.rack].points.insert(*own);
    if (const MeterSide outlets = outlets_of_node(site, node.name); !outlets.points.empty())
      add({.kind = "node", .id = node.name}, {.points = {*own}}, outlets);
  }
  for (const auto& [rack, nodes] : racks) {
    const MeterSide whole = meters_of_rack(site, rack);
    if (!rack.empty() && !without_meter.contains(rack) && !whole.points.empty())
      add({.kind = "rack", .id = rack}, nodes, whole);
  }
  return all;
}

}  // namespace assay::judge
