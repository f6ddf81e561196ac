// site_joins: adds joined figures to the record of an attempt: efficiency, steps of a load, outlets, agreement.
#include "orchestrator/judge/metering/site_joins.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <variant>

#include "orchestrator/judge/metering/site_agreement.h"
#include "orchestrator/judge/metering/site_cables.h"
#include "orchestrator/judge/metering/site_outlets.h"
#include "orchestrator/judge/metering/site_step.h"
#include "orchestrator/plan/metered.h"

namespace assay::judge {
namespace {

constexpr const char* kUndated =
    "The record of the load does not say its shape, hold and ramp, and from when it held them (hold_begin_s).";

bool is_wanted(const MeteredAttempt& attempt, std::string_view metric) {
  return std::ranges::any_of(attempt.step.requirements, [&](const std::string& id) {
    const auto* requirement = attempt.plan.requirement(id);
    return requirement != nullptr && requirement->metric == metric;
  });
}

void add_joined(std::string_view metric, std::string_view unit, const Subject& subject, double value, Record& made) {
  made.measurements.push_back({.metric = std::string(metric),
                               .unit = std::string(unit),
                               .subject = subject,
                               .samples = {value},
                               .stopped = "fixed"});
}

void join_efficiency(const MeteredAttempt& attempt, const std::vector<RackPower>& racks, Record& made,
                     SiteEvidence& site) {
  for (const auto& rack : racks) {
    const Subject subject{.kind = "rack", .id = rack.rack};
    const auto joined = efficiency_of(attempt.plan, attempt.step, attempt.load, attempt.watches, rack);
    if (!joined) {
      site.missing.insert_or_assign(subject, joined.error());
      continue;
    }
    add_joined(kEfficiency, "FLOP/J", subject, joined->flop_per_joule, made);
    made.conditions.push_back({.name = "energy_boundary", .subject = subject, .value = joined->boundary});
    made.conditions.push_back({.name = "method_level", .subject = subject, .value = joined->method_level});
    made.conditions.push_back({.name = "accuracy_bound", .subject = subject, .value = joined->accuracy});
  }
}

void join_steps(const MeteredAttempt& attempt, Record& made, SiteEvidence& site) {
  StepFigures figures = steps_of(attempt.load, attempt.watches);
  std::ranges::move(figures.measurements, std::back_inserter(made.measurements));
  std::ranges::move(figures.conditions, std::back_inserter(made.conditions));
  for (auto& [subject, words] : figures.missing) site.missing.insert_or_assign(subject, std::move(words));
}

void join_outlets(const MeteredAttempt& attempt, const HeldLoad& load, Record& made, SiteEvidence& site) {
  const std::string metric(kOutletsWrong);
  for (const auto& [node, figure] : outlets_wrong(attempt.plan.site, attempt.step.nodes, load, attempt.watches)) {
    const Subject subject{.kind = "node", .id = node};
    if (!figure) {
      site.not_joined[{metric, subject}] = figure.error();
      continue;
    }
    add_joined(metric, "1", subject, figure->value, made);
    if (!figure->words.empty()) site.words[{metric, subject}] = figure->words;
  }
}

void join_agreement(const MeteredAttempt& attempt, const HeldLoad& load, Record& made, SiteEvidence& site) {
  for (const auto& [subject, figure] : agreements(attempt.plan.site, load, attempt.watches)) {
    for (const auto metric : {kAgreementRatio, kAgreementGain, kAgreementOffset}) {
      if (!figure)
        site.not_joined[{std::string(metric), subject}] = figure.error();
      else
        site.words[{std::string(metric), subject}] = figure->words;
    }
    if (!figure) continue;
    add_joined(kAgreementRatio, "1", subject, figure->ratio, made);
    add_joined(kAgreementGain, "1", subject, figure->gain, made);
    add_joined(kAgreementOffset, "W", subject, figure->offset_w, made);
    for (std::size_t i = 0; i < figure->meter_w.size(); ++i) {
      const auto level = [&](const char* side, double power_w) {
        add_joined(kAgreementPower, "W", subject, power_w, made);
        made.measurements.back().at = {{"load", std::int64_t{kAgreementLoads.at(i)}}, {"side", std::string(side)}};
      };
      level("meter", figure->meter_w[i]);
      level("reference", figure->reference_w[i]);
    }
  }
}

/// Neighbours that switches report, and for every figure of a switch's port the port at the other end of its cable.
void join_cables(const MeteredAttempt& attempt, Record& made, SiteEvidence& site) {
  const std::string metric(kCablingWrong);
  for (const auto& [subject, figure] : cabling_wrong(attempt.plan.site, attempt.watches)) {
    if (!figure) {
      site.not_joined[{metric, subject}] = figure.error();
      continue;
    }
    add_joined(metric, "1", subject, figure->value, made);
    if (!figure->words.empty()) site.words[{metric, subject}] = figure->words;
  }
  for (const auto& port : plan::cabled_ports(attempt.plan.site)) {
    if (port.end == nullptr) continue;
    for (const auto& one : made.measurements)
      if (one.subject == port.subject())
        site.words.try_emplace({one.metric, one.subject}, "Its cable leads to " + port.end_words());
  }
}

/// The nodes behind a number of lost ones.
void name_lost_nodes(const Record& made, SiteEvidence& site) {
  for (const auto& one : made.conditions) {
    const auto* text = one.name == "nodes_lost" ? std::get_if<std::string>(&one.value) : nullptr;
    if (text != nullptr && *text != "none") site.words[{"lost_nodes", one.subject}] = "Lost with the feed: " + *text;
  }
}

}  // namespace

void join_figures(const MeteredAttempt& attempt, const std::vector<RackPower>& racks, Record& made,
                  SiteEvidence& site) {
  name_lost_nodes(made, site);
  if (!attempt.plan.site.switches.empty()) join_cables(attempt, made, site);
  if (is_wanted(attempt, kEfficiency)) join_efficiency(attempt, racks, made, site);
  const bool steps = std::ranges::any_of(kOfSteps, [&](std::string_view metric) { return is_wanted(attempt, metric); });
  // A made-up plant has no load whose marks were measured.
  if (steps && !attempt.plan.simulation && !attempt.load.start.host.contains(plan::kSimulated))
    join_steps(attempt, made, site);
  const bool outlets = is_wanted(attempt, kOutletsWrong);
  const bool agreement =
      is_wanted(attempt, kAgreementRatio) || is_wanted(attempt, kAgreementGain) || is_wanted(attempt, kAgreementOffset);
  if (!outlets && !agreement) return;
  const auto load = held_load(attempt.load, attempt.begin_s, attempt.end_s);
  if (!load) {
    site.step.reason = kUndated;
    return;
  }
  if (outlets) join_outlets(attempt, *load, made, site);
  if (agreement) join_agreement(attempt, *load, made, site);
}

}  // namespace assay::judge
