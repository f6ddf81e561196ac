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
      if (measured.metric != judged.metric || measured.at != judged.at || measured.subject.kind != judged.scope)
        continue;
      // A node's own id in its record is its host name; the plan calls it by its name in the site.
      if (judged.scope != "node" && measured.subject != result.subject) continue;
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
        auto record = record_of(plan, *attempt, evidence, name);
        if (record) content.companions[step.id].push_back(std::move(*record));
      }
    }
  }
  return content;
}

}  // namespace assay
