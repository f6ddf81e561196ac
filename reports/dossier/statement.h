// statement: the signed document, an in-toto Statement v1 with the predicate of an acceptance test.
#pragma once

#include <array>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/verdict.h"
#include "reports/dossier/predicate_types.h"
#include "reports/dossier/supersedes.h"
#include "reports/evidence/manifest.h"

namespace assay::dossier {

/// A signatory and the meaning of the signature.
struct Signatory {
  std::string role, name, organisation;
  std::string key_fingerprint;  ///< PublicKey::fingerprint
  std::string meaning;          ///< kResponsible or kSelfSigned

  /// Whether the signature proves integrity only.
  [[nodiscard]] bool is_self_signed() const;
};

/// Roles of a signatory in a test, in the words of the signer; the list is closed.
inline constexpr std::array<std::string_view, 8> kRoles = {"signer", "test lead", "laboratory", "vendor",
                                                           "buyer",  "operator",  "witness",    "commissioner"};

/// Those of them that a trust policy gives: only the party that the policy names so may state one.
inline constexpr std::array<std::string_view, 4> kPartyRoles = {"commissioner", "vendor", "buyer", "witness"};

/// Meaning of the signature of a person responsible for the test.
inline constexpr std::string_view kResponsible =
    "The signatory takes responsibility for the conduct of the test and for the completeness of this evidence.";
/// Meaning of the signature of the tester's own key.
inline constexpr std::string_view kSelfSigned =
    "Self-signed: the key belongs to the tester. The signature proves that nothing was changed since; it does not "
    "prove the identity of the signer.";

/// Whether `text` is "assay-report 0.1.0": the program and a version of three numbers.
bool is_tool(std::string_view text);

/// A document for people that was made from the evidence.
struct Rendering {
  std::string path;  ///< in the dossier
  std::string media_type;
  std::string sha256;
  std::string renderer;  ///< kRenderer of the build that made it
};

/// The part of a statement that does not follow from the evidence.
struct Claims {
  std::string issued_at;  ///< UTC; stated by the signer
  std::string tool;       ///< program and version that signed
  evidence::EvidenceSummary evidence;
  std::vector<Rendering> renderings;
  std::vector<Signatory> signatories;
  std::vector<std::string> non_claims;
  std::optional<Superseded> supersedes = std::nullopt;
};

/// SHA-256 of the canonical JSON of a resolved profile: targets.sha256 of the statement.
std::expected<std::string, InputError> digest_of_targets(const plan::Profile& profile);

/// The whole statement in canonical JSON; that of a simulated run has kSimulationType. Everything but `claims` follows
/// from the evidence, so a verifier makes it again and compares. Values that decide are decimal strings (es6_number),
/// counts are numbers. An error when the profile or a result cannot be spelt in canonical JSON.
std::expected<std::string, InputError> statement_text(const Claims& claims, const judge::Run& run,
                                                      const judge::Verdict& verdict, const std::string& verdict_sha256);

/// Why the statement `read` is not `made`, which its evidence gives: another version may compute the agreed risks anew.
std::string hint_of_difference(const nlohmann::json& read, nlohmann::json made);

/// A statement as read: the document and the part of it that does not follow from evidence.
struct ReadStatement {
  nlohmann::json document;
  Claims claims;
};

/// Reads the payload of an envelope. Refused: JSON that is not canonical, another statement or predicate type (that of
/// a simulation, too), documents against profiles/schemas/statement.schema.json, numbers or times that are not spelt as
/// statement_of does, and claims that no version of assay writes: none or several signatories, another role or meaning,
/// another tool, other non-claims.
std::expected<ReadStatement, InputError> read_statement(std::string_view payload, const std::string& where);

/// The same, for a verifier, of all but the results: the tree of 300,000 takes gigabytes. That these are strict, too,
/// and all of the payload canonical, shows check_follows.
std::expected<ReadStatement, InputError> read_claims(std::string_view payload, const std::string& where);

/// Checks that `payload` is statement_text, byte for byte: then it is canonical, and its results have the members and
/// spellings that statements have. If it is not, it is read strictly, for the words of the refusal; one that differs
/// only in the former name of its type passes.
std::optional<InputError> check_follows(std::string_view payload, const std::string& where, const Claims& claims,
                                        const judge::Run& run, const judge::Verdict& verdict,
                                        const std::string& verdict_sha256);

}  // namespace assay::dossier
