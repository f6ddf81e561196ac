// ssh_key: keys as OpenSSH writes them, and SSHSIG, the signatures of `ssh-keygen -Y sign` (PROTOCOL.sshsig). Signed is
// a digest of the message, so that an agent, whose messages have 256 KiB, and a FIDO token can sign a statement of any
// size.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "probes/core/error.h"
#include "reports/dossier/public_key.h"

namespace assay::dossier {

/// Whether `text` is a private key of OpenSSH ("openssh-key-v1"), of any kind.
bool is_ssh_private(std::string_view text);

/// Whether `text` is a public key of OpenSSH, of any kind.
bool is_ssh_public(std::string_view text);

/// The public key in one line of OpenSSH, as id_ed25519.pub has it: Ed25519, ECDSA on P-256 or P-384, and those of FIDO
/// tokens. Refused: another kind of key, a certificate, several lines, and a blob that is not the one key.
std::expected<PublicKey, InputError> ssh_public_key(std::string_view text, const std::string& where);

/// The public key in a blob of SSH (RFC 4253, 6.6), checked as above.
std::expected<PublicKey, InputError> ssh_key_of_blob(std::string_view blob, const std::string& where);

/// The blob of `key`, and the line "type base64" with it; empty for RSA, which assay takes from no SSH key.
std::string ssh_public_blob(const PublicKey& key);
std::string ssh_public_line(const PublicKey& key);

/// OpenSSH's name of keys and signatures of this kind; empty for RSA.
std::string_view ssh_type(KeyKind kind);

/// The secret of a private key, and the public half that its file states.
struct SshSecret {
  std::string seed, public_raw;  ///< 32 bytes each
};

/// The 32-byte seed of the private key in a file of OpenSSH. Refused: a key that is encrypted (its derivation, bcrypt,
/// is in no library that assay uses), several keys, another kind, and halves that contradict each other; whether the
/// public half is the seed's is for the caller to check.
std::expected<SshSecret, InputError> ssh_private_seed(std::string_view text, const std::string& where);

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
