// signer_options: the options that name the signer, the same for every signing command.
#pragma once

#include <string>

#include "reports/dossier/signer.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace assay::report_cli {

/// Adds --key (returned), --passphrase-file and --certificate; `whose` key is meant is in the help: "of the witness".
CLI::Option* add_signer_options(CLI::App& command, dossier::SignerName& signer, const std::string& whose = "");

}  // namespace assay::report_cli
