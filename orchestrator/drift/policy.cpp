// policy: reads and writes assay.policy/1.
#include "orchestrator/drift/policy.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"
#include "profiles/schema.h"

namespace assay::drift {
namespace {

using nlohmann::json;

/// The field `name` of `object`, if it is there.
template <class T>
void take(const json& object, const char* name, T& value) {
  if (const auto found = object.find(name); found != object.end()) value = found->get<T>();
}

template <class T>
void take(const json& object, const char* name, std::optional<T>& value) {
  if (const auto found = object.find(name); found != object.end()) value = found->get<T>();
}

/// The object `name` of `object`, or an empty one.
json part(const json& object, const char* name) { return object.value(name, json::object()); }

void take_metrics(const json& object, std::map<std::string, MetricPolicy>& metrics) {
  for (const auto& [name, given] : object.items()) {
    MetricPolicy& metric = metrics[name];
    take(given, "class", metric.type);
    take(given, "min_effect", metric.min_effect);
    take(given, "expected", metric.expected);
    take(given, "fatal", metric.fatal);
    take(given, "course", metric.course);
    take(given, "most_per_day", metric.most_per_day);
    take(given, "lower_is_better", metric.lower_is_better);
  }
}

/// Rules beyond the schema; the path of the fault and its reason.
std::optional<InputError> contradiction(const Policy& policy, const std::string& where) {
  if (policy.intermittent.m > policy.intermittent.of)
    return InputError{
        where + ": intermittent.m",
        fmt::format("{} bad visits of the last {} are more than all", policy.intermittent.m, policy.intermittent.of),
        "m is at most of"};
  return std::nullopt;
}

Policy taken(const json& document) {
  Policy policy;
  const json flags = part(document, "false_flags");
  take(flags, "count", policy.false_flags.count);
  take(flags, "nights", policy.false_flags.nights);
  take(document, "max_age_nights", policy.max_age_nights);
  take(document, "stale_nights", policy.stale_nights);
  take(document, "min_effect", policy.min_effect);
  take(document, "nu0", policy.nu0);
  take(document, "warmup", policy.warmup);
  take(document, "winsor", policy.winsor);
  take(document, "clip", policy.clip);
  const json retests = part(document, "retests");
  take(retests, "k", policy.retests.k);
  take(retests, "R", policy.retests.R);
  const json intermittent = part(document, "intermittent");
  take(intermittent, "m", policy.intermittent.m);
  take(intermittent, "of", policy.intermittent.of);
  take(intermittent, "z", policy.intermittent.z);
  take_metrics(part(document, "metrics"), policy.metrics);
  const json caps = part(document, "caps");
  take(caps, "ratio", policy.caps.ratio);
  take(caps, "count", policy.caps.count);
  take(caps, "per_leaf", policy.caps.per_leaf);
  take(caps, "total_ratio", policy.caps.total_ratio);
  take(document, "fleet_ratio", policy.fleet_ratio);
  take(document, "reason_prefix", policy.reason_prefix);
  take(document, "verdict_max_age", policy.verdict_max_age_s);
  take(document, "mode", policy.mode);
  return policy;
}

template <class T>
void put(json& object, const char* name, const std::optional<T>& value) {
  if (value) object[name] = *value;
}

}  // namespace

std::expected<Policy, InputError> read_policy(std::string_view text, const std::string& where) {
  const auto document = parse_json(text, where);
  if (!document) return std::unexpected(document.error());
  if (auto problem = profiles::check_schema(*document, "policy.schema", where)) return std::unexpected(*problem);
  Policy policy = taken(*document);
  if (auto problem = contradiction(policy, where)) return std::unexpected(*problem);
  return policy;
}

json to_json(const Policy& policy) {
  json metrics = json::object();
  for (const auto& [name, metric] : policy.metrics) {
    json& one = metrics[name] = json::object();
    put(one, "class", metric.type);
    put(one, "min_effect", metric.min_effect);
    put(one, "expected", metric.expected);
    put(one, "fatal", metric.fatal);
    put(one, "course", metric.course);
    put(one, "most_per_day", metric.most_per_day);
    put(one, "lower_is_better", metric.lower_is_better);
  }
  return {
      {"schema", "assay.policy/1"},
      {"false_flags", {{"count", policy.false_flags.count}, {"nights", policy.false_flags.nights}}},
      {"max_age_nights", policy.max_age_nights},
      {"stale_nights", policy.stale_nights},
      {"min_effect", policy.min_effect},
      {"nu0", policy.nu0},
      {"warmup", policy.warmup},
      {"winsor", policy.winsor},
      {"clip", policy.clip},
      {"retests", {{"k", policy.retests.k}, {"R", policy.retests.R}}},
      {"intermittent", {{"m", policy.intermittent.m}, {"of", policy.intermittent.of}, {"z", policy.intermittent.z}}},
      {"metrics", metrics},
      {"caps",
       {{"ratio", policy.caps.ratio},
        {"count", policy.caps.count},
        {"per_leaf", policy.caps.per_leaf},
        {"total_ratio", policy.caps.total_ratio}}},
      {"fleet_ratio", policy.fleet_ratio},
      {"reason_prefix", policy.reason_prefix},
      {"verdict_max_age", policy.verdict_max_age_s},
      {"mode", policy.mode}};
}

std::string policy_text(const Policy& policy) { return to_json(policy).dump(1) + "\n"; }

}  // namespace assay::drift
