// sweep_history: the figures of a sweep into the database of nights.
#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "orchestrator/cli/sweep_parts.h"
#include "orchestrator/history/history.h"
#include "orchestrator/history/sweep_of_run.h"
#include "probes/core/utc_time.h"

namespace assay::cli {
namespace {

/// Whether a metric tells how others use the node, and nothing of the node itself.
bool is_of_others(const std::string& metric) {
  return metric.starts_with("health_load.") || metric.find(".other_processes") != std::string::npos;
}

/// What became of the node; nothing for a node that is not in the sweep.
const sweep::NodeVisit* visit_of(const sweep::SweepFile& file, const std::string& node) {
  const auto found = std::ranges::find(file.visits, node, &sweep::NodeVisit::node);
  return found == file.visits.end() ? nullptr : &*found;
}

/// The run as history takes it: figures of measured nodes alone. Of the run of the checks (`checks`) only the nodes
/// that were not measured are kept, without figures.
void shape(history::Sweep& sweep, const sweep::SweepFile& file, bool checks) {
  sweep.night = file.plan.night;
  std::erase_if(sweep.visits, [&](const history::UnitVisit& one) {
    const auto* visit = visit_of(file, one.unit.node);
    return visit == nullptr || (checks && visit->state == drift::VisitState::measured);
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

}  // namespace

std::optional<InputError> add_to_history(const std::string& path, const std::string& out, const sweep::SweepFile& file,
                                         bool retest) {
  auto history = history::History::open(path, history::Access::create);
  if (!history) return history.error().error;
  const auto started = utc_time(file.plan.started).value_or(std::chrono::system_clock::now());
  const int offset = static_cast<int>(sweep::local_offset(started).count());
  std::vector<std::pair<std::string, bool>> runs;
  for (const auto& run : file.runs) runs.emplace_back(run, false);
  std::error_code absent;
  if (std::filesystem::exists(out + "/check/journal.jsonl", absent)) runs.emplace_back("check", true);
  for (const auto& visit : file.visits) {
    const std::string check = "nodes/" + visit.node + "/check";
    if (visit.state != drift::VisitState::measured &&
        std::filesystem::exists(out + "/" + check + "/journal.jsonl", absent))
      runs.emplace_back(check, true);
  }
  for (const auto& [run, checks] : runs) {
    auto sweep =
        history::sweep_of_run(out + "/" + run, {.retest = retest, .utc_offset_s = offset, .with_raw = !checks});
    if (!sweep) return sweep.error().error;
    shape(*sweep, file, checks);
    if (sweep->visits.empty()) continue;
    if (const auto added = history->add(*sweep); !added) return added.error().error;
  }
  return std::nullopt;
}

}  // namespace assay::cli
