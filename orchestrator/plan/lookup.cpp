// lookup: finds a step or requirement of a plan, the builds of its probes, and the parameters of one rank.
#include <algorithm>
#include <charconv>
#include <set>

#include "orchestrator/plan/crossing_spots.h"
#include "orchestrator/plan/plan.h"

namespace assay::plan {

const Step* Plan::step(std::string_view id) const {
  if (id.empty()) return nullptr;
  // The planner's ids begin with the step's number, so that a loop over results need not search all steps for each.
  std::size_t number = 0;
  std::from_chars(id.data(), id.data() + id.size(), number);
  if (number > 0 && number <= steps.size() && steps[number - 1].id == id) return &steps[number - 1];
  const auto found = std::ranges::find(steps, id, &Step::id);
  return found == steps.end() ? nullptr : &*found;
}

const Requirement* Plan::requirement(std::string_view id) const {
  if (id.empty()) return nullptr;
  // Every result asks, and ids of a kind differ at their end: most are ruled out by that.
  const auto found = std::ranges::find_if(profile.requirements, [&](const Requirement& one) {
    return one.id.size() == id.size() && one.id.back() == id.back() && one.id == id;
  });
  return found == profile.requirements.end() ? nullptr : &*found;
}

const EarlierFleet::Reference* EarlierFleet::of(std::string_view requirement) const {
  const auto found = std::ranges::find(references, requirement, &Reference::requirement);
  return found == references.end() ? nullptr : &*found;
}

Program program_of(const std::string& name, const PlannedProbe& probe) {
  Program program{.name = name, .sha256 = probe.sha256, .description = probe.description};
  for (const auto& [machine, sha256] : probe.builds) program.builds[machine] = {.sha256 = sha256};
  return program;
}

PlannedProbe planned_probe(const Program& program, const site::Site& site) {
  PlannedProbe planned{.sha256 = program.sha256, .description = program.description};
  for (const auto& machine : machines_of(site, program.builds)) {
    const auto build = program.builds.find(machine);
    if (build != program.builds.end()) planned.builds[machine] = build->second.sha256;
  }
  return planned;
}

std::vector<std::string> machines_of(const site::Site& site, const std::map<std::string, Build>& known) {
  std::set<std::string> machines;
  for (const auto& node : site.nodes) {
    if (!node.machine.empty()) {
      machines.insert(node.machine);
    } else if (known.size() > 1 &&
               (node.launcher == site::Launcher::ssh || node.launcher == site::Launcher::kubernetes)) {
      for (const auto& [machine, build] : known) machines.insert(machine);
    }
  }
  return {machines.begin(), machines.end()};
}

Values parameters_of(const site::Site& site, const Step& step, std::size_t rank) {
  Values parameters = step.parameters;
  if (!step.path.empty()) add_path(site, step.path, step.nodes.front(), parameters);
  if (step.plane.empty()) return parameters;
  const site::Node& node = *site.node(step.nodes[rank]);
  for (const char* name : {"interface", "device"}) {
    const auto parameter = parameters.find(name);
    if (parameter == parameters.end()) continue;
    std::string ports;
    for (const auto& port : node.planes.at(step.plane)) {
      const std::string text = site::port_text(node, port, name);
      if (text.empty() || (step.nodes.size() > 1 && port.rail != step.rail)) continue;
      ports += (ports.empty() ? "" : ",") + text;
    }
    if (!ports.empty()) parameter->second = ports;
  }
  return parameters;
}

}  // namespace assay::plan
