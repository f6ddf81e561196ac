// signer_options: one description of the kinds of signers.
#include "reports/cli/signer_options.h"

#include <CLI/CLI.hpp>

namespace assay::report_cli {

CLI::Option* add_signer_options(CLI::App& command, dossier::SignerName& signer, const std::string& whose) {
  auto* key = command
                  .add_option("--key", signer.key,
                              "private key" + whose +
                                  ", PEM or of OpenSSH; a public key of OpenSSH: its agent signs; "
                                  "pkcs11:token=T;object=O: a token signs")
                  ->type_name("FILE|URI");
  command
      .add_option("--passphrase-file", signer.passphrase_file,
                  "file whose first line decrypts the key, or is the PIN of the token")
      ->type_name("FILE");
  command
      .add_option("--certificate", signer.certificate,
                  "certificate of the key, PEM, for receivers whose policy names its issuer")
      ->type_name("FILE");
  return key;
}

}  // namespace assay::report_cli
