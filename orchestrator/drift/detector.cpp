// detector: one night after the other. Detector::add() takes five steps:
//   1. events, in order of time: a repair, a swapped part or a new version changes the state of its units before
//      tonight's figures are looked at; some close flags or forget a series (apply()).
//   2. sorted(): for each series the first reading of the night is the regular one; others are fresh tests, or readings
//      of the same unit with another partner. Units not measured, or in maintenance, are left out.
//   3. find_thresholds(): limits of the charts, of cliffs and of counts, from the budget of false flags and the
//      readings of the last `false_flags.nights` nights.
//   4. judge_all(): every metric for itself, on `threads` threads: level.cpp or other_metric.cpp. A metric writes to
//      only its own track, so the result does not depend on the threads.
//   5. conclusions, in the order of the metrics' names: new flags, tests of open flags (flag_book.cpp), flags that end,
//      shifts of whole fleets; then which cliffs are to be tested again, at most retests.R.
//
// Kept from night to night (Detector::Inside, written by state()): the summary of each series (SeriesState,
// PlainState), not its readings; where each unit is; open flags; the counts of readings behind the thresholds.
//
// Hashed (add_digest()): the digest of the night before, the date, visits and events as sorted lines, and for each
// metric by name the unit and the bits of every figure that was used. Equal histories have equal digests, for any
// order of units and readings.
#include "orchestrator/drift/detector.h"

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include "orchestrator/drift/charts.h"
#include "orchestrator/drift/detector_internal.h"
#include "orchestrator/files/digest.h"

