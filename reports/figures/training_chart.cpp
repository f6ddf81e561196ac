// training_chart: means of raw samples, because means of parts add up to the mean of the whole, which medians do not.
#include "reports/figures/record_charts.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "probes/core/statistics.h"
#include "reports/figures/axis.h"
#include "reports/figures/parts_bars.h"
#include "reports/figures/svg.h"

namespace assay::figures {
namespace {

/// One row: by activity, begin and end of each stretch in turn, in s.
struct TimelineRow {
  std::string label;
  std::vector<std::vector<double>> stretches;
};

/// A figure of rows.
struct Timeline {
  std::string title, description;
  std::string axis;                     ///< what 0 is: "since the step began"
  std::vector<std::string> activities;  ///< at most kMostParts; the last is drawn as a thin line below its row
  std::vector<TimelineRow> rows;        ///< at most kMostPartsRows, from the top
};
constexpr double kRowsLeft = 150, kRowsRight = kFigureWidth - 20, kRowsTop = 34, kPitch = 24, kBar = 13, kThin = 3;
constexpr std::size_t kMostStretches = 500;  // of one activity of a rank; a step has tens

/// When the last stretch of all rows ends, in s.
double end_of_all(const Timeline& timeline) {
  double end_s = 0;
  for (const auto& row : timeline.rows) {
    for (const auto& stretches : row.stretches) {
      if (!stretches.empty()) end_s = std::max(end_s, std::ranges::max(stretches));
    }
  }
  return end_s;
}

/// The figure as inline SVG, with a legend; empty without a stretch.
std::string timeline_svg(const Timeline& timeline) {
  const double end_s = end_of_all(timeline);
  if (!(end_s > 0)) return "";
  const double bottom = kRowsTop + kPitch * static_cast<double>(timeline.rows.size());
  const Axis axis(0, end_s);
  const auto x = [&](double value) { return kRowsLeft + (kRowsRight - kRowsLeft) * axis.share(value); };
  std::string svg =
      svg_open(timeline.title, timeline.description, bottom + 42) + legend_of_parts(timeline.activities, kThin);
  const auto marks = axis.marks();
  const Scale scale = scale_for_marks(marks, "s");
  for (const double mark : marks) {
    svg += svg_line(x(mark), kRowsTop, x(mark), bottom, "grid") +
           svg_text(x(mark), bottom + 16, "middle", "mark", scale.number(mark));
  }
  double y = kRowsTop;
  for (const auto& row : timeline.rows) {
    const double top = y + (kPitch - kBar - kThin) / 2;
    svg += svg_text(kRowsLeft - 8, top + 11, "end", "label", end_of(row.label, kLongestLabel));
    for (std::size_t activity = 0; activity < row.stretches.size(); ++activity) {
      const bool thin = activity + 1 == timeline.activities.size();
      const auto& stretches = row.stretches[activity];
      const std::size_t drawn = std::min(stretches.size(), 2 * kMostStretches);
      for (std::size_t i = 0; i + 1 < drawn; i += 2) {
        if (stretches[i + 1] <= stretches[i]) continue;
        svg += svg_rect(x(stretches[i]), thin ? top + kBar : top, x(stretches[i + 1]) - x(stretches[i]),
                        thin ? kThin : kBar, fmt::format("part-{}", activity));
      }
    }
    y += kPitch;
  }
  svg += svg_line(kRowsLeft, kRowsTop, kRowsLeft, bottom, "axis") +
         svg_text((kRowsLeft + kRowsRight) / 2, bottom + 34, "middle", "mark", scale.unit + " " + timeline.axis);
  return svg + "</svg>\n";
}

constexpr std::array kRepairMetrics = {"detect_time", "abort_time", "rebuild_time", "restore_time", "recompute_time"};

const std::vector<double>* samples_of(const Record& record, std::string_view metric) {
  const auto found = std::ranges::find(record.measurements, metric, &Measurement::metric);
  return found == record.measurements.end() || found->samples.empty() ? nullptr : &found->samples;
}

/// Sums of the parts with one label, and their number.
struct PartsSum {
  std::vector<double> sums;
  std::size_t count = 0;

