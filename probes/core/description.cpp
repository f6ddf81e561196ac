// description: writes and reads the --describe document.
#include "probes/core/description.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "probes/core/sampling.h"
#include "probes/core/strict_object.h"
#include "probes/core/suggest.h"

namespace assay {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kSchema = "assay.probe/4";
constexpr const char *kThirdSchema = "assay.probe/3", *kSecondSchema = "assay.probe/2", *kFirstSchema = "assay.probe/1";
constexpr const char* kScopes[] = {"node", "pair", "group"};
constexpr const char* kBetter[] = {"higher", "lower", "neither"};
/// Until assay.probe/3 these were the times that a run spends, `loads` times.
constexpr std::string_view kFormerlySpent[] = {"warmup_least", "load_least"};

constexpr ConditionSpec kCommonConditions[] = {
    if_reported("cpu_load_by_others",
                "Share of the CPUs' time, where /proc/stat reports it, that went to other processes during the run."),
    if_reported(
        "cpu_steal",
        "Share of the CPUs' time, where /proc/stat reports it, that the hypervisor gave to others during the run."),
    if_reported("clock_synchronised",
                "Whether the kernel reports, where it can be queried, that its clock follows a time source."),
};

ordered_json describe(const Parameter& parameter, int loads) {
  ordered_json entry = {{"name", parameter.name},   {"unit", parameter.unit},       {"fallback", parameter.fallback},
                        {"quick", parameter.quick}, {"meaning", parameter.meaning}, {"choices", parameter.choices}};
  if (parameter.spent > 0) entry["spent"] = parameter.spent * loads;
  return entry;
}

constexpr const char* kHint = "probe and assay must be of the same version";
constexpr double kLongest_s = 1e9;  // 30 years
constexpr int kMostSpent = 1000;

Description::OwnParameter parameter_from(const json& entry, const std::string& path) {
  StrictObject fields(entry, path, kHint);
  Description::OwnParameter own{.name = fields.text("name"),
                                .unit = fields.text("unit"),
                                .fallback = fields.text("fallback"),
                                .quick = fields.text("quick"),
                                .meaning = fields.text("meaning"),
                                .choices = fields.text("choices")};
  if (fields.optional("spent") != nullptr) own.spent = static_cast<int>(fields.whole("spent", 1, kMostSpent));
  fields.done();
  return own;
}

std::string optional_text(StrictObject& fields, const char* name, std::string_view fallback) {
  return fields.optional(name) != nullptr ? fields.text(name) : std::string(fallback);
}

/// When the entry is recorded; left out for always, as most conditions are.
Recorded recorded_from(StrictObject& fields) {
  const std::string recorded = optional_text(fields, "recorded", word_of(Recorded::always));
  const auto known = from_word<Recorded>(recorded);
  if (!known)
    throw InputError{fields.path("recorded"), fmt::format("'{}' is not a word for when it is recorded", recorded),
                     fmt::format("words are {}", words_listed<Recorded>())};
  return *known;
}

Description::OwnMetric metric_from(const json& entry, const std::string& path) {
  StrictObject fields(entry, path, kHint);
  Description::OwnMetric own{.name = fields.text("name"),
                             .unit = fields.text("unit"),
                             .better = fields.text("better"),
                             .meaning = fields.text("meaning"),
                             .instrument = fields.number("instrument", 0, 1)};
  if (fields.optional("between_runs") != nullptr) own.between_runs = fields.number("between_runs", 0, 1);
  const std::string kind = fields.text("kind");
  // Left out for each_run and for both, as most are.
  const std::string course = optional_text(fields, "course", word_of(own.course));
  const std::string direction = optional_text(fields, "direction", word_of(own.direction));
  own.recorded = recorded_from(fields);
  fields.done();
  if (!is_base_unit(own.unit))
    throw InputError{fields.path("unit"), fmt::format("'{}' is not a unit", own.unit),
                     fmt::format("units are {}", kBaseUnits)};
  const auto known = from_word<MetricKind>(kind);
  if (!known)
    throw InputError{fields.path("kind"), fmt::format("'{}' is not a kind of metric", kind),
                     fmt::format("kinds are {}", words_listed<MetricKind>())};
  own.kind = *known;
  const auto goes_on = from_word<Course>(course);
  if (!goes_on)
    throw InputError{fields.path("course"), fmt::format("'{}' is not a course of a metric", course),
                     fmt::format("courses are {}", words_listed<Course>())};
  own.course = *goes_on;
  const auto way = from_word<PairDirection>(direction);
  if (!way)
    throw InputError{fields.path("direction"), fmt::format("'{}' is not a direction of a metric", direction),
                     fmt::format("directions are {}", words_listed<PairDirection>())};
  own.direction = *way;
  return own;
}

Description::OwnCondition condition_from(const json& entry, const std::string& path) {
  StrictObject fields(entry, path, kHint);
  Description::OwnCondition own{.name = fields.text("name"), .meaning = fields.text("meaning")};
  own.recorded = recorded_from(fields);
  fields.done();
  return own;
}

OwnSpaceRule space_from(const json& entry, const std::string& path) {
  StrictObject fields(entry, path, kHint);
  OwnSpaceRule own{.into = fields.text("into"),
                   .when = fields.text("when"),
                   .held = fields.text("held"),
                   .times = fields.text("times"),
                   .shared = fields.flag("shared")};
  fields.done();
  return own;
}

OwnGroupSizeRule group_size_from(const json& entry, const std::string& path) {
  StrictObject fields(entry, path, kHint);
  OwnGroupSizeRule own{.when = fields.text("when"),
                       .of = fields.text("of"),
                       .each = fields.text("each"),
                       .reason = fields.text("reason")};
  const std::string demand = fields.text("processes");
  fields.done();
  const auto known = from_word<SizeDemand>(demand);
  if (!known)
    throw InputError{fields.path("processes"), fmt::format("'{}' is not a demand on a number", demand),
                     fmt::format("demands are {}", words_listed<SizeDemand>())};
  own.processes = *known;
  return own;
}

/// Every entry of the list `name`, read by `read`.
template <class Own>
std::vector<Own> list_from(StrictObject& fields, const char* name, Own (*read)(const json&, const std::string&)) {
  std::vector<Own> all;
  for (const auto& entry : fields.list(name)) all.push_back(read(entry, fmt::format("{}[{}]", name, all.size())));
  return all;
}

/// assay.probe/1 had no field `recorded`: its texts followed the rule that a line that is not always recorded says
/// "where" in its meaning. Applied to such documents only, so that the plan of an earlier version is judged as it was.
void take_recorded_from_meanings(Description& old) {
  const auto take = [](auto& entry) {
    const bool conditional = entry.meaning.find("where ") != std::string::npos;
    entry.recorded = conditional ? Recorded::if_reported : Recorded::always;
  };
  std::ranges::for_each(old.metrics, take);
  std::ranges::for_each(old.conditions, take);
}

void take_spent_from_names(Description& old, int loads) {
  for (auto& parameter : old.parameters)
    if (std::ranges::count(kFormerlySpent, parameter.name) > 0) parameter.spent = loads;
}

/// Refuses a document that names an earlier number and has a field that came with a later one.
void refuse_later_fields(const std::string& schema, const json& document) {
  const auto refuse = [&](const char* list, const char* field) {
    for (const auto& entry : document.at(list)) {
      if (entry.contains(field)) throw InputError{list, fmt::format("{} has no field {}", schema, field), kHint};
    }
  };
  if (schema == kSchema) return;
  refuse("parameters", "spent");
  if (schema == kThirdSchema) return;
  refuse("metrics", "between_runs");
  if (document.contains("between_runs"))
    throw InputError{"between_runs", fmt::format("{} has no such field", schema), kHint};
  if (schema != kFirstSchema) return;
  refuse("metrics", "recorded");
  refuse("conditions", "recorded");
}

Description description_from(const json& document) {
  StrictObject fields(document, "", kHint);
  const std::string schema = fields.text("schema");
  if (schema != kSchema && schema != kThirdSchema && schema != kSecondSchema && schema != kFirstSchema)
    throw InputError{"schema", fmt::format("'{}' is not {}", schema, kSchema), "use a probe of this version"};
  Description result{.name = fields.text("name"),
                     .revision = static_cast<int>(fields.whole("revision", 0, INT32_MAX)),
                     .scope = fields.text("scope"),
                     .companion = fields.flag("companion"),
                     .measures = fields.text("measures"),
                     .method = fields.text("method"),
                     .source = fields.text("source"),
                     .needs = fields.text("needs"),
                     .typical_s = fields.number("typical_s", 0, kLongest_s),
                     .deadline_s = fields.number("deadline_s", 0, kLongest_s),
                     .parameters = list_from(fields, "parameters", parameter_from),
                     .metrics = list_from(fields, "metrics", metric_from),
                     .conditions = list_from(fields, "conditions", condition_from),
                     .space = {},
                     .group_size = {},
                     .between_runs = optional_text(fields, "between_runs", ""),
                     .document = document};
  int loads = 1;
  if (schema != kSchema && fields.optional("loads") != nullptr)
    loads = static_cast<int>(fields.whole("loads", 1, kMostSpent));
  if (fields.optional("space") != nullptr) result.space = list_from(fields, "space", space_from);
  if (fields.optional("group_size") != nullptr) result.group_size = list_from(fields, "group_size", group_size_from);
  fields.done();
  refuse_later_fields(schema, document);
  if (schema != kSchema) take_spent_from_names(result, loads);
  if (schema == kFirstSchema) take_recorded_from_meanings(result);
  std::vector<std::string> names;
  for (const auto& parameter : result.parameters) names.push_back(parameter.name);
  for (const auto& rule : result.space) {
    if (const auto problem = space_rule_problem(rule, names); !problem.empty())
      throw InputError{"space", problem, kHint};
  }
  for (const auto& rule : result.group_size) {
    if (const auto problem = group_size_rule_problem(rule, names); !problem.empty())
      throw InputError{"group_size", problem, kHint};
  }
  return result;
}

/// The least deviation between runs of `metric`: of performance and of shares. Counts and readings have none.
double least_between_runs(const ProbeSpec& spec, const Metric& metric) {
  constexpr std::array<std::string_view, 7> kPerformance = {"s", "B/s", "FLOP/s", "1/s", "FLOP/J", "W", "J"};
  const bool counted = metric.kind == MetricKind::fault || metric.course != Course::each_run;
  const bool varies = metric.kind == MetricKind::share || std::ranges::count(kPerformance, metric.unit) > 0;
  return varies && !counted ? spec.between_runs.least : 0;
}

std::string text_of(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return to_json(value).dump();
}

}  // namespace

