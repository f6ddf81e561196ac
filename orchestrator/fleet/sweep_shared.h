// sweep_shared: common parts of the ways of a sweep: at once over ssh and local agents, by jobs of Slurm, by workers.
#pragma once

#include <chrono>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/fleet/nightly.h"
#include "orchestrator/fleet/sweep_measure.h"
#include "orchestrator/sweep/sweep_file.h"

namespace assay::cli {

/// The folder below that of a sweep in which paths between tenants were tried.
inline constexpr const char* kCrossingRun = "crossings";

/// A sweep that is ready to begin.
struct SweepPlan {
  sweep::DueFile file;
  site::Site site;
  SweepTools tools;
  std::optional<std::chrono::system_clock::time_point> until;  ///< by the real clock
  std::string ledger;                                          ///< path

  /// Whether the paths between tenants are tried tonight too.
  [[nodiscard]] bool tries_crossings() const { return site.crossings && site.crossings->nightly && !file.retest; }
};

/// Reads profile, site, ledger and drift report, and makes due list and choice; nothing is written.
std::expected<SweepPlan, InputError> plan_sweep(const SweepArguments& given);

/// Time left of `until`; nothing without an end.
std::optional<Seconds> left_of(const SweepPlan& plan);

/// Writes due.json, site.json and profile.json into the fresh folder `out`.
std::optional<InputError> write_sweep(const SweepPlan& plan, const std::string& out);

/// Enters the history and the ledger, writes sweep.json last, prints the first line. Returns the exit code. After an
/// error of the database or the disk there is no sweep.json, and `assay sweep --collect` tries again.
int finish_sweep(const SweepPlan& plan, const std::string& out, const SweepArguments& given,
                 const std::vector<sweep::NodeVisit>& visits);

/// Adds the runs of the sweep in `out` to the database `history`: figures of nodes that were measured, and a visit
/// without figures for each unit of the others. A metric of the use of a node by others is no figure of it. A run that
/// cannot be read leaves `file.runs`, and what it was to measure becomes not measured, with the reason.
std::optional<InputError> add_to_history(const std::string& history, const std::string& out, sweep::SweepFile& file);

/// Visits the due nodes by jobs of Slurm, then pairs of those that were measured; each writes nodes/NODE/visit.json or
/// pairs/A+B/pair.json.
std::expected<std::vector<sweep::NodeVisit>, InputError> sweep_by_slurm(const SweepPlan& plan, const std::string& out,
                                                                        const SweepArguments& given);

/// The visits that workers left in `out`, in the order of the due list: a node that none claimed was busy, one that was
/// claimed and has no outcome was not measured. Of a sweep of all nodes at once that was killed, all were interrupted.
std::expected<std::vector<sweep::NodeVisit>, InputError> visits_in(const SweepPlan& plan, const std::string& out);

/// The folder of a pair below that of its sweep; making it is the claim.
std::string folder_of(const std::string& out, const sweep::NightPair& pair);

/// `names` in such an order that the first round of a tournament has tonight's pairs: other ones every night; of a
/// retest the flagged nodes with the partners that were chosen for them.
std::vector<std::string> with_partners_of_tonight(const sweep::DueFile& file, std::vector<std::string> names);

/// The pairs that tonight's requirements join among `names`, as where all of these nodes are visited at once.
std::expected<std::vector<sweep::NightPair>, InputError> pairs_among(const SweepPlan& plan,
                                                                     std::vector<std::string> names);

/// Ids of tonight's requirements that join nodes of `site`, which is a part of the plan's.
std::expected<std::vector<std::string>, InputError> joint_requirements_on(const SweepPlan& plan,
                                                                          const site::Site& site);

/// The visits of pairs that workers left in `out`; of one that had no job, why, by the visits of its `nodes`.
std::expected<std::vector<sweep::PairVisit>, InputError> pairs_in(const SweepPlan& plan, const std::string& out,
                                                                  const std::vector<sweep::NodeVisit>& nodes);

/// `assay sweep --worker`: visits this node, or `given.node`, for the sweep in the folder.
int run_worker(const SweepArguments& given);

/// `assay sweep --worker --pair`: measures two nodes together, within the allocation of a job that has both.
int run_pair_worker(const SweepArguments& given);

/// The parts of a sweep's folder read back, for workers and --collect.
std::expected<SweepPlan, InputError> read_sweep_folder(const std::string& folder, const SweepArguments& given);

}  // namespace assay::cli
