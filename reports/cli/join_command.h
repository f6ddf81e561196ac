// join_command: `assay-report merge`, `expand`, and `verify` of their output.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "probes/core/command.h"
#include "reports/cli/commands.h"
#include "reports/joint/joint.h"

namespace assay::report_cli {

/// Of merge and expand.
struct JoinArguments {
  std::vector<std::string> dossiers;
  dossier::SignerName signer;
  std::string out, role = "signer", name, organisation;
  std::vector<std::string> others;  ///< public keys of the signers of the parts
  std::string policy;
};

struct JoinCommands {
  JoinArguments merge, expand;
};

/// Adds both commands to `app`; a parsed one sets `action`.
void add_join_commands(Command& app, JoinCommands& given, std::function<int()>& action);

/// Adds the signature of `key` to the joint dossier in `directory` and prints the signed document.
int countersign_joint(const std::string& directory, const SignArguments& given, const dossier::Signer& key,
                      const joint::Trust& trust);

/// Verifies a joint dossier and prints its parts and outcome.
int run_verify_joint(const VerifyArguments& given);

}  // namespace assay::report_cli
