// derived: puts the slots of several meters on one UTC grid and combines them.
#include "probes/meters/derived.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>

namespace assay::meters {
namespace {

/// Numbers by slot, of one grid.
using Slots = std::map<std::int64_t, double>;

/// Numbers of one subject, and the meters that they are from.
struct Known {
  Slots slots;
  std::vector<std::string> meters;
};

/// `combine` over the slots that both have.
Slots merged(const Slots& a, const Slots& b, const std::function<double(double, double)>& combine) {
  Slots all;
  for (const auto& [slot, value] : a) {
    if (const auto other = b.find(slot); other != b.end()) all.emplace(slot, combine(value, other->second));
  }
  return all;
}

std::vector<Stretch> stretches_of(const Slots& slots, double interval_s) {
  std::vector<Stretch> all;
  std::int64_t last = 0;
  for (const auto& [slot, value] : slots) {
    if (all.empty() || slot != last + 1)
      all.push_back({.begin_s = static_cast<double>(slot) * interval_s, .interval_s = interval_s, .samples = {}});
    all.back().samples.push_back(value);
    last = slot;
  }
  return all;
}

class Facility {
 public:
  explicit Facility(std::span<const MeteredHistory> meters) : meters_(meters) {
    for (const auto& one : meters) {
      for (const auto& [key, series] : one.history->series) interval_s_ = std::max(interval_s_, series.interval_s());
    }
  }

  std::vector<DerivedSeries> take() {
    racks();
    for (const auto& one : meters_) {
      of_rating(one);
      of_feeds(one);
      of_phases(one);
      of_supply(one);
      if (one.meter->subject == "cdu") of_heat(one);
    }
    of_intake();
    return std::move(all_);
  }

 private:
  [[nodiscard]] Slots slots_of(const MeteredHistory& one, Quantity quantity) const {
    const auto found = one.history->series.find({quantity, 0});
    if (found == one.history->series.end()) return {};
    SlotSeries series = found->second;
    series.widen_to(interval_s_);
    return series.values();
  }

  void add(const char* metric, const Subject& subject, const Known& known) {
    if (!known.slots.empty())
      all_.push_back({.metric = metric,
                      .subject = subject,
                      .meters = known.meters,
                      .stretches = stretches_of(known.slots, interval_s_)});
  }

  /// The sum over the meters of `rack` with this subject; nothing if there are none.
  [[nodiscard]] std::optional<Known> sum_of(const std::string& rack, const char* subject) const {
    std::optional<Known> sum;
    for (const auto& one : meters_) {
      if (one.meter->rack != rack || one.meter->subject != subject) continue;
      const Slots power = slots_of(one, Quantity::power);
      if (!sum)
        sum = Known{.slots = power, .meters = {}};
      else if (std::string_view(subject) != "rack")  // a second meter of the whole rack adds nothing
        sum->slots = merged(sum->slots, power, std::plus<>());
      else
        continue;
      sum->meters.push_back(one.meter->name);
    }
    return sum;
  }

  void racks() {
    std::set<std::string> names;
    for (const auto& one : meters_) {
      if (!one.meter->rack.empty() && one.meter->subject != "cdu") names.insert(one.meter->rack);
    }
    for (const auto& rack : names) {
      for (const char* subject : {"rack", "feed", "shelf"}) {
        auto known = sum_of(rack, subject);
        if (!known) continue;
        add("total_power", {.kind = "rack", .id = rack}, *known);
        racks_.emplace(rack, std::move(*known));
        break;
      }
    }
  }

  /// The power of one rack, or of all when `rack` is empty.
  [[nodiscard]] std::optional<Known> power_of(const std::string& rack) const {
    std::optional<Known> sum;
    for (const auto& [name, known] : racks_) {
      if (!rack.empty() && name != rack) continue;
      if (!sum) {
        sum = known;
        continue;
      }
      sum->slots = merged(sum->slots, known.slots, std::plus<>());
      sum->meters.insert(sum->meters.end(), known.meters.begin(), known.meters.end());
    }
    return sum;
  }

  void of_rating(const MeteredHistory& one) {
    if (!one.meter->rating_w || *one.meter->rating_w <= 0) return;
    Known share{.slots = slots_of(one, Quantity::power), .meters = {one.meter->name}};
    for (auto& [slot, value] : share.slots) value /= *one.meter->rating_w;
    add("rating_share", one.meter->subject_of(), share);
  }

  /// Power of a feed over its equal part, if its rack has two or more.
  void of_feeds(const MeteredHistory& one) {
    if (one.meter->subject != "feed" || one.meter->rack.empty()) return;
    const auto feeds = std::ranges::count_if(meters_, [&](const MeteredHistory& other) {
      return other.meter->subject == "feed" && other.meter->rack == one.meter->rack;
    });
    const auto sum = sum_of(one.meter->rack, "feed");
    if (feeds < 2 || !sum) return;
    Known share{.slots = {}, .meters = sum->meters};
    for (const auto& [slot, watts] : merged(slots_of(one, Quantity::power), sum->slots,
                                            [](double own, double all) { return all > 0 ? own / all : std::nan(""); }))
      if (std::isfinite(watts)) share.slots.emplace(slot, watts * static_cast<double>(feeds));
    add("feed_share", one.meter->subject_of(), share);
  }

