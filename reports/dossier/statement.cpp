// statement: the signed statement, written from the evidence and read strictly.
#include "reports/dossier/statement.h"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <optional>
#include <string>
#include <system_error>

#include <fmt/ranges.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/judge/decide/decision.h"
#include "orchestrator/plan/acceptance.h"
#include "probes/core/es6_number.h"
#include "probes/core/json_fields.h"
#include "probes/core/portable_math.h"
#include "probes/core/utc_time.h"
#include "profiles/schema.h"
#include "reports/dossier/canonical_json.h"
#include "reports/dossier/dsse.h"
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

/// Members of a result whose numbers are decimal strings.
constexpr std::initializer_list<const char*> kResultNumbers = {
    "value", "u", "reference", "limitLow", "limitHigh", "acceptanceLow", "acceptanceHigh", "margin", "falseAccept"};

void put(json& object, const char* name, const std::optional<double>& value) {
  if (value) object[name] = es6_number(*value);
}

json json_of(const judge::Result& result, const plan::Requirement& requirement) {
  json conditions = json::array();
  for (const auto& condition : result.conditions) {
    json one = {{"name", condition.name}, {"demanded", condition.demanded}, {"met", condition.met}};
    if (condition.seen) one["seen"] = to_json(*condition.seen).dump();
    conditions.push_back(std::move(one));
  }
  json object = {{"requirement", result.requirement},
                 {"subject", {{"kind", result.subject.kind}, {"id", result.subject.id}}},
                 {"node", result.node},
                 {"step", result.step},
                 {"required", result.required},
                 {"verdict", to_string(result.outcome)},
                 {"reason", result.reason},
                 {"metric", requirement.judged()},
                 {"statistic", requirement.statistic},
                 {"unit", result.unit},
                 {"n", result.samples},
                 {"attempts", static_cast<std::uint64_t>(result.attempts)},
                 {"conditions", std::move(conditions)},
                 {"evidence", result.evidence.list()}};
  if (requirement.rise) object["rise"] = true;
  if (requirement.contrast) object["contrast"] = requirement.contrast->parameter;
  if (result.interval) {
    object["ci"] = {{"low", es6_number(result.interval->low)},
                    {"high", es6_number(result.interval->high)},
                    {"level", es6_number(result.interval->level)}};
  }
  put(object, "value", result.value);
  put(object, "u", result.uncertainty);
  put(object, "reference", result.reference);
  put(object, "limitLow", result.limit_low);
  put(object, "limitHigh", result.limit_high);
  put(object, "acceptanceLow", result.acceptance_low);
  put(object, "acceptanceHigh", result.acceptance_high);
  put(object, "margin", result.margin);
  put(object, "falseAccept", result.false_accept);
  return object;
}

json results_of(const plan::Plan& plan, const judge::Verdict& verdict) {
  std::map<std::string, const plan::Requirement*> requirements;
  for (const auto& requirement : plan.profile.requirements) requirements[requirement.id] = &requirement;
  json results = json::array();
  for (const auto& result : verdict.results) results.push_back(json_of(result, *requirements.at(result.requirement)));
  return results;
}

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

bool is_decimal(const std::string& text) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && rest == text.data() + text.size() && es6_number(number) == text;
}

/// Checks that the numbers `names` of `object`, if it has them, are spelt as es6_number does.
std::optional<InputError> check_decimals(const json& object, std::initializer_list<const char*> names,
                                         const std::string& where) {
  for (const char* name : names) {
    const auto found = object.find(name);
    if (found == object.end() || is_decimal(found->get_ref<const std::string&>())) continue;
    return InputError{fmt::format("{}.{}", where, name), fmt::format("{} is not a canonical decimal", found->dump()),
                      "a number in a statement has one spelling, that of ECMAScript"};
  }
  return std::nullopt;
}

std::optional<InputError> check_time(const json& object, const char* name, const std::string& where) {
  const auto found = object.find(name);
  if (found == object.end() || is_utc_text(found->get_ref<const std::string&>())) return std::nullopt;
  return InputError{fmt::format("{}.{}", where, name), fmt::format("{} is not a time", found->dump()),
                    "write UTC with milliseconds: 2026-01-05T06:37:41.211Z"};
}

/// Rules beyond the schema: the one spelling of each number, and the range of months, days and hours.
std::optional<InputError> check_spelling(const json& predicate, const std::string& where) {
  if (auto problem = check_time(predicate, "issuedAt", where)) return problem;
  if (predicate.contains("supersedes")) {
    if (auto problem = check_time(predicate.at("supersedes"), "issuedAt", where + ".supersedes")) return problem;
  }
  for (const char* name : {"startedAt", "finishedAt"}) {
    if (auto problem = check_time(predicate.at("run"), name, where + ".run")) return problem;
  }
  if (auto problem = check_decimals(predicate.at("decisionRule"), {"guardFactor", "confidence", "maxFalseAccept"},
                                    where + ".decisionRule"))
    return problem;
  if (const auto risk = predicate.at("plan").find("agreedRisk"); risk != predicate.at("plan").end()) {
    if (auto problem = check_decimals(*risk,
                                      {"beyond", "vendorRisk", "shortBy", "buyerRisk", "betweenNodes", "betweenRuns",
                                       "vendorRiskOfPlan", "buyerRiskOfPlan"},
                                      where + ".plan.agreedRisk"))
      return problem;
  }
  if (const auto agreed = predicate.at("plan").find("agreedStability"); agreed != predicate.at("plan").end()) {
    const std::string here = where + ".plan.agreedStability";
    if (auto problem = check_decimals(*agreed,
                                      {"hours", "refusedMtbfHours", "acceptedMtbfHours", "vendorRisk", "buyerRisk",
                                       "vendorRiskOfPlan", "buyerRiskOfPlan"},
                                      here))
      return problem;
    for (const auto& look : agreed->at("looks")) {
      if (auto problem = check_decimals(look, {"hours"}, here + ".looks")) return problem;
    }
  }
  const auto& results = predicate.at("results");
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string here = fmt::format("{}.results[{}]", where, i);
    if (auto problem = check_decimals(results[i], kResultNumbers, here)) return problem;
    const auto interval = results[i].find("ci");
    if (interval == results[i].end()) continue;
    if (auto problem = check_decimals(*interval, {"low", "high", "level"}, here + ".ci")) return problem;
  }
  return std::nullopt;
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

std::expected<json, InputError> statement_of(const Claims& claims, const judge::Run& run, const judge::Verdict& verdict,
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
      {"results", results_of(plan, verdict)},
      {"coverage", std::move(coverage)},
      {"deviations", std::move(deviations)}};
  predicate.update(json(claims));
  return json{{"_type", kStatementType},
              {"subject", json::array({{{"name", "evidence/plan.json"}, {"digest", {{"sha256", run.plan_sha256}}}},
                                       {{"name", "evidence/verdict.json"}, {"digest", {{"sha256", verdict_sha256}}}}})},
              {"predicateType", run.plan.simulation ? kSimulationType : kPredicateType},
              {"predicate", std::move(predicate)}};
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
  auto document = read_canonical_json(payload, where, {.max_bytes = kLargestEnvelope, .max_values = kMostValuesOfRun});
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

}  // namespace assay::dossier
