// sweep_pair: two nodes of a sweep, measured together by a job of Slurm that has both.
#include <algorithm>
#include <filesystem>
#include <iostream>

#include <fmt/format.h>

#include "orchestrator/cli/run_stages.h"
#include "orchestrator/files/atomic_file.h"
#include "orchestrator/fleet/sweep_shared.h"
#include "orchestrator/sweep/outcome.h"
#include "probes/core/text.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using drift::VisitState;

/// The two nodes as steps of the allocation that this process runs in, for any transport of the site. Agents connect
/// back to the node of this process, and not to the head of the sweep.
std::expected<site::Site, InputError> site_of_allocation(const site::Site& site, const sweep::NightPair& pair) {
  site::Site part = site_of(site, {pair.first, pair.second});
  for (auto& node : part.nodes) {
    site::Node step{.name = node.name, .launcher = site::Launcher::slurm, .address = node.name};
    step.directory = node.directory;
    step.rack = node.rack;
    step.leaf = node.leaf;
    step.rendezvous = node.launcher == site::Launcher::local ? node.name : node.rendezvous;
    step.planes = node.planes;
    step.parts = node.parts;
    step.part_names = node.part_names;
    node = std::move(step);
  }
  std::erase_if(part.spines, [&](const auto& one) {
    return std::ranges::find(part.nodes, one.first, &site::Node::leaf) == part.nodes.end();
  });
  part.slurm.address.clear();
  return site::read_site(to_json(part).dump(), "the pair's site");
}

std::expected<sweep::PairVisit, InputError> measure_pair(const SweepPlan& plan, const std::string& folder,
                                                         const sweep::NightPair& pair, SweepStop& stop) {
  const auto site = site_of_allocation(plan.site, pair);
  if (!site) return std::unexpected(site.error());
  auto only = joint_requirements_on(plan, *site);
  if (!only) return std::unexpected(only.error());
  if (only->empty()) return sweep::PairVisit{.pair = pair, .reason = "no step of tonight joins the two"};
  const auto before = sweep::idle_checks(plan.tools.profile, false),
             after = sweep::idle_checks(plan.tools.profile, true);
  const auto checked = measure(folder + "/check", plan.tools, *site, before, left_of(plan), stop);
  if (!checked) return std::unexpected(checked.error());
  if (auto visit = sweep::hindered(pair, sweep::not_idle(checked->run, checked->verdict, before, stop.requested())))
    return *visit;
  if (stop.requested())
    return sweep::PairVisit{.pair = pair, .state = VisitState::preempted, .reason = "the sweep was stopped"};
  only->insert(only->end(), after.begin(), after.end());
  const auto measured = measure(folder + "/run", plan.tools, *site, *only, left_of(plan), stop);
  if (!measured) return std::unexpected(measured.error());
  return sweep::pair_visit_of(pair, measured->run, measured->verdict, after, measured->interrupted);
}

/// The visit in the folder of `pair`, or why there is none.
std::expected<sweep::PairVisit, InputError> pair_in(const std::string& out, const sweep::NightPair& pair,
                                                    const std::vector<sweep::NodeVisit>& nodes) {
  const std::string folder = folder_of(out, pair), path = folder + "/pair.json";
  std::error_code unknown;
  if (fs::exists(path, unknown)) {
    const auto text = read_file(path);
    if (!text) return std::unexpected(text.error());
    auto visit = sweep::read_pair(*text, path);
    if (visit && visit->pair != pair)
      return std::unexpected(InputError{path, "is of another pair", "the folder of a worker is written by it alone"});
    return visit;
  }
  if (fs::exists(folder, unknown))
    return sweep::PairVisit{.pair = pair, .reason = "its worker ended without an outcome"};
  if (const auto visit = sweep::hindered(pair, nodes)) return *visit;
  return sweep::PairVisit{.pair = pair, .state = VisitState::busy, .reason = "no job came to run on both"};
}

}  // namespace

std::string folder_of(const std::string& out, const sweep::NightPair& pair) {
  return out + "/pairs/" + sweep::name_of(pair);
}

