// sweep_finish: output of a sweep: sweep.json, the ledger, the history, and the first line for people.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include <fmt/ranges.h>

#include "orchestrator/cli/run_stages.h"
#include "orchestrator/cli/table_json.h"
#include "orchestrator/files/atomic_file.h"
#include "orchestrator/fleet/sweep_shared.h"
#include "orchestrator/sweep/outcome.h"
#include "probes/core/text.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using drift::VisitState;

/// Result of every due node, and the run folders of the figures.
sweep::SweepFile file_of(const SweepPlan& plan, const std::string& out, const std::vector<sweep::NodeVisit>& visits,
                         std::vector<sweep::PairVisit> pairs) {
  sweep::SweepFile file{.plan = plan.file};
  for (const auto& entry : plan.file.due) {
    const auto found = std::ranges::find(visits, entry.node, &sweep::NodeVisit::node);
    const sweep::NodeVisit visit =
        found != visits.end() ? *found : sweep::NodeVisit{.node = entry.node, .reason = "it was not reached"};
    if (entry.finding && visit.state != VisitState::measured) file.findings.push_back(entry.node);
    file.visits.push_back(visit);
  }
  file.pairs = std::move(pairs);
  const auto add_run = [&](const std::string& run) {
    std::error_code absent;
    if (fs::exists(out + "/" + run + "/journal.jsonl", absent)) file.runs.push_back(run);
  };
  add_run("run");
  add_run(kCrossingRun);
  for (const auto& visit : file.visits) add_run("nodes/" + visit.node + "/run");
  for (const auto& visit : file.pairs) {
    if (visit.state == VisitState::measured) add_run(folder_of("", visit.pair).substr(1) + "/run");
  }
  return file;
}

/// The requirements that at least one node was measured by: without those of pairs where jobs were to measure pairs and
/// none did, so that these weigh more tomorrow.
std::expected<std::vector<std::string>, InputError> measured_by(const SweepPlan& plan, const sweep::SweepFile& file) {
  const auto measured = [](const auto& visit) { return visit.state == VisitState::measured; };
  if (!std::ranges::any_of(file.visits, measured)) return std::vector<std::string>{};
  std::vector<std::string> ids = plan.file.only;
  if (plan.file.pairs.empty() || std::ranges::any_of(file.pairs, measured)) return ids;
  const auto& pair = plan.file.pairs.front();
  const auto joint = joint_requirements_on(plan, site_of(plan.site, {pair.first, pair.second}));
  if (!joint) return std::unexpected(joint.error());
  std::erase_if(ids, [&](const std::string& id) { return std::ranges::find(*joint, id) != joint->end(); });
  return ids;
}

void print_summary(const SweepPlan& plan, const sweep::SweepFile& file) {
  std::cout << harmless_page(sweep::summary(plan.file.night, file.visits, file.pairs))
            << "; a sweep accepts and rejects nothing\n";
  const auto print = [](const std::string& name, VisitState state, const std::string& reason) {
    if (state != VisitState::measured)
      std::cout << fmt::format("  {} {}: {}\n", harmless(name), state, harmless(reason));
  };
  for (const auto& visit : file.visits) print(visit.node, visit.state, visit.reason);
  for (const auto& visit : file.pairs) print(sweep::name_of(visit.pair), visit.state, visit.reason);
  if (!file.findings.empty())
    std::cout << fmt::format("  missed in {} sweeps and more: {}\n", sweep::kMissedForFinding,
                             harmless(fmt::format("{}", fmt::join(file.findings, ", "))));
}

/// Results of each node and pair as a table in JSON.
void print_visits_json(const SweepPlan& plan, const std::string& out, const sweep::SweepFile& file) {
  nlohmann::ordered_json rows;
  for (const auto& visit : file.visits)
    rows.push_back({{"node", visit.node}, {"state", visit.state}, {"reason", visit.reason}});
  for (const auto& visit : file.pairs)
    rows.push_back({{"pair", {visit.pair.first, visit.pair.second}}, {"state", visit.state}, {"reason", visit.reason}});
  print_table("sweep",
              {{"night", drift::date_text(plan.file.night)},
               {"of", "visited"},
               {"accepts_nothing", true},
               {"missed_too_often", file.findings},
               {"out", out}},
              std::move(rows));
}

}  // namespace

int finish_sweep(const SweepPlan& plan, const std::string& out, const SweepArguments& given,
                 const std::vector<sweep::NodeVisit>& visits) {
  auto pairs = pairs_in(plan, out, visits);
  if (!pairs) return report_error(pairs.error());
  const sweep::SweepFile file = file_of(plan, out, visits, std::move(*pairs));
  auto measured = measured_by(plan, file);
  if (!measured) return report_error(measured.error());
  if (auto problem = files::replace_file(out + "/sweep.json", sweep::sweep_text(file))) return report_error(*problem);
  const sweep::SweepEntry entry{
      .night = plan.file.night, .sweep = plan.file.id, .requirements = std::move(*measured), .visits = file.visits};
  if (!plan.file.retest) {  // whose visits count for no rotation
    if (auto problem = sweep::enter(plan.ledger, entry)) return report_error(*problem);
  }
  if (!given.history.empty()) {
    if (auto problem = add_to_history(given.history, out, file, plan.file.retest)) return report_error(*problem);
  }
  if (given.json) {
    print_visits_json(plan, out, file);
  } else {
    print_summary(plan, file);
  }
  return sweep::exit_code(file.visits, file.pairs, file.findings);
}

}  // namespace assay::cli
