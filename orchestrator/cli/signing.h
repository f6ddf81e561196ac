// signing: the key that a run is signed with, opened before anything is measured, and report and dossier after it.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "probes/core/error.h"

namespace assay::cli {

/// How a key of a token is named (RFC 7512), in place of a file.
inline constexpr std::string_view kTokenScheme = "pkcs11:";

/// The key that the command line asks for.
struct KeyRequest {
  std::string key;              ///< file, or of a token; empty: this machine's own, if one is wanted
  std::string passphrase_file;  ///< its first line decrypts the key, or is the PIN of the token
  std::string certificate;      ///< of the key, PEM, for the signature to bring along; empty: none
  bool sign = false;            ///< sign, with this machine's own key if none is named

  [[nodiscard]] bool is_named() const { return !key.empty(); }
  [[nodiscard]] bool is_of_token() const { return key.starts_with(kTokenScheme); }
  [[nodiscard]] bool is_wanted() const { return sign || is_named(); }
};

/// A private key that could be opened.
struct SigningKey {
  std::string file, passphrase_file, certificate, fingerprint;
  bool self_signed = false;  ///< it is this machine's own
};

/// Opens the key of `request`; makes this machine's own, in the user's state directory, when it is wanted and not
/// there. Errors: there is no such key, it cannot be decrypted, the
/// certificate is of another key, or the state directory cannot be written.
std::expected<SigningKey, InputError> open_key(const KeyRequest& request);

/// Writes report and dossier of the run in `directory`, and prints their paths; the report states when the key is this
/// machine's own.
std::expected<void, InputError> report_and_sign(const std::string& directory, const SigningKey& key);

}  // namespace assay::cli
