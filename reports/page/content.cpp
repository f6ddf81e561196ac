// content: collects the records that a report shows.
#include "reports/page/content.h"

#include <algorithm>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "orchestrator/files/in_parallel.h"
#include "orchestrator/judge/metering/site_evidence.h"
#include "orchestrator/simulate/simulate.h"
#include "orchestrator/site/check.h"
#include "reports/figures/plot.h"

namespace assay::page {

namespace {

/// Requirements with so few results that each sample is drawn; the others are drawn as a distribution.
std::set<std::string_view> drawn_by_sample(const judge::Verdict& verdict) {
  std::map<std::string_view, std::size_t> results;
  for (const auto& result : verdict.results) {
    if (result.value) ++results[result.requirement];
  }
  std::erase_if(results, [](const auto& one) { return one.second > figures::kMostStripRows; });
  std::set<std::string_view> drawn;
  for (const auto& [requirement, number] : results) drawn.insert(requirement);
  return drawn;
}

/// A node's own id in its record is its host name, and several nodes have none; the plan has names for them.
bool is_named_by_plan(const judge::Result& result, const plan::Requirement& judged) {
  return judged.during.empty() && (judged.scope == plan::JudgedScope::node || result.subject.id == result.node);
}

bool is_pooled_for(const judge::Result& result, const plan::Requirement& judged, const Measurement& measured) {
  return judge::is_judged(measured, judged) && (is_named_by_plan(result, judged) || measured.subject == result.subject);
}

using Measurements = std::vector<const Measurement*>;

Measurements measurements_in(const std::vector<Record>& records) {
  Measurements all;
  for (const auto& record : records) {
    for (const auto& measured : record.measurements) all.push_back(&measured);
  }
  return all;
}

std::vector<double> samples_among(const Measurements& measurements, const judge::Result& result,
                                  const plan::Requirement& judged) {
  std::vector<double> all;
  for (const Measurement* measured : measurements) {
    if (is_pooled_for(result, judged, *measured))
      all.insert(all.end(), measured->samples.begin(), measured->samples.end());
  }
  return all;
}

/// The measurements of one step's records, found by metric and subject: a step may have as many of both as it has
/// ranks.
class MeasurementIndex {
 public:
  explicit MeasurementIndex(const std::vector<Record>& records) {
    for (const Measurement* measured : measurements_in(records)) {
      auto& metric = metrics_[measured->metric];
      metric.all.push_back(measured);
      metric.by_subject[measured->subject].push_back(measured);
    }
  }

  /// The smallest and the largest sample that was pooled for `result`, if any.
  [[nodiscard]] std::optional<std::array<double, 2>> range(const judge::Result& result,
                                                           const plan::Requirement& judged) const {
    const auto metric = metrics_.find(judged.metric);
    if (metric == metrics_.end()) return std::nullopt;
    const auto own = metric->second.by_subject.find(result.subject);
    if (!is_named_by_plan(result, judged) && own == metric->second.by_subject.end()) return std::nullopt;
    const auto samples =
        samples_among(is_named_by_plan(result, judged) ? metric->second.all : own->second, result, judged);
    if (samples.empty()) return std::nullopt;
    return std::array{std::ranges::min(samples), std::ranges::max(samples)};
  }

 private:
  struct OfMetric {
    Measurements all;
    std::map<Subject, Measurements> by_subject;
  };
  std::map<std::string_view, OfMetric> metrics_;
};

/// The smallest port rate in the records of the ranks: the payload limit if recorded, else the rate of the
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

using ByName = std::map<std::string, std::map<std::string, std::string>>;

/// The records of the companions of a step, of each attempt and rank that has one.
std::vector<Record> companions_of(const plan::Plan& plan, const plan::Step& step,
                                  const std::vector<judge::Attempt>& attempts, const judge::EvidenceReader& evidence) {
  std::vector<Record> records;
  for (const auto& attempt : attempts) {
    for (const auto& name : step.companions) {
      for (std::size_t rank = 0; rank < step.nodes.size(); ++rank) {
        auto record = judge::record_of(plan, step, attempt, evidence, static_cast<int>(rank), name);
        if (record) records.push_back(std::move(*record));
      }
    }
  }
  return records;
}

/// Facts by fact and node from those by node and fact, with "absent" for a node without the fact.
ByName by_fact(const ByName& by_node) {
  ByName facts;
  for (const auto& [node, values] : by_node) {
    for (const auto& [fact, value] : values) facts[fact][node] = value;
  }
  for (auto& [fact, values] : facts) {
    for (const auto& [node, ignored] : by_node) values.emplace(node, "absent");
  }
  return facts;
}

/// What the page has of one step.
struct StepContent {
  std::vector<Record> records, companions;
  std::optional<std::vector<Record>> metered;
  std::optional<double> wire;
  /// Facts in its last record, of a step of site::kComparedProbes.
  std::optional<std::map<std::string, std::string>> settings;
  std::vector<std::pair<const judge::Result*, std::array<double, 2>>> ranges;
  bool is_drawn = false;  ///< with each sample
};

/// Reads steps, on any number of threads. `content`, which has run and verdict, and `evidence` must outlive it.
class StepReader {
 public:
  StepReader(const ReportContent& content, const judge::EvidenceReader& evidence)
      : content_(content),
        evidence_(evidence),
        machines_(content.run.journal),
        attempts_(content.run.journal.attempts),
        drawn_(drawn_by_sample(content.verdict)) {
    for (const auto& result : content.verdict.results) results_[result.step].push_back(&result);
  }

