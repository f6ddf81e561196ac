// ssh_agent: signing with a key that an SSH agent holds: an encrypted one, one on a FIDO or PKCS#11 token.
#pragma once

#include <expected>
#include <memory>
#include <string>

#include "probes/core/units.h"
#include "reports/dossier/keys.h"

namespace assay::dossier {

/// How long a signature may take: time to touch a token or to answer the agent.
inline constexpr Seconds kLongestSignature{120.0};

/// The signer whose public key is in the file of OpenSSH at `path`. It signs with `ssh-keygen -Y sign`, which asks the
/// agent of SSH_AUTH_SOCK. Refused: what ssh_public_key refuses, an agent that does not have the key, no ssh-add in
/// PATH; when it signs: no ssh-keygen in PATH, an agent that does not sign, a signature that does not verify, one that
/// takes longer than kLongestSignature.
std::expected<std::unique_ptr<Signer>, InputError> agent_signer(const std::string& path);

}  // namespace assay::dossier
