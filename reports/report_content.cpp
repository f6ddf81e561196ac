// report_content: collecting records for the page.
#include "reports/report_content.h"

#include <stdexcept>

namespace assay {

const Requirement& ReportContent::requirement(const std::string& id) const {
  const Requirement* found = run.plan.requirement(id);
  if (found == nullptr) throw std::logic_error("the verdict names a requirement that the plan has not: " + id);
  return *found;
}

std::vector<double> ReportContent::samples(const Result& result) const {
  std::vector<double> all;
  const auto step = records.find(result.step);
  if (step == records.end()) return all;
  const Requirement& judged = requirement(result.requirement);
  for (const auto& record : step->second) {
    for (const auto& measured : record.measurements) {
      if (!is_judged(measured, judged)) continue;
      // A node's own id in its record is its host name, and several nodes have none; the plan has names for them.
      const bool planned = judged.scope == "node" || result.subject.id == result.node;
      if (!planned && measured.subject != result.subject) continue;
      all.insert(all.end(), measured.samples.begin(), measured.samples.end());
    }
  }
  return all;
}

ReportContent report_content(const Examined& examined, const EvidenceReader& evidence, const std::string& self_signed) {
  ReportContent content{.run = examined.run,
                        .verdict = examined.verdict,
                        .verdict_sha256 = examined.verdict_sha256,
                        .journal_sha256 = examined.journal_sha256,
                        .self_signed = self_signed,
                        .records = {},
                        .companions = {}};
  const Plan& plan = content.run.plan;
  for (const auto& step : plan.steps) {
    const auto attempts = content.run.journal.of(step.id);
    content.records[step.id] = collect(plan, step, attempts, content.run.journal, evidence).records;
    for (const Attempt* attempt : attempts) {
      for (const auto& name : step.companions) {
        for (std::size_t rank = 0; rank < step.nodes.size(); ++rank) {
          auto record = record_of(plan, *attempt, evidence, static_cast<int>(rank), name);
          if (record) content.companions[step.id].push_back(std::move(*record));
        }
      }
    }
  }
  return content;
}

}  // namespace assay
