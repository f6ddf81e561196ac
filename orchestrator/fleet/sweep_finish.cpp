// sweep_finish: output of a sweep: the history, the ledger, sweep.json, and the first line for people.
//
// sweep.json says that history and ledger have the sweep, so it comes last: a folder without it is collected again, and
// nothing counts twice (the history knows the digest of a run, the ledger the id of a sweep). The history comes before
// the ledger, because a run that it cannot read makes a visit not measured. Before either, outcome.json keeps states
// that the folder cannot show again: those of a sweep of all nodes at once, and then all that the ledger will have.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include <fmt/ranges.h>

#include "orchestrator/cli/documents.h"
#include "orchestrator/cli/run_stages.h"
#include "orchestrator/cli/table_json.h"
#include "orchestrator/files/atomic_file.h"
#include "orchestrator/fleet/sweep_shared.h"
#include "orchestrator/sweep/outcome.h"
#include "probes/core/secret_file.h"
#include "probes/core/text.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using drift::VisitState;

constexpr const char* kOutcome = "/outcome.json";
constexpr const char* kSweep = "/sweep.json";

/// What an earlier call left in `out`, whole or before it was entered; nothing if it left none.
std::expected<std::optional<sweep::SweepFile>, InputError> outcome_before(const std::string& out) {
  std::error_code absent;
  for (const char* name : {kSweep, kOutcome}) {
    if (!fs::exists(out + name, absent)) continue;
    if (auto problem = check_deciding_file(out)) return std::unexpected(*problem);
    auto file = read_document(out + name, sweep::read_sweep);
    if (!file) return std::unexpected(file.error());
    return std::optional(std::move(*file));
  }
  return std::nullopt;
}

/// Result of every due node, and the run folders of the figures.
sweep::SweepFile file_of(const SweepPlan& plan, const std::string& out, const std::vector<sweep::NodeVisit>& visits,
                         std::vector<sweep::PairVisit> pairs) {
  sweep::SweepFile file{.plan = plan.file};
  for (const auto& entry : plan.file.due) {
    const auto found = std::ranges::find(visits, entry.node, &sweep::NodeVisit::node);
    file.visits.push_back(found != visits.end() ? *found
                                                : sweep::NodeVisit{.node = entry.node, .reason = "it was not reached"});
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

/// The nodes that were missed too often, and tonight again.
std::vector<std::string> findings_of(const SweepPlan& plan, const std::vector<sweep::NodeVisit>& visits) {
  std::vector<std::string> nodes;
  for (const auto& entry : plan.file.due) {
    const auto visit = std::ranges::find(visits, entry.node, &sweep::NodeVisit::node);
    if (entry.finding && visit != visits.end() && visit->state != VisitState::measured) nodes.push_back(entry.node);
  }
  return nodes;
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

/// The sweep in `out`: what an earlier call left of it, else by `visits` and the folder. States of a sweep of all nodes
/// at once are kept before the history, since a folder does not show them again.
std::expected<sweep::SweepFile, InputError> outcome_of(const SweepPlan& plan, const std::string& out,
                                                       const std::vector<sweep::NodeVisit>& visits) {
  auto before = outcome_before(out);
  if (!before) return std::unexpected(before.error());
  if (*before) return std::move(**before);
  auto pairs = pairs_in(plan, out, visits);
  if (!pairs) return std::unexpected(pairs.error());
  sweep::SweepFile file = file_of(plan, out, visits, std::move(*pairs));
  std::error_code absent;
  if (fs::exists(out + "/check", absent)) {
    if (auto problem = files::replace_file(out + kOutcome, sweep::sweep_text(file))) return std::unexpected(*problem);
  }
  return file;
}

/// Enters `file` into the history and the ledger, then writes sweep.json.
std::optional<InputError> enter_all(const SweepPlan& plan, const std::string& out, const std::string& history,
                                    sweep::SweepFile& file) {
  if (!history.empty()) {
    if (auto problem = add_to_history(history, out, file)) return problem;
  }
  file.findings = findings_of(plan, file.visits);
  auto measured = measured_by(plan, file);
  if (!measured) return measured.error();
  const std::string text = sweep::sweep_text(file);
  if (auto problem = files::replace_file(out + kOutcome, text)) return problem;
  const sweep::SweepEntry entry{
      .night = plan.file.night, .sweep = plan.file.id, .requirements = std::move(*measured), .visits = file.visits};
  if (!plan.file.retest) {  // whose visits count for no rotation
    if (auto problem = sweep::enter(plan.ledger, entry)) return problem;
  }
  if (auto problem = files::replace_file(out + kSweep, text)) return problem;
  std::error_code left;  // harmless: sweep.json counts
  fs::remove(out + kOutcome, left);
  return std::nullopt;
}

}  // namespace

int finish_sweep(const SweepPlan& plan, const std::string& out, const SweepArguments& given,
                 const std::vector<sweep::NodeVisit>& visits) {
  auto file = outcome_of(plan, out, visits);
  if (!file) return report_error(file.error());
  if (auto problem = enter_all(plan, out, given.history, *file)) return report_error(*problem);
  if (given.json) {
    print_visits_json(plan, out, *file);
  } else {
    print_summary(plan, *file);
  }
  return sweep::exit_code(file->visits, file->pairs, file->findings);
}

}  // namespace assay::cli
