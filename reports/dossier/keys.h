// keys: Ed25519 keys as files, and their fingerprints.
#pragma once

#include <array>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include "probes/core/error.h"

struct evp_pkey_st;

namespace assay::dossier {

/// Rounds of PBKDF2 with HMAC-SHA256 between a passphrase and the key that encrypts a private key: OWASP's figure of
/// 2023, a fraction of a second for who has the passphrase. OpenSSL's own default is 2,048.
inline constexpr int kPassphraseRounds = 600'000;

/// An Ed25519 public key that import has checked.
struct PublicKey {
  std::string raw;  ///< 32 bytes
  friend bool operator==(const PublicKey&, const PublicKey&) = default;

  /// SHA-256 of the key's SubjectPublicKeyInfo (DER), 64 hex digits.
  [[nodiscard]] std::string fingerprint() const;
  /// The SubjectPublicKeyInfo as PEM.
  [[nodiscard]] std::string pem() const;
  /// Whether `signature` over `message` is this key's, pure Ed25519 (RFC 8032).
  [[nodiscard]] bool verifies(std::string_view message, std::string_view signature) const;
};

/// An Ed25519 private key; the secret lives in OpenSSL's memory, which is cleared when it goes.
class PrivateKey {
 public:
  /// The key of a 32-byte seed (RFC 8032, 5.1.5). An error for any other length.
  static std::expected<PrivateKey, InputError> from_seed(std::string_view seed);
  /// The key in a PKCS#8 PEM file, or in one of OpenSSH without a passphrase; `passphrase` decrypts an encrypted one;
  /// there is no prompt.
  static std::expected<PrivateKey, InputError> from_pem(std::string_view pem, const std::string& passphrase,
                                                        const std::string& where);

  /// The public half.
  [[nodiscard]] PublicKey public_key() const;
  /// 64 bytes of pure Ed25519 over `message`.
  [[nodiscard]] std::string sign(std::string_view message) const;
  /// PKCS#8 PEM; encrypted with AES-256 when `passphrase` is not empty, under a key that kPassphraseRounds of PBKDF2
  /// (HMAC-SHA256) derive from it.
  [[nodiscard]] std::string pem(const std::string& passphrase) const;

 private:
  struct Free {
    void operator()(evp_pkey_st* key) const;
  };
  explicit PrivateKey(evp_pkey_st* key) : key_(key) {}
  std::unique_ptr<evp_pkey_st, Free> key_;
};

/// Checks 32 raw bytes as a public key. Refused: another length, a y coordinate that is not reduced, and the points of
/// small order, with which one signature fits every message.
std::expected<PublicKey, InputError> public_key_from_raw(std::string_view raw, const std::string& where);

/// The public key in `pem` (SubjectPublicKeyInfo) or in a line of OpenSSH, checked as above; only Ed25519 is taken.
std::expected<PublicKey, InputError> public_key_from_pem(std::string_view pem, const std::string& where);

/// Writes a new private key to `path` (mode 0600) and its public half to `path`.pub (0644); overwrites neither.
/// An empty `passphrase` leaves the private key unencrypted. Returns the public key.
std::expected<PublicKey, InputError> generate_key(const std::string& path, const std::string& passphrase);

/// The key in the file at `path`, decrypted with the first line of `passphrase_file` when that is not empty. Refused as
/// well: a file that its group or others may read or write, and a file of several keys.
std::expected<PrivateKey, InputError> load_private_key(const std::string& path, const std::string& passphrase_file);

/// The public key in the file at `path`. A file of several keys is refused: which one is meant cannot be told.
std::expected<PublicKey, InputError> load_public_key(const std::string& path);

/// The first line of the file at `path`; an empty path is an empty passphrase, an empty line an error.
std::expected<std::string, InputError> read_passphrase(const std::string& path);

}  // namespace assay::dossier
