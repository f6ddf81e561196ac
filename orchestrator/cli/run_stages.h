// run_stages: reading, planning, also for some nodes of a site, running and judging, shared by several commands.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/cli/commands.h"
#include "orchestrator/judge/overall/advice.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/acceptance.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/run/run.h"
#include "orchestrator/site/site.h"
#include "probes/core/error.h"

namespace assay::cli {

/// A plan and the programs it was made with.
struct Prepared {
  plan::Plan plan;
  std::vector<plan::Program> programs;
  plan::HealthyFleet healthy = {};  ///< for the chance of acceptance in plan_summary
};

/// Reads profile and site, finds the probes, plans.
std::expected<Prepared, InputError> prepare(const PlanRequest& request);

/// "profile host: 12 steps on 2 nodes, 24 cells, about 3:10", then whether that fits into `deadline` if there is one,
/// how likely a fleet without fault is accepted, and steps not planned and why; for people.
std::string plan_summary(const Prepared& prepared, std::optional<Seconds> deadline = std::nullopt);

/// The steps on stdout, a line for those in a row that differ only in their nodes: the output of a dry run.
void print_steps(const plan::Plan& plan);

/// The same as a table of `command` in JSON, with the text of plan_summary. `written`: the file of the plan; empty:
/// none.
void print_steps_json(const char* command, const Prepared& prepared, const std::string& written);

/// Runs the plan of `directory`, or resumes its run. `records` gets those that it reads.
std::expected<run::RunEnd, InputError> carry_out(const std::string& directory,
                                                 const std::vector<plan::Program>& programs, bool resume,
                                                 const RunSettings& settings, const judge::KeptRecords& records);

/// Judges the run in `directory` and writes verdict.json. Where `advices` is given, it gets what to do about the
/// verdict, which must outlive it and may be moved. `records`: those that this process has read already.
std::expected<judge::Verdict, InputError> judge_directory(const std::string& directory,
                                                          judge::Advices* advices = nullptr,
                                                          judge::KeptRecords records = {});

/// The durations that RunSettings give; nothing for those that are not given.
struct RunTimes {
  std::optional<Seconds> deadline, patience;
};

/// The durations of `settings`; an error that names the option.
std::expected<RunTimes, InputError> times_of(const RunSettings& settings);

/// Prints the error on stderr; returns kExitBadInput.
int report_error(const InputError& error);

/// Leaves in `site` only the nodes of the host list `nodes`, in the site's order. Errors: a name that the site does not
/// have, a list that is none.
std::optional<InputError> keep_nodes(site::Site& site, const std::string& nodes);

/// The file `name` of the run, or of the dossier, in `directory`.
std::string file_of_run(const std::string& directory, const std::string& name);

/// The SHA-256 of the plan in the run, or in the dossier, `directory`. Errors: it is not readable, or of another
/// profile or revision than `profile`: nodes that are compared with other figures do not continue a test.
std::expected<std::string, InputError> continued_plan(const std::string& directory, const plan::Profile& profile);

/// The fleet of the run in `directory`, a run or a dossier, as judge::fleet_of_run has it for `plan`.
plan::EarlierFleet fleet_of_continued(const std::string& directory, const plan::Plan& plan,
                                      const std::vector<std::string>& requirements);

}  // namespace assay::cli
