// statement: the signed statement, written from the evidence and read strictly.
#include "reports/dossier/statement.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include <fmt/ranges.h>

#include "orchestrator/files/difference.h"
#include "orchestrator/files/digest.h"
#include "orchestrator/files/text_in_parts.h"
#include "orchestrator/judge/decide/decision.h"
#include "orchestrator/plan/acceptance.h"
#include "probes/core/es6_number.h"
#include "probes/core/json_fields.h"
#include "probes/core/portable_math.h"
#include "profiles/schema.h"
#include "reports/dossier/canonical_json.h"
#include "reports/dossier/dsse.h"
#include "reports/dossier/result_text.h"
#include "reports/dossier/statement_spelling.h"
#include "reports/page/non_claims.h"

namespace assay::evidence {

template <class Io, Of<EvidenceSummary> E>
void fields(Io& io, E& evidence) {
  io("manifestSha256", evidence.manifest_sha256), io("fileCount", evidence.file_count);
  io("totalBytes", evidence.total_bytes), io("merkleRoot", evidence.merkle_root);
}

}  // namespace assay::evidence

namespace assay::dossier {

template <class Io, Of<Rendering> R>
void fields(Io& io, R& rendering) {
  io("path", rendering.path), io("mediaType", rendering.media_type), io("sha256", rendering.sha256);
  io("renderer", rendering.renderer);
}

template <class Io, Of<Signatory> S>
void fields(Io& io, S& signatory) {
  io("role", signatory.role), io("name", signatory.name), io("organisation", signatory.organisation);
  io("keyFingerprint", signatory.key_fingerprint), io("meaning", signatory.meaning);
}

template <class Io, Of<Claims> C>
void fields(Io& io, C& claims) {
  io("issuedAt", claims.issued_at), io("tool", claims.tool), io("evidence", claims.evidence);
  io("renderings", claims.renderings), io("signatories", claims.signatories), io("nonClaims", claims.non_claims);
  io("supersedes", claims.supersedes);
}

namespace {

using nlohmann::json;

json decision_rule(const plan::Profile& profile) {
  return {{"id", "guardBand"},
          {"guardFactor", es6_number(profile.guard_factor)},
          {"confidence", es6_number(profile.confidence)},
          {"maxFalseAccept", es6_number(to_12_digits(normal_cdf(-profile.guard_factor)))},
          {"stages", "risk split evenly between planned stages (Bonferroni)"}};
}

json stability_part(const plan::Plan& plan) {
  const plan::AgreedStability& agreed = *plan.agreed_stability;
  const plan::StabilityRisk risk = plan::risk_of(plan.looks, plan::stability_design(plan));
  const auto whole = [](int number) { return static_cast<std::uint64_t>(number); };
  json part = {{"tolerated", whole(agreed.tolerated)}, {"stop", agreed.stop}, {"counts", agreed.counts}};
  for (const auto& [name, number] : {std::pair{"hours", agreed.hours},
                                     {"refusedMtbfHours", agreed.refused_mtbf_h},
                                     {"acceptedMtbfHours", agreed.accepted_mtbf_h},
                                     {"vendorRisk", agreed.vendor_risk},
                                     {"buyerRisk", agreed.buyer_risk},
                                     {"vendorRiskOfPlan", risk.vendor},
                                     {"buyerRiskOfPlan", risk.buyer}})
    part[name] = es6_number(number);
  for (const plan::Look& look : plan.looks) {
    json& one = part["looks"].emplace_back(json{{"hours", es6_number(look.hours)}, {"reject", whole(look.reject)}});
    if (look.accept >= 0) one["accept"] = whole(look.accept);
  }
  return part;
}

json plan_part(const judge::Run& run) {
  const plan::Plan& plan = run.plan;
  json part = {{"sha256", run.plan_sha256},
               {"quick", plan.quick},
               {"partial", !plan.only.empty()},
               {"steps", plan.steps.size()},
               {"cells", plan.coverage.size()}};
  if (plan.agreed_stability) part["agreedStability"] = stability_part(plan);
  if (!plan.agreed_risk) return part;
  const plan::RiskReached reached = plan::reached_risk(plan, *plan.agreed_risk);
  json risk = {{"badNodes", reached.bad_nodes}};
  const plan::AgreedRisk& agreed = *plan.agreed_risk;
  for (const auto& [name, number] : {std::pair{"beyond", agreed.beyond},
                                     {"vendorRisk", agreed.vendor_risk},
                                     {"shortBy", agreed.short_by},
                                     {"buyerRisk", agreed.buyer_risk},
                                     {"betweenNodes", agreed.between_nodes},
                                     {"betweenRuns", agreed.between_runs},
                                     {"vendorRiskOfPlan", reached.vendor_risk},
                                     {"buyerRiskOfPlan", reached.buyer_risk}})
    risk[name] = es6_number(number);
  part["agreedRisk"] = std::move(risk);
  return part;
}

json run_part(const judge::Run& run) {
  json part = {{"id", run.journal.run_id},
               {"kind", run.plan.simulation ? plan::kSimulated : "measured"},
               {"startedAt", run.journal.begin},
               {"resumed", static_cast<std::uint64_t>(run.journal.resumed)},
               {"orchestrator", {{"name", "assay"}, {"version", run.plan.assay_version}}}};
  if (!run.journal.end.empty()) part["finishedAt"] = run.journal.end;
  return part;
}

/// The signer's claims are worded by assay, but for names: a free text in a signed document reads like a fact.
std::optional<InputError> check_claims(const Claims& claims, const std::string& where) {
  const auto refused = [&](const char* member, std::string what, const char* hint) {
    return InputError{fmt::format("{}.{}", where, member), std::move(what), hint};
  };
  constexpr const char* kHint = "no version of assay writes this";
  if (!is_tool(claims.tool)) return refused("tool", fmt::format("'{}' is not assay-report", claims.tool), kHint);
  if (!page::is_non_claims(claims.non_claims)) return refused("nonClaims", "is not the list that assay writes", kHint);
  if (claims.signatories.size() != 1) {
    return refused("signatories", fmt::format("lists {}, where one has made the statement", claims.signatories.size()),
                   "others sign the same statement with `assay-report sign --add`, and are known by their keys");
  }
  const Signatory& signatory = claims.signatories.front();
  if (std::ranges::find(kRoles, signatory.role) == kRoles.end())
    return refused("signatories[0].role", fmt::format("'{}' is not one of {}", signatory.role, fmt::join(kRoles, ", ")),
                   kHint);
  if (signatory.meaning != kResponsible && signatory.meaning != kSelfSigned)
    return refused("signatories[0].meaning", fmt::format("'{}' is not what assay writes", signatory.meaning), kHint);
  return std::nullopt;
}

}  // namespace

bool is_tool(std::string_view text) {
  constexpr std::string_view kProgram = "assay-report ";
  if (!text.starts_with(kProgram)) return false;
  text.remove_prefix(kProgram.size());
  int numbers = 0;
  while (true) {
    const auto number = text.substr(0, text.find('.'));
    if (number.empty() || number.size() > 4 || (number.size() > 1 && number.front() == '0')) return false;
    if (!std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; })) return false;
    ++numbers;
    if (number.size() == text.size()) return numbers == 3;
    text.remove_prefix(number.size() + 1);
  }
}

