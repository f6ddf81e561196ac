// statement: what is signed, an in-toto Statement v1 with the predicate of an acceptance test.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "orchestrator/judge/evidence.h"
#include "orchestrator/judge/verdict.h"
#include "reports/evidence/manifest.h"

namespace assay::dossier {

/// Every URI of this project in signed documents begins with this; it must be a domain that the project keeps.
inline constexpr std::string_view kPredicateType = "https://assay-suite.example/attestation/acceptance/v1";
/// What says of itself that nothing was measured. No verifier of ours takes it for an acceptance.
inline constexpr std::string_view kSimulationType = "https://assay-suite.example/attestation/simulation/v1";
inline constexpr std::string_view kStatementType = "https://in-toto.io/Statement/v1";

/// One who signs, and what the signature means.
struct Signatory {
  std::string role, name, organisation;
  std::string key_fingerprint;  ///< PublicKey::fingerprint
  std::string meaning;          ///< kResponsible or kSelfSigned

  /// Whether the signature shows only that nothing was changed since.
  [[nodiscard]] bool is_self_signed() const;
};

/// What the signature of somebody means who answers for the test.
inline constexpr std::string_view kResponsible =
    "The signatory takes responsibility for the conduct of the test and for the completeness of this evidence.";
/// What a signature means whose key was made by the same hands that ran the test.
inline constexpr std::string_view kSelfSigned =
    "Self-signed: the key belongs to whoever ran the test. Nothing was changed since it was signed; who signed it is "
    "not shown.";

/// A document for people that was made from the evidence.
struct Rendering {
  std::string path;  ///< in the dossier
  std::string media_type;
  std::string sha256;
  std::string renderer;  ///< kRenderer of the build that made it
};

/// What a statement says beyond what follows from the evidence.
struct Claims {
  std::string issued_at;  ///< UTC; the signer's word
  std::string tool;       ///< program and version that signed
  evidence::EvidenceSummary evidence;
  std::vector<Rendering> renderings;
  std::vector<Signatory> signatories;
  std::vector<std::string> non_claims;
};

/// SHA-256 of the canonical JSON of a resolved profile, which stands in the statement as targets.sha256.
std::expected<std::string, InputError> digest_of_targets(const plan::Profile& profile);

/// The whole statement; that of a simulated run has kSimulationType. Everything but `claims` follows from the evidence,
/// so a verifier makes it again and compares. Values that decide are decimal strings (es6_number), counts are numbers.
/// An error when the profile cannot be spelt in canonical JSON.
std::expected<nlohmann::json, InputError> statement_of(const Claims& claims, const judge::Run& run,
                                                       const judge::Verdict& verdict,
                                                       const std::string& verdict_sha256);

/// A statement as read: the document and the part of it that does not follow from evidence.
struct ReadStatement {
  nlohmann::json document;
  Claims claims;
};

/// Reads the payload of an envelope. Refused: what is not canonical JSON, another statement or predicate type, a
/// simulation among them, a member that is missing, unknown or of another form than statement_of writes.
std::expected<ReadStatement, InputError> read_statement(std::string_view payload, const std::string& where);

}  // namespace assay::dossier
