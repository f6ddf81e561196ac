// loosened: compares each field of a requirement with that of the inherited one it replaces.
#include "orchestrator/plan/loosened.h"

#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/plan/contrast.h"
#include "probes/core/json_io.h"
#include "probes/core/units.h"

namespace assay::plan {
namespace {

using nlohmann::json;

constexpr const char* kNothing = "nothing";

std::string text_of(const std::optional<double>& value) { return value ? json(*value).dump() : kNothing; }

/// Collects the loosened fields of one place.
class Comparison {
 public:
  Comparison(std::string requirement, std::string base)
      : requirement_(std::move(requirement)), base_(std::move(base)) {}

  /// A lower bound that went down or away.
  void floor(const std::string& what, const std::optional<double>& from, const std::optional<double>& to) {
    if (from && (!to || *to < *from)) add(what, text_of(from), text_of(to));
  }
  /// An upper bound that went up or away.
  void cap(const std::string& what, const std::optional<double>& from, const std::optional<double>& to) {
    if (from && (!to || *to > *from)) add(what, text_of(from), text_of(to));
  }
  /// A field without a known direction: any change is listed.
  void same(const std::string& what, const json& from, const json& to) {
    if (from != to) add(what, from.dump(), to.dump());
  }
  void add(const std::string& what, std::string from, std::string to) {
    all_.push_back(
        {.requirement = requirement_, .what = what, .from = std::move(from), .to = std::move(to), .base = base_});
  }
  [[nodiscard]] std::vector<Loosened> all() { return std::move(all_); }

