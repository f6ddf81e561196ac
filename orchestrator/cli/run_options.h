// run_options: options that accept, plan and run share.
#pragma once

#include "orchestrator/cli/commands.h"
#include "orchestrator/cli/signing.h"

namespace CLI {
class App;
}

namespace assay::cli {

/// Inputs of a plan: profile, site, nodes, requirements.
void add_plan_options(CLI::App& command, PlanRequest& request);

/// How a run is carried out and shown.
void add_run_options(CLI::App& command, RunSettings& settings);

/// The signer; `otherwise` is the help's sentence for no key.
void add_key_options(CLI::App& command, KeyRequest& key, const char* otherwise);

}  // namespace assay::cli
