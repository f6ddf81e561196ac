// offload_chart: attempts of all steps, by node and time.
#include "reports/figures/offload_chart.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "probes/core/utc_time.h"
#include "reports/figures/course_chart.h"

namespace assay::figures {
namespace {

/// When the attempts of each of `steps` that exited began, in s since 1970, in the order of the journal.
std::map<std::string, std::vector<double>> begins_of(const judge::Journal& journal,
                                                     const std::set<std::string>& steps) {
  std::map<std::string, std::vector<double>> begins;
  for (const auto& attempt : journal.attempts) {
    if (attempt.is_extra() || attempt.outcome != AttemptOutcome::exited || !steps.contains(attempt.step)) continue;
    const auto begin = utc_time(attempt.begin);
    if (begin) begins[attempt.step].push_back(std::chrono::duration<double>(begin->time_since_epoch()).count());
  }
  return begins;
}

}  // namespace

Chart offload_chart(const plan::Plan& plan, const judge::Journal& journal, const plan::Requirement& requirement,
                    const std::vector<const judge::Result*>& results,
                    const std::map<std::string, std::vector<Record>>& records) {
  const auto steps = steps_of(results);
  const auto is_recorded = [&](const std::string& step) {
    const auto found = records.find(step);
    return found != records.end() && !found->second.empty() && number_of(found->second.front(), "offloaded_share");
  };
  if (!is_first_of_measurement(plan, requirement) || std::ranges::none_of(steps, is_recorded)) return {};
  const auto begins = begins_of(journal, steps);
  std::map<std::string, std::vector<std::pair<double, double>>> points;  // by node: time and share
  for (const auto& step : plan.steps) {
    const auto found = records.find(step.id);
    const auto times = begins.find(step.id);
    if (found == records.end() || times == begins.end() || times->second.size() != found->second.size()) continue;
    for (std::size_t i = 0; i < times->second.size(); ++i) {
      const auto share = number_of(found->second[i], "offloaded_share");
      for (const auto& node : share ? step.nodes : std::vector<std::string>{})
        points[node].emplace_back(times->second[i], *share);
    }
  }
  CourseChart chart{
      .title = "Share of the traffic that adapters forwarded", .unit = "1", .axis = "s since the first attempt"};
  for (auto& [node, taken] : points) {
    std::ranges::sort(taken);
    CourseLine& line = chart.lines.emplace_back(CourseLine{.name = node});
    for (const auto& [time, share] : taken) line.times_s.push_back(time), line.values.push_back(share);
  }
  return {.svg = course_svg(chart),
          .caption = kind_words(plan) +
                     "One point for each attempt of a pair, the smallest share of its nodes and "
                     "phases; 0 is a switch in software."};
}

}  // namespace assay::figures