bool Signatory::is_self_signed() const {
  return meaning == kSelfSigned;  // check_claims() lets nothing else pass
}

std::expected<std::string, InputError> digest_of_targets(const plan::Profile& profile) {
  const auto text = canonical_json(to_json(profile));
  if (!text) return std::unexpected(text.error());
  return files::sha256(*text);
}

namespace {

/// The whole statement but for its results.
std::expected<json, InputError> head_of(const Claims& claims, const judge::Run& run, const judge::Verdict& verdict,
                                        const std::string& verdict_sha256) {
  const plan::Plan& plan = run.plan;
  const auto targets = digest_of_targets(plan.profile);
  if (!targets) return std::unexpected(targets.error());
  json nodes = json::array();
  for (const auto& node : plan.site.nodes) nodes.push_back(node.name);
  json instruments = json::array();
  for (const auto& [name, probe] : plan.probes) {
    instruments.push_back({{"probe", name},
                           {"revision", static_cast<std::uint64_t>(probe.description.revision)},
                           {"sha256", probe.sha256}});
    if (!probe.builds.empty()) instruments.back()["builds"] = probe.builds;
  }
  json deviations = json::array();
  for (const auto& deviation : verdict.deviations)
    deviations.push_back({{"what", deviation.what}, {"step", deviation.step}});
  json coverage = verdict.counts;
  coverage["planned"] = plan.coverage.size();
  coverage["results"] = verdict.results.size();
  json predicate = {
      {"run", run_part(run)},
      {"site", {{"name", plan.site.name}, {"nodes", std::move(nodes)}}},
      {"plan", plan_part(run)},
      {"targets",
       {{"profile", plan.profile.name},
        {"title", plan.profile.title},
        {"revision", static_cast<std::uint64_t>(plan.profile.revision)},
        {"requirements", plan.profile.requirements.size()},
        {"sha256", *targets}}},
      {"instruments", std::move(instruments)},
      {"decisionRule", decision_rule(plan.profile)},
      {"verdict", {{"overall", to_string(verdict.overall)}, {"reason", verdict.reason}, {"sha256", verdict_sha256}}},
      {"results", json::array()},
      {"coverage", std::move(coverage)},
      {"deviations", std::move(deviations)}};
  predicate.update(json(claims));
  return json{{"_type", kStatementType},
              {"subject", json::array({{{"name", "evidence/plan.json"}, {"digest", {{"sha256", run.plan_sha256}}}},
                                       {{"name", "evidence/verdict.json"}, {"digest", {{"sha256", verdict_sha256}}}}})},
              {"predicateType", run.plan.simulation ? kSimulationType : kPredicateType},
              {"predicate", std::move(predicate)}};
}

/// Texts before and behind the results; within a string the quotation marks would be escaped.
constexpr std::string_view kBeforeResults = R"("results":[)", kAfterResults = R"(],"run":{)";

/// `payload` with no result in it; nothing if it has not the form of a statement.
std::optional<std::string> without_results(std::string_view payload) {
  const auto before = payload.find(kBeforeResults), after = payload.rfind(kAfterResults);
  if (before == payload.npos || after == payload.npos || after < before + kBeforeResults.size()) return std::nullopt;
  return fmt::format("{}{}", payload.substr(0, before + kBeforeResults.size()), payload.substr(after));
}

/// The document that is `payload`, checked.
std::expected<ReadStatement, InputError> checked(std::expected<json, InputError> document, const std::string& where) {
  if (!document) return std::unexpected(document.error());
  if (!document->is_object()) return std::unexpected(InputError{where, "is not an object", ""});
  rename_former_type(*document);
  if (document->value("predicateType", json()) == kSimulationType) {
    return std::unexpected(InputError{fmt::format("{}: predicateType", where),
                                      "is a simulation, in which nothing was measured",
                                      "a simulation is never an acceptance; ask for the dossier of a measured run"});
  }
  // Types first and exactly: a statement of another type is refused as such, not for its members.
  for (const auto& [member, expected] :
       {std::pair("_type", kStatementType), std::pair("predicateType", kPredicateType)}) {
    if (document->value(member, json()) != expected) {
      return std::unexpected(InputError{fmt::format("{}: {}", where, member), fmt::format("is not '{}'", expected),
                                        "only the statement of an acceptance test is verified"});
    }
  }
  if (auto problem = profiles::check_schema(*document, "statement.schema", where)) return std::unexpected(*problem);
  if (auto problem = check_spelling(document->at("predicate"), where + ": predicate")) return std::unexpected(*problem);
  auto claims = document->at("predicate").get<Claims>();
  if (auto problem = check_claims(claims, where + ": predicate")) return std::unexpected(*problem);
  return ReadStatement{.document = std::move(*document), .claims = std::move(claims)};
}

/// Hands over the text of the statement; an error after some of it, where a number is not finite.
std::optional<InputError> write_statement(const Claims& claims, const judge::Run& run, const judge::Verdict& verdict,
                                          const std::string& verdict_sha256, const files::TextSink& sink) {
  const auto head = head_of(claims, run, verdict, verdict_sha256);
  if (!head) return head.error();
  const auto text = canonical_json(*head);
  if (!text) return text.error();
  std::map<std::string_view, const plan::Requirement*> requirements;
  for (const auto& requirement : run.plan.profile.requirements) requirements[requirement.id] = &requirement;
  const auto place = text->find(kBeforeResults) + kBeforeResults.size();
  sink(std::string_view(*text).substr(0, place));
  std::atomic<bool> finite = true;
  files::write_in_parts(verdict.results.size(), sink, [&](std::size_t i, std::string& out) {
    const judge::Result& result = verdict.results[i];
    if (i > 0) out += ',';
    if (!add_result(result, *requirements.at(result.requirement), out)) finite = false;
  });
  if (!finite) return InputError{"results", "a number is not finite", "it has no spelling in JSON"};
  sink(std::string_view(*text).substr(place));
  return std::nullopt;
}

}  // namespace