  void add(const std::vector<double>& parts) {
    sums.resize(parts.size());
    for (std::size_t i = 0; i < parts.size(); ++i) sums[i] += parts[i];
    ++count;
  }
  [[nodiscard]] std::vector<double> means() const {
    std::vector<double> all = sums;
    for (double& one : all) one /= static_cast<double>(count);
    return all;
  }
};

/// The kinds of the faults that ended a rank, "kill in reduce", in order; none if the record does not have them of all
/// `count`. fault_resume records them from its revision 3 on, as "kill:reduce,slow:save".
std::vector<std::string> kinds_of_faults(const Record& record, std::size_t count) {
  const auto found = std::ranges::find(record.conditions, "case_keys", &Condition::name);
  const auto* text = found == record.conditions.end() ? nullptr : std::get_if<std::string>(&found->value);
  std::vector<std::string> kinds;
  for (std::string_view left = text == nullptr ? std::string_view() : std::string_view(*text); !left.empty();) {
    const auto key = left.substr(0, left.find(','));
    left.remove_prefix(std::min(key.size() + 1, left.size()));
    const auto colon = key.find(':');
    if (colon == std::string_view::npos) return {};
    const auto kind = key.substr(0, colon);
    if (kind != "slow") kinds.push_back(fmt::format("{} in {}", kind, key.substr(colon + 1)));  // ends no rank
  }
  if (kinds.size() != count) return {};
  return kinds;
}

/// Parts of every repair in `record`, by kind; of all under "".
void add_repairs(const Record& record, std::map<std::string, PartsSum>& sums) {
  std::vector<const std::vector<double>*> parts;
  for (const char* metric : kRepairMetrics) {
    parts.push_back(samples_of(record, metric));
    if (parts.back() == nullptr || parts.back()->size() != parts.front()->size()) return;
  }
  const auto kinds = kinds_of_faults(record, parts.front()->size());
  for (std::size_t fault = 0; fault < parts.front()->size(); ++fault) {
    std::vector<double> one;
    for (const auto* samples : parts) one.push_back((*samples)[fault]);
    if (std::ranges::min(one) < 0) continue;  // no time of one clock
    sums[""].add(one);
    sums[kinds.empty() ? "fault of unknown kind" : kinds[fault]].add(one);
  }
}

Chart repair_chart(const plan::Plan& plan, const std::set<std::string>& steps, const RecordsOf& records) {
  std::map<std::string, PartsSum> sums;
  for (const auto& step : steps) {
    const auto found = records.find(step);
    if (found == records.end()) continue;
    for (const auto& record : found->second) add_repairs(record, sums);
  }
  if (sums.empty() || sums.size() > kMostPartsRows) return {};
  PartsBars bars{.title = "Time to repair by kind of fault, part by part",
                 .axis = "since the fault",
                 .names = {"detect", "abort", "rebuild", "restore", "recompute"}};
  for (const auto& [kind, sum] : sums)
    bars.rows.push_back({fmt::format("{} ({})", kind.empty() ? "all faults" : kind, sum.count), sum.means()});
  bars.description = fmt::format("Bars of {} faults in {} kinds.", sums.at("").count, sums.size() - 1);
  return {.svg = parts_svg(bars),
          .caption = fmt::format("{}Means over {} faults that ended a rank, from the fault until the step that it "
                                 "struck was done again; in brackets how many. Faults that ended no rank are left "
                                 "out. ",
                                 kind_words(plan), sums.at("").count)};
}

/// Compute without the optimizer, the optimizer, and the part added by communication; together the mean of the rounds'
/// median steps. Nothing if a part would be below 0: then other load, not communication, made the difference.
std::optional<std::vector<double>> step_parts(const Record& record) {
  const auto *compute = samples_of(record, "compute_time"), *optimizer = samples_of(record, "optimizer_time"),
             *exposed = samples_of(record, "exposed_comm");
  if (compute == nullptr || optimizer == nullptr) return std::nullopt;
  const double optimizer_s = moments(*optimizer).mean;
  std::vector<double> parts = {moments(*compute).mean - optimizer_s, optimizer_s,
                               exposed == nullptr ? 0.0 : moments(*exposed).mean};
  if (std::ranges::min(parts) < 0) return std::nullopt;
  return parts;
}

/// The rows with the longest bars, in their order, at most as many as a figure has.
std::size_t keep_longest(std::vector<PartsRow>& rows) {
  const std::size_t all = rows.size();
  std::ranges::stable_sort(rows, std::greater{}, [](const PartsRow& row) { return row.parts.front(); });
  if (rows.size() > kMostPartsRows) rows.resize(kMostPartsRows);
  return all;
}

/// The node of a step, or how many it has.
std::string place_of(const plan::Plan& plan, const std::string& step) {
  const auto found = std::ranges::find(plan.steps, step, &plan::Step::id);
  if (found == plan.steps.end() || found->nodes.empty()) return step;
  return found->nodes.size() == 1 ? found->nodes.front() : fmt::format("{} nodes", found->nodes.size());
}

std::string shown_words(std::size_t shown, std::size_t all, std::string_view what) {
  return shown == all ? "" : fmt::format("Shown are the {} of {} {} that compute longest. ", shown, all, what);
}

Chart step_chart(const plan::Plan& plan, const std::set<std::string>& steps, const RecordsOf& records) {
  std::map<std::string, PartsSum> sums;
  for (const auto& step : steps) {
    const auto found = records.find(step);
    if (found == records.end()) continue;
    for (const auto& record : found->second) {
      if (const auto parts = step_parts(record)) sums[step].add(*parts);
    }
  }
  PartsBars bars{.title = "What a training step is made of",
                 .axis = "of one step",
                 .names = {"compute", "optimizer", "exposed communication"}};
  for (const auto& [step, sum] : sums) bars.rows.push_back({place_of(plan, step), sum.means()});
  const std::size_t all = keep_longest(bars.rows);
  bars.description = fmt::format("Bars of {} measurements.", bars.rows.size());
  return {
      .svg = parts_svg(bars),
      .caption = fmt::format(
          "{}{}The step without collectives, of it the optimizer, and what communication adds to it: means over the "
          "rounds, of the medians of each. Left out are attempts in which the step took less time with collectives "
          "than without: their difference is other load. Input and checkpoints are not part of this step. ",
          kind_words(plan), shown_words(bars.rows.size(), all, "measurements"))};
}

/// Of one measurement: each rank's mean time outside of collectives, and the rest of the mean step.
Chart rank_chart(const plan::Plan& plan, const std::vector<Record>& records) {
  std::map<std::pair<std::size_t, std::string>, PartsSum> sums;  // ids of one length are numbers in order
  for (const auto& record : records) {
    const auto* step = samples_of(record, "step_time");
    if (step == nullptr) continue;
    const double step_s = moments(*step).mean;
    for (const auto& one : record.measurements) {
      if (one.metric != "self_time" || one.samples.empty()) continue;
      const double self_s = moments(one.samples).mean;
      const std::string name = one.subject.kind == "rank" ? "rank " + one.subject.id : one.subject.id;
      sums[{name.size(), name}].add({self_s, std::max(0.0, step_s - self_s)});
    }
  }
  PartsBars bars{.title = "What each rank does in a training step",
                 .axis = "of one step",
                 .names = {"outside of collectives", "in collectives, waiting included"}};
  for (const auto& [name, sum] : sums) bars.rows.push_back({name.second, sum.means()});
  const std::size_t all = keep_longest(bars.rows);
  bars.description = fmt::format("Bars of {} ranks.", bars.rows.size());
  return {.svg = parts_svg(bars),
          .caption = fmt::format("{}{}Means of all full steps, the rank that computes longest first: the others wait "
                                 "for it in their collectives. Ranks at different places of a pipeline have different "
                                 "work. ",
                                 kind_words(plan), shown_words(bars.rows.size(), all, "ranks"))};
}

constexpr std::array<std::string_view, 5> kActivities = {"forward", "backward", "collective", "optimizer", "beside"};

/// Activities of every rank in one step, of the first record that has them.
Chart timeline_chart(const plan::Plan& plan, const std::vector<Record>& records) {
  Timeline timeline{.title = "One training step: who computes and who waits",
                    .axis = "since the step began",
                    .activities = {"forward", "backward", "in a collective, waiting included", "optimizer",
                                   "gradients reduced beside"}};
  for (const auto& record : records) {
    for (const auto& one : record.measurements) {
      const auto at = one.at.find("activity");
      const auto* word = at == one.at.end() ? nullptr : std::get_if<std::string>(&at->second);
      if (one.metric != "timeline" || word == nullptr) continue;
      const auto activity = std::ranges::find(kActivities, *word) - kActivities.begin();
      if (activity == static_cast<std::ptrdiff_t>(kActivities.size())) continue;
      const std::string name = one.subject.kind == "rank" ? "rank " + one.subject.id : one.subject.id;
      auto row = std::ranges::find(timeline.rows, name, &TimelineRow::label);
      if (row == timeline.rows.end() && timeline.rows.size() < kMostPartsRows)
        row = timeline.rows.insert(row, {.label = name, .stretches = std::vector<std::vector<double>>(5)});
      if (row != timeline.rows.end()) row->stretches.at(static_cast<std::size_t>(activity)) = one.samples;
    }
    if (!timeline.rows.empty()) break;
  }
  timeline.description = fmt::format("Rows of {} ranks.", timeline.rows.size());
  return {
      .svg = timeline_svg(timeline),
      .caption = fmt::format("{}One full step after those that were timed, each rank by its own clock from a common "
                             "start. The rank with the least time in collectives is the one that the others wait "
                             "for. ",
                             kind_words(plan))};
}

}  // namespace

std::vector<Chart> training_charts(const plan::Plan& plan, const plan::Requirement& requirement,
                                   const ResultList& results, const RecordsOf& records) {
  const bool step = requirement.probe == "train_step";
  if ((!step && requirement.probe != "fault_resume") || !is_first_of_measurement(plan, requirement)) return {};
  const std::set<std::string> steps = steps_of(results);
  std::vector<Chart> charts;
  if (step) {
    charts.push_back(step_chart(plan, steps, records));
    const auto only = steps.size() == 1 ? records.find(*steps.begin()) : records.end();
    if (only != records.end()) {
      charts.push_back(rank_chart(plan, only->second));
      charts.push_back(timeline_chart(plan, only->second));
    }
  } else {
    charts.push_back(repair_chart(plan, steps, records));
  }
  std::erase_if(charts, [](const Chart& chart) { return chart.svg.empty(); });
  return charts;
}

}  // namespace assay::figures
