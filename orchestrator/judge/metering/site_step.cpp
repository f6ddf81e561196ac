// site_step: how the power of each subject follows a step up of the load, between the marks that rank 0 recorded:
//
//   load     ____________|``````````````|______        StepSeen of the step at `at_s`:
//        before_s      at_s          until_s           the level before is read from before_s on, the new one up to
//   readings   x   x   x   x   x   x   x   x           until_s, each reading at the middle of its slot.
//
// before_s is the mark before, else as long before the step as the new level lasts; until_s is the next mark, else the
// end of the load. step_response() (probes/core) finds rise, slope, overshoot and settling in it, or refuses.
#include "orchestrator/judge/metering/site_step.h"

#include <algorithm>
#include <expected>
#include <optional>

#include <fmt/format.h>

#include "orchestrator/judge/metering/site_efficiency.h"

namespace assay::judge {
namespace {

constexpr double kClocks_s = 1;  // by how much a node's clock and the head's may differ, as site_evidence has it

double coordinate(const Measurement& measured, const char* name) {
  const auto found = measured.at.find(name);
  return found == measured.at.end() ? 0 : number_in(found->second).value_or(0);
}

std::vector<double> marks_of(const Record& load, std::string_view metric) {
  const auto found = std::ranges::find(load.measurements, metric, &Measurement::metric);
  return found == load.measurements.end() ? std::vector<double>{} : found->samples;
}

std::optional<double> number_of_condition(const Record& record, std::string_view name) {
  const auto found = std::ranges::find(record.conditions, name, &Condition::name);
  return found == record.conditions.end() ? std::nullopt : number_in(found->value);
}

/// The slowest averaging window of the meters; why there is none.
std::expected<double, std::string> averaging_of(const std::map<int, Record>& watches, const PowerSeries& series) {
  double slowest_s = 0;
  for (const auto& meter : series.meters) {
    if (auto doubt = doubt_stated(watches, meter)) return std::unexpected(std::move(*doubt));
    const auto averaging_s = largest_stated(watches, "averaging_s", meter);
    if (!averaging_s) return std::unexpected(fmt::format("The meter {} states no averaging_s.", meter));
    slowest_s = std::max(slowest_s, *averaging_s);
  }
  return slowest_s;
}

/// The worst accuracy of the meters; nothing if one states none.
std::optional<double> accuracy_of_all(const std::map<int, Record>& watches, const PowerSeries& series) {
  double worst = 0;
  for (const auto& meter : series.meters) {
    const auto accuracy = largest_stated(watches, "accuracy_declared", meter);
    if (!accuracy || !(*accuracy > 0)) return std::nullopt;
    worst = std::max(worst, *accuracy);
  }
  return worst;
}

/// All steps as one subject shows them; why it does not show one of them.
std::expected<std::vector<StepResponse>, std::string> responses(const PowerSeries& series, std::vector<StepSeen> steps,
                                                                double averaging_s) {
  std::vector<StepResponse> all;
  for (auto& step : steps) {
    step.interval_s = series.interval_s;
    step.averaging_s = averaging_s;
    const auto one = step_response(series.readings, step);
    if (!one)
      return std::unexpected(fmt::format("Step {} of {} is not seen: {}.", all.size() + 1, steps.size(), one.error()));
    all.push_back(*one);
  }
  return all;
}

void add(StepFigures& figures, const Subject& subject, std::string_view metric, const char* unit,
         std::vector<double> samples) {
  figures.measurements.push_back({.metric = std::string(metric),
                                  .unit = unit,
                                  .subject = subject,
                                  .samples = std::move(samples),
                                  .stopped = "fixed"});
}

}  // namespace

std::map<Subject, PowerSeries> powers_in(const std::map<int, Record>& watches) {
  std::map<Subject, PowerSeries> all;
  for (const auto& [number, record] : watches) {
    for (const auto& measured : record.measurements) {
      const std::string_view of = measured.subject.kind == "rack" ? "total_power" : "power";
      const double begin_s = coordinate(measured, "begin_s"), interval_s = coordinate(measured, "interval_s");
      if (measured.metric != of || measured.subject.kind == "node" || measured.at.contains("outlet") ||
          !(interval_s > 0))
        continue;
      PowerSeries& series = all[measured.subject];
      series.meters.merge(meters_in(measured.at));
      series.interval_s = std::max(series.interval_s, interval_s);
      for (std::size_t i = 0; i < measured.samples.size(); ++i)
        series.readings.push_back(
            {.at_s = begin_s + (static_cast<double>(i) + 0.5) * interval_s, .value = measured.samples[i]});
    }
  }
  for (auto& [subject, series] : all) std::ranges::sort(series.readings, {}, &TimedValue::at_s);
  return all;
}

std::vector<StepSeen> steps_up(const Record& load) {
  const auto ups = marks_of(load, "step_up");
  std::vector<double> all = marks_of(load, "step_down");
  all.insert(all.end(), ups.begin(), ups.end());
  std::ranges::sort(all);
  const bool grew = number_of_condition(load, "groups_before").value_or(0) > 0;
  const auto end_s = number_of_condition(load, "hold_end_s");
  std::vector<StepSeen> steps;
  for (const double up_s : ups) {
    const auto next = std::ranges::upper_bound(all, up_s);
    const double until_s = next != all.end() ? *next : end_s.value_or(up_s);
    const auto here = std::ranges::lower_bound(all, up_s);
    if (here == all.begin() && grew) continue;
    const double before_s = here != all.begin() ? *std::prev(here) : up_s - (until_s - up_s);
    steps.push_back({.at_s = up_s, .until_s = until_s, .before_s = before_s, .clock_s = kClocks_s});
  }
  return steps;
}

StepFigures steps_of(const Record& load, const std::map<int, Record>& watches) {
  StepFigures figures;
  const auto steps = steps_up(load);
  for (const auto& [subject, series] : powers_in(watches)) {
    const auto refuse = [&](std::string words) { figures.missing.emplace(subject, std::move(words)); };
    if (steps.empty()) {
      refuse("The load has no step up after a time at another level.");
      continue;
    }
    const auto averaging_s = averaging_of(watches, series);
    if (!averaging_s) {
      refuse(averaging_s.error());
      continue;
    }
    const auto seen = responses(series, steps, *averaging_s);
    if (!seen) {
      refuse(seen.error());
      continue;
    }
    const auto each = [&](double StepResponse::*what) {
      std::vector<double> samples;
      for (const auto& one : *seen) samples.push_back(one.*what);
      return samples;
    };
    add(figures, subject, "rise_time", "s", each(&StepResponse::rise_s));
    add(figures, subject, "overshoot", "1", each(&StepResponse::overshoot));
    add(figures, subject, "settling_time", "s", each(&StepResponse::settling_s));
    if (const auto accuracy = accuracy_of_all(watches, series)) {
      add(figures, subject, kRamp, "W/s", each(&StepResponse::slope));
      figures.conditions.push_back({.name = "accuracy_bound", .subject = subject, .value = *accuracy});
    } else {
      refuse("A meter states no accuracy, so power_ramp would have no uncertainty.");
    }
  }
  return figures;
}

}  // namespace assay::judge
