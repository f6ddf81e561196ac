// ssh_signature: SSHSIG, the signatures of `ssh-keygen -Y sign` (OpenSSH, PROTOCOL.sshsig). Signed is a digest of the
// message, so that an agent, whose messages have 256 KiB, and a FIDO token can sign a statement of any size.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "reports/dossier/public_key.h"

namespace assay::dossier {

/// The namespace of assay's signatures: one that was made of a file or a commit counts for no dossier.
inline constexpr std::string_view kSshNamespace = "assay-dossier";

/// Whether these bytes begin as an SSHSIG does.
bool is_ssh_signature(std::string_view signature);

/// Whether `signature` (the blob, without armor) is by `key` over `message`: version 1, this namespace, the same key,
/// SHA-256 or SHA-512, nothing behind it, and of a FIDO key that its owner touched it.
bool ssh_signature_verifies(const PublicKey& key, std::string_view message, std::string_view signature);

/// The blob in the armor that ssh-keygen writes.
std::expected<std::string, InputError> ssh_signature_in(std::string_view armored, const std::string& where);

}  // namespace assay::dossier
