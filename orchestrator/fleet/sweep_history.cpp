// sweep_history: the figures of a sweep into the database of nights.
#include <algorithm>
#include <filesystem>

#include "orchestrator/fleet/sweep_shared.h"
#include "orchestrator/history/history.h"
#include "orchestrator/history/sweep_of_run.h"
#include "probes/core/utc_time.h"

namespace assay::cli {
namespace {

constexpr const char* kPairs = "pairs/";  // folder_of

/// Whether a metric is of the use of the node by others, not of the node itself.
bool is_of_others(const std::string& metric) {
  return metric.starts_with("health_load.") || metric.find(".other_processes") != std::string::npos;
}

/// The run of a pair as history takes it: the measurement of the two, as figures of each, or that they did not. The
/// nodes have visits of their own.
void shape_pair(history::Sweep& sweep, const sweep::SweepFile& file, const sweep::PairVisit& visit) {
  sweep.night = file.plan.night;
  sweep.asked.clear();
  std::erase_if(sweep.visits, [](const history::UnitVisit& one) { return one.partner.empty(); });
  if (visit.state == drift::VisitState::measured) return;
  sweep.visits.clear();
  for (const auto& [node, partner] :
       {std::pair(visit.pair.first, visit.pair.second), std::pair(visit.pair.second, visit.pair.first)})
    sweep.visits.push_back({.unit = {.id = "node:" + node, .kind = "node", .node = node},
                            .cohort = "pair of nodes",
                            .state = visit.state,
                            .partner = partner,
                            .reason = visit.reason});
}

/// Result of the node; nothing for a node that is not in the sweep.
const sweep::NodeVisit* visit_of(const sweep::SweepFile& file, const std::string& node) {
  const auto found = std::ranges::find(file.visits, node, &sweep::NodeVisit::node);
  return found == file.visits.end() ? nullptr : &*found;
}

/// The run as history takes it: only figures of measured nodes. Of the run of the checks (`checks`) only the nodes that
/// were not measured are kept, without figures.
void shape(history::Sweep& sweep, const sweep::SweepFile& file, bool checks) {
  sweep.night = file.plan.night;
  std::erase_if(sweep.visits, [&](const history::UnitVisit& one) {
    const auto* visit = visit_of(file, one.unit.node);
    return visit == nullptr || (checks && visit->state == drift::VisitState::measured);
  });
  std::erase_if(sweep.asked, [&](const auto& one) {
    const auto* visit = visit_of(file, one.first);
    const bool by_others =
        visit != nullptr && (visit->state == drift::VisitState::busy || visit->state == drift::VisitState::preempted);
    return visit == nullptr || by_others || (checks && visit->state == drift::VisitState::measured);
  });
  for (auto& one : sweep.visits) {
    const auto* visit = visit_of(file, one.unit.node);
    std::erase_if(one.figures, [](const history::Figure& figure) { return is_of_others(figure.metric.name); });
    if (visit->state == drift::VisitState::measured && !checks) continue;
    one.figures.clear();
    one.state = visit->state;
    one.reason = visit->reason;
  }
}

/// The run of paths between tenants: only their figures; its nodes were not visited for themselves.
void shape_crossings(history::Sweep& sweep, const sweep::SweepFile& file) {
  sweep.night = file.plan.night;
  sweep.asked.clear();
  std::erase_if(sweep.visits, [](const history::UnitVisit& one) { return one.figures.empty(); });
}

}  // namespace

std::optional<InputError> add_to_history(const std::string& path, const std::string& out, const sweep::SweepFile& file,
                                         bool retest) {
  auto history = history::History::open(path, history::Access::create);
  if (!history) return history.error().error;
  const auto started = utc_time(file.plan.started).value_or(std::chrono::system_clock::now());
  const int offset = static_cast<int>(sweep::local_offset(started).count());
  const auto is_run = [&](const std::string& run) {
    std::error_code absent;
    return std::filesystem::exists(out + "/" + run + "/journal.jsonl", absent);
  };
  const auto add = [&](const std::string& run, bool with_raw, const auto& shape_it) -> std::optional<InputError> {
    auto sweep =
        history::sweep_of_run(out + "/" + run, {.retest = retest, .utc_offset_s = offset, .with_raw = with_raw});
    if (!sweep) return sweep.error().error;
    shape_it(*sweep);
    if (sweep->visits.empty()) return std::nullopt;
    if (const auto added = history->add(std::move(*sweep)); !added) return added.error().error;
    return std::nullopt;
  };
  std::vector<std::pair<std::string, bool>> runs;
  for (const auto& run : file.runs) {
    if (!run.starts_with(kPairs)) runs.emplace_back(run, false);
  }
  if (is_run("check")) runs.emplace_back("check", true);
  for (const auto& visit : file.visits) {
    const std::string check = "nodes/" + visit.node + "/check";
    if (visit.state != drift::VisitState::measured && is_run(check)) runs.emplace_back(check, true);
  }
  for (const auto& [run, checks] : runs) {
    const auto shape_run = [&](history::Sweep& sweep) {
      if (run == kCrossingRun) {
        shape_crossings(sweep, file);
      } else {
        shape(sweep, file, checks);
      }
    };
    if (auto problem = add(run, !checks, shape_run)) return problem;
  }
  for (const auto& visit : file.pairs) {
    const std::string folder = kPairs + sweep::name_of(visit.pair);
    const bool measured = visit.state == drift::VisitState::measured;
    const std::string run = folder + (is_run(folder + "/run") ? "/run" : "/check");
    if (!is_run(run)) continue;  // it had no job
    if (auto problem = add(run, measured, [&](history::Sweep& sweep) { shape_pair(sweep, file, visit); }))
      return problem;
  }
  return std::nullopt;
}

}  // namespace assay::cli