const Description::OwnMetric* Description::metric(std::string_view metric_name) const {
  const auto found = std::ranges::find(metrics, metric_name, &OwnMetric::name);
  return found == metrics.end() ? nullptr : &*found;
}

bool Description::has_condition(std::string_view condition_name) const {
  return std::ranges::find(conditions, condition_name, &OwnCondition::name) != conditions.end();
}

bool Description::always_records(std::string_view condition_name) const {
  const auto found = std::ranges::find(conditions, condition_name, &OwnCondition::name);
  return found != conditions.end() && found->recorded == Recorded::always;
}

double Description::spent_s(const Values& values) const {
  double sum_s = 0;
  for (const auto& parameter : parameters) {
    const auto value = values.find(parameter.name);
    if (value != values.end()) sum_s += parameter.spent * number_in(value->second).value_or(0);
  }
  return sum_s;
}

std::expected<Values, InputError> Description::resolve(const Values& given, bool quick_run) const {
  for (const auto& [given_name, value] : given) {
    if (std::ranges::find(parameters, given_name, &OwnParameter::name) != parameters.end()) continue;
    std::vector<std::string> names;
    for (const auto& parameter : parameters) names.push_back(parameter.name);
    return std::unexpected(
        InputError{given_name, fmt::format("{} has no such parameter", name), suggestion(given_name, names)});
  }
  Values resolved;
  for (const auto& own : parameters) {
    const Parameter parameter{.name = own.name,
                              .unit = own.unit,
                              .fallback = own.fallback,
                              .quick = own.quick,
                              .meaning = own.meaning,
                              .choices = own.choices};
    const auto chosen = given.find(own.name);
    const std::string text = chosen != given.end()             ? text_of(chosen->second)
                             : quick_run && !own.quick.empty() ? own.quick
                                                               : own.fallback;
    try {
      resolved.emplace(own.name, parse_parameter(parameter, text));
    } catch (const BadParameter& error) {
      return std::unexpected(
          InputError{own.name, error.what(), fmt::format("{}; the default is {}", own.meaning, own.fallback)});
    }
  }
  return resolved;
}

