// options: the command line's options by group, and their variables.
#pragma once

#include <string>

#include <fmt/format.h>

#include "orchestrator/cli/commands.h"
#include "orchestrator/cli/signing.h"
#include "orchestrator/cli/site_command.h"
#include "probes/core/command.h"

namespace assay::cli {

/// Of `assay site` and its commands.
struct SiteArguments {
  SiteSource source;
  std::string site, profile = "host";
  launch::AgentPods pods;
  std::string kind = "daemonset";  // of the pods: their Workload
  int fan_out = kFanOut;
  bool json = false;
};

/// Adds `--fan-out`.
inline void add_fan_out(Command& command, int& fan_out) {
  command.add_option("--fan-out", fan_out, fmt::format("agents that are started at the same time [{}]", kFanOut))
      ->between(1, kMostFanOut);
}

/// Adds `assay site`.
void add_site(Command& app, SiteArguments& given, Action& action);

/// Inputs of a plan: profile, site, nodes, requirements.
void add_plan_options(Command& command, PlanRequest& request);

/// How a run is carried out and shown.
void add_run_options(Command& command, RunSettings& settings);

/// The signer; `otherwise` is the help's sentence for no key.
void add_key_options(Command& command, KeyRequest& key, const char* otherwise);

}  // namespace assay::cli
