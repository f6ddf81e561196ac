// keys: signers, and private keys as files.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include "probes/core/error.h"
#include "reports/dossier/public_key.h"

struct evp_pkey_st;

namespace assay::dossier {

/// Rounds of PBKDF2 with HMAC-SHA256 between a passphrase and the key that encrypts a private key: OWASP's figure of
/// 2023, a fraction of a second with the passphrase. OpenSSL's own default is 2,048.
inline constexpr int kPassphraseRounds = 600'000;

/// A signer: a key in a file, in an SSH agent, on a token.
class Signer {
 public:
  Signer() = default;
  Signer(Signer&&) = default;
  Signer& operator=(Signer&&) = default;
  Signer(const Signer&) = delete;
  Signer& operator=(const Signer&) = delete;
  virtual ~Signer() = default;

  /// The key by which its signatures are checked.
  [[nodiscard]] virtual PublicKey public_key() const = 0;
  /// A signature over `message` that public_key() verifies; an error when the holder of the key does not give one.
  [[nodiscard]] virtual std::expected<std::string, InputError> sign(std::string_view message) const = 0;

  /// The certificate of the key, and those between it and its issuer, PEM; empty without one.
  std::string certificate;
};

/// A private key; the secret lives in OpenSSL's memory, which is cleared when it goes.
class PrivateKey : public Signer {
 public:
  /// The Ed25519 key of a 32-byte seed (RFC 8032, 5.1.5). An error for any other length.
  static std::expected<PrivateKey, InputError> from_seed(std::string_view seed);
  /// The key in a PKCS#8 PEM file, or in one of OpenSSH without a passphrase; `passphrase` decrypts an encrypted one;
  /// there is no prompt. Refused: kinds that public_key_of refuses.
  static std::expected<PrivateKey, InputError> from_pem(std::string_view pem, const std::string& passphrase,
                                                        const std::string& where);

  [[nodiscard]] PublicKey public_key() const override { return public_; }
  [[nodiscard]] std::expected<std::string, InputError> sign(std::string_view message) const override;
  /// PKCS#8 PEM; encrypted with AES-256 when `passphrase` is not empty, under a key that kPassphraseRounds of PBKDF2
  /// (HMAC-SHA256) derive from it.
  [[nodiscard]] std::string pem(const std::string& passphrase) const;

 private:
  struct Free {
    void operator()(evp_pkey_st* key) const;
  };
  explicit PrivateKey(evp_pkey_st* key) : key_(key) {}
  std::unique_ptr<evp_pkey_st, Free> key_;
  PublicKey public_;
};

/// The signature of OpenSSL's `key`, whose public half is `half`, over `message`; checked before it is given back.
std::expected<std::string, InputError> sign_with(evp_pkey_st* key, const PublicKey& half, std::string_view message,
                                                 const std::string& where);

/// Writes a new private key to `path` (mode 0600) and its public half to `path`.pub (0644); overwrites neither.
/// An empty `passphrase` leaves the private key unencrypted. Returns the public key.
std::expected<PublicKey, InputError> generate_key(const std::string& path, const std::string& passphrase);

/// The key in the file at `path`, decrypted with the first line of `passphrase_file` when that is not empty. Refused as
/// well: a file that its group or others may read or write, and a file of several keys.
std::expected<PrivateKey, InputError> load_private_key(const std::string& path, const std::string& passphrase_file);

/// The first line of the file at `path`; an empty path is an empty passphrase, an empty line an error.
std::expected<std::string, InputError> read_passphrase(const std::string& path);

}  // namespace assay::dossier