std::vector<Parameter> all_parameters(const ProbeSpec& spec) {
  std::vector<Parameter> all(spec.parameters.begin(), spec.parameters.end());
  if (spec.sampled) all.insert(all.end(), std::begin(kSamplingParameters), std::end(kSamplingParameters));
  return all;
}

std::span<const ConditionSpec> common_conditions() { return kCommonConditions; }

ordered_json describe(const ProbeSpec& spec) {
  ordered_json parameters = ordered_json::array();
  for (const auto& parameter : all_parameters(spec)) parameters.push_back(describe(parameter, spec.loads));
  ordered_json metrics = ordered_json::array();
  bool varies = false;
  for (const auto& metric : spec.metrics) {
    metrics.push_back({{"name", metric.name},
                       {"unit", metric.unit},
                       {"better", kBetter[static_cast<int>(metric.better)]},
                       {"meaning", metric.meaning},
                       {"instrument", metric.instrument},
                       {"kind", word_of(metric.kind)}});
    if (const double least = least_between_runs(spec, metric); least > 0) {
      metrics.back()["between_runs"] = least;
      varies = true;
    }
    if (metric.course != Course::each_run) metrics.back()["course"] = word_of(metric.course);
    if (metric.direction != PairDirection::both) metrics.back()["direction"] = word_of(metric.direction);
    if (metric.recorded != Recorded::always) metrics.back()["recorded"] = word_of(metric.recorded);
  }
  ordered_json conditions = ordered_json::array();
  for (const auto& list : {spec.conditions, common_conditions()}) {
    for (const auto& condition : list) {
      conditions.push_back({{"name", condition.name}, {"meaning", condition.meaning}});
      if (condition.recorded != Recorded::always) conditions.back()["recorded"] = word_of(condition.recorded);
    }
  }
  ordered_json document = {{"schema", kSchema},
                           {"name", spec.name},
                           {"revision", spec.revision},
                           {"scope", kScopes[static_cast<int>(spec.scope)]},
                           {"companion", spec.companion},
                           {"measures", spec.measures},
                           {"method", spec.method},
                           {"source", spec.source},
                           {"needs", spec.needs},
                           {"typical_s", spec.typical.count},
                           {"deadline_s", spec.deadline.count},
                           {"parameters", std::move(parameters)},
                           {"metrics", std::move(metrics)},
                           {"conditions", std::move(conditions)}};
  if (varies) document["between_runs"] = spec.between_runs.source;
  for (const auto& rule : spec.space) {
    document["space"].push_back({{"into", rule.into},
                                 {"shared", rule.shared},
                                 {"when", rule.when},
                                 {"held", rule.held},
                                 {"times", rule.times}});
  }
  for (const auto& rule : spec.group_size) {
    document["group_size"].push_back({{"when", rule.when},
                                      {"processes", word_of(rule.processes)},
                                      {"of", rule.of},
                                      {"each", rule.each},
                                      {"reason", rule.reason}});
  }
  return document;
}

