// ctrf: Common Test Report Format, https://ctrf.io.
#include <nlohmann/json.hpp>

#include <fmt/format.h>

#include "probes/core/json_io.h"
#include "reports/exports/cells.h"
#include "reports/exports/exports.h"

namespace assay::exports {
namespace {

using nlohmann::ordered_json;

constexpr const char* kSpecification = "1.0.0";  // whose members these are

const char* status_of(const judge::Result& result) {
  using enum judge::Outcome;
  if (result.outcome == pass) return "passed";
  return result.required && (result.outcome == fail || result.outcome == error) ? "failed" : "other";
}

ordered_json test_of(const judge::Result& result, const std::string& action, const StepTime& time) {
  ordered_json test = {{"name", fmt::format("{} on {}", result.requirement, judge::place_of(result))},
                       {"status", status_of(result)},
                       {"duration", time.busy},
                       {"suite", {result.requirement}},
                       {"message", result.reason},
                       {"rawStatus", judge::to_string(result.outcome)}};
  if (time.begin > 0) {
    test["start"] = time.begin;
    test["stop"] = time.end;
  }
  ordered_json extra = {{"required", result.required},
                        {"node", result.node},
                        {"subject", ordered_json(assay::to_json(result.subject))},
                        {"unit", result.unit},
                        {"samples", result.samples},
                        {"attempts", result.attempts},
                        {"evidence", result.evidence}};
  const auto put = [&](const char* name, const std::optional<double>& value) {
    if (value) extra[name] = *value;
  };
  if (result.is_of_demand()) {
    extra["demanded"] = judge::demanded_text(result);
    extra["seen"] = judge::seen_text(result);
  }
  put("value", result.value);
  put("limit_low", result.limit_low);
  put("limit_high", result.limit_high);
  put("acceptance_low", result.acceptance_low);
  put("acceptance_high", result.acceptance_high);
  put("uncertainty", result.uncertainty);
  put("margin", result.margin);
  if (!action.empty()) extra["action"] = action;
  test["extra"] = std::move(extra);
  return test;
}

}  // namespace

std::string ctrf(const dossier::OpenedRun& run) {
  const auto& plan = run.content.run.plan;
  const auto& verdict = run.content.verdict;
  const auto times = step_times(run.content.run.journal);
  ordered_json tests = ordered_json::array();
  for (const auto& result : verdict.results) {
    const auto time = times.find(result.step);
    tests.push_back(test_of(result, action_of(run, result), time == times.end() ? StepTime{} : time->second));
  }
  const std::string why = never_accepts(run);
  const bool accepted = verdict.overall == judge::Overall::accepted && why.empty();
  tests.push_back({{"name", "verdict: accepted"},
                   {"status", accepted ? "passed" : "failed"},
                   {"duration", 0},
                   {"suite", {"verdict"}},
                   {"message", why.empty() ? verdict.reason : why + ". " + verdict.reason},
                   {"rawStatus", judge::to_string(verdict.overall)}});
  ordered_json summary = {{"tests", tests.size()}, {"passed", 0},  {"failed", 0},
                          {"skipped", 0},          {"pending", 0}, {"other", 0}};
  for (const auto& test : tests) {
    auto& count = summary[test.at("status").get<std::string>()];
    count = count.get<std::size_t>() + 1;
  }
  summary["start"] = milliseconds(run.content.run.journal.begin);
  summary["stop"] = milliseconds(run.content.run.journal.last);
  const ordered_json document = {{"reportFormat", "CTRF"},
                                 {"specVersion", kSpecification},
                                 {"runId", run.content.run.journal.run_id},
                                 {"timestamp", run.content.run.journal.last},
                                 {"generatedBy", "assay " ASSAY_VERSION},
                                 {"results",
                                  {{"tool", {{"name", "assay"}, {"version", plan.assay_version}}},
                                   {"summary", std::move(summary)},
                                   {"tests", std::move(tests)},
                                   {"extra",
                                    {{"standing", run.standing},
                                     {"simulated", plan.simulation.has_value()},
                                     {"overall", judge::to_string(verdict.overall)},
                                     {"profile", plan.profile.name},
                                     {"site", plan.site.name},
                                     {"plan_sha256", run.content.run.plan_sha256},
                                     {"verdict_sha256", run.content.verdict_sha256}}}}}};
  return document.dump(1, ' ', true, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace assay::exports
