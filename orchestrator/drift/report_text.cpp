// report_text: a drift report in sentences.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "orchestrator/drift/charts.h"
#include "orchestrator/drift/level.h"
#include "orchestrator/drift/report.h"
#include "probes/core/how_many.h"

namespace assay::drift {
namespace {

constexpr std::string_view kUnitElement = "unit ", kNodeUnit = "node:";

/// The first step that the suspects of a flag ask for; empty if it has none but its own unit.
std::string look_first(const Flag& flag) {
  if (flag.suspects.empty() || flag.suspects[0].starts_with(kUnitElement)) return "";
  return fmt::format("Look at {} first, which other flags have in common. ", flag.suspects[0]);
}

std::size_t in_state(const DriftReport& report, UnitState state) {
  const auto found = report.units.find(std::string(word_of(state)));
  return found == report.units.end() ? 0 : found->second;
}

/// Nights until a lasting fall of `size` deviations is flagged, on average.
double nights_to_flag(const Thresholds& thresholds, double size) {
  double nights = thresholds.h_small / (size - kSmallSlack);
  if (size > kLargeSlack) nights = std::min(nights, thresholds.h_large / (size - kLargeSlack));
  return std::max(1.0, std::ceil(nights));
}

/// The advice of the first line.
std::string what_to_do(const DriftReport& report, std::size_t confirmed) {
  if (report.series == 0) return "nothing was judged: no sweep has a figure";
  if (report.coverage.units == 0) return "nothing is watched: every unit is retired";
  if (confirmed > 0) return "take the confirmed units out of service";
  if (report.coverage.silent_nights > 0) return "sweep again";
  if (!report.coverage.overdue.empty()) return "measure the overdue units";
  if (!report.retests_wanted.empty()) return "test again";
  const std::size_t learning = in_state(report, UnitState::learning);
  if (const std::size_t watched = in_state(report, UnitState::watch); watched > 0)
    return fmt::format("measure on, first what is watched: {}", how_many(watched, "unit"));
  if (learning > 0) return fmt::format("measure on, too few visits to be judged: {}", how_many(learning, "unit"));
  return "nothing to do";
}

}  // namespace

std::string summary_text(const DriftReport& report) {
  std::size_t confirmed = 0;
  std::size_t waiting = 0;
  for (const Flag& flag : report.flags) {
    confirmed += flag.state == UnitState::confirmed;
    waiting += flag.state == UnitState::flagged;
  }
  const Coverage& coverage = report.coverage;
  std::string text =
      fmt::format("{}{}: {} of {} units measured, {} overdue; flags: {} confirmed, {} to be tested again: {}.\n",
                  report.simulated ? "SIMULATION " : "", date_text(report.as_of), coverage.measured, coverage.units,
                  coverage.overdue.size(), confirmed, waiting, what_to_do(report, confirmed));
  if (coverage.silent_nights > 0)
    text += fmt::format("stopped   the last sweep was {} before this judgement: nothing is known since\n",
                        how_many(coverage.silent_nights, "night"));
  for (const auto& one : report.fleet)
    text += fmt::format("fleet     {}{}{}: {}\n", one.metric, one.cohort.empty() ? "" : " on ", one.cohort, one.words);
  for (const Flag& flag : report.flags)
    text +=
        fmt::format("{:<9} {} on {}, {}: {}{} Action: {}.\n", flag.state, flag.unit, flag.node, flag.metric, flag.words,
                    flag.suspects.empty() || flag.suspects[0] == "unit " + flag.unit
                        ? ""
                        : fmt::format(" Shared with others: {}.", flag.suspects[0]),
                    short_words(action_of(flag)));
  constexpr std::size_t kMostShown = 20;
  for (std::size_t i = 0; i < coverage.overdue.size() && i < kMostShown; ++i)
    text += fmt::format("overdue   {} on {}: {}{}\n", coverage.overdue[i].unit, coverage.overdue[i].node,
                        how_many(coverage.overdue[i].nights, "night"),
                        coverage.overdue[i].last_state.empty()       ? ", in no sweep"
                        : coverage.overdue[i].last_state == kMissing ? ", missing on a measured node"
                                                                     : ", last " + coverage.overdue[i].last_state);
  if (coverage.overdue.size() > kMostShown)
    text += fmt::format("overdue   … and {} more\n", coverage.overdue.size() - kMostShown);
  return text;
}

std::string sight_text(const DriftReport& report, const Policy* policy) {
  std::string text;
  if (const std::size_t learning = in_state(report, UnitState::learning); learning > 0)
    text += fmt::format("learning  {} of {} units: {}\n", learning, report.coverage.units,
                        policy == nullptr
                            ? "too few visits to be judged yet"
                            : fmt::format("judged from their visit {} on; before it a large fall is "
                                          "watched, from visit {} on",
                                          policy->warmup + 1, std::min(policy->warmup, kVisitsForCharts) + 1));
  const Thresholds& limits = report.thresholds;
  if (limits.h_small > 0)
    text += fmt::format(
        "sight     a lasting fall of 1, 2, 3 deviations between nights is flagged after about {:.0f}, {:.0f}, {:.0f} "
        "visits; a fall in one night, which fresh tests confirm, from visit {} on\n",
        nights_to_flag(limits, 1), nights_to_flag(limits, 2), nights_to_flag(limits, 3), limits.cliff_history + 1);
  constexpr std::size_t kFewForShift = 4, kFewForPairs = 8;
  if (report.coverage.units < kFewForShift)
    text += fmt::format("sight     fewer than {} units: a bad night of all of them looks like a fault of each\n",
                        kFewForShift);
  else if (report.coverage.units < kFewForPairs)
    text +=
        fmt::format("sight     fewer than {} units: a fall that two nodes measure together may be of either of them\n",
                    kFewForPairs);
  return text;
}

profiles::Advice action_of(const Flag& flag) {
  const std::string name = flag.metric.substr(0, flag.metric.find('{'));
  const auto dot = name.find('.');
  return dot == std::string::npos ? profiles::Advice{}
                                  : profiles::actions().of_metric(name.substr(0, dot), name.substr(dot + 1));
}

std::string words_of_element(const std::string& element) {
  std::string_view left = element;
  for (const std::string_view prefix : {kUnitElement, kNodeUnit}) {
    if (left.starts_with(prefix)) left.remove_prefix(prefix.size());
    if (left.size() == element.size()) return element;
  }
  return std::string(left);
}

std::string advice_for(const Flag& flag) {
  const std::string first = look_first(flag);
  switch (flag.state) {
    case UnitState::watch:
      return first + "Measure it again; `assay sweep --drift drift.json` visits it before others.";
    case UnitState::flagged:
      return first + "Test it again, once in another night at least: `assay sweep --retests --drift drift.json`.";
    case UnitState::confirmed:
      return first +
             fmt::format(
                 "Take {0} out of service (`assay drain plan --drift drift.json`) and repair {1} or send it back "
                 "(`assay rma {1}`). Then: `assay history event --kind repaired --on {1}`, or part_swap.",
                 flag.node, flag.unit);
    case UnitState::draining:
      return first +
             fmt::format(
                 "Repair {0} or send it back (`assay rma {0}`). Then: `assay history event --kind repaired --on "
                 "{0}`, or part_swap.",
                 flag.unit);
    case UnitState::repaired:
      return fmt::format("Measure it in two more nights, with `assay sweep --nodes {}`: two clean visits end the flag.",
                         flag.node);
    case UnitState::lemon:
      return fmt::format("It came back {} times: replace it. Then: `assay history event --kind part_swap --on {}`.",
                         flag.relapses, flag.unit);
    case UnitState::stale:
      return fmt::format("Measure it, with `assay sweep --nodes {}`: nothing is known of it since {}.", flag.node,
                         date_text(flag.last_visit));
    default:
      return "";
  }
}

}  // namespace assay::drift
