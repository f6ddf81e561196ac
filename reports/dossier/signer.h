// signer: signers, by the words of a command line.
#pragma once

#include <expected>
#include <memory>
#include <string>

#include "reports/dossier/keys.h"

namespace assay::dossier {

/// Where a key is.
struct SignerName {
  std::string key;              ///< a private key's file; a public key's of OpenSSH: its agent signs; pkcs11:…
  std::string passphrase_file;  ///< decrypts the file, or has the PIN of the token
  std::string certificate;      ///< a file, PEM: of the key first, then those up to its issuer; empty: none
};

/// The signer that `name` means. Refused: as by load_private_key, agent_signer and token_signer, and a certificate of
/// another key.
std::expected<std::unique_ptr<Signer>, InputError> load_signer(const SignerName& name);

}  // namespace assay::dossier
