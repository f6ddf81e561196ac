// trust_command: `assay trust init`.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace assay::report_cli {

struct TrustArguments {
  std::vector<std::string> keys;  ///< "vendor=lab.key.pub"
  std::vector<std::string> require;
  std::string out, name = "draft";
  std::string from, until;  ///< days; empty: a year ago, in a year
};

/// Adds `trust init`, which writes a policy that `verify --policy` takes as it is; an existing file is kept.
void add_trust_command(CLI::App& app, TrustArguments& given, std::function<int()>& action);

}  // namespace assay::report_cli
