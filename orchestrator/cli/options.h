// options: the command line's options by group, and their variables.
#pragma once

#include <string>

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
void add_fan_out(CLI::App& command, int& fan_out);
/// Adds `assay site`.
void add_site(CLI::App& app, SiteArguments& given, Action& action);

/// Inputs of a plan: profile, site, nodes, requirements.
void add_plan_options(CLI::App& command, PlanRequest& request);

/// How a run is carried out and shown.
void add_run_options(CLI::App& command, RunSettings& settings);

/// The signer; `otherwise` is the help's sentence for no key.
void add_key_options(CLI::App& command, KeyRequest& key, const char* otherwise);

}  // namespace assay::cli
