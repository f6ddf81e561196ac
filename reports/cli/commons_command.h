// commons_command: `assay-report commons`: figures of accepted boards of several sites.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reports/dossier/signer.h"

namespace CLI {
class App;
}

namespace assay::report_cli {

struct CommonsArguments {
  std::vector<std::string> inputs;  ///< contribute: folders of dossiers; merge: files
  std::vector<std::string> keys;    ///< files of public keys of the signers
  std::string policy;               ///< contribute
  dossier::SignerName signer;
  std::string out;
  std::string file, model;  ///< show
  bool json = false;
};

/// Adds the command to `app`; a parsed one sets `action`.
void add_commons_command(CLI::App& app, CommonsArguments& given, std::function<int()>& action);

}  // namespace assay::report_cli
