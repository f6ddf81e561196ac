// cells: times from the journal, words from the verdict.
#include "reports/exports/cells.h"

#include <algorithm>
#include <chrono>

#include "probes/core/utc_time.h"

namespace assay::exports {

std::int64_t milliseconds(std::string_view utc) {
  const auto time = utc_time(utc);
  return time ? std::chrono::duration_cast<std::chrono::milliseconds>(time->time_since_epoch()).count() : 0;
}

std::map<std::string, StepTime, std::less<>> step_times(const judge::Journal& journal) {
  std::map<std::string, StepTime, std::less<>> all;
  std::map<std::int64_t, int> changes;  // of the number of attempts at work, by time
  for (const auto& attempt : journal.attempts) {
    if (attempt.is_extra()) continue;
    const std::int64_t begin = milliseconds(attempt.begin);
    const std::int64_t end = std::max(begin, milliseconds(attempt.end));  // an interrupted one has no end
    auto& time = all[attempt.step];
    time.begin = time.begin == 0 ? begin : std::min(time.begin, begin);
    time.end = std::max(time.end, end);
    time.busy += end - begin;
    ++changes[begin];
    --changes[end];
  }
  // The share of an attempt that is always at work, up to each change, in s.
  std::map<std::int64_t, double> had;
  double sum = 0;
  std::int64_t last = 0;
  int at_work = 0;
  for (const auto& [time, change] : changes) {
    if (at_work > 0) sum += static_cast<double>(time - last) / 1000 / at_work;
    had[time] = sum;
    last = time;
    at_work += change;
  }
  for (const auto& attempt : journal.attempts) {
    if (attempt.is_extra()) continue;
    const std::int64_t begin = milliseconds(attempt.begin);
    all[attempt.step].share_s += had[std::max(begin, milliseconds(attempt.end))] - had[begin];
  }
  return all;
}

std::string action_of(const dossier::OpenedRun& run, const judge::Result& result) {
  const auto advice = run.content.advices.of(result);
  if (!advice) return "";
  return profiles::short_words(*advice) + (advice->says.empty() ? "" : ": " + advice->says);
}

std::string never_accepts(const dossier::OpenedRun& run) {
  const auto& plan = run.content.run.plan;
  if (plan.simulation) return "SIMULATION: nothing was measured";
  if (plan.quick) return "a rehearsal with quick parameters accepts nothing";
  return plan.only.empty() ? "" : "a part of the profile accepts nothing";
}

}  // namespace assay::exports
