// verdict_command: `assay verdict`: reads one small file, or writes those of all nodes.
#include <iostream>

#include <fmt/format.h>

#include "orchestrator/cli/documents.h"
#include "orchestrator/cli/run_stages.h"
#include "orchestrator/cli/table_json.h"
#include "orchestrator/files/atomic_file.h"
#include "orchestrator/fleet/nightly.h"
#include "orchestrator/history/history.h"
#include "orchestrator/site/site.h"
#include "orchestrator/sweep/verdict_cache.h"
#include "probes/core/secret_file.h"
#include "probes/core/text.h"

namespace assay::cli {
namespace {

std::expected<std::vector<sweep::KnownUnit>, InputError> units_in(const std::string& path) {
  const auto history = history::History::open(path, history::Access::read);
  if (!history) return std::unexpected(history.error().error);
  const auto visits = history->last_visits();
  if (!visits) return std::unexpected(visits.error().error);
  std::vector<sweep::KnownUnit> units;
  for (const auto& one : *visits) units.push_back({.unit = one.unit, .node = one.node, .measured = one.measured});
  return units;
}

/// A file for each node that the history knows.
int publish(const VerdictArguments& given) {
  if (auto problem = check_deciding_file(given.history)) return report_error(*problem);
  const auto report = read_document(given.drift, drift::read_report);
  if (!report) return report_error(report.error());
  drift::Policy policy;
  if (!given.policy.empty()) {
    const auto read = read_document(given.policy, drift::read_policy);
    if (!read) return report_error(read.error());
    policy = *read;
  }
  const auto units = units_in(given.history);
  if (!units) return report_error(units.error());
  std::vector<std::string> nodes;
  for (const auto& one : *units) nodes.push_back(one.node);
  for (const auto& flag : report->flags) nodes.push_back(flag.node);
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  nlohmann::ordered_json rows;
  for (const auto& node : nodes) {
    if (!is_node_name(node) || (!given.node.empty() && node != given.node)) continue;
    const sweep::CachedVerdict verdict = sweep::verdict_for(node, *report, policy, *units);
    const std::string path = given.node.empty() ? given.out + "/" + node + ".json" : given.out;
    if (auto problem = files::replace_file(path, sweep::verdict_text(verdict))) return report_error(*problem);
    rows.push_back({{"node", node}, {"health", verdict.health}, {"text", verdict.text}, {"file", path}});
  }
  if (given.json) {
    print_table("verdict", {{"as_of", drift::date_text(report->as_of)}, {"published", true}}, std::move(rows));
  } else {
    std::cout << fmt::format("{} verdicts written\n", rows.size());
  }
  return files::kExitSuccess;
}

}  // namespace

int command_verdict(const VerdictArguments& given) {
  if (given.publish) {
    if (given.drift.empty() || given.history.empty() || given.out.empty())
      return report_error({"assay verdict --publish", "needs --drift, --history and --out", "`assay verdict --help`"});
    return publish(given);
  }
  const std::string node = given.node.empty() ? site::this_machine().name : given.node;
  const sweep::Answer answer =
      sweep::answer_from(given.file.empty() ? sweep::kVerdictPath : given.file, node, std::chrono::system_clock::now());
  if (given.json) {
    const auto health = static_cast<sweep::NodeHealth>(answer.code);
    print_table("verdict", {{"published", false}},
                {{{"node", node}, {"health", health}, {"text", answer.line}, {"exit_code", answer.code}}});
  } else {
    std::cout << harmless(answer.line) << '\n';
  }
  return answer.code;
}

}  // namespace assay::cli
