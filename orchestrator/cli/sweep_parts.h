// sweep_parts: what the ways of a sweep share: at once over ssh and local agents, by jobs of Slurm, by workers.
#pragma once

#include <chrono>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/cli/nightly.h"
#include "orchestrator/cli/sweep_measure.h"
#include "orchestrator/sweep/sweep_file.h"

namespace assay::cli {

/// A sweep that is ready to begin.
struct SweepPlan {
  sweep::DueFile file;
  site::Site site;
  SweepTools tools;
  std::optional<std::chrono::system_clock::time_point> until;  ///< by the real clock
  std::string ledger;                                          ///< path
};

/// Reads profile, site, ledger and drift report, and makes due list and choice; nothing is written.
std::expected<SweepPlan, InputError> plan_sweep(const SweepArguments& given);

/// Time left of `until`; nothing where it has no end.
std::optional<Seconds> left_of(const SweepPlan& plan);

/// Writes due.json, site.json and profile.json into the fresh folder `out`.
std::optional<InputError> write_sweep(const SweepPlan& plan, const std::string& out);

/// Writes sweep.json, enters the ledger and the history, prints the first line. Returns the exit code.
int finish_sweep(const SweepPlan& plan, const std::string& out, const SweepArguments& given,
                 std::vector<sweep::NodeVisit> visits);

/// Adds the runs of the sweep in `out` to the database `history`: figures of nodes that were measured, and a visit
/// without figures for each unit of the others. What shows the use of a node by others is no figure of it.
std::optional<InputError> add_to_history(const std::string& history, const std::string& out,
                                         const sweep::SweepFile& file, bool retest);

/// Visits the due nodes by jobs of Slurm; each writes nodes/NODE/visit.json.
std::expected<std::vector<sweep::NodeVisit>, InputError> sweep_by_slurm(const SweepPlan& plan, const std::string& out,
                                                                        const SweepArguments& given);

/// The visits that workers left in `out`, in the order of the due list: a node that none claimed was busy, one that was
/// claimed and has no outcome was not measured.
std::expected<std::vector<sweep::NodeVisit>, InputError> visits_in(const SweepPlan& plan, const std::string& out);

/// `assay sweep --worker`: visits this node, or `given.node`, for the sweep in the folder.
int run_worker(const SweepArguments& given);

/// The parts of a sweep's folder read back, for workers and --collect.
std::expected<SweepPlan, InputError> read_sweep_folder(const std::string& folder, const SweepArguments& given);

}  // namespace assay::cli
