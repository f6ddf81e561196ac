// head: a digest of the journal's first bytes in a signed statement.
#include "reports/dossier/head.h"

#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/judge/evidence/journal.h"
#include "probes/core/utc_time.h"
#include "profiles/schema.h"
#include "reports/dossier/canonical_json.h"
#include "reports/dossier/certificate.h"
#include "reports/dossier/dsse.h"
#include "reports/dossier/statement.h"
#include "reports/dossier/trust_rules.h"

namespace assay::dossier {
namespace {

using nlohmann::json;

constexpr const char* kJournalName = "evidence/journal.jsonl";

json document_of(const Head& head) {
  return {{"_type", kStatementType},
          {"subject", json::array({{{"name", fmt::format("{}, the first {} bytes", kJournalName, head.bytes)},
                                    {"digest", {{"sha256", head.sha256}}}}})},
          {"predicateType", kHeadType},
          {"predicate",
           {{"run", head.run_id},
            {"planSha256", head.plan_sha256},
            {"bytes", head.bytes},
            {"lines", head.lines},
            {"seenAt", head.seen_at},
            {"tool", std::string("assay-report ") + ASSAY_VERSION}}}};
}

std::expected<Head, InputError> head_from(const std::string& payload, const std::string& where) {
  auto document = read_canonical_json(payload, where, {.max_bytes = kLargestHead});
  if (!document) return std::unexpected(document.error());
  rename_former_type(*document);
  if (!document->is_object() || document->value("predicateType", json()) != kHeadType) {
    return std::unexpected(InputError{where + ": predicateType", fmt::format("is not '{}'", kHeadType),
                                      "`assay-report witness` writes a head"});
  }
  if (auto problem = profiles::check_schema(*document, "head.schema", where)) return std::unexpected(*problem);
  const json& predicate = document->at("predicate");
  Head head{.run_id = predicate.at("run"),
            .plan_sha256 = predicate.at("planSha256"),
            .bytes = predicate.at("bytes"),
            .lines = predicate.at("lines"),
            .sha256 = document->at("subject").front().at("digest").at("sha256"),
            .seen_at = predicate.at("seenAt")};
  if (*document != document_of(head) && predicate.at("tool") == document_of(head).at("predicate").at("tool"))
    return std::unexpected(InputError{where, "names another part of the journal than it counts", ""});
  return head;
}

/// Whose signature it is.
std::expected<std::string, InputError> signer_of(const Envelope& envelope, const Witnesses& witnesses, Moment now) {
  if (witnesses.policy != nullptr) {
    const TrustPolicy policy = with_certificates(*witnesses.policy, certificates_of(envelope));
    const auto by = only_signer(policy, envelope, {}, now);
    if (!by) return std::unexpected(by.error());
    if (by->party->role == "vendor") {
      return std::unexpected(InputError{witnesses.policy->path + ": rule head_role",
                                        fmt::format("{} of {} is the vendor", by->signer->name, by->party->name),
                                        "a witness, buyer or commissioner watches the vendor's run"});
    }
    return fmt::format("{}: {} of {}", by->party->role, by->signer->name, by->party->name);
  }
  for (const auto& key : witnesses.keys) {
    if (is_signed_by(envelope, key)) return key.fingerprint();
  }
  return std::unexpected(InputError{"rule head_signed", "no key that was given has signed it",
                                    "give the key of the witness with --witness-key, or name a --policy"});
}

std::optional<InputError> check_journal(const Head& head, std::string_view text, const std::string& where) {
  const auto journal = judge::read_journal(text, kJournalName);
  if (!journal) return journal.error();
  if (head.run_id != journal->run_id) {
    return InputError{where, fmt::format("is of the run '{}', the dossier of '{}'", head.run_id, journal->run_id),
                      "the witness saw another run: ask what became of it"};
  }
  if (head.plan_sha256 != journal->plan_sha256)
    return InputError{where, "is of another plan than the dossier", "the witness saw another plan of this run"};
  if (head.bytes <= text.size() && files::sha256(text.substr(0, head.bytes)) == head.sha256) return std::nullopt;
  return InputError{
      where,
      fmt::format("the journal does not begin with the {} lines that were witnessed {}", head.lines, head.seen_at),
      "a line was taken out of it or changed since: this is not the whole run"};
}

}  // namespace

std::expected<Head, InputError> head_of(std::string_view text, const std::string& where, Moment now) {
  const auto whole = text.rfind('\n');
  text = text.substr(0, whole == std::string_view::npos ? 0 : whole + 1);
  if (text.empty())
    return std::unexpected(InputError{where, "has no whole line yet", "witness it when the run has begun"});
  const auto journal = judge::read_journal(text, where);
  if (!journal) return std::unexpected(journal.error());
  if (journal->simulated)
    return std::unexpected(InputError{where, "is of a simulation, in which nothing is measured", ""});
  return Head{.run_id = journal->run_id,
              .plan_sha256 = journal->plan_sha256,
              .bytes = text.size(),
              .lines = static_cast<std::uint64_t>(std::ranges::count(text, '\n')),
              .sha256 = files::sha256(text),
              .seen_at = utc_text(now)};
}

std::expected<std::string, InputError> head_text(const Head& head, const Signer& key) {
  auto payload = canonical_json(document_of(head));
  if (!payload) return std::unexpected(payload.error());
  // Nothing is signed that the reader would refuse.
  if (const auto read = head_from(*payload, "head"); !read) return std::unexpected(read.error());
  Envelope envelope{.payload_type = std::string(kPayloadType), .payload = std::move(*payload), .signatures = {}};
  if (auto problem = sign(envelope, key)) return std::unexpected(*problem);
  return envelope_text(envelope) + "\n";
}

std::expected<WitnessedHead, InputError> check_head(std::string_view text, const std::string& where,
                                                    const Witnesses& witnesses, std::string_view journal, Moment now) {
  const auto envelope = read_envelope(text, where);
  if (!envelope) return std::unexpected(envelope.error());
  if (envelope->payload_type != kPayloadType)
    return std::unexpected(InputError{where + ": payloadType", fmt::format("is not '{}'", kPayloadType), ""});
  const auto by = signer_of(*envelope, witnesses, now);
  if (!by) return std::unexpected(InputError{where + ": " + by.error().where, by.error().what, by.error().hint});
  auto head = head_from(envelope->payload, where + ": payload");
  if (!head) return std::unexpected(head.error());
  if (auto problem = check_journal(*head, journal, where)) return std::unexpected(*problem);
  return WitnessedHead{.head = std::move(*head), .by = *by};
}

}  // namespace assay::dossier
