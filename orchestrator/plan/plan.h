// plan: every step of a run, frozen before it starts.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/files/shared.h"
#include "orchestrator/plan/agreed_risk.h"
#include "orchestrator/plan/agreed_stability.h"
#include "orchestrator/plan/profile.h"
#include "orchestrator/plan/search_budget.h"
#include "orchestrator/plan/simulation.h"
#include "orchestrator/site/site.h"
#include "probes/core/description.h"

namespace assay::plan {

/// The same program for one kind of machine.
struct Build {
  std::string sha256, path;  ///< as of Program
};

/// A probe binary at planning time.
struct Program {
  std::string name;
  std::string sha256;  ///< lower-case hex of the file's bytes
  std::string path;    ///< path on this machine; not part of the plan
  Description description;
  std::map<std::string, Build> builds = {};  ///< of all machines (uname -m), this one's among them; empty: unknown
};

/// One probe with parameters on one placement. Attempts belong to it.
struct Step {
  std::string id;  ///< "0001-host_gemm-n01": order, probe, place; safe as a directory name
  std::string probe;
  files::Shared<Values> parameters;       ///< every parameter of the probe; those of a fleet have the same
  std::vector<std::string> nodes;         ///< one rank on each, rank 0 first
  std::vector<std::string> requirements;  ///< ids judged from its record
  std::vector<std::string> companions;    ///< probes that sample while it runs
  double deadline_s = 0;                  ///< the probe is killed after this
  double typical_s = 0;                   ///< for the ETA
  int attempts = 1;                       ///< the most that one of its requirements wants, one in a pass
  int more_attempts = 0;                  ///< the same of the second stage
  double power_w = 0;                     ///< design power of all its nodes while it runs; 0 if the profile has none
  std::string plane = {}, rail = {};  ///< whose ports of the nodes it goes through; empty: the nodes' own choice. Of
                                      ///< a single node: all rails
  bool alone = false;                 ///< nothing else of the plan runs meanwhile
  bool after = false;                 ///< at the end of the last pass, and of the second stage
  std::string path = {};              ///< between tenants, of the site's crossings; empty: it tries none
};

/// The search for the node at fault that is allowed when a step of several nodes falls short.
struct PlannedSearch {
  std::string step;
  std::vector<std::string> requirements;  ///< ids of the step's requirements that it may be made for
  SearchBudget budget;                    ///< extra tests at most; all 0: none is made, and `reason` says why
  std::string reason;
  std::size_t knee = 0;  ///< tests at most, if a figure with a knee falls out: they narrow the number of nodes
};

/// One planned (requirement, subject) cell. `step` is empty if nothing can measure it; then `reason` says why.
struct Cell {
  std::string requirement;
  Subject subject;  ///< node, pair, group or cluster; for scopes finer than a node, the node: the record says which
                    ///< gpus, drives, … it has
  std::string step;
  std::string reason;
  std::string against = {};  ///< of a contrast: the step with the feature off; `step` has it on
};

/// One of the cells that were drawn to be measured again.
struct DrawnCell {
  std::string requirement;
  Subject subject;  ///< as the coverage has it
  bool operator==(const DrawnCell&) const = default;
};

/// A probe in a plan: enough to read its records years later.
struct PlannedProbe {
  std::string sha256;
  Description description;
  std::map<std::string, std::string> builds = {};  ///< SHA-256 by machine, where nodes may be of several; with `sha256`
};

/// The fleet of the run that a plan continues, as the reference where the plan's own nodes are too few to be a fleet.
struct EarlierFleet {
  struct Reference {
    std::string requirement;
    double value = 0, uncertainty = 0;  ///< in the unit of its metric
    std::size_t members = 0;
    bool operator==(const Reference&) const = default;
  };
  std::string run_id, ended;   ///< of that run; UTC
  std::string journal_sha256;  ///< which names its evidence
  std::vector<Reference> references;
  bool operator==(const EarlierFleet&) const = default;
  /// The reference of a requirement, or nullptr.
  [[nodiscard]] const Reference* of(std::string_view requirement) const;
};

/// Rises when the planner would write another plan for the same inputs. A plan is derived again whenever it is
/// read, so one of another revision is for another version of assay.
inline constexpr int kPlannerRevision = 7;

/// The whole plan.
struct Plan {
  std::string assay_version;
  bool quick = false;             ///< quick parameters: a rehearsal, which accepts nothing
  std::vector<std::string> only;  ///< requirement ids planned, in the profile's order; empty: all. The others get cells
                                  ///< without a step, so the whole cannot be accepted
  bool localise = true;           ///< whether groups that fall short are searched for the node at fault
  std::string continues = {};     ///< SHA-256 of the plan of which some nodes are measured anew; empty: none
  EarlierFleet earlier_fleet = {};                       ///< PlanOptions::earlier_fleet
  std::string challenge = {};                            ///< PlanOptions::challenge
  bool allow_settings = false;                           ///< PlanOptions::allow_settings
  std::optional<AgreedRisk> agreed_risk = {};            ///< of vendor and buyer; the plan keeps it, or none is made
  std::optional<AgreedStability> agreed_stability = {};  ///< likewise, of hours under load
  std::vector<Look> looks = {};                          ///< its boundaries, one after each attempt of its steps
  std::vector<DrawnCell> drawn = {};                     ///< PlanOptions::drawn
  Profile profile;
  site::Site site;
  std::map<std::string, PlannedProbe> probes;
  std::vector<Step> steps;
  std::vector<Cell> coverage;
  std::vector<PlannedSearch> searches;   ///< in the order of their steps; none for a rehearsal
  std::optional<Simulation> simulation;  ///< source of its made-up records; a plan that has it measures nothing

