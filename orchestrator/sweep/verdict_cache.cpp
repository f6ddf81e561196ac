// verdict_cache: a flat JSON object of five texts.
#include "orchestrator/sweep/verdict_cache.h"

#include <algorithm>

#include <fmt/format.h>

#include "probes/core/how_many.h"
#include "probes/core/json_io.h"
#include "probes/core/secret_file.h"
#include "probes/core/strict_object.h"
#include "probes/core/text.h"
#include "probes/core/utc_time.h"

namespace assay::sweep {
namespace {

using nlohmann::json;
using std::chrono::system_clock;

constexpr const char* kVerdictSchema = "assay.cached-verdict/1";

bool is_word_of_health(std::string_view text) { return from_word<NodeHealth>(text).has_value(); }

CachedVerdict cached_from(const json& document) {
  StrictObject object(document, "", "it is written by `assay verdict --publish`");
  if (object.text("schema") != kVerdictSchema) object.refuse("schema", "is not assay.cached-verdict/1");
  CachedVerdict verdict;
  verdict.node = object.text("node", is_node_name);
  verdict.health = *from_word<NodeHealth>(object.text("health", is_word_of_health));
  verdict.text = object.text("text");
  verdict.as_of = object.text("as_of", is_utc_text);
  verdict.valid_until = object.text("valid_until", is_utc_text);
  object.done();
  return verdict;
}

Answer unknown(const std::string& why) {
  return {.line = printable("assay: unknown: " + why, kLongestVerdict), .code = 2};
}

bool is_open(drift::UnitState state) {
  using enum drift::UnitState;
  return state == flagged || state == confirmed || state == draining || state == repaired || state == lemon;
}

/// Whether `one` is a node without its serial number, never measured, and the node was measured under this since.
bool is_stand_in(const KnownUnit& one, const std::vector<KnownUnit>& units) {
  constexpr std::string_view kNode = "node:";
  return !one.measured && one.unit == std::string(kNode) + one.node &&
         std::ranges::any_of(units, [&](const KnownUnit& other) {
           return other.node == one.node && other.measured && other.unit.starts_with(kNode);
         });
}

/// Why nothing can be said of `node`; empty if something can.
std::string ignorance(const std::string& node, const drift::DriftReport& report, const std::vector<KnownUnit>& units) {
  if (report.simulated) return "the history is simulated";
  std::optional<drift::Date> newest;
  for (const auto& one : units) {
    if (one.node != node || is_stand_in(one, units)) continue;
    if (!one.measured) return one.unit + " was never measured";
    newest = std::max(newest, one.measured);
    const auto state = report.states.find(one.unit);
    if (state == report.states.end()) continue;
    if (state->second == drift::UnitState::learning) return one.unit + " has too few nights";
    if (state->second == drift::UnitState::stale) return one.unit + ": its flag is stale";
  }
  if (!newest) return "never measured";
  // A unit that is watched would be overdue: those of this node are retired, or in another one.
  const auto nights = (report.as_of - *newest).count();
  if (nights > report.coverage.allowed_nights)
    return fmt::format("not watched: last measured {} ago", how_many(nights, "night"));
  const auto overdue = std::ranges::find(report.coverage.overdue, node, &drift::Overdue::node);
  if (overdue == report.coverage.overdue.end()) return "";
  if (overdue->last_state == drift::kMissing) return overdue->unit + " is missing";
  return "not measured for " + how_many(overdue->nights, "night");
}

}  // namespace

CachedVerdict verdict_for(const std::string& node, const drift::DriftReport& report, const drift::Policy& policy,
                          const std::vector<KnownUnit>& units) {
  const system_clock::time_point as_of = system_clock::time_point(report.as_of) + std::chrono::days(1);
  CachedVerdict verdict{.node = node, .as_of = utc_text(as_of)};
  verdict.valid_until = utc_text(as_of + std::chrono::duration_cast<system_clock::duration>(
                                             std::chrono::duration<double>(policy.verdict_max_age_s)));
  const drift::Flag* worst = nullptr;
  for (const auto& flag : report.flags) {
    // That of several nodes, such as of a path between tenants, is no more this one's than the others'.
    if (flag.node != node || !is_open(flag.state) || flag.kind == "group" || flag.kind == "cluster") continue;
    if (worst == nullptr || flag.ratio < worst->ratio) worst = &flag;
  }
  if (const std::string why = ignorance(node, report, units); report.simulated || (worst == nullptr && !why.empty())) {
    verdict.text = printable("assay: unknown: " + why, kLongestVerdict);
    return verdict;
  }
  verdict.health = worst == nullptr ? NodeHealth::healthy : NodeHealth::flagged;
  verdict.text = worst == nullptr ? fmt::format("assay: healthy as of {}", drift::date_text(report.as_of))
                                  : printable(fmt::format("assay: {} {} {:+.1f} % {}", worst->state, worst->id,
                                                          (worst->ratio - 1) * 100, worst->metric),
                                              kLongestVerdict);
  return verdict;
}

std::string verdict_text(const CachedVerdict& verdict) {
  return json{{"schema", kVerdictSchema}, {"node", verdict.node},   {"health", verdict.health},
              {"text", verdict.text},     {"as_of", verdict.as_of}, {"valid_until", verdict.valid_until}}
             .dump(1) +
         "\n";
}

Answer answer_from(const std::string& path, const std::string& node, system_clock::time_point now) {
  const auto text = read_deciding_file(path, kLargestVerdict);
  if (!text) return unknown("the verdict " + text.error().what);
  const auto document = parse_json(*text, path);
  if (!document) return unknown("the verdict is damaged");
  const auto verdict = read_strictly(path, [&] { return cached_from(*document); });
  if (!verdict) return unknown("the verdict is damaged");
  if (verdict->node != node && verdict->node != node.substr(0, node.find('.')))
    return unknown("the verdict is of " + verdict->node);
  const auto as_of = utc_time(verdict->as_of), until = utc_time(verdict->valid_until);
  if (!as_of || !until || *until < *as_of) return unknown("the verdict has no valid time");
  if (now > *until) return unknown("stale: the verdict is of " + verdict->as_of.substr(0, 10));
  if (now + drift::kMostAhead < *as_of) return unknown("the verdict is from the future");
  return {.line = printable(verdict->text, kLongestVerdict),
          .code = verdict->health == NodeHealth::healthy   ? 0
                  : verdict->health == NodeHealth::flagged ? 1
                                                           : 2};
}

}  // namespace assay::sweep