 private:
  std::string requirement_, base_;
  std::vector<Loosened> all_;
};

/// Which part of the samples is judged, from the smallest to the largest.
int rank_of(Statistic statistic) {
  switch (statistic) {
    case Statistic::min:
      return 0;
    case Statistic::p01:
      return 1;
    case Statistic::p05:
      return 2;
    case Statistic::median:
      return 3;
    case Statistic::p95:
      return 4;
    case Statistic::p99:
      return 5;
    case Statistic::max:
      return 6;
  }
  return 3;
}

std::string words_of(const Limit& limit) {
  const std::string of = reference_text(limit.reference, limit.name);
  return fmt::format("{} {}{}", limit.at_least ? "at least" : "at most",
                     text_of(limit.at_least ? limit.at_least : limit.at_most), of.empty() ? "" : " of " + of) +
         (limit.capped_by.empty() ? "" : ", capped by peak:" + limit.capped_by);
}

void compare_limits(const Requirement& before, const Requirement& changed, Comparison& found) {
  const Limit& old = before.limit;
  const Limit& now = changed.limit;
  if (before.contrast.has_value() != changed.contrast.has_value()) {
    found.add("contrast", before.contrast ? "asked" : kNothing, changed.contrast ? "asked" : kNothing);
  } else if (before.contrast) {
    const Contrast& was = *before.contrast;
    const Contrast& is = *changed.contrast;
    found.floor("contrast.at_least", was.at_least, is.at_least);
    found.same("contrast.switch", json(switch_words(was, true) + ", " + switch_words(was, false)),
               json(switch_words(is, true) + ", " + switch_words(is, false)));
    found.same("contrast.shown_by", json(was.shown_by), json(is.shown_by));
  } else if (old.reference == now.reference && old.name == now.name && old.capped_by == now.capped_by) {
    found.floor("limit.at_least", old.at_least, now.at_least);
    found.cap("limit.at_most", old.at_most, now.at_most);
  } else {  // shares of different things cannot be compared
    found.add("limit", words_of(old), words_of(now));
  }
  const int difference = rank_of(changed.statistic) - rank_of(before.statistic);
  if ((difference > 0 && now.at_least) || (difference < 0 && now.at_most))
    found.same("statistic", json(word_of(before.statistic)), json(word_of(changed.statistic)));
}

void compare_condition(const std::string& what, const RequiredCondition& old, const RequiredCondition& now,
                       Comparison& found) {
  if (old.equals && old.equals != now.equals)
    found.add(what, assay::to_json(*old.equals).dump(), now.equals ? assay::to_json(*now.equals).dump() : kNothing);
  if (!now.equals) {
    found.floor(what, old.at_least, now.at_least);
    found.cap(what, old.at_most, now.at_most);
  }
  const auto is_allowed = [&](const Value& one) { return fit_of(old, one) == Fit::met; };
  const std::vector<Value> fixed = now.equals ? std::vector{*now.equals} : now.one_of;
  const bool more = fixed.empty() || !std::ranges::all_of(fixed, is_allowed);
  const bool wider = old.version && (now.version ? is_looser(*old.version, *now.version) : more);
  if ((!old.one_of.empty() && more) || wider) found.add(what, words_of(old), words_of(now));
  if (!old.site.empty()) found.same(what, json(old.site), json(now.site));
  if (!old.surroundings && now.surroundings) found.add(what + ".surroundings", "false", "true");
}

void compare_conditions(const Requirement& before, const Requirement& changed, Comparison& found) {
  for (const auto& old : before.conditions) {
    const std::string what = "conditions." + old.name;
    const auto now = std::ranges::find(changed.conditions, old.name, &RequiredCondition::name);
    if (now == changed.conditions.end())
      found.add(what, "demanded", "not demanded");
    else
      compare_condition(what, old, *now, found);
  }
  if (before.demand.has_value() != changed.demand.has_value())
    found.add("demand", before.figure(), changed.figure());
  else if (before.demand)
    compare_condition("demand", *before.demand, *changed.demand, found);
}

/// `changed` with the least times of a load (warmup_least, load_least) as they were `before` if they grew: a longer
/// load is no looser.
Values but_for_longer_loads(const Values& before, Values changed) {
  const auto seconds = [](const Value& value) {
    const auto* text = std::get_if<std::string>(&value);
    return text == nullptr ? std::nullopt : parse_seconds(*text);
  };
  for (auto& [name, value] : changed) {
    const auto old = before.find(name);
    if (!name.ends_with("_least") || old == before.end()) continue;
    const auto from = seconds(old->second);
    const auto to = seconds(value);
    if (from && to && to->count >= from->count) value = old->second;
  }
  return changed;
}

}  // namespace

std::vector<Loosened> loosened_in(const Requirement& before, const Requirement& changed, const std::string& base) {
  Comparison found(before.id, base);
  compare_limits(before, changed, found);
  compare_conditions(before, changed, found);
  if (before.required && !changed.required) found.add("severity", "required", "advisory");
  if (!before.when_told && changed.when_told) found.add("when_told", "false", "true");
  if (before.ceiling && !changed.ceiling) found.add("ceiling", "set", kNothing);
  if (before.ceiling && changed.ceiling) found.cap("ceiling", before.ceiling->value, changed.ceiling->value);
  found.floor("repeat.n", before.repeat_n, changed.repeat_n);
  found.floor("repeat.attempts", before.attempts, changed.attempts);
  if (changed.reproducibility && (!before.reproducibility || changed.reproducibility->u < before.reproducibility->u))
    found.add("reproducibility", before.reproducibility ? text_of(before.reproducibility->u) : kNothing,
              text_of(changed.reproducibility->u));
  if (before.after && !changed.after) found.add("after", "true", "false");
  if (!before.rise && changed.rise) found.add("rise", "false", "true");
  found.same("parameters", assay::to_json(before.parameters),
             assay::to_json(but_for_longer_loads(before.parameters, changed.parameters)));
  found.same("during", json(before.during), json(changed.during));
  found.same("scope", json(word_of(before.scope)), json(word_of(changed.scope)));
  if (before.at_every && !changed.at_every) {
    found.add("at", "\"every\"", assay::to_json(changed.at).dump());
  } else if (!changed.at_every) {
    found.same("at", assay::to_json(before.at), assay::to_json(changed.at));
  }
  found.same("plane", json(before.plane), json(changed.plane));
  if (before.pairs != changed.pairs)
    found.add("pairs", std::string(word_of(before.pairs.value_or(PairChoice::all))),
              std::string(word_of(changed.pairs.value_or(PairChoice::all))));
  if (before.by != changed.by)
    found.add("by", std::string(word_of(before.by.value_or(Grouping::rack))),
              std::string(word_of(changed.by.value_or(Grouping::rack))));
  const auto kept = [](const Requirement& one) { return one.knee ? one.knee->at_least : std::nullopt; };
  if (kept(changed) && (!kept(before) || *kept(changed) < *kept(before)))
    found.add("knee.at_least", kept(before) ? std::to_string(*kept(before)) : "all nodes",
              std::to_string(*kept(changed)));
  const auto rounds = [](const Requirement& one) { return one.rounds == 0 ? 1e9 : static_cast<double>(one.rounds); };
  if (rounds(changed) < rounds(before))
    found.add("rounds", before.rounds == 0 ? "all pairs" : std::to_string(before.rounds),
              std::to_string(changed.rounds));
  return found.all();
}

std::vector<Loosened> loosened_in(const Profile& before, const Profile& changed) {
  Comparison found("", before.name);
  found.floor("decision.guard_factor", before.guard_factor, changed.guard_factor);
  found.floor("decision.confidence", before.confidence, changed.confidence);
  for (const auto& [kind, count] : before.per_node) {
    const auto now = changed.per_node.find(kind);
    found.floor("node." + kind, count,
                now == changed.per_node.end() ? std::nullopt : std::optional<double>(now->second));
  }
  for (const auto& [name, peak] : before.peaks) {
    const auto now = changed.peaks.find(name);
    if (now != changed.peaks.end() && now->second.value != peak.value)
      found.add("peaks." + name, text_of(peak.value), text_of(now->second.value));
  }
  for (const auto& name : before.companions) {
    if (std::ranges::find(changed.companions, name) == changed.companions.end())
      found.add("companions." + name, "samples", "absent");
  }
  if (before.relative_only.empty() && !changed.relative_only.empty()) found.add("relative_only", "absent", "given");
  return found.all();
}

std::string words_of_loosened(const Loosened& one) {
  return fmt::format("The profile asks less than {}, which it extends: {}{} is {} instead of {}.", one.base,
                     one.requirement.empty() ? "" : one.requirement + ": ", one.what, one.to, one.from);
}

}  // namespace assay::plan
