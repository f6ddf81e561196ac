// verdict: writes and reads verdict.json.
#include "orchestrator/judge/verdict.h"

#include <fmt/format.h>

#include "orchestrator/files/exit_codes.h"
#include "orchestrator/plan/json_array.h"
#include "orchestrator/plan/simulation.h"

namespace assay::judge {
namespace {

using nlohmann::json;

/// assay.verdict/2 had no fields for what its texts began with. For reading such a verdict only.
constexpr std::string_view kOldUnchecked = "Not checked: ";
constexpr std::string_view kOldNotChecked = "Not checked, because the machine does not tell: ";
constexpr std::string_view kOldRelativeOnly = "Relative only: ";
constexpr std::string_view kOldAttempt = "Attempt ";

void put(json& object, const char* name, const std::optional<double>& value) {
  if (value) object[name] = *value;
}
std::optional<double> take(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? std::nullopt : std::optional<double>(found->get<double>());
}

json to_json(const ConditionSeen& condition) {
  json object = {{"name", condition.name}, {"demanded", condition.demanded}, {"met", condition.met}};
  if (condition.seen) object["seen"] = assay::to_json(*condition.seen);
  return object;
}

json to_json(const Result& result, VerdictFormat format) {
  json conditions = json::array();
  for (const auto& condition : result.conditions) conditions.push_back(to_json(condition));
  json object = {{"requirement", result.requirement},
                 {"subject", assay::to_json(result.subject)},
                 {"node", result.node},
                 {"step", result.step},
                 {"required", result.required},
                 {"outcome", to_string(result.outcome)},
                 {"reason", result.reason},
                 {"unit", result.unit},
                 {"samples", result.samples},
                 {"attempts", result.attempts},
                 {"each", result.each},
                 {"between_steps", result.between_steps},
                 {"conditions", conditions},
                 {"evidence", result.evidence.list()}};
  if (format == VerdictFormat::current) object["unchecked"] = result.unchecked;
  if (result.interval) {
    object["interval"] = {
        {"low", result.interval->low}, {"high", result.interval->high}, {"level", result.interval->level}};
  }
  json set_aside = json::array();
  for (const auto& one : result.set_aside) set_aside.push_back({{"attempt", one.attempt}, {"reason", one.reason}});
  object["set_aside"] = std::move(set_aside);
  json findings = json::array();
  for (const auto& finding : result.findings)
    findings.push_back({{"finding", finding.kind}, {"opens", finding.opens}, {"words", finding.words}});
  object["findings"] = std::move(findings);
  if (result.terms) {
    object["terms"] = {{"repeatability", result.terms->repeatability},
                       {"within", result.terms->within},
                       {"instrument", result.terms->instrument},
                       {"reference", result.terms->reference}};
  }
  put(object, "value", result.value);
  put(object, "bound_low", result.bound_low);
  put(object, "bound_high", result.bound_high);
  put(object, "between", result.between);
  put(object, "degrees_of_freedom", result.degrees_of_freedom);
  put(object, "guard_factor", result.guard_factor);
  put(object, "uncertainty", result.uncertainty);
  put(object, "reference", result.reference);
  put(object, "limit_low", result.limit_low);
  put(object, "limit_high", result.limit_high);
  put(object, "acceptance_low", result.acceptance_low);
  put(object, "acceptance_high", result.acceptance_high);
  put(object, "margin", result.margin);
  put(object, "false_accept", result.false_accept);
  return object;
}

Result result_from(const json& object, VerdictFormat format) {
  Result result{.requirement = object.at("requirement"),
                .subject = subject_from(object.at("subject")).value(),
                .node = object.at("node"),
                .step = object.at("step"),
                .required = object.at("required"),
                .outcome = object.at("outcome"),
                .reason = object.at("reason"),
                .unit = object.at("unit"),
                .value = take(object, "value"),
                .samples = Whole(object.at("samples")),
                .attempts = Whole(object.at("attempts")),
                .each = object.at("each"),
                .interval = std::nullopt,
                .bound_low = take(object, "bound_low"),
                .bound_high = take(object, "bound_high"),
                .uncertainty = take(object, "uncertainty"),
                .between = take(object, "between"),
                .between_steps = Whole(object.at("between_steps")),
                .degrees_of_freedom = take(object, "degrees_of_freedom"),
                .guard_factor = take(object, "guard_factor"),
                .reference = take(object, "reference"),
                .limit_low = take(object, "limit_low"),
                .limit_high = take(object, "limit_high"),
                .acceptance_low = take(object, "acceptance_low"),
                .acceptance_high = take(object, "acceptance_high"),
                .margin = take(object, "margin"),
                .false_accept = take(object, "false_accept"),
                .conditions = {},
                .evidence = object.at("evidence").get<std::vector<std::string>>()};
  result.unchecked =
      format == VerdictFormat::current ? object.at("unchecked").get<bool>() : result.reason.starts_with(kOldUnchecked);
  if (const auto interval = object.find("interval"); interval != object.end()) {
    result.interval =
        Interval{.low = interval->at("low"), .high = interval->at("high"), .level = interval->at("level")};
  }
  if (const auto terms = object.find("terms"); terms != object.end()) {
    result.terms = UncertaintyTerms{.repeatability = terms->at("repeatability"),
                                    .within = terms->at("within"),
                                    .instrument = terms->at("instrument"),
                                    .reference = terms->at("reference")};
  }
  for (const auto& one : object.at("set_aside"))
    result.set_aside.push_back({.attempt = Whole(one.at("attempt")), .reason = one.at("reason")});
  for (const auto& one : object.at("findings"))
    result.findings.push_back({.kind = one.at("finding"), .opens = one.at("opens"), .words = one.at("words")});
  std::vector<ConditionSeen> conditions;
  for (const auto& condition : object.at("conditions")) {
    conditions.push_back({.name = condition.at("name"),
                          .demanded = condition.at("demanded"),
                          .seen = condition.contains("seen") ? value_from(condition.at("seen")) : std::nullopt,
                          .met = condition.at("met")});
  }
  result.conditions = std::move(conditions);
  return result;
}

void take_kind_from_text(Deviation& old) {
  if (old.what.starts_with(kOldNotChecked)) old.kind = DeviationKind::not_checked;
  if (old.what.starts_with(kOldRelativeOnly)) old.kind = DeviationKind::relative_only;
  if (old.step.empty() || !old.what.starts_with(kOldAttempt)) return;
  const auto colon = old.what.find(": ");
  old.kind = DeviationKind::attempt;
  old.said = colon == std::string::npos ? old.what : old.what.substr(colon + 2);
}

json to_json(const Deviation& deviation, VerdictFormat format) {
  json object = {{"what", deviation.what}, {"step", deviation.step}};
  if (format == VerdictFormat::old) return object;
  object["kind"] = deviation.kind;
  if (!deviation.said.empty()) object["said"] = deviation.said;
  return object;
}

Deviation deviation_from(const json& object, VerdictFormat format) {
  Deviation deviation{.what = object.at("what"), .step = object.at("step")};
  if (format == VerdictFormat::old) {
    take_kind_from_text(deviation);
    return deviation;
  }
  deviation.kind = object.at("kind");
  deviation.said = object.value("said", "");
  return deviation;
}

json to_json(const Localised& one) {
  json culprits = json::array();
  for (const auto& culprit : one.culprits) {
    culprits.push_back({{"fault", culprit.fault},
                        {"nodes", culprit.nodes},
                        {"leaf", culprit.leaf},
                        {"unsteady", culprit.unsteady},
                        {"tests", culprit.tests},
                        {"words", culprit.words}});
  }
  json tests = json::array();
  for (const auto& test : one.tests) {
    tests.push_back({{"id", test.id}, {"purpose", test.purpose}, {"outcome", test.outcome}, {"nodes", test.nodes}});
    put(tests.back(), "share", test.share);
    put(tests.back(), "control", test.control);
  }
  return {{"requirements", one.requirements},
          {"step", one.step},
          {"rail", one.rail},
          {"state", one.state},
          {"reason", one.reason},
          {"budget", one.budget},
          {"excluded", one.excluded},
          {"undecided", one.undecided},
          {"culprits", std::move(culprits)},
          {"tests", std::move(tests)}};
}

Localised localised_from(const json& object) {
  Localised one{.requirements = object.at("requirements"),
                .step = object.at("step"),
                .rail = object.at("rail"),
                .state = object.at("state"),
                .reason = object.at("reason"),
                .budget = Whole(object.at("budget")),
                .excluded = object.at("excluded"),
                .undecided = object.at("undecided"),
                .culprits = {},
                .tests = {}};
  for (const auto& culprit : object.at("culprits")) {
    one.culprits.push_back({.fault = culprit.at("fault"),
                            .nodes = culprit.at("nodes"),
                            .leaf = culprit.at("leaf"),
                            .unsteady = culprit.at("unsteady"),
                            .tests = culprit.at("tests"),
                            .words = culprit.at("words")});
  }
  for (const auto& test : object.at("tests")) {
    one.tests.push_back({.id = test.at("id"),
                         .purpose = test.at("purpose"),
                         .outcome = test.at("outcome"),
                         .nodes = test.at("nodes"),
                         .share = take(test, "share"),
                         .control = take(test, "control")});
  }
  return one;
}

json to_json(const NodeVerdict& node) {
  return {{"node", node.node},
          {"outcome", node.outcome},
          {"required", node.required},
          {"passed", node.passed},
          {"reason", node.reason}};
}

NodeVerdict node_from(const json& object) {
  return {.node = object.at("node"),
          .outcome = object.at("outcome"),
          .required = Whole(object.at("required")),
          .passed = Whole(object.at("passed")),
          .reason = object.at("reason")};
}

/// How many nodes have which outcome, all outcomes present.
json fleet_of(const std::vector<NodeVerdict>& nodes) {
  json fleet = json::object();
  for (const auto& outcome : words_of(Overall{})) fleet[std::string(outcome.text)] = 0;
  for (const auto& node : nodes) fleet[to_string(node.outcome)] = fleet[to_string(node.outcome)].get<std::size_t>() + 1;
  return fleet;
}

}  // namespace

int exit_code(Overall overall) {
  switch (overall) {
    case Overall::accepted:
      return files::kExitSuccess;
    case Overall::rejected:
      return files::kExitRejected;
    case Overall::incomplete:
      return files::kExitIncomplete;
  }
  return files::kExitIncomplete;
}

void write_verdict(const Verdict& verdict, const files::TextSink& sink, VerdictFormat format) {
  json deviations = json::array();
  for (const auto& deviation : verdict.deviations) deviations.push_back(to_json(deviation, format));
  json localised = json::array();
  for (const auto& one : verdict.localised) localised.push_back(to_json(one));
  json document{{"schema", format},
                {"plan_sha256", verdict.plan_sha256},
                {"run_id", verdict.run_id},
                {"profile", verdict.profile},
                {"site", verdict.site},
                {"overall", to_string(verdict.overall)},
                {"reason", verdict.reason},
                {"nodes", nullptr},
                {"fleet", fleet_of(verdict.nodes)},
                {"results", nullptr},
                {"localised", std::move(localised)},
                {"counts", verdict.counts},
                {"deviations", std::move(deviations)}};
  if (verdict.simulated) document["kind_of_run"] = plan::kSimulated;
  plan::write_with_arrays(document,
                          {{.member = "nodes",
                            .count = verdict.nodes.size(),
                            .element = [&](std::size_t i) { return to_json(verdict.nodes[i]); }},
                           {.member = "results",
                            .count = verdict.results.size(),
                            .element = [&](std::size_t i) { return to_json(verdict.results[i], format); }}},
                          sink);
}

std::string verdict_text(const Verdict& verdict, VerdictFormat format) {
  std::string text;
  write_verdict(
      verdict, [&](std::string_view piece) { text += piece; }, format);
  return text;
}

bool is_text_of(const Verdict& verdict, std::string_view text, VerdictFormat format) {
  bool same = true;
  write_verdict(
      verdict,
      [&](std::string_view piece) {
        same = same && text.starts_with(piece);
        if (same) text.remove_prefix(piece.size());
      },
      format);
  return same && text.empty();
}

VerdictFormat format_of(std::string_view text) {
  const auto last = text.rfind("\n \"schema\": \"");
  const std::string old = fmt::format("\n \"schema\": \"{}\"", VerdictFormat::old);
  return last != std::string_view::npos && text.substr(last).starts_with(old) ? VerdictFormat::old
                                                                              : VerdictFormat::current;
}

std::expected<Verdict, InputError> read_verdict(std::string_view text, const std::string& where) {
  const auto document = parse_json(text, where, {.max_values = kMostValuesOfRun});
  if (!document) return std::unexpected(document.error());
  const std::string hint = "verdict.json is written by `assay judge`; judge again instead of editing it";
  try {
    const auto& schema = document->at("schema");
    const auto format =
        schema.is_string() ? from_word<VerdictFormat>(schema.get_ref<const std::string&>()) : std::nullopt;
    if (!format) return std::unexpected(InputError{where, fmt::format("is not an {}", VerdictFormat::current), hint});
    Verdict verdict{.plan_sha256 = document->at("plan_sha256"),
                    .run_id = document->at("run_id"),
                    .profile = document->at("profile"),
                    .site = document->at("site"),
                    .simulated = document->contains("kind_of_run"),
                    .overall = document->at("overall"),
                    .reason = document->at("reason"),
                    .results = {},
                    .localised = {},
                    .counts = document->at("counts"),
                    .deviations = {},
                    .nodes = {}};
    for (const auto& node : document->at("nodes")) verdict.nodes.push_back(node_from(node));
    for (const auto& one : document->at("localised")) verdict.localised.push_back(localised_from(one));
    for (const auto& result : document->at("results")) verdict.results.push_back(result_from(result, *format));
    for (const auto& deviation : document->at("deviations"))
      verdict.deviations.push_back(deviation_from(deviation, *format));
    if (!is_text_of(verdict, text, *format))
      return std::unexpected(InputError{where, "is not byte for byte what assay writes", hint});
    return verdict;
  } catch (const json::exception& error) {
    return std::unexpected(InputError{where, error.what(), hint});
  } catch (const std::bad_optional_access&) {
    return std::unexpected(InputError{where, "a subject is not of the form that assay writes", hint});
  }
}

}  // namespace assay::judge
