// description: the registry entry of a probe, both ways.
#include "probes/core/description.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "probes/core/sampling.h"
#include "probes/core/suggest.h"

namespace assay {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kSchema = "assay.probe/1";
constexpr const char* kScopes[] = {"node", "pair", "group"};
constexpr const char* kBetter[] = {"higher", "lower", "neither"};

constexpr ConditionSpec kCommonConditions[] = {
    {.name = "cpu_load_by_others",
     .meaning = "Share of the CPUs' time, where /proc/stat tells, that went to other processes during the run."},
    {.name = "cpu_steal",
     .meaning = "Share of the CPUs' time, where /proc/stat tells, that the hypervisor gave to others during the run."},
    {.name = "clock_synchronised",
     .meaning = "Whether the kernel says, where it can be asked, that its clock follows a time source."},
};

ordered_json describe(const Parameter& parameter) {
  return {{"name", parameter.name},   {"unit", parameter.unit},       {"fallback", parameter.fallback},
          {"quick", parameter.quick}, {"meaning", parameter.meaning}, {"choices", parameter.choices}};
}

/// Takes the members of one object out by name and type; remembers the first that is missing or odd.
class Fields {
 public:
  Fields(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) fail("must be an object");
  }
  template <class T>
  Fields& take(const char* name, T& target) {
    ++taken_;
    if (failed_) return *this;
    const auto found = object_.find(name);
    if (found == object_.end()) return fail(fmt::format("the field '{}' is missing", name));
    try {
      found->get_to(target);
    } catch (const json::exception&) {
      return fail(fmt::format("the field '{}' has the wrong type", name));
    }
    return *this;
  }
  [[nodiscard]] std::optional<InputError> problem() {
    if (!failed_ && object_.size() != taken_) fail("has a field that this version does not know");
    if (!failed_) return std::nullopt;
    return InputError{where_, what_, "probe and assay must be of the same version"};
  }

 private:
  Fields& fail(std::string what) {
    if (!failed_) what_ = std::move(what);
    failed_ = true;
    return *this;
  }
  const json& object_;
  std::string where_, what_;
  std::size_t taken_ = 0;
  bool failed_ = false;
};

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
  for (const auto& parameter : all_parameters(spec)) parameters.push_back(describe(parameter));
  ordered_json metrics = ordered_json::array();
  for (const auto& metric : spec.metrics) {
    metrics.push_back({{"name", metric.name},
                       {"unit", metric.unit},
                       {"better", kBetter[static_cast<int>(metric.better)]},
                       {"meaning", metric.meaning},
                       {"instrument", metric.instrument}});
  }
  ordered_json conditions = ordered_json::array();
  for (const auto& list : {spec.conditions, common_conditions()}) {
    for (const auto& condition : list) conditions.push_back({{"name", condition.name}, {"meaning", condition.meaning}});
  }
  return {{"schema", kSchema},
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
}

std::expected<Description, InputError> read_description(std::string_view text, const std::string& where) {
  const auto document = parse_json(text, where);
  if (!document) return std::unexpected(document.error());
  Description result;
  std::string schema;
  json parameters;
  json metrics;
  json conditions;
  Fields fields(*document, where);
  fields.take("schema", schema)
      .take("name", result.name)
      .take("revision", result.revision)
      .take("scope", result.scope)
      .take("companion", result.companion)
      .take("measures", result.measures)
      .take("method", result.method)
      .take("source", result.source)
      .take("needs", result.needs)
      .take("typical_s", result.typical_s)
      .take("deadline_s", result.deadline_s)
      .take("parameters", parameters)
      .take("metrics", metrics)
      .take("conditions", conditions);
  if (const auto problem = fields.problem()) return std::unexpected(*problem);
  if (schema != kSchema) {
    return std::unexpected(
        InputError{where, fmt::format("schema '{}' is not {}", schema, kSchema), "use a probe of this version"});
  }
  for (const auto& entry : parameters) {
    Description::OwnParameter own;
    Fields members(entry, where + ": parameters");
    members.take("name", own.name)
        .take("unit", own.unit)
        .take("fallback", own.fallback)
        .take("quick", own.quick)
        .take("meaning", own.meaning)
        .take("choices", own.choices);
    if (const auto problem = members.problem()) return std::unexpected(*problem);
    result.parameters.push_back(std::move(own));
  }
  for (const auto& entry : metrics) {
    Description::OwnMetric own;
    Fields members(entry, where + ": metrics");
    members.take("name", own.name)
        .take("unit", own.unit)
        .take("better", own.better)
        .take("meaning", own.meaning)
        .take("instrument", own.instrument);
    if (const auto problem = members.problem()) return std::unexpected(*problem);
    if (!is_base_unit(own.unit)) {
      return std::unexpected(InputError{where, fmt::format("metric '{}' has unit '{}'", own.name, own.unit),
                                        fmt::format("units are {}", kBaseUnits)});
    }
    result.metrics.push_back(std::move(own));
  }
  for (const auto& entry : conditions) {
    Description::OwnCondition own;
    Fields members(entry, where + ": conditions");
    members.take("name", own.name).take("meaning", own.meaning);
    if (const auto problem = members.problem()) return std::unexpected(*problem);
    result.conditions.push_back(std::move(own));
  }
  result.document = *document;
  return result;
}

}  // namespace assay