std::vector<std::string> with_partners_of_tonight(const sweep::DueFile& file, std::vector<std::string> names) {
  if (file.retest) {
    const auto place = [&](const std::string& name) {
      return std::ranges::find(file.due, name, &sweep::DueEntry::node);
    };
    std::ranges::sort(names, {}, place);
    return names;
  }
  std::ranges::sort(names);
  return sweep::rotated(std::move(names), file.night);
}

std::expected<std::vector<sweep::NightPair>, InputError> pairs_among(const SweepPlan& plan,
                                                                     std::vector<std::string> names) {
  if (names.size() < 2 || plan.file.only.empty()) return std::vector<sweep::NightPair>{};
  const auto made =
      plan::make_plan(plan.tools.profile, site_of(plan.site, with_partners_of_tonight(plan.file, std::move(names))),
                      plan.tools.programs, {.only = plan.file.only, .localise = false});
  if (!made) return std::unexpected(made.error());
  return sweep::pairs_of(*made);
}

std::expected<std::vector<std::string>, InputError> joint_requirements_on(const SweepPlan& plan,
                                                                          const site::Site& site) {
  const auto made =
      plan::make_plan(plan.tools.profile, site, plan.tools.programs, {.only = plan.file.only, .localise = false});
  if (!made) return std::unexpected(made.error());
  return sweep::joint_requirements(*made);
}

std::expected<std::vector<sweep::PairVisit>, InputError> pairs_in(const SweepPlan& plan, const std::string& out,
                                                                  const std::vector<sweep::NodeVisit>& nodes) {
  std::vector<sweep::NightPair> pairs = plan.file.pairs, more;
  std::error_code unknown;
  for (fs::directory_iterator entry(out + "/pairs", unknown), end; !unknown && entry != end; entry.increment(unknown)) {
    const auto pair = sweep::pair_named(entry->path().filename().string());
    if (pair && std::ranges::find(pairs, *pair) == pairs.end()) more.push_back(*pair);
  }
  std::ranges::sort(more);
  pairs.insert(pairs.end(), more.begin(), more.end());
  std::vector<sweep::PairVisit> visits;
  for (const auto& pair : pairs) {
    auto visit = pair_in(out, pair, nodes);
    if (!visit) return std::unexpected(visit.error());
    visits.push_back(std::move(*visit));
  }
  return visits;
}

int run_pair_worker(const SweepArguments& given) {
  const auto plan = read_sweep_folder(given.worker, given);
  if (!plan) return report_error(plan.error());
  const auto pair = sweep::pair_named(given.pair, ',');
  if (!pair) return report_error({"--pair", "does not name two nodes", "write n01,n02"});
  for (const auto& node : {pair->first, pair->second}) {
    if (std::ranges::find(plan->file.due, node, &sweep::DueEntry::node) == plan->file.due.end())
      return report_error({"--pair", harmless(node) + " is not due", "name two nodes of due.json"});
  }
  if (plan->until && *plan->until <= std::chrono::system_clock::now()) {
    std::cout << "the sweep is over\n";
    return files::kExitSuccess;
  }
  const std::string folder = folder_of(given.worker, *pair);
  const auto claimed = sweep::claim(folder);
  if (!claimed) return report_error(claimed.error());
  if (!*claimed) {
    std::cout << fmt::format("{} was visited already\n", harmless(sweep::name_of(*pair)));
    return files::kExitSuccess;
  }
  SweepStop stop;
  const auto measured = measure_pair(*plan, folder, *pair, stop);
  const sweep::PairVisit outcome =
      measured ? *measured
               : sweep::PairVisit{.pair = *pair, .reason = measured.error().where + ": " + measured.error().what};
  if (auto problem = files::create_file(folder + "/pair.json", sweep::pair_text(outcome), 0644))
    return report_error(*problem);
  std::cout << fmt::format("{} {}{}{}\n", harmless(sweep::name_of(*pair)), outcome.state,
                           outcome.reason.empty() ? "" : ": ", harmless(outcome.reason));
  return outcome.state == VisitState::measured ? files::kExitSuccess : files::kExitIncomplete;
}

}  // namespace assay::cli
