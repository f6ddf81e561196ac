// comparison_json: assay.comparison/1.
#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"
#include "reports/compare/shown.h"

namespace assay::compare {
namespace {

using nlohmann::ordered_json;

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

ordered_json document_of(const Side& side) {
  const auto& run = side.content.run;
  return {{"path", side.path},
          {"standing", side.standing},
          {"signers", side.signers},
          {"simulated", run.plan.simulation.has_value()},
          {"quick", run.plan.quick},
          {"run_id", run.journal.run_id},
          {"plan_sha256", run.plan_sha256},
          {"site", run.plan.site.name},
          {"profile", run.plan.profile.name},
          {"profile_revision", run.plan.profile.revision},
          {"began", run.journal.begin},
          {"ended", run.journal.last},
          {"overall", judge::to_string(side.content.verdict.overall)}};
}

ordered_json document_of(const RankTest& test) {
  if (!test.shift) return nullptr;
  ordered_json interval;
  if (test.interval)
    interval = {{"low", test.interval->low}, {"high", test.interval->high}, {"level", test.interval->level}};
  return {{"p", test.p},         {"smallest_p", test.smallest_p}, {"exact", test.exact}, {"shift", or_null(test.shift)},
          {"ratio", test.ratio}, {"interval", interval}};
}

ordered_json document_of(const judge::Result* result) {
  if (result == nullptr) return nullptr;
  return {{"outcome", judge::to_string(result->outcome)},
          {"value", or_null(result->value)},
          {"each", result->each},
          {"limit_low", or_null(result->limit_low)},
          {"limit_high", or_null(result->limit_high)}};
}

ordered_json document_of(const RequirementPair& pair) {
  ordered_json cells = ordered_json::array();
  for (const auto& cell : pair.cells) {
    const auto& either = cell.a != nullptr ? *cell.a : *cell.b;
    cells.push_back({{"node", either.node},
                     {"subject", ordered_json(assay::to_json(either.subject))},
                     {"a", document_of(cell.a)},
                     {"b", document_of(cell.b)},
                     {"change", or_null(cell.change)},
                     {"test", document_of(cell.test)},
                     {"finding", word_of(cell.finding)}});
  }
  return {{"id", pair.id},
          {"metric", pair.metric},
          {"unit", pair.unit},
          {"statistic", pair.statistic},
          {"limit_a", pair.limit_a},
          {"limit_b", pair.limit_b},
          {"method_differences", pair.method},
          {"outcomes_a", pair.outcomes_a},
          {"outcomes_b", pair.outcomes_b},
          {"value_a", or_null(pair.value_a)},
          {"value_b", or_null(pair.value_b)},
          {"design", word_of(pair.design)},
          {"tested", pair.tested},
          {"left_out", pair.left_out},
          {"test", document_of(pair.test)},
          {"finding", word_of(pair.finding)},
          {"reason", pair.reason},
          {"cells", std::move(cells)}};
}

}  // namespace

std::string comparison_json(const Comparison& all, const Side& a, const Side& b) {
  ordered_json requirements = ordered_json::array();
  for (const auto& pair : all.requirements) requirements.push_back(document_of(pair));
  const ordered_json document = {{"schema", "assay.comparison/1"},
                                 {"a", document_of(a)},
                                 {"b", document_of(b)},
                                 {"alpha", all.demands.alpha},
                                 {"smallest_change", all.demands.smallest_change},
                                 {"threshold", all.threshold},
                                 {"cell_threshold", all.cell_threshold},
                                 {"counts", all.counts},
                                 {"notes", all.notes},
                                 {"target_differences", all.targets},
                                 {"requirements", std::move(requirements)}};
  return document.dump(1, ' ', true, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace assay::compare
