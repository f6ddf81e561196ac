// requirements_command: `assay-report requirements`, from values to an exit code.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace assay::report_cli {

struct RequirementsArguments {
  std::string catalogue;  ///< a file, or the name of a built-in one
  std::string directory;  ///< of a run or of a dossier
  std::vector<std::string> keys;
  std::string policy, out;  ///< out: a page beside the output
  bool list = false, json = false, csv = false, met = false;
};

/// Adds the command to `app`; a parsed one sets `action`.
void add_requirements_command(CLI::App& app, RequirementsArguments& given, std::function<int()>& action);

}  // namespace assay::report_cli
