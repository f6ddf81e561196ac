// token: signing with a key on a token that speaks PKCS#11: a smart card, a USB key, an HSM.
#pragma once

#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include "reports/dossier/keys.h"

namespace assay::dossier {

/// How the name of a key on a token begins (RFC 7512).
inline constexpr std::string_view kTokenScheme = "pkcs11:";

/// The module that is loaded when a name has none: p11-kit's, which has those that the machine knows.
inline constexpr const char* kDefaultModule = "p11-kit-proxy.so";

/// A key on a token, by its name.
struct TokenName {
  std::string token;                    ///< label of the token
  std::string object;                   ///< label of the key
  std::string module = kDefaultModule;  ///< path of the token's PKCS#11 library
};

/// "pkcs11:token=lab;object=signing?module-path=/usr/lib/softhsm/libsofthsm2.so", percent-encoded as RFC 7512 says.
/// Refused: a name without token or object, an attribute twice, any other attribute; a PIN above all, which every user
/// of the machine would see.
std::expected<TokenName, InputError> read_token_name(std::string_view text);

/// The signer of the key with this name; `pin` may be empty for a token that asks for none. Kinds: ECDSA and RSA as in
/// public_key.h. Refused: libp11 or the module is not there, no token or no key of this name or several, a PIN that is
/// wrong, and one that is the last before the token locks itself.
std::expected<std::unique_ptr<Signer>, InputError> token_signer(const TokenName& name, const std::string& pin);

}  // namespace assay::dossier
