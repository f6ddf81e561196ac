// timestamp: proof that a signature existed at a time, by an authority of RFC 3161; asked for, kept and checked without
// a network.
#pragma once

#include <expected>
#include <map>
#include <string>
#include <string_view>

#include "probes/core/error.h"
#include "reports/dossier/dsse.h"
#include "reports/dossier/moment.h"

namespace assay::dossier {

/// Bytes of the largest token: its certificates have some kB.
inline constexpr std::size_t kLargestToken = 64 << 10;

/// Facts proved by a token.
struct Stamp {
  Moment at;              ///< by the authority's clock: the signature existed then
  std::string authority;  ///< subject of the certificate that signed the token
};

/// A TimeStampReq (DER) for the SHA-256 of `signature`, which asks for the authority's certificate. It has no nonce:
/// the answer is compared with the signature itself.
std::string timestamp_request(std::string_view signature);

/// The token in a TimeStampResp (DER). Refused: other data, and a refusal of the authority, with its words.
std::expected<std::string, InputError> token_of_response(std::string_view response, const std::string& where);

/// Checks a token: its imprint is the SHA-256 of `signature`, its signature is by a certificate only for time stamping
/// that one of `authorities` (PEM) has issued, all valid at the token's own time: a token outlives its certificate.
/// Whether the certificate was revoked is not looked up.
std::expected<Stamp, InputError> check_token(std::string_view token, std::string_view signature,
                                             const std::string& authorities, const std::string& where);

/// The stamps of the signatures of `envelope` that have one, by the signature's bytes; an error if one does not hold.
std::expected<std::map<std::string, Stamp>, InputError> check_stamps(const Envelope& envelope,
                                                                     const std::string& authorities);

}  // namespace assay::dossier
