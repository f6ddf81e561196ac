// csv: one table for spreadsheets and data frames.
#include <fmt/format.h>

#include "probes/core/text.h"
#include "reports/exports/cells.h"
#include "reports/exports/exports.h"

namespace assay::exports {
namespace {

/// `text` as a field; a text that a spreadsheet would calculate begins with an apostrophe.
std::string field(std::string_view text) {
  std::string safe = harmless(text);
  if (!safe.empty() && std::string_view("=+-@").find(safe.front()) != std::string_view::npos) safe.insert(0, "'");
  std::string out = "\"";
  for (const char c : safe) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string number_field(const std::optional<double>& value) { return value ? fmt::format("{}", *value) : ""; }

}  // namespace

std::string csv(const dossier::OpenedRun& run) {
  std::string text =
      "run_id,simulated,standing,requirement,node,subject_kind,subject,required,outcome,unit,value,limit_low,limit_"
      "high,"
      "acceptance_low,acceptance_high,margin,uncertainty,samples,attempts,step,reason,action\n";
  const std::string head = fmt::format("{},{},{}", field(run.content.run.journal.run_id),
                                       run.content.run.plan.simulation ? "true" : "false", field(run.standing));
  for (const auto& one : run.content.verdict.results) {
    text +=
        fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", head, field(one.requirement),
                    field(one.node), field(one.subject.kind), field(one.subject.id), one.required ? "true" : "false",
                    field(judge::to_string(one.outcome)), field(one.unit), number_field(one.value),
                    number_field(one.limit_low), number_field(one.limit_high), number_field(one.acceptance_low),
                    number_field(one.acceptance_high), number_field(one.margin), number_field(one.uncertainty),
                    one.samples, one.attempts, field(one.step), field(one.reason), field(action_of(run, one)));
  }
  return text;
}

}  // namespace assay::exports
