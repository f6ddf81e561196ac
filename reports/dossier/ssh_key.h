// ssh_key: Ed25519 keys as OpenSSH writes them.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "probes/core/error.h"

namespace assay::dossier {

/// How a public key of OpenSSH begins.
inline constexpr std::string_view kSshPublic = "ssh-ed25519 ";

/// Whether `text` is a private key of OpenSSH ("openssh-key-v1"), of whatever kind.
bool is_ssh_private(std::string_view text);

/// Whether `text` is a public key of OpenSSH, of whatever kind.
bool is_ssh_public(std::string_view text);

/// The 32 bytes of the public key in one line of OpenSSH, as id_ed25519.pub has it. Refused: another kind of key, one
/// on a hardware token (it signs other bytes than a statement), a certificate, several lines, and a blob that is not
/// the one key.
std::expected<std::string, InputError> ssh_public_raw(std::string_view text, const std::string& where);

/// The secret of a private key, and the public half that its file states.
struct SshSecret {
  std::string seed, public_raw;  ///< 32 bytes each
};

/// The 32-byte seed of the private key in a file of OpenSSH. Refused: a key that is encrypted (its derivation, bcrypt,
/// is in no library that assay uses), several keys, another kind, and halves that contradict each other; whether the
/// public half is the seed's is for the caller to check.
std::expected<SshSecret, InputError> ssh_private_seed(std::string_view text, const std::string& where);

}  // namespace assay::dossier