std::expected<std::string, InputError> statement_text(const Claims& claims, const judge::Run& run,
                                                      const judge::Verdict& verdict,
                                                      const std::string& verdict_sha256) {
  std::string text;
  if (auto problem =
          write_statement(claims, run, verdict, verdict_sha256, [&](std::string_view piece) { text += piece; }))
    return std::unexpected(std::move(*problem));
  return text;
}

std::string hint_of_difference(const json& read, json made) {
  const auto risk = json::json_pointer("/predicate/plan/agreedRisk");
  if (read.contains(risk) && made.contains(risk)) {
    for (const char* name : {"vendorRiskOfPlan", "buyerRiskOfPlan"}) made[risk][name] = read[risk][name];
    if (made == read)
      return "only the risks of the plan differ: the version that signed computes another curve, or they were changed";
  }
  return "the signed statement contradicts the evidence";
}

std::expected<ReadStatement, InputError> read_statement(std::string_view payload, const std::string& where) {
  return checked(read_canonical_json(payload, where, {.max_bytes = kLargestEnvelope, .max_values = kMostValuesOfRun}),
                 where);
}

std::expected<ReadStatement, InputError> read_claims(std::string_view payload, const std::string& where) {
  if (const auto rest = without_results(payload)) {
    if (auto read = checked(parse_json(*rest, where), where)) return read;
  }
  return read_statement(payload, where);  // whose words are of the payload as it is
}

std::optional<InputError> check_follows(std::string_view payload, const std::string& where, const Claims& claims,
                                        const judge::Run& run, const judge::Verdict& verdict,
                                        const std::string& verdict_sha256) {
  std::string_view rest = payload;
  bool same = true;
  auto problem = write_statement(claims, run, verdict, verdict_sha256, [&](std::string_view piece) {
    same = same && rest.starts_with(piece);
    if (same) rest.remove_prefix(piece.size());
  });
  if (!problem && same && rest.empty()) return std::nullopt;
  const auto read = read_statement(payload, where);
  if (!read) return read.error();
  if (problem) return problem;
  const auto text = statement_text(claims, run, verdict, verdict_sha256);
  if (!text) return text.error();
  const auto again = parse_json(*text, where, {.max_bytes = kLargestEnvelope, .max_values = kMostValuesOfRun});
  if (!again) return again.error();
  if (*again == read->document) return std::nullopt;  // its type has a former name
  return InputError{where, "does not follow from the evidence: " + files::first_difference(read->document, *again),
                    hint_of_difference(read->document, *again)};
}

}  // namespace assay::dossier
