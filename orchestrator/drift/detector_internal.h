// detector_internal: state of a detector; shared by the files that implement it.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/drift/count_and_state.h"
#include "orchestrator/drift/detector.h"
#include "orchestrator/drift/flag_register.h"
#include "orchestrator/drift/fleet_levels.h"
#include "orchestrator/drift/level.h"
#include "orchestrator/drift/unit_register.h"

namespace assay::drift {

/// One metric with all of its series. Slots are in the order of the units' ids.
struct MetricTrack {
  MetricClass type = MetricClass::level;
  double min_effect = 0.01;
  std::vector<std::uint32_t> series;  ///< by slot
  std::vector<std::uint64_t> keys;    ///< by slot: key of unit and metric in the history's digest
  LevelMetric level;
  PlainMetric plain;
  std::map<std::string, FleetLevel> fleet;  ///< by kind of cohort
};

/// Tonight's input and output of a metric.
struct MetricNight {
  std::vector<LevelInput> levels;
  std::vector<std::uint32_t> level_visits;  ///< of `levels`
  std::vector<LevelRetest> retests;
  std::vector<PlainInput> plain;
  std::vector<std::uint32_t> retest_visits;  ///< of `retests` or the irregular ones of `plain`
  LevelOutput out;
  std::vector<PlainFinding> findings;
  std::string digest;
};

/// Readings of a night by their kind.
struct SortedReadings {
  std::vector<std::uint32_t> regular;                 ///< by series: index into Night::readings, or kNone
  std::vector<std::vector<std::uint32_t>> irregular;  ///< by metric: those of fresh tests, in the order of slots
  std::vector<std::uint32_t> cohorts;                 ///< by visit
  /// By series: further regular readings of a night, each with another partner.
  std::map<std::uint32_t, std::vector<std::uint32_t>> with_others;
  std::map<std::string, std::uint32_t> nodes;  ///< by name of the node: its unit of kind "node"
  double levels = 0;                           ///< regular readings of levels
};

/// A cliff that fresh tests of this night are to confirm.
struct WantedCliff {
  std::uint32_t unit = 0, metric = 0;
  double T = 0;
  bool pair = false;  ///< of a figure of two nodes
};

struct Detector::Internal {
  Internal(const Fleet& given, Policy rules, unsigned count)
      : fleet(&given), policy(std::move(rules)), threads(count == 0 ? 1 : count) {}

  const Fleet* fleet;
  Policy policy;
  unsigned threads;
  Day last = kNever, first = kNever;
  Day swept = kNever;  ///< the last night with visits: a later one has events only
  std::size_t nights = 0;
  std::vector<MetricTrack> metrics;    ///< by number in the fleet
  std::vector<std::uint32_t> slot_of;  ///< by series
  UnitRegister units;
  FlagRegister flags;
  std::deque<std::pair<Day, double>> visits;  ///< readings of levels, of the nights of a budget period
  std::string digest;                         ///< of everything that was used, chained night by night
  Thresholds thresholds;
  Serial usual_serial;              ///< of all metrics, before tonight
  std::vector<WantedCliff> cliffs;  ///< of the last night
  std::vector<NotJudged> refused;   ///< likewise

  void grow();
  void make_metrics(std::size_t count);
  void grow_metric(std::uint32_t metric, std::vector<std::uint32_t> series);
  void find_thresholds(Day day, double readings);
  void find_usual_serial();
  void take_events(const Night& night, Day day);
  void apply(const Event& event, std::uint32_t unit, Day day);
  SortedReadings sorted(const Night& night, Day day, std::vector<std::uint32_t> cohorts);
  void judge_level(std::uint32_t metric, MetricNight& tonight, const Night& night, const SortedReadings& given,
                   Day day);
  /// Its unit's figure without the partner's part: the median over the night's partners (pair_readings.cpp).
  void take_partners(LevelInput& input, std::uint32_t metric, const Night& night, const SortedReadings& given,
                     std::optional<double> typical) const;
  double excess_of(const Visit& visit, std::uint32_t metric, const SortedReadings& given,
                   std::optional<double> typical) const;
  void judge_plain(std::uint32_t metric, MetricNight& tonight, const Night& night, const SortedReadings& given,
                   Day day);
  void judge_all(std::vector<MetricNight>& tonight, const Night& night, const SortedReadings& given, Day day);
  void conclude_level(std::uint32_t metric, const MetricNight& tonight, Day day, const Night& night);
  void conclude_plain(std::uint32_t metric, const MetricNight& tonight, Day day, const Night& night);
  void conclude_fleet(std::uint32_t metric, const MetricNight& tonight, Day day);
  void test_seen(std::uint32_t metric, std::uint32_t slot, Day day, double residual, double ratio, bool regular,
                 const Visit& visit);
  void choose_cliffs();
  void add_digest(const Night& night, Day day, const std::vector<MetricNight>& tonight);
  OpenFlag flag_for(std::uint32_t metric, std::uint32_t slot, Rule rule) const;
  OpenFlag* open_flag(std::uint32_t metric, std::uint32_t slot);
  void close(OpenFlag& one);
  void refuse(std::uint32_t metric, std::uint32_t slot, const char* reason);
  /// Numbers of metrics in the order of their names.
  [[nodiscard]] std::vector<std::uint32_t> by_name() const;
};

/// Appends the eight bytes of `number`.
inline void append(std::string& bytes, std::uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(number >> shift & 0xff);
}

/// Runs of visits of `unit` in `night`.
std::vector<std::string> runs_of(const Night& night, std::uint32_t unit);

}  // namespace assay::drift
