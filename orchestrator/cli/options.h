// options: the command line's options by group, and their variables.
#pragma once

#include <functional>
#include <string>

#include "orchestrator/cli/commands.h"
#include "orchestrator/cli/site_command.h"

namespace CLI {
class App;
}

namespace assay::cli {

/// Action of the chosen command; set by its callback while the command line is parsed.
using Action = std::function<int()>;

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

}  // namespace assay::cli
