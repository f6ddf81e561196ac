// content: collects the records that a report shows.
#include "reports/page/content.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "orchestrator/judge/site_evidence.h"
#include "orchestrator/simulate/simulate.h"
#include "reports/figures/plot.h"

namespace assay::page {

namespace {

/// Steps whose samples are drawn: those of requirements with few results. Conditions are printed of the first records
/// only, so the records of all other steps never have to be in memory.
std::set<std::string_view> steps_drawn(const judge::Verdict& verdict) {
  std::map<std::string_view, std::vector<std::string_view>> of_requirement;
  for (const auto& result : verdict.results) {
    if (result.value) of_requirement[result.requirement].push_back(result.step);
  }
  std::set<std::string_view> drawn;
  for (const auto& [requirement, steps] : of_requirement) {
    if (steps.size() <= figures::kMostStripRows) drawn.insert(steps.begin(), steps.end());
  }
  return drawn;
}

/// The smallest port rate in the records of the ranks: the payload limit where it is recorded, else the rate of the
/// link.
std::optional<double> wire_limit(const judge::StepEvidence& step) {
  std::optional<double> slowest;
  const auto look = [&](const Record& record) {
    for (const char* name : {"payload_limit", "port_rate", "link_speed"}) {
      const auto found = std::ranges::find(record.conditions, name, &Condition::name);
      if (found == record.conditions.end()) continue;
      const auto* rate = std::get_if<double>(&found->value);
      if (rate != nullptr && *rate > 0) slowest = std::min(slowest.value_or(*rate), *rate);
      return;
    }
  };
  for (const auto& record : step.records) look(record);
  for (const auto& ranks : step.others) std::ranges::for_each(ranks, look);
  return slowest;
}

}  // namespace

const plan::Requirement& ReportContent::requirement(const std::string& id) const {
  const plan::Requirement* found = run.plan.requirement(id);
  if (found == nullptr) throw std::logic_error("the verdict names a requirement that the plan has not: " + id);
  return *found;
}

std::vector<double> ReportContent::samples(const judge::Result& result) const {
  std::vector<double> all;
  const plan::Requirement& judged = requirement(result.requirement);
  const auto& kept = judged.during.empty() ? records : metered;
  const auto step = kept.find(result.step);
  if (step == kept.end()) {
    if (const auto range = ranges.find(&result); range != ranges.end())
      all.assign(range->second.begin(), range->second.end());
    return all;
  }
  for (const auto& record : step->second) {
    for (const auto& measured : record.measurements) {
      if (!judge::is_judged(measured, judged)) continue;
      // A node's own id in its record is its host name, and several nodes have none; the plan has names for them.
      const bool planned =
          judged.during.empty() && (judged.scope == plan::JudgedScope::node || result.subject.id == result.node);
      if (!planned && measured.subject != result.subject) continue;
      all.insert(all.end(), measured.samples.begin(), measured.samples.end());
    }
  }
  return all;
}

ReportContent report_content(const evidence::Examined& examined, const judge::EvidenceReader& evidence,
                             const std::string& self_signed) {
  return report_content(evidence::Examined(examined), evidence, self_signed);
}

ReportContent report_content(evidence::Examined&& examined, const judge::EvidenceReader& given,
                             const std::string& self_signed) {
  ReportContent content{.run = std::move(examined.run),
                        .verdict = std::move(examined.verdict),
                        .verdict_sha256 = std::move(examined.verdict_sha256),
                        .journal_sha256 = std::move(examined.journal_sha256),
                        .self_signed = self_signed,
                        .records = {},
                        .companions = {},
                        .metered = {},
                        .watches = {}};
  const plan::Plan& plan = content.run.plan;
  const judge::EvidenceReader evidence =
      plan.simulation ? simulate::simulated_evidence(plan, content.run.journal) : given;
  const judge::Machines machines(content.run.journal);
  std::map<std::string_view, std::vector<const judge::Attempt*>> attempts_of;
  for (const auto& attempt : content.run.journal.attempts) attempts_of[attempt.step].push_back(&attempt);
  const auto drawn = steps_drawn(content.verdict);
  std::size_t printed = 0;
  std::map<std::string_view, std::vector<const judge::Result*>> results_of;
  for (const auto& result : content.verdict.results) results_of[result.step].push_back(&result);
  content.watches = judge::watch_records(plan, content.run.journal.watches, evidence).records;
  for (const auto& step : plan.steps) {
    const auto& attempts = attempts_of[step.id];
    auto collected = judge::collect(plan, step, attempts, content.run.journal, machines, evidence);
    const bool metered = std::ranges::any_of(
        step.requirements, [&](const std::string& id) { return !content.requirement(id).during.empty(); });
    if (metered)
      content.metered[step.id] =
          judge::site_evidence(plan, step, collected, content.run.journal, evidence).step.records;
    if (step.nodes.size() > 1) {
      if (const auto wire = wire_limit(collected)) content.wire_limits[step.id] = *wire;
    }
    content.records[step.id] = std::move(collected.records);
    for (const judge::Attempt* attempt : attempts) {
      for (const auto& name : step.companions) {
        for (std::size_t rank = 0; rank < step.nodes.size(); ++rank) {
          auto record = judge::record_of(plan, step, *attempt, evidence, static_cast<int>(rank), name);
          if (record) content.companions[step.id].push_back(std::move(*record));
        }
      }
    }
    printed += content.records[step.id].size() + content.companions[step.id].size();
    if (drawn.contains(step.id) || printed < kMostRecordedSteps) continue;
    // What is drawn as a distribution needs the range of its samples alone.
    for (const judge::Result* result : results_of[step.id]) {
      const auto samples = content.samples(*result);
      if (!samples.empty()) content.ranges[result] = {std::ranges::min(samples), std::ranges::max(samples)};
    }
    content.records.erase(step.id);
    content.companions.erase(step.id);
  }
  return content;
}

}  // namespace assay::page
