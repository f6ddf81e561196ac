// signer_options: the options that name a signing key.
#pragma once

#include <string>

#include "probes/core/command.h"
#include "reports/dossier/signer.h"

namespace assay::report_cli {

/// Adds --key (returned), --passphrase-file and --certificate; `whose` key is meant is in the help: "of the witness".
inline Option* add_signer_options(Command& command, dossier::SignerName& signer, const std::string& whose = "") {
  auto* key = add_option(command, "--key", signer.key, "FILE|URI",
                         "private key" + whose +
                             ", PEM or of OpenSSH; a public key of OpenSSH: its agent signs; "
                             "pkcs11:token=T;object=O: a token signs");
  add_option(command, "--passphrase-file", signer.passphrase_file, "FILE",
             "file whose first line decrypts the key, or is the PIN of the token");
  add_option(command, "--certificate", signer.certificate, "FILE",
             "certificate of the key, PEM, for receivers whose policy names its issuer");
  return key;
}

}  // namespace assay::report_cli
