// notes: differences of two runs besides their figures.
#include <algorithm>

#include <fmt/format.h>

#include "orchestrator/files/difference.h"
#include "reports/compare/comparison.h"
#include "reports/dossier/expectations.h"
#include "reports/dossier/target_differences.h"

namespace assay::compare {
namespace {

constexpr std::size_t kMostNamed = 8;  // nodes in one note

std::string named(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kMostNamed ? text + fmt::format(" and {} more", names.size() - kMostNamed) : text;
}

/// Runs without a signature, or not measured.
void add_standing(const char* name, const Side& side, std::vector<std::string>& notes) {
  if (side.standing == "simulated") {
    notes.push_back(fmt::format("{} is SIMULATED: nothing of it was measured", name));
  } else if (side.standing == "unsigned") {
    notes.push_back(fmt::format("{} is the folder of a run, UNSIGNED: who could write to it could change it", name));
  } else if (side.standing == "signature_not_checked") {
    notes.push_back(fmt::format(
        "{} is a dossier whose SIGNATURE WAS NOT CHECKED, because no --key and no --policy was given", name));
  }
  const auto& plan = side.content.run.plan;
  if (plan.quick) notes.push_back(fmt::format("{} is a rehearsal with quick parameters", name));
  if (!plan.only.empty()) notes.push_back(fmt::format("{} is a part of its profile (--only)", name));
  if (!side.content.run.journal.finished) notes.push_back(fmt::format("{} did not come to its end", name));
  if (const auto count = side.content.verdict.deviations.size(); count > 0)
    notes.push_back(fmt::format("{} has {} deviations from the method", name, count));
}

void add_profile(const plan::Profile& a, const plan::Profile& b, std::size_t differences,
                 std::vector<std::string>& notes) {
  if (a.name != b.name || a.revision != b.revision) {
    notes.push_back(fmt::format("the profiles are not the same: {} revision {} and {} revision {}", a.name, a.revision,
                                b.name, b.revision));
  }
  if (differences > 0) notes.push_back(fmt::format("the targets differ in {} places", differences));
}

/// A document of a node with its hardware and address.
void add_site(const site::Site& a, const site::Site& b, std::vector<std::string>& notes) {
  if (a.name != b.name) {
    notes.push_back(fmt::format("the sites are not the same: {} and {}", a.name, b.name));
  } else if (dossier::digest_of_site(a).value_or("") != dossier::digest_of_site(b).value_or("")) {
    notes.push_back(fmt::format("the site {} is not described alike in both runs", a.name));
  }
  std::vector<std::string> only_a, only_b;
  for (const auto& node : a.nodes) {
    if (b.node(node.name) == nullptr) only_a.push_back(node.name);
  }
  for (const auto& node : b.nodes) {
    if (a.node(node.name) == nullptr) only_b.push_back(node.name);
  }
  if (!only_a.empty()) notes.push_back("only in A: " + named(only_a));
  if (!only_b.empty()) notes.push_back("only in B: " + named(only_b));
}

void add_probes(const plan::Plan& a, const plan::Plan& b, std::vector<std::string>& notes) {
  std::vector<std::string> rebuilt;
  for (const auto& [name, probe] : a.probes) {
    const auto other = b.probes.find(name);
    if (other == b.probes.end()) continue;
    const int before = probe.description.revision;
    const int after = other->second.description.revision;
    if (before != after) {
      notes.push_back(
          fmt::format("{} is revision {} in A and {} in B: its figures may mean something else", name, before, after));
    } else if (probe.sha256 != other->second.sha256) {
      rebuilt.push_back(name);
    }
  }
  if (!rebuilt.empty()) notes.push_back("other programs of the same revision: " + named(rebuilt));
  if (a.assay_version != b.assay_version)
    notes.push_back(fmt::format("planned by assay {} and {}", a.assay_version, b.assay_version));
}

/// Nodes of one name whose agents said other things of the machine.
void add_machines(const judge::Journal& a, const judge::Journal& b, std::vector<std::string>& notes) {
  std::vector<std::string> changed;
  for (const auto& [node, facts] : a.node_facts) {
    const auto other = b.node_facts.find(node);
    if (other == b.node_facts.end()) continue;
    std::string what;
    for (const char* name : {"name", "cpu_model", "kernel"}) {
      const bool differs = facts.is_object() && other->second.is_object() &&
                           facts.value(name, nlohmann::json()) != other->second.value(name, nlohmann::json());
      if (differs) what += (what.empty() ? "" : ", ") + std::string(name);
    }
    if (!what.empty()) changed.push_back(fmt::format("{} ({})", node, what));
  }
  if (!changed.empty()) notes.push_back("not the same machine or system: " + named(changed));
}

}  // namespace

std::vector<std::string> notes_of(const Side& a, const Side& b) {
  std::vector<std::string> notes;
  add_standing("A", a, notes);
  add_standing("B", b, notes);
  const auto& run_a = a.content.run;
  const auto& run_b = b.content.run;
  if (run_a.journal.run_id == run_b.journal.run_id) notes.emplace_back("A and B are the same run");
  add_profile(run_a.plan.profile, run_b.plan.profile,
              dossier::target_differences(run_b.plan.profile, run_a.plan.profile).size(), notes);
  add_site(run_a.plan.site, run_b.plan.site, notes);
  add_probes(run_a.plan, run_b.plan, notes);
  add_machines(run_a.journal, run_b.journal, notes);
  return notes;
}

std::vector<std::string> method_differences(const plan::Plan& a, const plan::Plan& b, const plan::Requirement& of_a,
                                            const plan::Requirement& of_b) {
  std::vector<std::string> all;
  if (a.simulation.has_value() != b.simulation.has_value())
    all.emplace_back("one run is simulated and the other was measured");
  const auto add = [&](const char* what, const std::string& one, const std::string& other) {
    if (one != other) all.push_back(fmt::format("{} is {} in A and {} in B", what, one, other));
  };
  add("the probe", of_a.probe, of_b.probe);
  add("the metric", of_a.metric, of_b.metric);
  add("the unit", of_a.limit.unit, of_b.limit.unit);
  add("the statistic", std::string(word_of(of_a.statistic)), std::string(word_of(of_b.statistic)));
  add("the scope", std::string(word_of(of_a.scope)), std::string(word_of(of_b.scope)));
  add("the coordinates", of_a.at_every ? "every" : to_json(of_a.at).dump(),
      of_b.at_every ? "every" : to_json(of_b.at).dump());
  add("the plane", of_a.plane.empty() ? "none" : of_a.plane, of_b.plane.empty() ? "none" : of_b.plane);
  add("alone", of_a.alone ? "true" : "false", of_b.alone ? "true" : "false");
  const auto parameters = [](const plan::Plan& plan, const plan::Requirement& requirement) -> Values {
    const auto step = std::ranges::find_if(plan.steps, [&](const plan::Step& one) {
      return std::ranges::find(one.requirements, requirement.id) != one.requirements.end();
    });
    return step == plan.steps.end() ? requirement.parameters : step->parameters.list();
  };
  for (const auto& one : files::differences(to_json(parameters(b, of_b)), to_json(parameters(a, of_a)), 4))
    all.push_back("parameters of B beside A: " + one);
  const auto revision = [](const plan::Plan& plan, const std::string& probe) {
    const auto found = plan.probes.find(probe);
    return found == plan.probes.end() ? 0 : found->second.description.revision;
  };
  const int before = revision(a, of_a.probe);
  const int after = revision(b, of_b.probe);
  if (before != 0 && after != 0 && before != after)
    all.push_back(fmt::format("{} is revision {} in A and {} in B", of_a.probe, before, after));
  return all;
}

}  // namespace assay::compare
