// dsse: the signed envelope, DSSE 1.0.2.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/dossier/canonical_json.h"
#include "reports/dossier/keys.h"

namespace assay::dossier {

/// The payload type of every envelope that assay-report writes.
inline constexpr std::string_view kPayloadType = "application/vnd.in-toto+json";

/// Bounds on an envelope, enforced before anything is parsed.
inline constexpr std::size_t kLargestEnvelope = 256 << 20;     ///< 300,000 results of 0.5 kB, in base64
inline constexpr std::size_t kMostSignatures = 16;             ///< far more than a dossier has
inline constexpr std::size_t kLargestCertificates = 64 << 10;  ///< of one signature; a chain has some KiB

/// An envelope with base64 undone.
struct Envelope {
  std::string payload_type;
  std::string payload;
  std::vector<std::string> signatures;  ///< raw; keyid is neither written nor read, because it decides nothing
  std::map<std::string, std::string> timestamps = {};    ///< RFC 3161 tokens (DER) of signatures that have one
  std::map<std::string, std::string> certificates = {};  ///< PEM of signatures that have some, the signer's first
};

/// Pre-authentication encoding: the bytes that are signed (DSSE protocol.md).
std::string pre_authentication_encoding(std::string_view payload_type, std::string_view payload);

/// The envelope as JSON without white space, so that no byte of it can change unseen. A time stamp is the member
/// "timestamp" of its signature, and certificates are "cert" (in-toto, ITE-7), which other readers of DSSE pass over.
std::string envelope_text(const Envelope& envelope);

/// Reads an envelope. Unknown members are ignored, as DSSE demands; a missing or mistyped one, base64 that is not
/// strict, no signature or too many, and sizes over the bounds are refused.
std::expected<Envelope, InputError> read_envelope(std::string_view text, const std::string& where);

/// The envelope in the plain file `name` of `directory`, of at most `largest` bytes. Its text, as large again, is gone
/// when the envelope is looked at.
std::expected<Envelope, InputError> envelope_in(const std::string& directory, const char* name, std::size_t largest);

/// Adds the signature of `signer` over the payload, with its certificates; nothing is added when it does not sign.
std::optional<InputError> sign(Envelope& envelope, const Signer& signer);

/// envelope_text of an envelope that its reader will take: nothing over `largest` bytes or that read_envelope refuses.
std::expected<std::string, InputError> written(const Envelope& envelope, std::size_t largest);

/// The text of an envelope with `payload`, signed by `signer`. Nothing is signed that the reader of such documents
/// would refuse: `read` is that reader, of a payload and its name.
template <class Read>
std::expected<std::string, InputError> signed_payload(std::string payload, const std::string& name,
                                                      const Signer& signer, std::size_t largest, const Read& read) {
  if (const auto again = read(payload, name); !again) return std::unexpected(again.error());
  Envelope envelope{.payload_type = std::string(kPayloadType), .payload = std::move(payload)};
  if (auto problem = sign(envelope, signer)) return std::unexpected(*problem);
  return written(envelope, largest);
}

/// The same of `document` in canonical JSON.
template <class Read>
std::expected<std::string, InputError> signed_text(const nlohmann::json& document, const std::string& name,
                                                   const Signer& signer, std::size_t largest, const Read& read) {
  auto payload = canonical_json(document);
  if (!payload) return std::unexpected(payload.error());
  return signed_payload(std::move(*payload), name, signer, largest, read);
}

/// The signature by `key` over `message`, the envelope's pre-authentication encoding; nullptr when there is none.
const std::string* signature_of(const Envelope& envelope, std::string_view message, const PublicKey& key);

/// Whether one of the signatures is by `key`.
bool is_signed_by(const Envelope& envelope, const PublicKey& key);

}  // namespace assay::dossier
