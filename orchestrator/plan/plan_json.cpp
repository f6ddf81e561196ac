// plan_json: plan.json, both ways.
#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>

#include "orchestrator/files/digest.h"
#include "orchestrator/plan/catalogue.h"
#include "orchestrator/plan/json_array.h"
#include "orchestrator/plan/plan.h"
#include "probes/core/json_fields.h"

namespace assay::plan {

template <class Io, Of<Step> S>
void fields(Io& io, S& step) {
  io("id", step.id), io("probe", step.probe), io("parameters", step.parameters), io("nodes", step.nodes);
  io("requirements", step.requirements), io("companions", step.companions), io("deadline_s", step.deadline_s);
  io("typical_s", step.typical_s), io("attempts", step.attempts), io("more_attempts", step.more_attempts);
  io("power_w", step.power_w), io("plane", step.plane), io("rail", step.rail), io("alone", step.alone);
  io("after", step.after), io.sparse("path", step.path);
}

template <class Io, Of<Cell> C>
void fields(Io& io, C& cell) {
  io("requirement", cell.requirement), io("subject", cell.subject), io("step", cell.step), io("reason", cell.reason);
  io.sparse("against", cell.against);
}

template <class Io, Of<DrawnCell> C>
void fields(Io& io, C& cell) {
  io("requirement", cell.requirement), io("subject", cell.subject);
}

template <class Io, Of<SearchBudget> B>
void fields(Io& io, B& budget) {
  io("base", budget.base), io("per_culprit", budget.per_culprit), io("most", budget.most);
}

template <class Io, Of<PlannedSearch> S>
void fields(Io& io, S& search) {
  io("step", search.step), io("requirements", search.requirements), io("budget", search.budget);
  io("reason", search.reason), io.sparse("knee", search.knee);
}

template <class Io, Of<EarlierFleet::Reference> R>
void fields(Io& io, R& one) {
  io("requirement", one.requirement), io("value", one.value), io("uncertainty", one.uncertainty);
  io("members", one.members);
}

template <class Io, Of<EarlierFleet> F>
void fields(Io& io, F& fleet) {
  io("run_id", fleet.run_id), io("ended", fleet.ended), io("journal_sha256", fleet.journal_sha256);
  io("references", fleet.references);
}

template <class Io, Of<Plan> P>
void fields(Io& io, P& plan) {
  io("assay_version", plan.assay_version), io("quick", plan.quick), io("only", plan.only);
  io("localise", plan.localise), io("continues", plan.continues);
  io.sparse("earlier_fleet", plan.earlier_fleet), io.sparse("challenge", plan.challenge);
  io.sparse("allow_settings", plan.allow_settings), io.sparse("drawn", plan.drawn);
  io("agreed_risk", plan.agreed_risk), io("agreed_stability", plan.agreed_stability), io.sparse("looks", plan.looks);
}

namespace {

using nlohmann::json;

constexpr const char* kPlanSchema = "assay.plan/1";

bool is_step_id(const std::string& id) {
  constexpr std::size_t kLongest = 200;
  const auto allowed = [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; };
  return !id.empty() && id.size() <= kLongest && std::isdigit(static_cast<unsigned char>(id.front())) != 0 &&
         std::ranges::all_of(id, allowed);
}

/// Every name a plan uses must be one it defines; a plan that was edited by hand fails here, not in the run.
std::optional<InputError> check_references(const Plan& plan, const std::string& where) {
  std::set<std::string_view> steps;
  std::set<std::string_view> nodes;
  std::set<std::string_view> requirements;
  for (const auto& step : plan.steps) steps.insert(step.id);
  for (const auto& node : plan.site.nodes) nodes.insert(node.name);
  for (const auto& requirement : plan.profile.requirements) requirements.insert(requirement.id);
  if (steps.size() != plan.steps.size()) return InputError{where, "two steps have one id", ""};
  for (const auto& step : plan.steps) {
    const std::string here = fmt::format("{}: step {}", where, step.id);
    if (!is_step_id(step.id))
      return InputError{here, "is not a step id", "ids become directory names, so their alphabet is closed"};
    if (!plan.probes.contains(step.probe))
      return InputError{here, fmt::format("probe '{}' is not described", step.probe), ""};
    if (step.nodes.empty()) return InputError{here, "has no node", ""};
    for (const auto& node : step.nodes) {
      if (!nodes.contains(node)) return InputError{here, fmt::format("node '{}' is not in the site", node), ""};
    }
    for (const auto& companion : step.companions) {
      if (!plan.probes.contains(companion))
        return InputError{here, fmt::format("companion '{}' is not described", companion), ""};
    }
  }
  for (const auto& one : plan.earlier_fleet.references) {
    const Requirement* requirement = plan.requirement(one.requirement);
    if (plan.continues.empty() || requirement == nullptr || requirement->limit.reference != Reference::fleet_median ||
        !(one.value > 0) || !(one.uncertainty >= 0))
      return InputError{fmt::format("{}: earlier_fleet", where),
                        fmt::format("has a reference of '{}' that is none of a continued run", one.requirement), ""};
  }
  for (const auto& cell : plan.coverage) {
    if (!requirements.contains(cell.requirement))
      return InputError{where, fmt::format("coverage names requirement '{}'", cell.requirement), ""};
    for (const auto& step : {cell.step, cell.against}) {
      if (!step.empty() && !steps.contains(step))
        return InputError{where, fmt::format("coverage names step '{}'", step), ""};
    }
  }
  return std::nullopt;
}

/// Planning is pure, so a plan must follow from its own profile, site and probes: a cell, step or flag that was changed
/// by hand would otherwise be a requirement without a measurement.
std::optional<InputError> check_derivation(const Plan& plan, std::string_view text, const std::string& where) {
  std::vector<Program> programs;
  for (const auto& [name, probe] : plan.probes) {
    programs.push_back(program_of(name, probe));
  }
  // There cannot be more derived steps than cells: the smallest of growing groups has no cell, all others have one.
  const std::size_t cells = plan.coverage.size() + plan.steps.size();
  auto again = make_plan(plan.profile, plan.site, programs,
                         {.quick = plan.quick,
                          .only = plan.only,
                          .localise = plan.localise,
                          .continues = plan.continues,
                          .earlier_fleet = plan.earlier_fleet,
                          .challenge = plan.challenge,
                          .allow_settings = plan.allow_settings,
                          .agreed_risk = plan.agreed_risk,
                          .agreed_stability = plan.agreed_stability,
                          .drawn = plan.drawn,
                          .most_cells = cells});
  if (!again) return again.error();
  again->assay_version = plan.assay_version;
  again->simulation = plan.simulation;
  if (plan_text(*again) == text) return std::nullopt;
  return InputError{where, "its steps and cells are not those that its profile, site and probes give",
                    "plan again instead of editing it"};
}

std::optional<InputError> read_probes(const json& probes, const std::string& where, Plan& plan) {
  for (const auto& [name, probe] : probes.items()) {
    auto description = read_description(probe.at("description").dump(), fmt::format("{}: probes.{}", where, name));
    if (!description) return description.error();
    plan.probes.emplace(name, PlannedProbe{.sha256 = probe.at("sha256"),
                                           .description = std::move(*description),
                                           .builds = probe.value("builds", std::map<std::string, std::string>{})});
  }
  return std::nullopt;
}

}  // namespace

std::string plan_text(const Plan& plan) {
  json probes = json::object();
  for (const auto& [name, probe] : plan.probes) {
    probes[name] = {{"sha256", probe.sha256}, {"description", probe.description.document}};
    if (!probe.builds.empty()) probes[name]["builds"] = probe.builds;
  }
  json document = plan;
  document["schema"] = kPlanSchema;
  document["planner"] = kPlannerRevision;
  document["searches"] = document["steps"] = document["coverage"] = nullptr;
  document["profile"] = to_json(plan.profile);
  document["site"] = site::to_json(plan.site);
  document["probes"] = std::move(probes);
  if (plan.simulation) {
    document["kind_of_run"] = kSimulated;
    document["simulation"] = to_json(*plan.simulation);
  }
  return text_with_arrays(
      document,
      {{.member = "coverage",
        .count = plan.coverage.size(),
        .element = [&](std::size_t i) { return json(plan.coverage[i]); }},
       {.member = "searches",
        .count = plan.searches.size(),
        .element = [&](std::size_t i) { return json(plan.searches[i]); }},
       {.member = "steps", .count = plan.steps.size(), .element = [&](std::size_t i) { return json(plan.steps[i]); }}});
}

std::expected<Plan, InputError> read_plan(std::string_view text, const std::string& where) {
  const auto document = parse_json(text, where, {.max_values = kMostValuesOfRun});
  if (!document) return std::unexpected(document.error());
  const std::string hint = "plan.json is written by `assay plan`; plan again instead of editing it";
  try {
    if (document->at("schema") != kPlanSchema)
      return std::unexpected(InputError{where, "is not an assay.plan/1", hint});
    const std::string version = document->at("assay_version");
    if (document->at("planner") != kPlannerRevision) {
      return std::unexpected(InputError{
          where,
          fmt::format("was made by planner {}, this one is {}", document->at("planner").dump(), kPlannerRevision),
          fmt::format("judge and verify it with assay {}", version)});
    }
    auto profile = read_profile(document->at("profile").dump(), where + ": profile",
                                [](const std::string&) { return std::nullopt; });
    if (!profile) return std::unexpected(profile.error());
    auto site = site::read_site(document->at("site").dump(), where + ": site");
    if (!site) return std::unexpected(site.error());
    auto plan = document->get<Plan>();
    plan.profile = std::move(*profile);
    plan.site = std::move(*site);
    if (document->contains("simulation")) {
      auto simulation = simulation_from(document->at("simulation"), where + ": simulation");
      if (!simulation) return std::unexpected(simulation.error());
      plan.simulation = std::move(*simulation);
    }
    if (auto problem = read_probes(document->at("probes"), where, plan)) return std::unexpected(*problem);
    document->at("steps").get_to(plan.steps);
    document->at("coverage").get_to(plan.coverage);
    document->at("searches").get_to(plan.searches);
    if (auto problem = check_references(plan, where)) return std::unexpected(*problem);
    if (auto problem = check_probes(plan, where)) return std::unexpected(*problem);
    // One check against everything else: the plan read must write the same bytes.
    if (plan_text(plan) != text)
      return std::unexpected(InputError{where, "is not byte for byte the form that assay writes", hint});
    if (auto problem = check_derivation(plan, text, where)) return std::unexpected(*problem);
    return plan;
  } catch (const json::exception& error) {
    return std::unexpected(InputError{where, error.what(), hint});
  } catch (const std::bad_optional_access&) {
    return std::unexpected(InputError{where, "a parameter or subject is not of the form that assay writes", hint});
  }
}

}  // namespace assay::plan