  /// The step of this id, or nullptr.
  [[nodiscard]] const Step* step(std::string_view id) const;
  /// The requirement of this id, or nullptr.
  [[nodiscard]] const Requirement* requirement(std::string_view id) const;
};

/// The entry of `program` in a plan for `site`.
PlannedProbe planned_probe(const Program& program, const site::Site& site);

/// The program that `plan` had of `probe`, without a path.
Program program_of(const std::string& name, const PlannedProbe& probe);

/// Machines of the site whose builds a plan must have: those that nodes name, and all of `known` where a node that is
/// reached over a network names none. Empty if nodes can only be of the head's own kind.
std::vector<std::string> machines_of(const site::Site& site, const std::map<std::string, Build>& known);

/// The parameters of one rank of `step`: the step's, with the ports of its node in the step's plane as `interface` and
/// `device`, where the probe has those; of a single node all its ports in a row, with commas between them. Of a
/// step on a path between tenants also the site's fields of the path.
Values parameters_of(const site::Site& site, const Step& step, std::size_t rank);

/// Cells of the largest plan: a simulated fleet of 100,000 nodes with 20 requirements of a node.
inline constexpr std::size_t kMostCells = 2'000'000;

/// Inputs of a plan besides profile and site.
struct PlanOptions {
  bool quick = false;
  std::vector<std::string> only;               ///< requirement ids; empty: all
  bool localise = true;                        ///< plan searches for the node at fault where groups may fall short
  std::string continues = {};                  ///< SHA-256 of the plan that this one continues
  EarlierFleet earlier_fleet = {};             ///< of that one; no references: none
  std::string challenge = {};                  ///< 64 hexadecimal digits of the receiver's choice; empty: none
  bool allow_settings = false;                 ///< probes may change settings of machines if the profile says so
  std::optional<AgreedRisk> agreed_risk = {};  ///< that the plan must keep; nothing: none was agreed on
  std::optional<AgreedStability> agreed_stability = {};  ///< likewise
  std::vector<DrawnCell> drawn = {};                     ///< nothing else is measured, and nothing accepted; empty: all
  std::size_t most_cells = kMostCells;                   ///< refused when there are more, before they are made
};

/// The plan for `profile` on `site` with `programs` at hand: a pure function. Requirements that share probe and
/// parameters and place share a step, a contrast has two, with its feature on and off; steps of one node come first,
/// then those of more, cheap ones before others, and those to be measured after the load last; a requirement whose
/// probe is not at hand gets cells without a step, and so does one that --only leaves out. Errors: a parameter, metric,
/// condition or unit that the probe does not have; an unknown --only id; a challenge of another form; a single step
/// over the site's power cap, or a cap if the profile has no design power; a requirement that changes settings without
/// allow_settings; an agreement that the plan does not keep; more cells than the options allow.
std::expected<Plan, InputError> make_plan(const Profile& profile, const site::Site& site,
                                          const std::vector<Program>& programs, const PlanOptions& options);

/// The bytes of plan.json: sorted keys, one-space indent, final newline. Their SHA-256 is the plan's digest.
std::string plan_text(const Plan& plan);

/// Reads the output of plan_text; refuses anything else with coordinates.
std::expected<Plan, InputError> read_plan(std::string_view text, const std::string& where);

}  // namespace assay::plan
