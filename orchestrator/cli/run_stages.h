// run_stages: reading, planning, running and judging, shared by several commands.
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

/// The id of each step on stdout, one a line: the output of a dry run.
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

}  // namespace assay::cli
