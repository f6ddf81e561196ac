// sweep_history: the figures of a sweep into the database of nights, first those of nodes, then the checks of nodes
// without figures, then pairs. A run that cannot be read stops none of the others.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "orchestrator/fleet/sweep_shared.h"
#include "orchestrator/history/history.h"
#include "orchestrator/history/sweep_of_run.h"
#include "probes/core/descriptor.h"
#include "probes/core/text.h"
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

/// Why a run cannot be read; nothing if it was.
using Unread = std::optional<std::string>;

/// Adds runs of the sweep in the folder `out` to a database.
struct RunAdder {
  history::History& history;
  const std::string& out;
  bool retest = false;
  int utc_offset_s = 0;

  /// Whether the folder `run` of the sweep holds a run.
  [[nodiscard]] bool is_run(const std::string& run) const {
    std::error_code absent;
    return std::filesystem::exists(out + "/" + run + "/journal.jsonl", absent);
  }

  /// Adds `run` as `shape_it` leaves it. Errors are of the disk or the database; a run that cannot be read is none: its
  /// reason is said, and no figure of it counts.
  [[nodiscard]] std::expected<Unread, InputError> add(const std::string& run, bool with_raw,
                                                      const auto& shape_it) const {
    auto sweep =
        history::sweep_of_run(out + "/" + run, {.retest = retest, .utc_offset_s = utc_offset_s, .with_raw = with_raw});
    if (!sweep) {
      if (auto problem = disk_problem(out + "/" + run + "/journal.jsonl")) return std::unexpected(*problem);
      const InputError& error = sweep.error().error;
      std::string reason = fmt::format("its run cannot be read: {}: {}", error.where, error.what);
      std::cerr << harmless_page(fmt::format("{}: {}\n", run, reason));
      return reason;
    }
    shape_it(*sweep);
    if (sweep->visits.empty()) return Unread{};
    if (const auto added = history.add(std::move(*sweep)); !added) return std::unexpected(added.error().error);
    return Unread{};
  }

  /// An error of the file system or of this process, which another try may not meet, and not of the file's content.
  [[nodiscard]] static std::optional<InputError> disk_problem(const std::string& path) {
    static constexpr int kPassing[] = {EIO, ESTALE, ETIMEDOUT, ENOTCONN, EMFILE, ENFILE, ENOMEM};
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    char byte = 0;
    if (file && ::read(file.number(), &byte, 1) >= 0) return std::nullopt;
    const int error = errno;
    if (std::ranges::find(kPassing, error) == std::end(kPassing)) return std::nullopt;
    return InputError{path, fmt::format("cannot be read: {}", std::strerror(error)),
                      "`assay sweep --collect` enters the sweep once the disk can be read"};
  }
};

/// The measured visits whose figures were to be in `run`, which is of one node or of all, become not measured.
void miss(sweep::SweepFile& file, const std::string& run, const std::string& reason) {
  for (auto& visit : file.visits) {
    if (visit.state != drift::VisitState::measured || (run != "run" && run != "nodes/" + visit.node + "/run")) continue;
    visit.state = drift::VisitState::not_measured;
    visit.reason = reason;
  }
}

/// The runs of nodes, and of paths between tenants.
std::optional<InputError> add_measurements(const RunAdder& adder, sweep::SweepFile& file) {
  std::vector<std::string> read;
  for (const auto& run : file.runs) {
    if (run.starts_with(kPairs)) {  // add_pairs
      read.push_back(run);
      continue;
    }
    const auto unread = adder.add(run, true, [&](history::Sweep& sweep) {
      if (run == kCrossingRun) {
        shape_crossings(sweep, file);
      } else {
        shape(sweep, file, false);
      }
    });
    if (!unread) return unread.error();
    if (*unread) {
      miss(file, run, **unread);
    } else {
      read.push_back(run);
    }
  }
  file.runs = std::move(read);
  return std::nullopt;
}

/// The runs of the checks, which have the visits of nodes that were not measured.
std::optional<InputError> add_checks(const RunAdder& adder, const sweep::SweepFile& file) {
  std::vector<std::string> checks = {"check"};
  for (const auto& visit : file.visits) {
    if (visit.state != drift::VisitState::measured) checks.push_back("nodes/" + visit.node + "/check");
  }
  for (const auto& run : checks) {
    if (!adder.is_run(run)) continue;
    const auto unread = adder.add(run, false, [&](history::Sweep& sweep) { shape(sweep, file, true); });
    if (!unread) return unread.error();
  }
  return std::nullopt;
}

/// Of each pair that had a job its run, or where there is none, or none that can be read, its check.
std::optional<InputError> add_pairs(const RunAdder& adder, sweep::SweepFile& file) {
  for (auto& visit : file.pairs) {
    const std::string folder = kPairs + sweep::name_of(visit.pair);
    for (const std::string& run : {folder + "/run", folder + "/check"}) {
      if (!adder.is_run(run)) continue;
      const bool measured = visit.state == drift::VisitState::measured;
      const auto unread = adder.add(run, measured, [&](history::Sweep& sweep) { shape_pair(sweep, file, visit); });
      if (!unread) return unread.error();
      if (!*unread) break;
      std::erase(file.runs, run);
      if (measured) visit = {.pair = visit.pair, .state = drift::VisitState::not_measured, .reason = **unread};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<InputError> add_to_history(const std::string& path, const std::string& out, sweep::SweepFile& file) {
  auto history = history::History::open(path, history::Access::create);
  if (!history) return history.error().error;
  const auto started = utc_time(file.plan.started).value_or(std::chrono::system_clock::now());
  const RunAdder adder{.history = *history,
                       .out = out,
                       .retest = file.plan.retest,
                       .utc_offset_s = static_cast<int>(sweep::local_offset(started).count())};
  if (auto problem = add_measurements(adder, file)) return problem;
  if (auto problem = add_checks(adder, file)) return problem;
  return add_pairs(adder, file);
}

}  // namespace assay::cli
