// dsse: encoding, reading, signing.
#include "reports/dossier/dsse.h"

#include <algorithm>

#include <fmt/format.h>

#include "probes/core/json_io.h"
#include "reports/dossier/base64.h"
#include "reports/dossier/timestamp.h"
#include "reports/evidence/tree.h"

namespace assay::dossier {

using nlohmann::json;

std::string pre_authentication_encoding(std::string_view payload_type, std::string_view payload) {
  return fmt::format("DSSEv1 {} {} {} {}", payload_type.size(), payload_type, payload.size(), payload);
}

std::string envelope_text(const Envelope& envelope) {
  json signatures = json::array();
  for (const auto& signature : envelope.signatures) {
    signatures.push_back({{"sig", base64(signature)}});
    const auto token = envelope.timestamps.find(signature);
    if (token != envelope.timestamps.end()) signatures.back()["timestamp"] = base64(token->second);
    const auto chain = envelope.certificates.find(signature);
    if (chain != envelope.certificates.end()) signatures.back()["cert"] = chain->second;
  }
  return json{{"payloadType", envelope.payload_type},
              {"payload", base64(envelope.payload)},
              {"signatures", std::move(signatures)}}
      .dump();
}

namespace {

/// The members of an envelope, and its payload with base64 undone; nothing for one that is not strict.
struct ReadEnvelope {
  json document;
  std::optional<std::string> payload;
};

/// Reads the JSON of an envelope. If the payload is its first member, as assay writes it, it is decoded from the text:
/// it may have 200 MB, all of them plain characters, or it is no base64.
std::expected<ReadEnvelope, InputError> envelope_of(std::string_view text, const std::string& where) {
  constexpr std::string_view kFirst = "{\"payload\":\"";
  constexpr int kDeepest = 8;                // an envelope has three levels; unknown members may have some more
  constexpr std::size_t kMostValues = 1000;  // read before any signature is checked: it may cost nothing
  const JsonLimits limits{.max_bytes = kLargestEnvelope, .max_depth = kDeepest, .max_values = kMostValues};
  if (text.starts_with(kFirst) && text.size() <= kLargestEnvelope) {
    const std::string_view payload =
        text.substr(kFirst.size(), text.find(kFirst.back(), kFirst.size()) - kFirst.size());
    if (std::optional<std::string> decoded = base64_decoded(payload)) {
      auto rest = parse_json(fmt::format("{}{}", kFirst, text.substr(kFirst.size() + payload.size())), where, limits);
      if (rest) return ReadEnvelope{.document = std::move(*rest), .payload = std::move(decoded)};
    }
  }
  auto document = parse_json(text, where, limits);
  if (!document) return std::unexpected(document.error());
  const auto member = document->is_object() ? document->find("payload") : document->end();
  const std::string* payload = member == document->end() ? nullptr : member->get_ptr<const std::string*>();
  auto decoded = payload == nullptr ? std::nullopt : base64_decoded(*payload);
  return ReadEnvelope{.document = std::move(*document), .payload = std::move(decoded)};
}

}  // namespace

std::expected<Envelope, InputError> read_envelope(std::string_view text, const std::string& where) {
  const auto refused = [&](const std::string& at, const std::string& what) {
    return std::unexpected(
        InputError{at.empty() ? where : where + ": " + at, what, "this is not an envelope that assay-report wrote"});
  };
  auto members = envelope_of(text, where);
  if (!members) return std::unexpected(members.error());
  const json* const document = &members->document;
  if (!document->is_object()) return refused("", "is not a JSON object");
  const auto text_of = [](const json& object, const char* name) -> const std::string* {
    const auto member = object.find(name);
    return member == object.end() ? nullptr : member->get_ptr<const std::string*>();
  };
  const std::string* type = text_of(*document, "payloadType");
  const std::string* payload = text_of(*document, "payload");
  if (type == nullptr) return refused("payloadType", "is missing or not a string");
  if (payload == nullptr) return refused("payload", "is missing or not a string");
  Envelope envelope{.payload_type = *type};
  if (!members->payload) return refused("payload", "is not strict base64");
  envelope.payload = std::move(*members->payload);
  const auto signatures = document->find("signatures");
  if (signatures == document->end() || !signatures->is_array() || signatures->empty())
    return refused("signatures", "has no signature");
  if (signatures->size() > kMostSignatures)
    return refused("signatures", fmt::format("has more than {} signatures", kMostSignatures));
  for (std::size_t i = 0; i < signatures->size(); ++i) {
    const auto& entry = (*signatures)[i];
    const std::string* signature = entry.is_object() ? text_of(entry, "sig") : nullptr;
    auto raw = signature == nullptr ? std::nullopt : base64_decoded(*signature);
    if (!raw) return refused(fmt::format("signatures[{}].sig", i), "is missing or not strict base64");
    envelope.signatures.push_back(std::move(*raw));
    const bool stamped = entry.contains("timestamp");
    const std::string* stamp = text_of(entry, "timestamp");
    auto token = stamp == nullptr ? std::nullopt : base64_decoded(*stamp);
    if (stamped && (!token || token->empty() || token->size() > kLargestToken))
      return refused(fmt::format("signatures[{}].timestamp", i), "is no time stamp in strict base64");
    if (token) envelope.timestamps[envelope.signatures.back()] = std::move(*token);
    const std::string* chain = text_of(entry, "cert");
    if (entry.contains("cert") && (chain == nullptr || chain->empty() || chain->size() > kLargestCertificates))
      return refused(fmt::format("signatures[{}].cert", i), "is no text of certificates");
    if (chain != nullptr) envelope.certificates[envelope.signatures.back()] = *chain;
  }
  return envelope;
}

std::expected<Envelope, InputError> envelope_in(const std::string& directory, const char* name, std::size_t largest) {
  const auto text = evidence::read_plain_file(directory, name, largest);
  if (!text) return std::unexpected(text.error());
  return read_envelope(*text, name);
}

std::optional<InputError> sign(Envelope& envelope, const Signer& signer) {
  auto signature = signer.sign(pre_authentication_encoding(envelope.payload_type, envelope.payload));
  if (!signature) return signature.error();
  if (!signer.certificate.empty()) envelope.certificates[*signature] = signer.certificate;
  envelope.signatures.push_back(std::move(*signature));
  return std::nullopt;
}

std::expected<std::string, InputError> written(const Envelope& envelope, std::size_t largest) {
  std::string text = envelope_text(envelope);
  if (text.size() > largest) {
    return std::unexpected(InputError{
        "envelope", fmt::format("would have {} bytes, of which its reader takes {}", text.size(), largest), ""});
  }
  if (const auto again = read_envelope(text, "envelope"); !again) return std::unexpected(again.error());
  return text;
}

const std::string* signature_of(const Envelope& envelope, std::string_view message, const PublicKey& key) {
  const auto found = std::ranges::find_if(
      envelope.signatures, [&](const std::string& signature) { return key.verifies(message, signature); });
  return found == envelope.signatures.end() ? nullptr : &*found;
}

bool is_signed_by(const Envelope& envelope, const PublicKey& key) {
  const std::string message = pre_authentication_encoding(envelope.payload_type, envelope.payload);
  return signature_of(envelope, message, key) != nullptr;
}

}  // namespace assay::dossier
