// site_efficiency: divides the operations of the ranks of a rack by the energy of its meters, or says why they make no
// figure.
#include "orchestrator/judge/metering/site_efficiency.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/ranges.h>

namespace assay::judge {
namespace {

constexpr std::size_t kLeastReadings = 60;  // power_measurement.adoc of MLCommons: at least 60 samples,
constexpr double kLongestInterval_s = 1;    // at one a second or more
constexpr double kLongestAveraging = 0.1;   // of the load: a longer window includes too much from before it
constexpr double kCounted = 0.9;            // of the load's seconds, by samples of the rate
constexpr double kEdge_s = 2;               // the first and the last second of a load are no whole samples
constexpr const char* kAccuracy = "accuracy_bound";

using Refusal = std::unexpected<std::string>;

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

bool dates_its_load(const Record& load) {
  return std::ranges::any_of(load.conditions, [](const Condition& one) { return one.name == "hold_begin_s"; });
}

/// FLOP/s of one rank, as a mean over the load.
std::expected<double, std::string> rate_of(const Record& load, std::size_t rank, const std::string& node,
                                           double held_s) {
  const Subject subject{.kind = "rank", .id = std::to_string(rank)};
  const auto found = std::ranges::find_if(load.measurements, [&](const Measurement& one) {
    return one.metric == "rate" && one.unit == "FLOP/s" && one.subject == subject;
  });
  if (found == load.measurements.end())
    return Refusal(fmt::format("The record of the load has no rate in FLOP/s of node {}.", node));
  const double counted_s = static_cast<double>(found->samples.size());
  if (counted_s < kCounted * (held_s - kEdge_s))
    return Refusal(
        fmt::format("The rate of node {} is counted in {:.0f} of the {:.0f} s of the load.", node, counted_s, held_s));
  return mean_of(found->samples);
}

/// FLOP/s of all nodes of the rack, and how many there are.
struct RackRate {
  double flop_per_s = 0;
  std::size_t nodes = 0;
};
std::expected<RackRate, std::string> rate_of_rack(const plan::Plan& plan, const plan::Step& step, const Record& load,
                                                  const RackPower& power) {
  RackRate sum;
  for (const auto& node : plan.site.nodes) {
    if (node.rack.empty()) return Refusal(fmt::format("The site does not say in which rack node {} is.", node.name));
    if (node.rack != power.rack) continue;
    const auto at = std::ranges::find(step.nodes, node.name);
    if (at == step.nodes.end())
      return Refusal(fmt::format("Node {} of rack {} had no part in the load.", node.name, power.rack));
    const auto rate = rate_of(load, static_cast<std::size_t>(at - step.nodes.begin()), node.name, power.held_s);
    if (!rate) return Refusal(rate.error());
    sum.flop_per_s += *rate;
    ++sum.nodes;
  }
  if (sum.nodes == 0) return Refusal(fmt::format("The site has no node in rack {}.", power.rack));
  return sum;
}

/// Why there are too few readings; empty if there are enough.
std::string too_few(const RackPower& power) {
  if (power.interval_s > kLongestInterval_s)
    return fmt::format("The meters of rack {} are read every {:g} s; an energy needs a reading a second.", power.rack,
                       power.interval_s);
  if (power.power_w.size() < kLeastReadings)
    return fmt::format("{} readings of rack {} lie in the {:.0f} s of the load; an energy needs {}.",
                       power.power_w.size(), power.rack, power.held_s, kLeastReadings);
  return "";
}

/// The conditions of a meter by this name, in all watches.
std::vector<const Value*> stated(const std::map<int, Record>& watches, std::string_view name,
                                 const std::string& meter) {
  const Subject subject{.kind = "meter", .id = meter};
  std::vector<const Value*> all;
  for (const auto& [number, record] : watches) {
    for (const auto& one : record.conditions)
      if (one.name == name && one.subject == subject) all.push_back(&one.value);
  }
  return all;
}

/// The accuracy of one meter whose readings make an energy; why they do not.
std::expected<double, std::string> accuracy_of(const std::map<int, Record>& watches, const std::string& meter,
                                               double held_s) {
  if (auto doubt = doubt_stated(watches, meter)) return Refusal(std::move(*doubt));
  const auto accuracy = largest_stated(watches, "accuracy_declared", meter);
  if (!accuracy || !(*accuracy > 0))
    return Refusal(fmt::format(
        "The meter {} states no accuracy, so the figure would have no uncertainty (accuracy and accuracy_source in the "
        "site).",
        meter));
  const auto averaging_s = largest_stated(watches, "averaging_s", meter);
  if (!averaging_s)
    return Refusal(fmt::format("The meter {} states no averaging_s, so its readings have no known time.", meter));
  if (*averaging_s > kLongestAveraging * held_s)
    return Refusal(fmt::format("The meter {} averages over {:g} s, more than a tenth of the load of {:.0f} s.", meter,
                               *averaging_s, held_s));
  return *accuracy;
}

}  // namespace

std::set<std::string> meters_in(const Values& at) {
  std::set<std::string> names;
  for (const char* coordinate : {"meter", "meters"}) {
    const auto found = at.find(coordinate);
    const auto* text = found == at.end() ? nullptr : std::get_if<std::string>(&found->second);
    if (text == nullptr) continue;
    for (std::size_t from = 0; from <= text->size();) {
      const std::size_t comma = std::min(text->find(',', from), text->size());
      names.insert(text->substr(from, comma - from));
      from = comma + 1;
    }
  }
  return names;
}

std::optional<double> largest_stated(const std::map<int, Record>& watches, std::string_view name,
                                     const std::string& meter) {
  std::optional<double> most;
  for (const Value* value : stated(watches, name, meter)) {
    const auto number = number_in(*value);
    if (number) most = std::max(most.value_or(*number), *number);
  }
  return most;
}

std::optional<std::string> doubt_stated(const std::map<int, Record>& watches, const std::string& meter) {
  const auto doubts = stated(watches, "meter_doubts", meter);
  if (doubts.empty()) return fmt::format("Nothing is known of the meter {}.", meter);
  for (const Value* value : doubts) {
    const auto* text = std::get_if<std::string>(value);
    if (text == nullptr || *text != "none")
      return fmt::format("The meter {} is in doubt: {}.", meter, text == nullptr ? std::string("no text") : *text);
  }
  return std::nullopt;
}

std::expected<Efficiency, std::string> efficiency_of(const plan::Plan& plan, const plan::Step& step, const Record& load,
                                                     const std::map<int, Record>& watches, const RackPower& power) {
  if (plan.simulation || load.start.host.contains(plan::kSimulated))
    return Refusal("A simulation made up the load: no energy was measured.");
  if (!dates_its_load(load))
    return Refusal(fmt::format("{} does not say from when to when it held its load (hold_begin_s).", step.probe));
  if (auto few = too_few(power); !few.empty()) return Refusal(std::move(few));
  Efficiency made;
  for (const auto& meter : power.meters) {
    const auto accuracy = accuracy_of(watches, meter, power.held_s);
    if (!accuracy) return Refusal(accuracy.error());
    made.accuracy = std::max(made.accuracy, *accuracy);
  }
  const auto rate = rate_of_rack(plan, step, load, power);
  if (!rate) return Refusal(rate.error());
  const double mean_w = mean_of(power.power_w);
  if (!(mean_w > 0) || !(rate->flop_per_s > 0))
    return Refusal(
        fmt::format("Rack {} drew {:g} W and did {:g} FLOP/s on average.", power.rack, mean_w, rate->flop_per_s));
  made.flop_per_joule = rate->flop_per_s / mean_w;
  made.boundary = fmt::format("rack {} by {}; {} nodes", power.rack, fmt::join(power.meters, ", "), rate->nodes);
  made.method_level =
      "EE HPC WG aspect 1: level 1, the mean power of the whole load; aspects 2 to 4 (share, subsystems, place): none "
      "claimed";
  return made;
}

double efficiency_instrument(const std::vector<const Record*>& records,
                             const std::vector<const Measurement*>& measured) {
  double worst = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    for (const Condition* one : conditions_of(*records[i], kAccuracy, measured.at(i)->subject))
      worst = std::max(worst, number_in(one->value).value_or(0));
  }
  return worst / std::sqrt(3.0);
}

}  // namespace assay::judge
