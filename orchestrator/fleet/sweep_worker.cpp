// sweep_worker: one node of a sweep, visited from itself: a job of Slurm or of Kubernetes.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <thread>

#include <unistd.h>

#include <fmt/format.h>

#include "orchestrator/cli/run_stages.h"
#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/state.h"
#include "orchestrator/fleet/sweep_shared.h"
#include "orchestrator/site/site_file.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"

namespace assay::cli {
namespace {

namespace fs = std::filesystem;
using std::chrono::system_clock;

/// The node that this process runs on: as the scheduler names it, else the host name.
std::string this_node(const std::string& given) {
  if (!given.empty()) return given;
  for (const char* variable : {"SLURMD_NODENAME", "NODE_NAME"}) {
    if (const char* name = std::getenv(variable); name != nullptr && *name != '\0') return name;
  }
  char host[256] = {};
  return ::gethostname(host, sizeof host - 1) == 0 ? std::string(host).substr(0, std::string(host).find('.')) : "";
}

/// `name` of the site as this machine itself.
std::expected<site::Site, InputError> local_site(const site::Site& site, const std::string& name) {
  site::Site part = site_of(site, {name});
  site::Node local = site::this_machine().nodes.front();
  local.name = local.address = name;
  if (!part.nodes.empty()) {
    const site::Node& node = part.nodes.front();
    local.directory = node.directory;
    local.rack = node.rack;
    local.leaf = node.leaf;
    local.planes = node.planes;
    local.parts = node.parts;
    local.part_names = node.part_names;
  }
  part.nodes = {local};
  part.spines.clear();
  return site::read_site(to_json(part).dump(), "the worker's site");
}

/// Waits for this node's share of the stagger.
void wait_for_turn(const SweepPlan& plan, const sweep::DueEntry& entry, const SweepStop& stop) {
  const auto end =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(plan.file.stagger_s * entry.stagger);
  while (!stop.requested() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

sweep::NodeVisit visit(const SweepPlan& plan, const std::string& folder, const sweep::DueEntry& entry) {
  SweepStop stop;
  sweep::NodeVisit failed{.node = entry.node, .state = drift::VisitState::not_measured};
  wait_for_turn(plan, entry, stop);
  if (stop.requested())
    return {.node = entry.node, .state = drift::VisitState::preempted, .reason = "stopped before its turn"};
  const auto site = local_site(plan.site, entry.node);
  if (!site) {
    failed.reason = site.error().what;
    return failed;
  }
  const auto visits = visit_nodes(folder, plan.tools, *site, plan.file.only, left_of(plan), stop);
  if (visits && !visits->empty()) return visits->front();
  failed.reason = visits ? "no step of tonight runs on it alone" : visits.error().where + ": " + visits.error().what;
  return failed;
}

}  // namespace

std::expected<SweepPlan, InputError> read_sweep_folder(const std::string& folder, const SweepArguments& given) {
  const auto text = read_file(folder + "/due.json");
  if (!text) return std::unexpected(text.error());
  auto file = sweep::read_due(*text, folder + "/due.json");
  if (!file) return std::unexpected(file.error());
  auto site = site::read_site_file(folder + "/site.json");
  if (!site) return std::unexpected(site.error());
  auto profile = plan::profile_named(folder + "/profile.json");
  if (!profile) return std::unexpected(profile.error());
  auto programs = sweep_programs(*profile);
  if (!programs) return std::unexpected(programs.error());
  const std::string state =
      given.state.empty() ? fs::path(files::machine_key_path()).replace_filename("sweep").string() : given.state;
  const auto until = utc_time(file->until);
  return SweepPlan{.file = std::move(*file),
                   .site = std::move(*site),
                   .tools = {.profile = sweep::as_sweep(std::move(*profile)), .programs = std::move(*programs)},
                   .until = until,
                   .ledger = state + "/visits.jsonl"};
}

std::expected<std::vector<sweep::NodeVisit>, InputError> visits_in(const SweepPlan& plan, const std::string& out) {
  std::vector<sweep::NodeVisit> visits;
  std::error_code unknown;
  const bool at_once = fs::exists(out + "/check", unknown);  // one process for all nodes
  for (const auto& entry : plan.file.due) {
    const std::string folder = out + "/nodes/" + entry.node;
    const std::string path = folder + "/visit.json";
    if (fs::exists(path, unknown)) {
      const auto text = read_file(path);
      if (!text) return std::unexpected(text.error());
      const auto visit = sweep::read_visit(*text, path);
      if (!visit) return std::unexpected(visit.error());
      if (visit->node != entry.node)
        return std::unexpected(InputError{path, "is of another node", "the folder of a worker is written by it alone"});
      visits.push_back(*visit);
    } else if (fs::exists(folder, unknown)) {
      visits.push_back({.node = entry.node, .reason = "its worker ended without an outcome"});
    } else if (at_once) {
      visits.push_back({.node = entry.node,
                        .state = drift::VisitState::preempted,
                        .reason = "interrupted: the sweep ended while it measured all nodes at once"});
    } else {
      visits.push_back({.node = entry.node, .state = drift::VisitState::busy, .reason = "no worker came to run on it"});
    }
  }
  return visits;
}

int run_worker(const SweepArguments& given) {
  const auto plan = read_sweep_folder(given.worker, given);
  if (!plan) return report_error(plan.error());
  const std::string name = this_node(given.node);
  if (!is_node_name(name)) return report_error({"--node", "this machine has no usable name", "name the node"});
  const auto entry = std::ranges::find(plan->file.due, name, &sweep::DueEntry::node);
  if (entry == plan->file.due.end()) {
    std::cout << fmt::format("{} is not due\n", harmless(name));
    return files::kExitSuccess;
  }
  if (plan->until && *plan->until <= system_clock::now()) {
    std::cout << "the sweep is over\n";
    return files::kExitSuccess;
  }
  const std::string folder = given.worker + "/nodes/" + name;
  const auto claimed = sweep::claim(folder);
  if (!claimed) return report_error(claimed.error());
  if (!*claimed) {
    std::cout << fmt::format("{} was visited already\n", harmless(name));
    return files::kExitSuccess;
  }
  const sweep::NodeVisit outcome = visit(*plan, folder, *entry);
  if (auto problem = files::create_file(folder + "/visit.json", sweep::visit_text(outcome), 0644))
    return report_error(*problem);
  std::cout << fmt::format("{} {}{}{}\n", harmless(name), outcome.state, outcome.reason.empty() ? "" : ": ",
                           harmless(outcome.reason));
  return outcome.state == drift::VisitState::measured ? files::kExitSuccess : files::kExitIncomplete;
}

}  // namespace assay::cli
