// compare_command: `assay-report compare`, from values to an exit code.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace assay::report_cli {

struct CompareArguments {
  std::string a, b;  ///< folders of runs or of dossiers
  std::vector<std::string> keys;
  std::string policy, out;
  double alpha = 0.05, smallest_change = 1;  ///< the latter in percent
  bool json = false, no_worse = false;
};

/// Adds the command to `app`; a parsed one sets `action`.
void add_compare_command(CLI::App& app, CompareArguments& given, std::function<int()>& action);

}  // namespace assay::report_cli