namespace assay::drift {
namespace {

// Shares of the budget of false flags besides that of the charts.
constexpr double kShareOfCliffs = 0.2;
constexpr double kShareOfCounts = 0.1;

/// The policy's entry of `metric`, with or without its coordinates.
const MetricPolicy* policy_of(const Policy& policy, const std::string& metric) {
  auto found = policy.metrics.find(metric);
  if (found == policy.metrics.end()) found = policy.metrics.find(metric.substr(0, metric.find('{')));
  return found == policy.metrics.end() ? nullptr : &found->second;
}

std::uint64_t key_of(const std::string& unit, const std::string& metric) {
  const std::string digits = files::sha256(unit + '\0' + metric);
  constexpr int kHexadecimal = 16;
  return std::stoull(digits.substr(0, kHexadecimal), nullptr, kHexadecimal);
}

MetricTrack track_of(const Metric& metric, const Policy& policy) {
  const MetricPolicy* rules = policy_of(policy, metric.name);
  const MetricPolicy none;
  if (rules == nullptr) rules = &none;
  MetricTrack track;
  track.type = rules->type.value_or(metric.type);
  track.min_effect = rules->min_effect.value_or(policy.min_effect);
  track.level = LevelMetric(policy, rules->lower_is_better.value_or(metric.lower_is_better), track.min_effect);
  track.plain = PlainMetric({.type = track.type,
                             .fatal = rules->fatal.value_or(metric.fatal),
                             .course = rules->course.value_or(metric.course),
                             .most_per_day = rules->most_per_day,
                             .expected = rules->expected ? rules->expected : metric.expected});
  return track;
}

}  // namespace

void Detector::Internal::grow_metric(std::uint32_t metric, std::vector<std::uint32_t> series) {
  MetricTrack& track = metrics[metric];
  const std::size_t before = track.series.size();
  std::vector<SeriesState> levels(before + series.size());
  std::vector<PlainState> plain(levels.size());
  std::vector<std::uint64_t> keys(levels.size());
  const std::vector<std::uint32_t> old = std::move(track.series);
  track.series = old;
  track.series.insert(track.series.end(), series.begin(), series.end());
  std::ranges::sort(track.series, {},
                    [&](std::uint32_t one) -> const std::string& { return fleet->units[fleet->series[one].unit].id; });
  std::vector<std::uint32_t> place(fleet->series.size(), kNone);
  for (std::uint32_t slot = 0; slot < track.series.size(); ++slot) place[track.series[slot]] = slot;
  for (std::size_t i = 0; i < before; ++i) {
    levels[place[old[i]]] = track.level.states[i];
    plain[place[old[i]]] = track.plain.states[i];
    keys[place[old[i]]] = track.keys[i];
  }
  for (const std::uint32_t one : series)
    keys[place[one]] = key_of(fleet->units[fleet->series[one].unit].id, fleet->metrics[metric].name);
  for (const std::uint32_t one : track.series) slot_of[one] = place[one];
  track.keys = std::move(keys);
  track.level.states = std::move(levels);
  track.plain.states = std::move(plain);
}

void Detector::Internal::make_metrics(std::size_t count) {
  for (std::size_t i = metrics.size(); i < count; ++i) metrics.push_back(track_of(fleet->metrics[i], policy));
}

void Detector::Internal::grow() {
  units.grow(*fleet);
  make_metrics(fleet->metrics.size());
  const std::size_t known = slot_of.size();
  if (known == fleet->series.size()) return;
  slot_of.resize(fleet->series.size(), kNone);
  std::vector<std::vector<std::uint32_t>> fresh(metrics.size());
  for (std::size_t i = known; i < fleet->series.size(); ++i) {
    const Series& one = fleet->series[i];
    if (one.metric >= metrics.size() || one.unit >= fleet->units.size())
      throw std::invalid_argument("a series names a unit or a metric that there is not");
    fresh[one.metric].push_back(static_cast<std::uint32_t>(i));
  }
  for (std::uint32_t i = 0; i < fresh.size(); ++i) {
    if (!fresh[i].empty()) grow_metric(i, std::move(fresh[i]));
  }
}

std::vector<std::uint32_t> Detector::Internal::by_name() const {
  std::vector<std::uint32_t> order(metrics.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, {}, [&](std::uint32_t i) -> const std::string& { return fleet->metrics[i].name; });
  return order;
}

void Detector::Internal::find_thresholds(Day day, double readings) {
  visits.emplace_back(day, readings);
  while (visits.front().first <= day - policy.false_flags.nights) visits.pop_front();
  double sum = 0;
  for (const auto& [night, count] : visits) sum += count;
  const double elapsed = std::min(policy.false_flags.nights, day - first + 1);
  thresholds.visits = sum * policy.false_flags.nights / elapsed;
  const double charts = 2;
  thresholds.arl0 = charts * thresholds.visits / policy.false_flags.count;
  thresholds.h_small = limit_for(kSmallSlack, thresholds.arl0);
  thresholds.h_large = limit_for(kLargeSlack, thresholds.arl0);
  thresholds.cliff_history = cliff_history(kShareOfCliffs * policy.false_flags.count, policy.false_flags.nights,
                                           policy.retests.R, policy.retests.k);
  thresholds.count_p = kShareOfCounts * policy.false_flags.count / std::max(thresholds.visits, 1.0);
}

void Detector::Internal::find_usual_serial() {
  usual_serial = {};
  for (const std::uint32_t metric : by_name()) {
    const Serial& one = metrics[metric].level.serial;
    if (!(one.pairs > 0)) continue;
    usual_serial.pairs += one.pairs;
    usual_serial.rho += (one.rho - usual_serial.rho) * one.pairs / usual_serial.pairs;
  }
}

void Detector::Internal::apply(const Event& event, std::uint32_t unit, Day day) {
  units.take(unit, event, day);
  const std::string& id = fleet->units[unit].id;
  std::vector<OpenFlag*> own;
  for (auto at = flags.open.lower_bound({id, ""}); at != flags.open.end() && at->first.first == id; ++at)
    own.push_back(&at->second);
  if (event.kind == EventKind::part_swap || event.kind == EventKind::accepted_as_is) {
    for (OpenFlag* one : own) close(*one);
    for (MetricTrack& track : metrics) {
      const auto found = std::ranges::lower_bound(
          track.series, id, {},
          [&](std::uint32_t series) -> const std::string& { return fleet->units[fleet->series[series].unit].id; });
      if (found == track.series.end() || fleet->series[*found].unit != unit) continue;
      track.level.reset(slot_of[*found], event.kind == EventKind::accepted_as_is);
      track.plain.states[slot_of[*found]] = {};
    }
    return;
  }
  if (event.kind == EventKind::retired) {
    for (OpenFlag* one : own) close(*one);
    return;
  }
  for (OpenFlag* one : own) {
    UnitState& state = one->flag.state;
    if (event.kind == EventKind::repaired || event.kind == EventKind::released) {
      state = UnitState::repaired;
      one->clean = 0;
      one->flag.retests.clear();
    } else if (event.kind == EventKind::drained && state == UnitState::confirmed) {
      state = UnitState::draining;
    } else if (event.kind == EventKind::lemon) {
      state = UnitState::lemon;
    }
  }
}

void Detector::Internal::take_events(const Night& night, Day day) {
  std::vector<const Event*> order;
  for (const Event& event : night.events) order.push_back(&event);
  std::ranges::sort(order, {}, [](const Event* one) { return std::tie(one->time, one->scope, one->kind, one->text); });
  for (const Event* event : order) {
    for (const std::uint32_t unit : units.named(*fleet, *event)) apply(*event, unit, day);
    if (event->scope == "fleet" && event->kind == EventKind::accepted_as_is) {
      for (MetricTrack& track : metrics) track.fleet.clear();
    }
  }
}

void Detector::Internal::add_digest(const Night& night, Day day, const std::vector<MetricNight>& tonight) {
  std::vector<std::string> lines;
  for (const Visit& visit : night.visits)
    lines.push_back(fmt::format("visit {} {} {} {} {} {} {} {} {} {} {}", fleet->units[visit.unit].id,
                                fleet->cohorts[visit.cohort], visit.state, visit.retest, visit.run_sha256,
                                visit.started, visit.node, visit.slot, visit.boot, visit.partner, visit.reason));
  for (const Event& event : night.events)
    lines.push_back(fmt::format("event {} {} {} {} {}", event.time, event.scope, event.kind, event.text, event.who));
  std::ranges::sort(lines);
  std::string all = digest;
  append(all, static_cast<std::uint64_t>(static_cast<std::int64_t>(day)));
  for (const auto& line : lines) all += line + "\n";
  for (const std::uint32_t i : by_name()) all += fleet->metrics[i].name + "\n" + tonight[i].digest + "\n";
  digest = files::sha256(all);
}

Detector::Detector(const Fleet& fleet, Policy policy, unsigned threads)
    : inside_(std::make_unique<Internal>(fleet, std::move(policy), threads)) {}
Detector::Detector(Detector&&) noexcept = default;
Detector& Detector::operator=(Detector&&) noexcept = default;
Detector::~Detector() = default;

Date Detector::last() const { return inside_->last == kNever ? Date{} : Date{std::chrono::days{inside_->last}}; }

void Detector::add(const Night& night) {
  Internal& in = *inside_;
  const Day day = static_cast<Day>(night.date.time_since_epoch().count());
  if (in.last != kNever && day <= in.last) throw std::invalid_argument("nights must be added in ascending order");
  for (const Visit& visit : night.visits) {
    if (visit.unit >= in.fleet->units.size() || visit.cohort >= in.fleet->cohorts.size())
      throw std::invalid_argument("a visit names a unit or a cohort that there is not");
  }
  for (const Reading& reading : night.readings) {
    if (reading.series >= in.fleet->series.size() || reading.visit >= night.visits.size())
      throw std::invalid_argument("a reading names a series or a visit that there is not");
  }
  in.grow();
  in.take_events(night, day);
  const SortedReadings given = in.sorted(night, day, in.units.take(*in.fleet, night, day));
  if (in.first == kNever) in.first = day;
  in.find_thresholds(day, given.levels);
  in.find_usual_serial();
  std::vector<MetricNight> tonight(in.metrics.size());
  in.judge_all(tonight, night, given, day);
  in.cliffs.clear();
  in.refused.clear();
  for (const std::uint32_t metric : in.by_name()) {
    if (in.metrics[metric].type == MetricClass::level)
      in.conclude_level(metric, tonight[metric], day, night);
    else
      in.conclude_plain(metric, tonight[metric], day, night);
  }
  in.choose_cliffs();
  in.add_digest(night, day, tonight);
  in.last = day;
  if (!night.visits.empty()) {
    in.swept = day;
    ++in.nights;
  }
}

}  // namespace assay::drift