  /// `all_records`: those of a step that is not drawn too.
  [[nodiscard]] StepContent read(const plan::Step& step, bool all_records) const {
    const plan::Plan& plan = content_.run.plan;
    const judge::Journal& journal = content_.run.journal;
    const auto attempts = attempts_.of(step.id);
    auto collected = judge::collect(plan, step, attempts, journal, machines_, evidence_);
    StepContent found;
    const bool metered = std::ranges::any_of(
        step.requirements, [&](const std::string& id) { return !content_.requirement(id).during.empty(); });
    if (metered) found.metered = judge::site_evidence(plan, step, collected, journal, evidence_).step.records;
    if (step.nodes.size() > 1) found.wire = wire_limit(collected);
    found.records = std::move(collected.records);
    if (!found.records.empty() && std::ranges::find(site::kComparedProbes, step.probe) != site::kComparedProbes.end())
      found.settings = site::facts_of(nlohmann::json::object(), {found.records.back()});
    take_ranges(step, found);
    if (!found.is_drawn && !all_records)
      found.records.clear();
    else if (!step.companions.empty())
      found.companions = companions_of(plan, step, attempts, evidence_);
    return found;
  }

 private:
  /// A distribution needs only the range of its samples.
  void take_ranges(const plan::Step& step, StepContent& found) const {
    const auto mine = results_.find(step.id);
    if (mine == results_.end()) return;
    const MeasurementIndex index(found.records);
    for (const judge::Result* result : mine->second) {
      const plan::Requirement& judged = content_.requirement(result->requirement);
      const bool drawn = drawn_.contains(result->requirement);
      found.is_drawn = found.is_drawn || (result->value && drawn);
      if (drawn || !judged.during.empty()) continue;
      if (const auto range = index.range(*result, judged)) found.ranges.emplace_back(result, *range);
    }
  }

  const ReportContent& content_;
  const judge::EvidenceReader& evidence_;
  const judge::Machines machines_;
  const judge::AttemptsByStep attempts_;
  const std::set<std::string_view> drawn_;
  std::unordered_map<std::string_view, std::vector<const judge::Result*>> results_;  ///< by step
};

/// Reads all steps. Conditions are printed of the first records only, so the records of all other steps never have to
/// be in memory.
void take_steps(const judge::EvidenceReader& evidence, ByName& settings, ReportContent& content) {
  constexpr std::size_t kAtOnce = 1024;  // steps whose ranges alone are kept
  const auto& steps = content.run.plan.steps;
  const StepReader reader(content, evidence);
  std::vector<StepContent> found;
  std::size_t printed = 0;
  for (std::size_t begin = 0; begin < steps.size(); begin += found.size()) {
    const bool all_records = printed < kMostRecordedSteps;
    found.clear();
    found.resize(std::min(all_records ? kMostRecordedSteps : kAtOnce, steps.size() - begin));
    files::in_parallel(found.size(), evidence.threads(),
                       [&](unsigned, std::size_t i) { found[i] = reader.read(steps[begin + i], all_records); });
    for (std::size_t i = 0; i < found.size(); ++i) {
      const plan::Step& step = steps[begin + i];
      StepContent& one = found[i];
      if (one.metered) content.metered[step.id] = std::move(*one.metered);
      if (one.wire) content.wire_limits[step.id] = *one.wire;
      if (one.settings) settings[step.nodes.front()].merge(*one.settings);
      content.ranges.insert(one.ranges.begin(), one.ranges.end());
      printed += one.records.size() + one.companions.size();
      if (!one.is_drawn && printed >= kMostRecordedSteps) continue;
      content.records[step.id] = std::move(one.records);
      content.companions[step.id] = std::move(one.companions);
    }
  }
}

}  // namespace

const plan::Requirement& ReportContent::requirement(const std::string& id) const {
  const plan::Requirement* found = run.plan.requirement(id);
  if (found == nullptr) throw std::logic_error("the verdict names a requirement that the plan has not: " + id);
  return *found;
}

std::vector<double> ReportContent::samples(const judge::Result& result) const {
  if (requirement(result.requirement).contrast) return result.each;  // a ratio has no samples; its pairs have ratios
  if (const auto range = ranges.find(&result); range != ranges.end())
    return {range->second.begin(), range->second.end()};
  const plan::Requirement& judged = requirement(result.requirement);
  const auto& kept = judged.during.empty() ? records : metered;
  const auto step = kept.find(result.step);
  return step == kept.end() ? std::vector<double>{} : samples_among(measurements_in(step->second), result, judged);
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
                        .self_signed = self_signed};
  const plan::Plan& plan = content.run.plan;
  const judge::EvidenceReader evidence =
      plan.simulation ? simulate::simulated_evidence(plan, content.run.journal, given.records()) : given;
  ByName settings;
  content.advices = judge::advices_of(plan, content.run.journal, content.verdict, evidence);
  if (plan.probes.contains(plan::kIdentityProbe) && !plan.simulation)
    content.tpms = judge::tpm_answers(content.run, evidence);
  if (plan.probes.contains(plan::kGpuIdentityProbe) && !plan.simulation)
    content.attested = judge::gpu_answers(content.run, evidence);
  content.watches = judge::watch_records(plan, content.run.journal.watches, evidence).records;
  take_steps(evidence, settings, content);
  content.settings = by_fact(settings);
  return content;
}

}  // namespace assay::page
