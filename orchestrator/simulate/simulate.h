// simulate: a run in virtual time with records made up from a seed and a list of faults, for rehearsal and for planning
// of capacity. Everything that it writes says that it is a simulation.
#pragma once

#include <string>
#include <vector>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"

namespace assay::simulate {

/// Shape of a fleet.
struct FleetShape {
  std::size_t nodes = 1;
  std::size_t per_rack = 0;  ///< 0: racks are unknown
  std::size_t per_leaf = 0;  ///< 0: leaves are unknown
  std::size_t rails = 0;     ///< ports of each node in each of `planes`, on a leaf switch of their own rail
  std::vector<std::string> planes = {};
};

/// `shape` completed by the needs of `profile`: the planes that it names, with one rail, and leaves of 16 nodes, or of
/// half of the nodes of a small fleet, if it names a plane or pairs by leaf; racks of 18 nodes if it judges by
/// meters or names racks.
FleetShape shape_for(const plan::Profile& profile, FleetShape shape);

/// A site of made-up nodes "n00000", "n00001", …, named "simulated".
site::Site simulated_site(const FleetShape& shape);

/// Says how many parts every node of a made-up site has, of the kinds that `profile` leaves to the site: eight. Where
/// the profile judges by meters, the site gets them, and the consent to load it (plant_site.h); if it tries paths
/// between tenants, two tenants and a path of each class into either.
void tell_parts(const plan::Profile& profile, site::Site& site);

/// Evidence of a plan that has a simulation, and of the extra tests in `journal`: a record that is not among `records`
/// is made up again when it is asked for, the same bytes for the same plan. `plan` must outlive it.
judge::EvidenceReader simulated_evidence(const plan::Plan& plan, const judge::Journal& journal,
                                         judge::KeptRecords records = {});

/// A run as it would have been: the journal as read back, its text, and its duration in virtual time.
struct SimulatedRun {
  judge::Journal journal;
  std::string journal_text;    ///< empty if it was handed over
  double duration_s = 0;       ///< of the steps, both stages
  double localisation_s = 0;   ///< of the searches after them
  std::size_t rounds = 0;      ///< of extra tests; those of one round run side by side
  judge::KeptRecords records;  ///< all that it made
};

/// Carries `plan`, which must have a simulation, out in virtual time: each node one step at a time, steps of several
/// nodes when all of them are free, each as long as its probe typically takes; dead nodes do not answer. Passes, second
/// stage and searches are those of a run. `journal` gets the lines of the journal as they are written.
SimulatedRun simulate(const plan::Plan& plan, const std::string& plan_sha256, files::TextSink journal = nullptr);

/// Metrics of faults that slow a rank's computation or its messages in a training step, judged or not.
inline constexpr const char* kComputation = "self_time";
inline constexpr const char* kMessages = "edge_time";

/// Why a fault or a knee would show nowhere: no requirement of `profile` judges its metric, nor refers to it.
std::optional<InputError> check_metrics(const plan::Faults& faults, const plan::Profile& profile,
                                        const std::string& where);

/// Results of a simulation: time, number of tests, and share of the faults found.
struct SimulationSummary {
  std::size_t nodes = 0, requirements = 0, steps = 0, cells = 0, attempts = 0;
  double duration_s = 0;      ///< expected, of the steps
  double localisation_s = 0;  ///< expected, of the searches after them
  std::size_t tests_budget = 0, tests = 0, rounds = 0;
  std::vector<std::string> found, missed, false_alarms;  ///< "node n00003", "link n00001 n00009", "dead n00004"
  std::vector<std::string> untried;                      ///< links whose two ends no step of the plan has
  std::vector<std::string> accusations;                  ///< requirement and culprit
  plan::Healthy healthy;                                 ///< assumptions of the outcome of healthy nodes
  std::string would_be;                                  ///< the verdict's reason
};

/// Compares the verdict with the faults that the plan was given.
SimulationSummary summarise(const plan::Plan& plan, const SimulatedRun& run, const judge::Verdict& verdict);

/// The summary for people, "SIMULATION" first.
std::string summary_text(const SimulationSummary& summary);

/// The summary as JSON (assay.simulation/1).
nlohmann::json to_json(const SimulationSummary& summary);

}  // namespace assay::simulate