  void of_phases(const MeteredHistory& one) {
    const Slots first = slots_of(one, Quantity::current), second = slots_of(one, Quantity::current_l2),
                third = slots_of(one, Quantity::current_l3);
    const Slots most = merged(merged(first, second, [](double a, double b) { return std::max(a, b); }), third,
                              [](double a, double b) { return std::max(a, b); });
    const Slots sum = merged(merged(first, second, std::plus<>()), third, std::plus<>());
    Known imbalance{.slots = {}, .meters = {one.meter->name}};
    for (const auto& [slot, total] : sum) {
      constexpr double kPhases = 3;
      if (total > 0) imbalance.slots.emplace(slot, std::max(0.0, most.at(slot) / (total / kPhases) - 1));
    }
    add("phase_imbalance", one.meter->subject_of(), imbalance);
  }

  void of_supply(const MeteredHistory& one) {
    const auto off = [&](const char* metric, Quantity quantity, std::optional<double> nominal) {
      if (!nominal || *nominal <= 0) return;
      Known deviation{.slots = slots_of(one, quantity), .meters = {one.meter->name}};
      for (auto& [slot, value] : deviation.slots) value = std::abs(value / *nominal - 1);
      add(metric, one.meter->subject_of(), deviation);
    };
    off("voltage_deviation", Quantity::voltage, one.meter->nominal_v);
    off("frequency_deviation", Quantity::frequency, one.meter->nominal_hz);
    Known efficiency{.slots = {}, .meters = {one.meter->name}};
    const Slots input = slots_of(one, Quantity::power), output = slots_of(one, Quantity::output_power);
    for (const auto& [slot, drawn] : input)
      if (const auto given = output.find(slot); given != output.end() && drawn > 0)
        efficiency.slots.emplace(slot, given->second / drawn);
    add("supply_efficiency", one.meter->subject_of(), efficiency);
  }

  void of_heat(const MeteredHistory& one) {
    const auto power = power_of(one.meter->rack);
    if (!power) return;
    const Slots rise = merged(slots_of(one, Quantity::return_temperature), slots_of(one, Quantity::supply_temperature),
                              std::minus<>());
    const Slots heat = merged(slots_of(one, Quantity::flow), rise,
                              [](double flow, double kelvin) { return heat_of_water_w(flow, kelvin); });
    Known share = *power;
    share.meters.insert(share.meters.begin(), one.meter->name);
    share.slots.clear();
    for (const auto& [slot, watts] : merged(heat, power->slots, [](double carried, double drawn) {
           return drawn > 0 ? carried / drawn : std::nan("");
         }))
      if (std::isfinite(watts)) share.slots.emplace(slot, watts);
    add("heat_share", one.meter->subject_of(), share);
  }

  void of_intake() {
    const MeteredHistory* intake = nullptr;
    for (const auto& one : meters_) {
      if (one.meter->subject != "meter" || !one.meter->rack.empty() || !one.meter->nodes.empty()) continue;
      if (slots_of(one, Quantity::power).empty()) continue;
      if (intake != nullptr) return;  // two of them: which is the whole site is not known
      intake = &one;
    }
    const auto power = power_of("");
    if (intake == nullptr || !power) return;
    Known ratio = *power;
    ratio.meters.insert(ratio.meters.begin(), intake->meter->name);
    ratio.slots.clear();
    for (const auto& [slot, value] :
         merged(slots_of(*intake, Quantity::power), power->slots,
                [](double all, double racks) { return racks > 0 ? all / racks : std::nan(""); }))
      if (std::isfinite(value)) ratio.slots.emplace(slot, value);
    add("power_ratio", intake->meter->subject_of(), ratio);
  }

  std::span<const MeteredHistory> meters_;
  double interval_s_ = 0;
  std::map<std::string, Known> racks_;
  std::vector<DerivedSeries> all_;
};

}  // namespace

double power_of_racks_w(std::span<const MeterPower> powers) {
  std::map<std::string, std::map<std::string, double>> racks;  // by rack and subject
  for (const auto& [meter, power_w] : powers) {
    if (meter->rack.empty()) continue;
    double& sum = racks[meter->rack][meter->subject];
    sum = meter->subject == "rack" ? std::max(sum, power_w) : sum + power_w;
  }
  double all_w = 0;
  for (const auto& [rack, subjects] : racks) {
    for (const char* subject : {"rack", "feed", "shelf"}) {
      const auto found = subjects.find(subject);
      if (found == subjects.end()) continue;
      all_w += found->second;
      break;
    }
  }
  return all_w;
}

std::vector<DerivedSeries> derived_series(std::span<const MeteredHistory> meters) { return Facility(meters).take(); }

}  // namespace assay::meters
