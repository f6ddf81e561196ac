// options: the command line's options by group, and their variables.
#pragma once

#include <string>

#include <fmt/format.h>

#include "orchestrator/cli/commands.h"
#include "orchestrator/cli/signing.h"
#include "orchestrator/cli/site_command.h"
#include "probes/core/options.h"

namespace assay::cli {

/// Of `assay site` and its commands.
struct SiteArguments {
  SiteSource source;
  std::string site, profile = "host";
  launch::AgentPods pods;
  int fan_out = kFanOut;
  bool json = false;
};

/// Adds `--fan-out`.
inline void add_fan_out(CLI::App& command, int& fan_out) {
  command.add_option("--fan-out", fan_out, fmt::format("agents that are started at the same time [{}]", kFanOut))
      ->check(CLI::Range(1, kMostFanOut));
}

/// Adds `assay site`.
void add_site(CLI::App& app, SiteArguments& given, Action& action);

/// Inputs of a plan: profile, site, nodes, requirements.
void add_plan_options(CLI::App& command, PlanRequest& request);

/// How a run is carried out and shown.
void add_run_options(CLI::App& command, RunSettings& settings);

/// The signer; `otherwise` is the help's sentence for no key.
void add_key_options(CLI::App& command, KeyRequest& key, const char* otherwise);

}  // namespace assay::cli
