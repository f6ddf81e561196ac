// run_options: options that accept, plan and run share.
#pragma once

#include "orchestrator/cli/commands.h"
#include "orchestrator/cli/signing.h"

namespace CLI {
class App;
}

namespace assay::cli {

/// What is planned: profile, site, nodes, requirements.
void add_plan_options(CLI::App& command, PlanRequest& request);

/// How a run is carried out and shown.
void add_run_options(CLI::App& command, RunSettings& settings);

/// What signs; `otherwise` says in the help what happens without a key.
void add_key_options(CLI::App& command, KeyRequest& key, const char* otherwise);

}  // namespace assay::cli
