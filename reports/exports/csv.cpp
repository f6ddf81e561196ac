// csv: one table for spreadsheets and data frames.
#include <fmt/format.h>

#include "probes/core/text.h"
#include "reports/exports/cells.h"
#include "reports/exports/exports.h"

namespace assay::exports {

std::string csv_field(std::string_view text) {
  std::string safe = harmless(text);
  if (!safe.empty() && std::string_view("=+-@").find(safe.front()) != std::string_view::npos) safe.insert(0, "'");
  std::string out = "\"";
  for (const char c : safe) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

namespace {

std::string number_field(const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; }

}  // namespace

std::string csv(const dossier::OpenedRun& run) {
  std::string text =
      "run_id,simulated,standing,requirement,node,subject_kind,subject,required,outcome,unit,value,limit_low,"
      "limit_high,acceptance_low,acceptance_high,margin,uncertainty,samples,attempts,step,reason,demanded,seen,with,"
      "without,action\n";
  const std::string head = fmt::format("{},{},{}", csv_field(run.content.run.journal.run_id),
                                       run.content.run.plan.simulation ? "true" : "false", csv_field(run.standing));
  for (const auto& one : run.content.verdict.results) {
    const bool demand = one.is_of_demand();
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", head, csv_field(one.requirement),
        csv_field(one.node), csv_field(one.subject.kind), csv_field(one.subject.id), one.required ? "true" : "false",
        csv_field(judge::to_string(one.outcome)), csv_field(one.unit), number_field(one.value),
        number_field(one.limit_low), number_field(one.limit_high), number_field(one.acceptance_low),
        number_field(one.acceptance_high), number_field(one.margin), number_field(one.uncertainty), one.samples,
        one.attempts, csv_field(one.step), csv_field(one.reason), demand ? csv_field(judge::demanded_text(one)) : "",
        demand ? csv_field(judge::seen_text(one)) : "", number_field(one.with), number_field(one.without),
        csv_field(action_of(run, one)));
  }
  return text;
}

std::string knees_csv(const dossier::OpenedRun& run) {
  std::string text =
      "run_id,simulated,requirement,rail,state,knee,lost,nodes,value,unit,limit,kept,counter,counter_value,step\n";
  for (const auto& knee : run.content.verdict.knees) {
    for (const auto& point : knee.points)
      text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_field(run.content.run.journal.run_id),
                          run.content.run.plan.simulation ? "true" : "false", csv_field(knee.requirement),
                          csv_field(knee.rail), csv_field(word_of(knee.state)), knee.kept,
                          knee.lost == 0 ? "" : std::to_string(knee.lost), point.nodes, point.value,
                          csv_field(run.content.requirement(knee.requirement).limit.unit), number_field(point.limit),
                          point.kept ? "true" : "false", csv_field(knee.counter ? knee.counter->name : ""),
                          number_field(point.counter), csv_field(point.step));
  }
  return text;
}

}  // namespace assay::exports
