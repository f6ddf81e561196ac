// verdict: writes and reads verdict.json.
#include "orchestrator/judge/verdict.h"

#include <fmt/format.h>

#include "orchestrator/files/exit_codes.h"
#include "orchestrator/plan/json_array.h"
#include "orchestrator/plan/simulation.h"
#include "probes/core/json_fields.h"

namespace assay {

template <class Io, Of<Interval> I>
void fields(Io& io, I& one) {
  io("low", one.low), io("high", one.high), io("level", one.level);
}

}  // namespace assay

namespace assay::judge {

template <class Io, Of<UncertaintyTerms> T>
void fields(Io& io, T& terms) {
  io("repeatability", terms.repeatability), io("within", terms.within), io("instrument", terms.instrument);
  io("reference", terms.reference);
}

template <class Io, Of<SetAside> S>
void fields(Io& io, S& one) {
  io("attempt", one.attempt), io("reason", one.reason);
}

template <class Io, Of<SteadinessFinding> F>
void fields(Io& io, F& finding) {
  io("finding", finding.kind), io("opens", finding.opens), io("words", finding.words);
}

template <class Io, Of<ConditionSeen> C>
void fields(Io& io, C& condition) {
  io("name", condition.name), io("demanded", condition.demanded), io("seen", condition.seen), io("met", condition.met);
}

template <class Io, Of<Culprit> C>
void fields(Io& io, C& culprit) {
  io("fault", culprit.fault), io("nodes", culprit.nodes), io("leaf", culprit.leaf);
  io("unsteady", culprit.unsteady), io("tests", culprit.tests), io("words", culprit.words);
}

template <class Io, Of<MadeTest> T>
void fields(Io& io, T& test) {
  io("id", test.id), io("purpose", test.purpose), io("outcome", test.outcome), io("nodes", test.nodes);
  io("share", test.share), io("control", test.control);
}

template <class Io, Of<Localised> L>
void fields(Io& io, L& one) {
  io("requirements", one.requirements), io("step", one.step), io("rail", one.rail), io("state", one.state);
  io("reason", one.reason), io("budget", one.budget), io("excluded", one.excluded), io("undecided", one.undecided);
  io("culprits", one.culprits), io("tests", one.tests);
}

template <class Io, Of<KneePoint> P>
void fields(Io& io, P& point) {
  io("nodes", point.nodes), io("value", point.value), io("limit", point.limit), io("kept", point.kept);
  io("counter", point.counter), io("step", point.step);
}

template <class Io, Of<KneeCounter> C>
void fields(Io& io, C& counter) {
  io("name", counter.name), io("before", counter.before), io("at", counter.at), io("spread", counter.spread);
}

template <class Io, Of<KneeFound> K>
void fields(Io& io, K& knee) {
  io("requirement", knee.requirement), io("rail", knee.rail), io("state", knee.state), io("kept", knee.kept);
  io("lost", knee.lost), io("reason", knee.reason), io("points", knee.points), io("counter", knee.counter);
}

template <class Io, Of<NodeVerdict> N>
void fields(Io& io, N& node) {
  io("node", node.node), io("outcome", node.outcome), io("required", node.required), io("passed", node.passed);
  io("reason", node.reason);
}

template <class Io, Of<Verdict> V>
void fields(Io& io, V& verdict) {
  io("plan_sha256", verdict.plan_sha256), io("run_id", verdict.run_id), io("profile", verdict.profile);
  io("site", verdict.site), io("overall", verdict.overall), io("reason", verdict.reason);
  io("localised", verdict.localised), io("counts", verdict.counts);
}

namespace {

using nlohmann::json;

/// assay.verdict/2 had no fields for these beginnings of its texts. For reading such a verdict only.
constexpr std::string_view kOldUnchecked = "Not checked: ";
constexpr std::string_view kOldNotChecked = "Not checked, because the machine does not tell: ";
constexpr std::string_view kOldRelativeOnly = "Relative only: ";
constexpr std::string_view kOldAttempt = "Attempt ";

json to_json(const Result& result, VerdictFormat format) {
  json object = result;
  if (format != VerdictFormat::old) object["unchecked"] = result.unchecked;
  return object;
}

Result result_from(const json& object, VerdictFormat format) {
  auto result = object.get<Result>();
  result.unchecked =
      format != VerdictFormat::old ? object.at("unchecked").get<bool>() : result.reason.starts_with(kOldUnchecked);
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

/// How many nodes have which outcome, all outcomes present.
json fleet_of(const std::vector<NodeVerdict>& nodes) {
  json fleet = json::object();
  for (const auto& outcome : words_of(Overall{})) fleet[std::string(outcome.text)] = 0;
  for (const auto& node : nodes) fleet[to_string(node.outcome)] = fleet[to_string(node.outcome)].get<std::size_t>() + 1;
  return fleet;
}

}  // namespace

std::string demanded_text(const Result& result) {
  return result.conditions.begin() == result.conditions.end() ? "-" : result.conditions.begin()->demanded;
}

std::string seen_text(const Result& result) {
  std::string text;
  for (const auto& one : result.conditions) {
    const auto* words = one.seen ? std::get_if<std::string>(&*one.seen) : nullptr;
    if (one.seen) text += (text.empty() ? "" : ", ") + (words != nullptr ? *words : assay::to_json(*one.seen).dump());
  }
  return text.empty() ? "-" : text;
}

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
  json document = verdict;
  document["schema"] = format;
  document["fleet"] = fleet_of(verdict.nodes);
  if (format == VerdictFormat::current) document["knees"] = verdict.knees;
  document["nodes"] = document["results"] = nullptr;
  document["deviations"] = json::array();
  for (const auto& deviation : verdict.deviations) document["deviations"].push_back(to_json(deviation, format));
  if (verdict.simulated) document["kind_of_run"] = plan::kSimulated;
  plan::write_with_arrays(document,
                          {{.member = "nodes",
                            .count = verdict.nodes.size(),
                            .element = [&](std::size_t i) { return json(verdict.nodes[i]); }},
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
  for (const auto format : {VerdictFormat::old, VerdictFormat::without_knees}) {
    const std::string line = fmt::format("\n \"schema\": \"{}\"", format);
    if (last != std::string_view::npos && text.substr(last).starts_with(line)) return format;
  }
  return VerdictFormat::current;
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
    auto verdict = document->get<Verdict>();
    verdict.simulated = document->contains("kind_of_run");
    document->at("nodes").get_to(verdict.nodes);
    if (*format == VerdictFormat::current) document->at("knees").get_to(verdict.knees);
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
