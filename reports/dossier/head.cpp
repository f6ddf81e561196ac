// head: a digest of the journal's first bytes in a signed statement.
#include "reports/dossier/head.h"

#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/judge/evidence/evidence.h"
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
  json again = document_of(head);
  again.at("predicate")["tool"] = predicate.at("tool");  // of any version: its head says the same
  if (*document != again)
    return std::unexpected(InputError{where, "names another part of the journal than it counts", ""});
  if (!is_tool(predicate.at("tool").get<std::string>()))
    return std::unexpected(InputError{where + ": predicate.tool", "is no version of assay-report", ""});
  return head;
}

struct Signed {
  std::string by, key;
};

/// Whose signature it is.
std::expected<Signed, InputError> signer_of(const Envelope& envelope, const Witnesses& witnesses, Moment now) {
  const auto not_signed =
      std::unexpected(InputError{"rule head_signed", "no key that was given has signed it",
                                 "give the key of the witness with --witness-key, or name a --policy"});
  if (witnesses.policy != nullptr) {
    const TrustPolicy policy = with_certificates(*witnesses.policy, certificates_of(envelope));
    const auto by = only_signer(policy, envelope, {}, now);
    if (!by) return std::unexpected(by.error());
    if (by->party->role == "vendor") {
      return std::unexpected(InputError{witnesses.policy->path + ": rule head_role",
                                        fmt::format("{} of {} is the vendor", by->signer->name, by->party->name),
                                        "a witness, buyer or commissioner watches the vendor's run"});
    }
    const bool wanted = witnesses.keys.empty() || std::ranges::find(witnesses.keys, by->key->fingerprint,
                                                                    &PublicKey::fingerprint) != witnesses.keys.end();
    if (!wanted) return not_signed;
    return Signed{.by = fmt::format("{}: {} of {}", by->party->role, by->signer->name, by->party->name),
                  .key = by->key->fingerprint};
  }
  for (const auto& key : witnesses.keys) {
    if (is_signed_by(envelope, key)) return Signed{.by = key.fingerprint(), .key = key.fingerprint()};
  }
  return not_signed;
}

/// The runs of the plan that `heads` are of, in the order of their last sight; empty if there is one alone.
std::string runs_seen(const std::vector<WitnessedHead>& heads, const std::string& plan_sha256,
                      const std::string& challenge) {
  constexpr std::size_t kMostRuns = 5;  // named
  std::vector<const Head*> last;        // of each run
  for (const auto& [head, by, key] : heads) {
    if (head.plan_sha256 != plan_sha256) continue;
    const auto known = std::ranges::find(last, head.run_id, &Head::run_id);
    if (known == last.end())
      last.push_back(&head);
    else if ((*known)->seen_at < head.seen_at)
      *known = &head;
  }
  if (last.size() < 2) return "";
  std::ranges::sort(last, {}, &Head::seen_at);
  std::string text = fmt::format("; the witness has seen {} runs of this plan{}:", last.size(),
                                 challenge.empty() ? "" : ", which answers the challenge " + challenge);
  for (std::size_t i = 0; i < std::min(last.size(), kMostRuns); ++i)
    text +=
        fmt::format("{} '{}' with {} lines {}", i == 0 ? "" : ",", last[i]->run_id, last[i]->lines, last[i]->seen_at);
  return text + (last.size() > kMostRuns ? ", …" : "");
}

/// The error of a head by the journal that it is of: plan, bytes, lines, and its time on both sides.
std::optional<InputError> check_journal(const Head& head, std::string_view text, Moment now, const std::string& where) {
  const std::string_view seen = text.substr(0, head.bytes);
  if (seen.size() != head.bytes || files::sha256(seen) != head.sha256) {
    return InputError{
        where,
        fmt::format("the journal does not begin with the {} lines that were witnessed {}", head.lines, head.seen_at),
        "a line was taken out of it or changed since: this is not the whole run"};
  }
  const auto lines = static_cast<std::uint64_t>(std::ranges::count(seen, '\n'));
  if (!seen.ends_with('\n') || lines != head.lines) {
    return InputError{where,
                      fmt::format("counts {} lines, and its {} bytes are {}", head.lines, head.bytes,
                                  seen.ends_with('\n') ? fmt::format("{}", lines) : "no whole lines"),
                      "a head is of whole lines: assay did not write this one"};
  }
  const auto witnessed = judge::read_journal(seen, kJournalName);
  const auto last = witnessed ? utc_time(witnessed->last) : std::nullopt;
  const auto at = utc_time(head.seen_at);
  const std::chrono::duration<double> skew(judge::kMostClockDifference_s);
  if (last && at && *last - *at <= skew && *at - now <= skew) return std::nullopt;
  return InputError{where + ": rule head_time",
                    fmt::format("was seen {}, its last line is of {}, and it is {} here", head.seen_at,
                                witnessed ? witnessed->last : "no time", utc_text(now)),
                    "a line is seen after it was written and not in the future; clocks may differ by five minutes"};
}

/// The head in `text`, by a witness; nothing of the journal is asked.
std::expected<WitnessedHead, InputError> read_head(std::string_view text, const std::string& where,
                                                   const Witnesses& witnesses, Moment now) {
  const auto envelope = read_envelope(text, where);
  if (!envelope) return std::unexpected(envelope.error());
  if (envelope->payload_type != kPayloadType)
    return std::unexpected(InputError{where + ": payloadType", fmt::format("is not '{}'", kPayloadType), ""});
  const auto by = signer_of(*envelope, witnesses, now);
  if (!by) return std::unexpected(InputError{where + ": " + by.error().where, by.error().what, by.error().hint});
  auto head = head_from(envelope->payload, where + ": payload");
  if (!head) return std::unexpected(head.error());
  return WitnessedHead{.head = std::move(*head), .by = by->by, .key = by->key};
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
  return signed_text(document_of(head), "head", key, kLargestHead, head_from);
}

std::expected<std::vector<WitnessedHead>, InputError> check_heads(const std::vector<HeadFile>& files,
                                                                  const Witnesses& witnesses, std::string_view journal,
                                                                  const std::string& challenge, Moment now) {
  std::vector<WitnessedHead> heads;
  for (const auto& [where, text] : files) {
    auto head = read_head(text, where, witnesses, now);
    if (!head) return std::unexpected(head.error());
    heads.push_back(std::move(*head));
  }
  const auto of_dossier = judge::read_journal(journal, kJournalName);
  if (!of_dossier) return std::unexpected(of_dossier.error());
  for (std::size_t i = 0; i < heads.size(); ++i) {
    const Head& head = heads[i].head;
    const std::string& where = files[i].where;
    if (head.run_id != of_dossier->run_id) {
      return std::unexpected(
          InputError{where,
                     fmt::format("is of the run '{}', the dossier of '{}'{}", head.run_id, of_dossier->run_id,
                                 runs_seen(heads, of_dossier->plan_sha256, challenge)),
                     "the witness saw another run: ask what became of it"});
    }
    if (head.plan_sha256 != of_dossier->plan_sha256)
      return std::unexpected(
          InputError{where, "is of another plan than the dossier", "the witness saw another plan of this run"});
    if (auto problem = check_journal(head, journal, now, where)) return std::unexpected(std::move(*problem));
  }
  std::vector<WitnessedHead> once;
  for (auto& head : heads) {
    if (std::ranges::find(once, head) == once.end()) once.push_back(std::move(head));
  }
  return once;
}

}  // namespace assay::dossier
