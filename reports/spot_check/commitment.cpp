// commitment: a digest in a signed statement.
#include "reports/spot_check/commitment.h"

#include <array>
#include <chrono>

#include <unistd.h>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/judge/evidence/evidence.h"
#include "probes/core/utc_time.h"
#include "profiles/schema.h"
#include "reports/dossier/canonical_json.h"
#include "reports/dossier/certificate.h"
#include "reports/dossier/dsse.h"
#include "reports/dossier/predicate_types.h"
#include "reports/dossier/trust_rules.h"

namespace assay::spot_check {
namespace {

using nlohmann::json;

constexpr std::size_t kSeedBytes = 32;  // as many as the digest that hides them

json file_of(const char* name, const std::string& sha256) { return {{"name", name}, {"digest", {{"sha256", sha256}}}}; }

json document_of(const Commitment& commitment) {
  json document = {{"_type", dossier::kStatementType},
                   {"subject", json::array({file_of("evidence/plan.json", commitment.run.plan_sha256),
                                            file_of("evidence/verdict.json", commitment.run.verdict_sha256)})},
                   {"predicateType", dossier::kCommitmentType},
                   {"predicate",
                    {{"run", commitment.run.run_id},
                     {"cells", commitment.cells},
                     {"seedSha256", commitment.seed_sha256},
                     {"issuedAt", commitment.issued_at},
                     {"signatory", {{"role", commitment.role}, {"keyFingerprint", commitment.key_fingerprint}}},
                     {"tool", std::string("assay-report ") + ASSAY_VERSION}}}};
  if (!commitment.others.empty()) document["predicate"]["otherSeedsSha256"] = commitment.others;
  return document;
}

/// The payload as a commitment: type first and exactly, as of a statement.
std::expected<Commitment, InputError> read_payload(const std::string& payload, const std::string& where) {
  const auto document = dossier::read_canonical_json(payload, where, {.max_bytes = kLargestCommitment});
  if (!document) return std::unexpected(document.error());
  if (!document->is_object() || document->value("predicateType", json()) != dossier::kCommitmentType) {
    return std::unexpected(InputError{where + ": predicateType", fmt::format("is not '{}'", dossier::kCommitmentType),
                                      "`assay draw commit` writes a commitment"});
  }
  if (auto problem = profiles::check_schema(*document, "draw-commitment.schema", where))
    return std::unexpected(*problem);
  const json& predicate = document->at("predicate");
  const auto digest = [&](std::size_t i) { return document->at("subject").at(i).at("digest").at("sha256"); };
  return Commitment{.run = {.run_id = predicate.at("run"), .plan_sha256 = digest(0), .verdict_sha256 = digest(1)},
                    .cells = predicate.at("cells"),
                    .seed_sha256 = predicate.at("seedSha256"),
                    .others = predicate.value("otherSeedsSha256", std::vector<std::string>()),
                    .issued_at = predicate.at("issuedAt"),
                    .role = predicate.at("signatory").at("role"),
                    .key_fingerprint = predicate.at("signatory").at("keyFingerprint")};
}

std::optional<InputError> check_run(const Commitment& commitment, const DrawnRun& run, const std::string& where) {
  const auto another = [&](const char* what, const std::string& is, const std::string& should) {
    return InputError{where, fmt::format("is of the {} '{}', not '{}'", what, is, should),
                      "this is a commitment for another dossier"};
  };
  const DrawnRun& of = commitment.run;
  if (of.run_id != run.run_id) return another("run", of.run_id, run.run_id);
  if (of.plan_sha256 != run.plan_sha256) return another("plan", of.plan_sha256, run.plan_sha256);
  if (of.verdict_sha256 != run.verdict_sha256) return another("verdict", of.verdict_sha256, run.verdict_sha256);
  return std::nullopt;
}

std::optional<InputError> check_times(const Commitment& commitment, const dossier::ListedKey& by, const DrawnRun& run,
                                      dossier::Moment now, const std::string& where) {
  const std::chrono::duration<double> skew(judge::kMostClockDifference_s);
  const auto issued = utc_time(commitment.issued_at);
  const auto ended = utc_time(run.ended);
  if (!issued || !ended) return InputError{where, "has a time that does not exist", ""};
  if (*ended - *issued > skew || *issued - now > skew) {
    return InputError{where + ": rule draw_time",
                      fmt::format("the commitment was made {}, the run ended {}, and it is {} here",
                                  commitment.issued_at, run.ended, utc_text(now)),
                      "cells are drawn of a run that is over"};
  }
  if (*issued < by.key->from || *issued >= by.key->until) {
    return InputError{where + ": rule key_valid_at_issue",
                      fmt::format("the commitment was made {}, outside the time of its key", commitment.issued_at), ""};
  }
  return std::nullopt;
}

}  // namespace

DrawnRun drawn_run(const dossier::OpenedRun& run) {
  return {.run_id = run.content.run.journal.run_id,
          .plan_sha256 = run.content.run.plan_sha256,
          .verdict_sha256 = run.content.verdict_sha256,
          .ended = run.content.run.journal.last};
}

std::expected<std::string, InputError> new_seed() {
  std::array<unsigned char, kSeedBytes> bytes{};
  if (::getentropy(bytes.data(), bytes.size()) != 0)
    return std::unexpected(InputError{"seed", "the kernel gives no random bytes", ""});
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

std::expected<std::string, InputError> commitment_text(const Commitment& commitment, const dossier::Signer& key) {
  return dossier::signed_text(document_of(commitment), "commitment", key, kLargestCommitment, read_payload);
}

std::expected<CheckedCommitment, InputError> check_commitment(std::string_view text, const std::string& where,
                                                              const dossier::TrustPolicy& policy, const DrawnRun& run,
                                                              dossier::Moment now) {
  const auto envelope = dossier::read_envelope(text, where);
  if (!envelope) return std::unexpected(envelope.error());
  if (envelope->payload_type != dossier::kPayloadType)
    return std::unexpected(InputError{where + ": payloadType", fmt::format("is not '{}'", dossier::kPayloadType), ""});
  const auto resolved = dossier::with_certificates(policy, dossier::certificates_of(*envelope));
  const auto by = dossier::only_signer(resolved, *envelope, {}, now);
  if (!by) return std::unexpected(InputError{where + ": " + by.error().where, by.error().what, by.error().hint});
  auto commitment = read_payload(envelope->payload, where + ": payload");
  if (!commitment) return std::unexpected(commitment.error());
  if (commitment->key_fingerprint != by->key->fingerprint || commitment->role != by->party->role) {
    return std::unexpected(InputError{where + ": payload: predicate.signatory",
                                      "names another key or role than the policy has for who signed", ""});
  }
  if (auto problem = check_run(*commitment, run, where)) return std::unexpected(*problem);
  if (auto problem = check_times(*commitment, *by, run, now, where)) return std::unexpected(*problem);
  return CheckedCommitment{.commitment = std::move(*commitment), .party = by->party->name, .signer = by->signer->name};
}

}  // namespace assay::spot_check
