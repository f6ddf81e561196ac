// public_key: public keys of signers, their fingerprints, and checking a signature by one.
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "probes/core/error.h"

struct evp_pkey_st;

namespace assay::dossier {

/// Kind of a key. Only it decides how signatures are checked; nothing in an envelope does.
enum class KeyKind {
  ed25519,       ///< pure Ed25519 (RFC 8032)
  ecdsa_p256,    ///< ECDSA over SHA-256, signatures in DER, as cosign has them
  ecdsa_p384,    ///< ECDSA over SHA-384, signatures in DER
  rsa,           ///< RSASSA-PKCS1-v1_5 over SHA-256, 3072 to 8192 bits, exponent 65537
  fido_ed25519,  ///< Ed25519 on a FIDO token of OpenSSH: signs only as SSHSIG
  fido_p256,     ///< P-256 on a FIDO token of OpenSSH: signs only as SSHSIG
};

/// A public key that import has checked.
struct PublicKey {
  std::string raw;  ///< Ed25519: 32 bytes; ECDSA: the uncompressed point; RSA: the SubjectPublicKeyInfo (DER)
  KeyKind kind = KeyKind::ed25519;
  std::string application = "";  ///< of a FIDO key: its application ("ssh:")
  friend bool operator==(const PublicKey&, const PublicKey&) = default;

  /// SHA-256, 64 hex digits, of the key's SubjectPublicKeyInfo (DER); of a FIDO key, which has none, of OpenSSH's blob.
  [[nodiscard]] std::string fingerprint() const;
  /// The SubjectPublicKeyInfo as PEM; of a FIDO key the line of OpenSSH.
  [[nodiscard]] std::string text() const;
  /// Whether `signature` over `message` is this key's: in the form of its kind, or as SSHSIG (see ssh_key.h).
  [[nodiscard]] bool verifies(std::string_view message, std::string_view signature) const;
  /// The same in the form of its kind only. A FIDO key checks as the key on its token.
  [[nodiscard]] bool verifies_plain(std::string_view message, std::string_view signature) const;
};

/// Checks 32 raw bytes as an Ed25519 public key. Refused: another length, a y coordinate that is not reduced, and the
/// points of small order, with which one signature fits every message.
std::expected<PublicKey, InputError> public_key_from_raw(std::string_view raw, const std::string& where);

/// Checks an uncompressed point as a key of `kind`, an ECDSA one or fido_p256. Refused: a point that is not on the
/// curve.
std::expected<PublicKey, InputError> public_key_from_point(KeyKind kind, std::string_view point,
                                                           const std::string& where);

/// The public half of OpenSSL's `key`. Refused: kinds other than Ed25519, P-256, P-384 and RSA, a curve that is spelt
/// out, RSA below 3072 or above 8192 bits or with another exponent than 65537, and as by the checks above.
std::expected<PublicKey, InputError> public_key_of(const evp_pkey_st* key, const std::string& where);

/// The public key in `pem` (SubjectPublicKeyInfo) or in a line of OpenSSH, checked as above.
std::expected<PublicKey, InputError> public_key_from_pem(std::string_view pem, const std::string& where);

/// The public key in the file at `path`. A file of several keys is refused as ambiguous.
std::expected<PublicKey, InputError> load_public_key(const std::string& path);

/// A file of several PEM blocks is ambiguous: OpenSSL reads the first and says nothing of the others.
std::optional<InputError> check_one_block(std::string_view pem, const std::string& where);

/// The name of the digest that signatures of `kind` are over ("SHA256"); nullptr for Ed25519, which has its own.
const char* digest_name(KeyKind kind);

/// Bytes of the largest file of a key; a PEM of one has less than 4 KiB.
inline constexpr std::size_t kLargestKeyFile = 64 << 10;

}  // namespace assay::dossier
