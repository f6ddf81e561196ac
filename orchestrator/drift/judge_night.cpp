// judge_night: steps 2, 4 and 5 of a night as detector.cpp describes it: sorting, judging metric by metric,
// conclusions.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <set>
#include <thread>

#include "orchestrator/drift/charts.h"
#include "orchestrator/drift/detector_internal.h"
#include "orchestrator/files/digest.h"
#include "probes/core/portable_math.h"

namespace assay::drift {
namespace {

std::uint64_t boot_number(const std::string& boot) {
  std::uint64_t number = 0xcbf29ce484222325ULL;  // FNV-1a: only to distinguish boots
  for (const char c : boot) number = (number ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return number;
}

}  // namespace

std::vector<std::string> runs_of(const Night& night, std::uint32_t unit) {
  std::set<std::string> runs;
  for (const Visit& visit : night.visits) {
    if (visit.unit == unit && !visit.run_sha256.empty()) runs.insert(visit.run_sha256);
  }
  return {runs.begin(), runs.end()};
}

/// Whether the reading `i`, which is not the first of its series tonight, was made with another partner than those.
static bool is_with_another(const Night& night, const SortedReadings& all, std::uint32_t series, std::uint32_t i) {
  if (i == kNone || all.regular[series] == kNone) return false;
  const Visit& visit = night.visits[night.readings[i].visit];
  if (visit.retest || visit.partner.empty()) return false;
  const auto same = [&](std::uint32_t other) {
    return night.visits[night.readings[other].visit].partner == visit.partner;
  };
  const auto found = all.with_others.find(series);
  return !same(all.regular[series]) && (found == all.with_others.end() || std::ranges::none_of(found->second, same));
}

/// Whether reading `a` was measured before `b`; of one time in a fixed order.
static bool is_before(const Night& night, std::uint32_t a, std::uint32_t b) {
  const auto key = [&](std::uint32_t i) {
    const Reading& reading = night.readings[i];
    const Visit& visit = night.visits[reading.visit];
    return std::tie(visit.started, visit.run_sha256, reading.value);
  };
  return key(a) < key(b);
}

SortedReadings Detector::Internal::sorted(const Night& night, Day day, std::vector<std::uint32_t> cohorts) {
  SortedReadings all{.regular = std::vector<std::uint32_t>(fleet->series.size(), kNone),
                     .irregular = std::vector<std::vector<std::uint32_t>>(metrics.size()),
                     .cohorts = std::move(cohorts)};
  for (std::uint32_t i = 0; i < night.readings.size(); ++i) {
    const Reading& reading = night.readings[i];
    const Visit& visit = night.visits[reading.visit];
    if (visit.state != VisitState::measured || units.tracks[visit.unit].out == day) continue;
    const std::uint32_t metric = fleet->series[reading.series].metric;
    std::uint32_t& regular = all.regular[reading.series];
    std::uint32_t other = i;
    if (!visit.retest && (regular == kNone || is_before(night, i, regular))) std::swap(regular, other);
    if (is_with_another(night, all, reading.series, other)) {
      all.with_others[reading.series].push_back(other);
      other = kNone;
    }
    if (other != kNone) all.irregular[metric].push_back(other);
  }
  for (const Visit& visit : night.visits) {
    if (fleet->units[visit.unit].kind != "node") continue;
    std::uint32_t& unit = all.nodes.emplace(visit.node, visit.unit).first->second;
    if (fleet->units[visit.unit].id < fleet->units[unit].id) unit = visit.unit;
  }
  for (auto& list : all.irregular) {
    std::ranges::sort(list, [&](std::uint32_t a, std::uint32_t b) {
      const auto slot = [&](std::uint32_t i) { return slot_of[night.readings[i].series]; };
      return slot(a) != slot(b) ? slot(a) < slot(b) : is_before(night, a, b);
    });
  }
  for (std::size_t i = 0; i < all.regular.size(); ++i) {
    if (all.regular[i] != kNone && metrics[fleet->series[i].metric].type == MetricClass::level) all.levels += 1;
  }
  return all;
}

void Detector::Internal::judge_level(std::uint32_t metric, MetricNight& tonight, const Night& night,
                                     const SortedReadings& given, Day day) {
  MetricTrack& track = metrics[metric];
  std::string bytes;
  std::optional<std::optional<double>> known;  // found where the metric is one of pairs
  const auto typical = [&] {
    if (!known) known = track.level.typical();
    return *known;
  };
  for (std::uint32_t slot = 0; slot < track.series.size(); ++slot) {
    const std::uint32_t i = given.regular[track.series[slot]];
    if (i == kNone) continue;
    const Reading& reading = night.readings[i];
    const Visit& visit = night.visits[reading.visit];
    const auto& accepted = fleet->series[track.series[slot]].accepted;
    tonight.levels.push_back({.slot = slot,
                              .cohort = given.cohorts[reading.visit],
                              .value = reading.value,
                              .no_cliff = units.tracks[visit.unit].moved == day,
                              .accepted = accepted.value_or(0)});
    if (!visit.partner.empty()) take_partners(tonight.levels.back(), metric, night, given, typical());
    tonight.level_visits.push_back(reading.visit);
    append(bytes, track.keys[slot]);
    append(bytes, std::bit_cast<std::uint64_t>(reading.value));
    if (const auto found = given.with_others.find(track.series[slot]); found != given.with_others.end()) {
      for (const std::uint32_t other : found->second)
        append(bytes, std::bit_cast<std::uint64_t>(night.readings[other].value));
    }
    if (accepted) append(bytes, std::bit_cast<std::uint64_t>(*accepted));
  }
  for (const std::uint32_t i : given.irregular[metric]) {
    const Reading& reading = night.readings[i];
    const std::uint32_t slot = slot_of[reading.series];
    tonight.retests.push_back({.slot = slot, .cohort = given.cohorts[reading.visit], .value = reading.value});
    if (const Visit& visit = night.visits[reading.visit]; !visit.partner.empty())
      tonight.retests.back().partner = excess_of(visit, metric, given, typical());
    tonight.retest_visits.push_back(reading.visit);
    append(bytes, ~track.keys[slot]);
    append(bytes, std::bit_cast<std::uint64_t>(reading.value));
  }
  if (!bytes.empty()) tonight.digest = files::sha256(bytes);
  if (tonight.levels.empty() && tonight.retests.empty()) return;
  tonight.out = track.level.night(day, tonight.levels, tonight.retests,
                                  {.h_small = thresholds.h_small,
                                   .h_large = thresholds.h_large,
                                   .cliff_history = thresholds.cliff_history,
                                   .usual = usual_serial});
}

void Detector::Internal::judge_plain(std::uint32_t metric, MetricNight& tonight, const Night& night,
                                     const SortedReadings& given, Day day) {
  MetricTrack& track = metrics[metric];
  std::string bytes;
  const auto take = [&](std::uint32_t i, bool regular) {
    const Reading& reading = night.readings[i];
    const std::uint32_t slot = slot_of[reading.series];
    tonight.plain.push_back({.slot = slot,
                             .cohort = given.cohorts[reading.visit],
                             .value = reading.value,
                             .boot = boot_number(night.visits[reading.visit].boot),
                             .regular = regular});
    tonight.level_visits.push_back(reading.visit);
    append(bytes, regular ? track.keys[slot] : ~track.keys[slot]);
    append(bytes, std::bit_cast<std::uint64_t>(reading.value));
  };
  auto extra = given.irregular[metric].begin();
  const auto end = given.irregular[metric].end();
  for (std::uint32_t slot = 0; slot < track.series.size(); ++slot) {
    const std::uint32_t regular = given.regular[track.series[slot]];
    const auto take_extra = [&](bool all) {  // those before the regular reading, or all that are left
      for (; extra != end && slot_of[night.readings[*extra].series] == slot; ++extra) {
        if (!all && !is_before(night, *extra, regular)) return;
        take(*extra, false);
      }
    };
    if (regular != kNone) {
      take_extra(false);
      take(regular, true);
    }
    take_extra(true);
  }
  if (!bytes.empty()) tonight.digest = files::sha256(bytes);
  tonight.findings = track.plain.night(day, tonight.plain, thresholds.count_p);
}

void Detector::Internal::judge_all(std::vector<MetricNight>& tonight, const Night& night, const SortedReadings& given,
                                   Day day) {
  std::atomic<std::uint32_t> next = 0;
  const auto work = [&] {
    for (std::uint32_t i = next++; i < metrics.size(); i = next++) {
      if (metrics[i].type == MetricClass::level)
        judge_level(i, tonight[i], night, given, day);
      else
        judge_plain(i, tonight[i], night, given, day);
    }
  };
  std::vector<std::jthread> helpers;
  for (unsigned i = 1; i < threads; ++i) helpers.emplace_back(work);
  work();
}

OpenFlag Detector::Internal::flag_for(std::uint32_t metric, std::uint32_t slot, Rule rule) const {
  const std::uint32_t series = metrics[metric].series[slot];
  const std::uint32_t number = fleet->series[series].unit;
  const Unit& unit = fleet->units[number];
  OpenFlag one{.unit = number, .metric = metric, .series = series, .min_effect = metrics[metric].min_effect};
  one.flag.unit = unit.id;
  one.flag.kind = unit.kind;
  one.flag.serial = unit.serial;
  one.flag.metric = fleet->metrics[metric].name;
  one.flag.type = metrics[metric].type;
  one.flag.rule = rule;
  return one;
}

OpenFlag* Detector::Internal::open_flag(std::uint32_t metric, std::uint32_t slot) {
  const Unit& unit = fleet->units[fleet->series[metrics[metric].series[slot]].unit];
  const auto found = flags.open.find({unit.id, fleet->metrics[metric].name});
  return found == flags.open.end() ? nullptr : &found->second;
}

void Detector::Internal::close(OpenFlag& one) {
  MetricTrack& track = metrics[one.metric];
  if (one.flag.rule == Rule::below_fleet)  // its reference was that of the others: it learns its own
    track.level.reset(slot_of[one.series], false);
  else if (track.type == MetricClass::level)
    track.level.release(slot_of[one.series], one.flag.state == UnitState::repaired);
  else
    track.plain.states[slot_of[one.series]].held = 0;
  const FlagKey key{one.flag.unit, one.flag.metric};
  flags.open.erase(key);
}

void Detector::Internal::refuse(std::uint32_t metric, std::uint32_t slot, const char* reason) {
  refused.push_back({.unit = fleet->units[fleet->series[metrics[metric].series[slot]].unit].id,
                     .metric = fleet->metrics[metric].name,
                     .reason = reason});
}

void Detector::Internal::test_seen(std::uint32_t metric, std::uint32_t slot, Day day, double residual, double ratio,
                                   bool regular, const Visit& visit) {
  OpenFlag* one = open_flag(metric, slot);
  if (one == nullptr || !std::isfinite(residual)) return;
  const Observation seen{.day = day,
                         .residual = residual,
                         .ratio = ratio,
                         .regular = regular,
                         .partner = visit.partner,
                         .run_sha256 = visit.run_sha256};
  if (flags.observe(*one, seen, policy)) close(*one);
}

/// The regular visit of `slot` tonight.
static const Visit& visit_of(const MetricNight& tonight, std::uint32_t slot, const Night& night) {
  const auto at = std::ranges::lower_bound(tonight.levels, slot, {}, &LevelInput::slot) - tonight.levels.begin();
  return night.visits[tonight.level_visits[static_cast<std::size_t>(at)]];
}

/// Reference of the tests of a raised flag: the mean, every visit so far, and the unit's own scatter.
static void hold_against(OpenFlag& one, const SeriesState& state, const std::vector<LevelRetest>& retests,
                         const Raised& raised) {
  Reference all = state.all;
  if (raised.rule == Rule::cliff) {
    for (const LevelRetest& retest : retests) {
      if (retest.slot == raised.slot) all.add(retest.y);
    }
  }
  one.visits = state.now.n;
  one.size = std::abs(raised.effect) / one.s;
  one.pooled = all.n;
  one.pooled_mean = (all.mean - state.now.mean) / one.s;
  const double own = state.now.n > 1 ? state.now.squares / (state.now.n - 1) : 0;
  const double rho = raised.numbers.rho;
  one.noise = std::sqrt(std::max(1.0, own / (one.s * one.s)) * (1 + rho) / (1 - rho));
}

void Detector::Internal::conclude_level(std::uint32_t metric, const MetricNight& tonight, Day day, const Night& night) {
  MetricTrack& track = metrics[metric];
  for (const auto& [slot, reason] : tonight.out.refused) refuse(metric, slot, reason);
  for (const Raised& raised : tonight.out.raised) {
    track.level.hold(raised.slot, raised.rule);
    OpenFlag one = flag_for(metric, raised.slot, raised.rule);
    one.s = std::max(raised.numbers.s, 1e-9);  // of a constant series: any change is many deviations
    one.effect = raised.effect;
    one.flag.arithmetic = raised.numbers;
    hold_against(one, track.level.states[raised.slot], tonight.retests, raised);
    one.flag.onset = date_of(raised.onset);
    one.flag.last_visit = date_of(day);
    one.flag.ratio = portable_exp(raised.effect);
    one.flag.ratio_low = portable_exp(raised.low);
    one.flag.ratio_high = portable_exp(raised.high);
    one.flag.evidence = runs_of(night, one.unit);
    const Visit& visit = visit_of(tonight, raised.slot, night);
    one.pair = !visit.partner.empty();
    if (one.pair) one.flag.partners = {visit.partner};
    if (raised.learning || 1 - one.flag.ratio < one.min_effect) one.flag.state = UnitState::watch;
    flags.raise(std::move(one), day);
  }
  const auto look = [&](std::uint32_t slot, double y, bool regular, const Visit& visit) {
    const OpenFlag* one = open_flag(metric, slot);
    if (one == nullptr) return;
    const double e = y - track.level.states[slot].now.mean;
    test_seen(metric, slot, day, e / one->s, portable_exp(e), regular, visit);
  };
  for (std::size_t i = 0; i < tonight.retests.size(); ++i)
    look(tonight.retests[i].slot, tonight.retests[i].y, false, night.visits[tonight.retest_visits[i]]);
  for (const Followed& seen : tonight.out.followed) {
    look(seen.slot, seen.y, true, visit_of(tonight, seen.slot, night));
    OpenFlag* one = open_flag(metric, seen.slot);
    const SeriesState& state = track.level.states[seen.slot];
    const bool learning = state.now.n + state.held <= policy.warmup;  // tonight's visit is among the held
    if (one != nullptr && flags.settle(*one, seen.effect, seen.charts_clear, learning)) close(*one);
  }
  for (const CliffCandidate& cliff : tonight.out.cliffs) {
    if (1 - portable_exp(cliff.effect) >= track.min_effect)
      cliffs.push_back({.unit = fleet->series[track.series[cliff.slot]].unit,
                        .metric = metric,
                        .T = cliff.T,
                        .pair = !visit_of(tonight, cliff.slot, night).partner.empty()});
  }
  conclude_fleet(metric, tonight, day);
}

void Detector::Internal::conclude_fleet(std::uint32_t metric, const MetricNight& tonight, Day day) {
  constexpr std::size_t kFewest = 4;
  std::size_t known = 0;
  for (const MetricTrack& track : metrics) known += track.fleet.size();
  const double visits_of_levels =
      2.0 * static_cast<double>(std::max<std::size_t>(known, 1)) * policy.false_flags.nights / policy.false_flags.count;
  const auto by_kind = [&](const std::map<std::uint32_t, std::vector<double>>& cohorts) {
    std::map<std::string, std::vector<double>> kinds;
    for (const auto& [cohort, values] : cohorts) {
      auto& all = kinds[kind_of_cohort(units.cohorts[cohort])];
      all.insert(all.end(), values.begin(), values.end());
    }
    return kinds;
  };
  auto& levels = metrics[metric].fleet;
  for (auto& [kind, values] : by_kind(tonight.out.levels)) {
    if (values.size() < kFewest) continue;
    const std::size_t count = values.size();
    move_level(levels[kind], day, median_of(values), count, policy, limit_for(kSmallSlack, visits_of_levels),
               limit_for(kLargeSlack, visits_of_levels));
  }
  for (auto& [kind, values] : by_kind(tonight.out.accepted)) {
    FleetLevel& kept = levels[kind];
    kept.has_accepted = true;
    kept.units = static_cast<double>(values.size());
    kept.accepted_effect = median_of(values);
    kept.last_day = day;
  }
}

void Detector::Internal::conclude_plain(std::uint32_t metric, const MetricNight& tonight, Day day, const Night& night) {
  MetricTrack& track = metrics[metric];
  const bool is_state = track.type == MetricClass::state;
  for (const PlainFinding& found : tonight.findings) {
    const std::uint32_t slot = tonight.plain[found.input].slot;
    PlainState& kept = track.plain.states[slot];
    const Visit& visit = night.visits[tonight.level_visits[found.input]];
    if (kept.held != 0) {
      constexpr double kMismatch = -10;
      test_seen(metric, slot, day, found.bad ? kMismatch : 0, is_state ? 1 : found.events, found.regular, visit);
    } else if (found.bad) {
      OpenFlag one = flag_for(metric, slot, is_state ? Rule::state : Rule::count);
      one.flag.arithmetic.x = found.events;
      one.flag.arithmetic.m = found.expected;
      one.flag.onset = one.flag.last_visit = date_of(day);
      one.flag.ratio = one.flag.ratio_low = one.flag.ratio_high = is_state ? 1 : found.events;
      one.flag.evidence = runs_of(night, one.unit);
      kept.held = 1;
      flags.raise(std::move(one), day);
    }
  }
}

void Detector::Internal::choose_cliffs() {
  std::ranges::sort(cliffs, {}, [&](const WantedCliff& one) {
    return std::tuple(one.T, fleet->units[one.unit].id, fleet->metrics[one.metric].name);
  });
  if (std::ssize(cliffs) > policy.retests.R) cliffs.resize(static_cast<std::size_t>(policy.retests.R));
}

}  // namespace assay::drift