std::vector<json> in_old_forms(json document) {
  std::vector<json> forms;
  if (document.at("schema") != kSchema) return forms;
  document["schema"] = kThirdSchema;
  double typical_s = document.at("typical_s");
  for (auto& parameter : document.at("parameters")) {
    const int spent = parameter.value("spent", 0);
    parameter.erase("spent");
    if (std::ranges::count(kFormerlySpent, parameter.at("name").get<std::string>()) == 0)
      typical_s += spent * parse_seconds(parameter.at("fallback").get<std::string>()).value_or(Seconds{0}).count;
    else if (spent > 1)
      document["loads"] = spent;
  }
  document["typical_s"] = typical_s;
  forms.push_back(document);
  document["schema"] = kSecondSchema;
  document.erase("between_runs");
  for (auto& metric : document.at("metrics")) metric.erase("between_runs");
  forms.push_back(document);
  document["schema"] = kFirstSchema;
  for (const char* list : {"metrics", "conditions"}) {
    for (auto& entry : document.at(list)) entry.erase("recorded");
  }
  forms.push_back(std::move(document));
  return forms;
}

std::expected<Description, InputError> read_description(std::string_view text, const std::string& where) {
  const auto document = parse_json(text, where);
  if (!document) return std::unexpected(document.error());
  return read_strictly(where, [&] { return description_from(*document); });
}

}  // namespace assay
