// waiver: written from a verified verdict, and read against one.
#include "reports/dossier/waiver.h"

#include <chrono>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "orchestrator/judge/evidence/evidence.h"
#include "probes/core/utc_time.h"
#include "profiles/schema.h"
#include "reports/dossier/canonical_json.h"
#include "reports/dossier/certificate.h"
#include "reports/dossier/dsse.h"

namespace assay::dossier {
namespace {

using nlohmann::json;

constexpr const char* kPlanName = "evidence/plan.json";
constexpr const char* kVerdictName = "evidence/verdict.json";

bool passes(judge::Outcome outcome) {
  return outcome == judge::Outcome::pass || outcome == judge::Outcome::conditional_pass;
}

json document_of_waiver(const Waiver& waiver) {
  json cells = json::array();
  for (const auto& cell : waiver.cells) {
    cells.push_back({{"requirement", cell.requirement},
                     {"subject", {{"kind", cell.subject.kind}, {"id", cell.subject.id}}},
                     {"node", cell.node},
                     {"verdict", to_string(cell.outcome)}});
  }
  return {{"_type", kStatementType},
          {"subject", json::array({{{"name", kPlanName}, {"digest", {{"sha256", waiver.plan_sha256}}}},
                                   {{"name", kVerdictName}, {"digest", {{"sha256", waiver.verdict_sha256}}}}})},
          {"predicateType", kWaiverType},
          {"predicate",
           {{"run", waiver.run_id},
            {"cells", std::move(cells)},
            {"reason", waiver.reason},
            {"until", waiver.until},
            {"issuedAt", waiver.issued_at},
            {"signatory",
             {{"role", waiver.role},
              {"name", waiver.name},
              {"organisation", waiver.organisation},
              {"keyFingerprint", waiver.key_fingerprint}}},
            {"tool", std::string("assay-report ") + ASSAY_VERSION}}}};
}

Waiver waiver_from(const json& document) {
  const json& predicate = document.at("predicate");
  const json& signatory = predicate.at("signatory");
  Waiver waiver{.run_id = predicate.at("run"),
                .reason = predicate.at("reason"),
                .until = predicate.at("until"),
                .issued_at = predicate.at("issuedAt"),
                .role = signatory.at("role"),
                .name = signatory.at("name"),
                .organisation = signatory.at("organisation"),
                .key_fingerprint = signatory.at("keyFingerprint")};
  for (const auto& file : document.at("subject"))
    (file.at("name") == kPlanName ? waiver.plan_sha256 : waiver.verdict_sha256) = file.at("digest").at("sha256");
  for (const auto& cell : predicate.at("cells")) {
    waiver.cells.push_back({.requirement = cell.at("requirement"),
                            .subject = {.kind = cell.at("subject").at("kind"), .id = cell.at("subject").at("id")},
                            .node = cell.at("node"),
                            .outcome = *from_word<judge::Outcome>(cell.at("verdict").get<std::string>())});
  }
  return waiver;
}

/// The payload as a waiver: type first and exactly, as of a statement.
std::expected<Waiver, InputError> waiver_from(const std::string& payload, const std::string& where) {
  auto document = read_canonical_json(payload, where, {.max_bytes = kLargestWaiver});
  if (!document) return std::unexpected(document.error());
  rename_former_type(*document);
  if (!document->is_object() || document->value("predicateType", json()) != kWaiverType) {
    return std::unexpected(InputError{where + ": predicateType", fmt::format("is not '{}'", kWaiverType),
                                      "`assay-report waive` writes a waiver; a dossier is none"});
  }
  if (auto problem = profiles::check_schema(*document, "waiver.schema", where)) return std::unexpected(*problem);
  return waiver_from(*document);
}

/// That the verdict has every cell so, once.
std::optional<InputError> check_cells(const Waiver& waiver, const judge::Verdict& verdict, const std::string& where) {
  const auto name = [](const WaivedCell& cell) {
    return fmt::format("{} of {} {}", cell.requirement, cell.subject.kind, cell.subject.id);
  };
  std::map<std::tuple<std::string, std::string, Subject>, const WaivedCell*> missing;  // nodes have devices of one name
  for (const auto& cell : waiver.cells) {
    if (!missing.emplace(std::tuple(cell.requirement, cell.node, cell.subject), &cell).second)
      return InputError{where, fmt::format("has {} twice", name(cell)), ""};
  }
  for (const auto& result : verdict.results) {
    const auto found = missing.find({result.requirement, result.node, result.subject});
    if (found != missing.end() && found->second->outcome == result.outcome) missing.erase(found);
  }
  if (missing.empty()) return std::nullopt;
  const WaivedCell& cell = *missing.begin()->second;
  return InputError{where, fmt::format("{} is no cell with the outcome {}", name(cell), to_string(cell.outcome)),
                    "a waiver is of one verdict, as it is"};
}

std::optional<InputError> check_run(const Waiver& waiver, const WaivedRun& run, const std::string& where) {
  const auto another = [&](const char* what, const std::string& is, const std::string& should) {
    return InputError{where, fmt::format("is of the {} '{}', not '{}'", what, is, should),
                      "this is a waiver of another run"};
  };
  if (waiver.run_id != run.verdict.run_id) return another("run", waiver.run_id, run.verdict.run_id);
  if (waiver.plan_sha256 != run.verdict.plan_sha256)
    return another("plan", waiver.plan_sha256, run.verdict.plan_sha256);
  if (waiver.verdict_sha256 != run.verdict_sha256) return another("verdict", waiver.verdict_sha256, run.verdict_sha256);
  return check_cells(waiver, run.verdict, where);
}

std::optional<InputError> check_waiver_times(const Waiver& waiver, const ListedKey& by, const WaivedRun& run,
                                             Moment now, const std::string& where) {
  const std::chrono::duration<double> skew(judge::kMostClockDifference_s);
  const auto until = utc_time(waiver.until);
  const auto issued = utc_time(waiver.issued_at);
  const auto last = utc_time(run.last);
  if (!until || !issued || !last) return InputError{where, "has a time that does not exist", ""};
  if (now >= *until) {
    return InputError{where + ": rule waiver_until",
                      fmt::format("the waiver ran out {}, and it is {} here", waiver.until, utc_text(now)),
                      "the cells count again as the verdict has them: verify without it, or ask for a new one"};
  }
  if (*last - *issued > skew || *issued - now > skew) {
    return InputError{where + ": rule waiver_time",
                      fmt::format("the waiver was issued {}, the run ended {}, and it is {} here", waiver.issued_at,
                                  run.last, utc_text(now)),
                      "what is not measured yet cannot be waived"};
  }
  if (*issued < by.key->from || *issued >= by.key->until) {
    return InputError{where + ": rule key_valid_at_issue",
                      fmt::format("the waiver was issued {}, outside the time of its key", waiver.issued_at), ""};
  }
  return std::nullopt;
}

}  // namespace

std::expected<std::vector<WaivedCell>, InputError> cells_to_waive(const judge::Verdict& verdict,
                                                                  const CellChoice& choice) {
  const auto is = [](const std::string& wanted, const std::string& found) { return wanted.empty() || wanted == found; };
  std::vector<WaivedCell> cells;
  for (const auto& result : verdict.results) {
    if (passes(result.outcome) || !is(choice.requirement, result.requirement) || !is(choice.node, result.node) ||
        !is(choice.subject, result.subject.id))
      continue;
    cells.push_back({result.requirement, result.subject, result.node, result.outcome});
  }
  if (!cells.empty()) return cells;
  return std::unexpected(InputError{"--requirement", "no cell that does not pass is chosen",
                                    "what passes needs no waiver; `assay judge --all` lists every cell"});
}

std::optional<InputError> check_may_waive(const TrustPolicy& policy, const ListedKey& by) {
  if (by.party->role == "buyer" || by.party->role == "commissioner") return std::nullopt;
  return InputError{policy.path + ": rule waiver_role",
                    fmt::format("{} of {} is the {}", by.signer->name, by.party->name, by.party->role),
                    "a buyer or commissioner waives, to whom the test is owed"};
}

std::expected<std::string, InputError> waiver_text(const Waiver& waiver, const Signer& key) {
  return signed_text(document_of_waiver(waiver), "waiver", key, kLargestWaiver,
                     [](const std::string& payload, const std::string& where) { return waiver_from(payload, where); });
}

std::expected<Waiver, InputError> check_waiver(std::string_view text, const std::string& where,
                                               const TrustPolicy& policy, const std::map<std::string, PublicKey>& known,
                                               const WaivedRun& run, Moment now) {
  const auto envelope = read_envelope(text, where);
  if (!envelope) return std::unexpected(envelope.error());
  if (envelope->payload_type != kPayloadType)
    return std::unexpected(InputError{where + ": payloadType", fmt::format("is not '{}'", kPayloadType), ""});
  const TrustPolicy resolved = with_certificates(policy, certificates_of(*envelope));
  const auto by = only_signer(resolved, *envelope, known, now);
  if (!by) return std::unexpected(InputError{where + ": " + by.error().where, by.error().what, by.error().hint});
  if (auto problem = check_may_waive(resolved, *by)) return std::unexpected(*problem);
  auto waiver = waiver_from(envelope->payload, where + ": payload");
  if (!waiver) return waiver;
  if (waiver->key_fingerprint != by->key->fingerprint || waiver->role != by->party->role) {
    return std::unexpected(InputError{where + ": payload: predicate.signatory",
                                      "names another key or role than the policy has for who signed", ""});
  }
  if (auto problem = check_run(*waiver, run, where)) return std::unexpected(*problem);
  if (auto problem = check_waiver_times(*waiver, *by, run, now, where)) return std::unexpected(*problem);
  waiver->name = by->signer->name;
  waiver->organisation = by->party->name;
  return waiver;
}

page::ShownWaiver shown(const Waiver& waiver) {
  page::ShownWaiver shown{.reason = waiver.reason,
                          .until = waiver.until,
                          .by = fmt::format("{} of {} ({})", waiver.name, waiver.organisation, waiver.role)};
  for (const auto& cell : waiver.cells) {
    const bool whole = cell.subject.id == cell.node;
    shown.cells.push_back(fmt::format("{} on {}{}: {}", cell.requirement,
                                      whole ? "" : fmt::format("{} {} of ", cell.subject.kind, cell.subject.id),
                                      cell.node, to_string(cell.outcome)));
  }
  return shown;
}

}  // namespace assay::dossier
