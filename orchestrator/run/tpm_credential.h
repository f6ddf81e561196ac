// tpm_credential: a secret that only the TPM with a certain endorsement key can recover, and only for a certain key in
// it (TPM2_MakeCredential, done without a TPM).
#pragma once

#include <optional>
#include <string>

#include "orchestrator/judge/evidence/tpm_answer.h"

namespace assay::run {

/// Sent to a node with its question, and due from it.
struct TpmCredential {
  std::string secret_sha256;  ///< of the secret to recover, hexadecimal; empty if there is none
  std::string file;           ///< hexadecimal: what `tpm2_activatecredential -i` reads; empty if there is none
};

/// A credential with a fresh secret for the key `signing` in the TPM of `endorsement`; nothing if that is no
/// endorsement key, or OpenSSL fails.
std::optional<TpmCredential> make_credential(const judge::TpmKey& endorsement, const judge::TpmKey& signing);

/// The same for the two keys in `output`, the record of a node whose TPM was asked for them; empty if it has none.
TpmCredential credential_for(const std::string& output, const Description& probe);

}  // namespace assay::run
