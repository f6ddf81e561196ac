// run_metrics: OpenMetrics 1.0 of one run.
#include <fmt/format.h>

#include "reports/exports/cells.h"
#include "reports/exports/exports.h"
#include "reports/nightly/prometheus.h"

namespace assay::exports {
namespace {

using nightly::label_value;

std::string labels_of(const judge::Result& result, const std::string& common) {
  return fmt::format(R"({},requirement="{}",node="{}",subject_kind="{}",subject="{}",base_unit="{}",required="{}")",
                     common, label_value(result.requirement), label_value(result.node),
                     label_value(result.subject.kind), label_value(result.subject.id), label_value(result.unit),
                     result.required);
}

std::string family(const char* name, const char* help, const char* type = "gauge") {
  return fmt::format("# TYPE {0} {1}\n# HELP {0} {2}\n", name, type, help);
}

}  // namespace

std::string run_metrics(const dossier::OpenedRun& run) {
  const auto& verdict = run.content.verdict;
  const double time = static_cast<double>(milliseconds(run.content.run.journal.last)) / 1000;
  const std::string common = fmt::format(
      R"(site="{}",profile="{}",simulated="{}",standing="{}")", label_value(run.content.run.plan.site.name),
      label_value(run.content.run.plan.profile.name), run.content.run.plan.simulation.has_value(), run.standing);
  std::string values = family("assay_cell_value", "Judged figure of a cell in its base unit.");
  std::string limits = family("assay_cell_acceptance_limit", "Limit of a cell with its guard band.");
  std::string outcomes = family("assay_cell_outcome", "Outcome of a cell.", "stateset");
  for (const auto& result : verdict.results) {
    const std::string labels = labels_of(result, common);
    if (result.value) values += fmt::format("assay_cell_value{{{}}} {} {:.3f}\n", labels, *result.value, time);
    for (const auto& [bound, limit] :
         {std::pair("low", result.acceptance_low), std::pair("high", result.acceptance_high)}) {
      if (limit)
        limits +=
            fmt::format("assay_cell_acceptance_limit{{{},bound=\"{}\"}} {} {:.3f}\n", labels, bound, *limit, time);
    }
    for (const auto& word : judge::words_of(judge::Outcome{})) {
      outcomes += fmt::format("assay_cell_outcome{{{},assay_cell_outcome=\"{}\"}} {} {:.3f}\n", labels, word.text,
                              word.value == result.outcome ? 1 : 0, time);
    }
  }
  std::string whole = family("assay_run_verdict", "Verdict of the run.", "stateset");
  for (const auto& word : judge::words_of(judge::Overall{})) {
    whole += fmt::format("assay_run_verdict{{{},assay_run_verdict=\"{}\"}} {} {:.3f}\n", common, word.text,
                         word.value == verdict.overall ? 1 : 0, time);
  }
  return values + limits + outcomes + whole + "# EOF\n";
}

}  // namespace assay::exports
