// feasible: counts the members of fleets and the nodes of pairs and groups by the plan's steps.
#include "orchestrator/cli/feasible.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <string_view>

#include <fmt/ranges.h>

#include "orchestrator/cli/run_stages.h"
#include "orchestrator/judge/cells/references.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/metered.h"
#include "probes/core/how_many.h"

namespace assay::cli {
namespace {

using plan::JudgedScope;

/// The lack of a requirement, and how many nodes it would take.
struct Lack {
  std::string requirement, why;
  std::size_t nodes = 2;
};

/// The members of the requirement's fleet by the plan; no number if parts of nodes are compared and no design states
/// it.
std::optional<std::size_t> members_of(const plan::Plan& plan, const plan::Requirement& requirement) {
  std::set<std::string_view> nodes;
  bool parts = requirement.scope != JudgedScope::node && !plan::is_together(requirement.scope);
  for (const auto& step : plan.steps) {
    if (std::ranges::find(step.requirements, requirement.id) == step.requirements.end()) continue;
    nodes.insert(step.nodes.begin(), step.nodes.end());
    parts = parts || (plan::is_together(requirement.scope) && step.nodes.size() == 1);  // of GPUs of one node
  }
  if (!parts) return nodes.size();
  const std::string kind(plan::is_together(requirement.scope) ? "gpu" : word_of(requirement.scope));
  std::size_t members = 0;
  for (const auto& name : nodes) {
    const auto designed = plan::designed_parts(plan.profile, *plan.site.node(std::string(name)), kind);
    if (!designed) return std::nullopt;
    members += static_cast<std::size_t>(*designed);
  }
  return members;
}

bool is_of_fleet(const plan::Requirement& requirement) {
  return requirement.limit.reference == plan::Reference::fleet_median;
}

std::set<std::string_view> measured_in(const plan::Plan& plan) {
  std::set<std::string_view> measured;
  for (const auto& cell : plan.coverage) {
    if (!cell.step.empty()) measured.insert(cell.requirement);
  }
  return measured;
}

std::vector<Lack> lacks_of(const plan::Plan& plan) {
  const auto measured = measured_in(plan);
  std::vector<Lack> all;
  for (const auto& requirement : plan.profile.requirements) {
    // A lack of probes is another matter.
    if (!requirement.required || !plan.probes.contains(requirement.probe)) continue;
    if (requirement.when_told && plan::site_lacks(plan.site, requirement)) continue;  // not judged, and not needed
    const bool of_fleet = is_of_fleet(requirement);
    if (plan::is_together(requirement.scope) && !measured.contains(requirement.id)) {
      const auto cell = std::ranges::find(plan.coverage, requirement.id, &plan::Cell::requirement);
      if (cell != plan.coverage.end())
        all.push_back(
            {.requirement = requirement.id, .why = cell->reason, .nodes = of_fleet ? judge::kSmallestFleet : 2});
    } else if (of_fleet && plan.earlier_fleet.of(requirement.id) == nullptr) {
      const auto members = members_of(plan, requirement);
      if (members && *members < judge::kSmallestFleet)
        all.push_back({.requirement = requirement.id,
                       .why = fmt::format("needs {} members for comparison, and {} {}", judge::kSmallestFleet, *members,
                                          *members == 1 ? "takes part" : "take part"),
                       .nodes = judge::kSmallestFleet});
    }
  }
  return all;
}

/// The chosen nodes and as many others as are missing, first those that the run in `directory` accepted.
std::string with_partners(const plan::Plan& plan, const std::vector<std::string>& site, const std::string& directory,
                          std::size_t wanted) {
  std::vector<std::string> good, others;
  if (const auto text = directory.empty() ? std::expected<std::string, InputError>("")
                                          : read_file(file_of_run(directory, "verdict.json"));
      text && !text->empty()) {
    if (const auto verdict = judge::read_verdict(*text, directory)) {
      for (const auto& node : verdict->nodes) {
        if (node.outcome == judge::Overall::accepted) good.push_back(node.node);
      }
    }
  }
  std::vector<std::string> names;
  for (const auto& node : plan.site.nodes) names.push_back(node.name);
  for (const auto& name : site) {
    if (std::ranges::find(good, name) == good.end()) others.push_back(name);
  }
  good.insert(good.end(), others.begin(), others.end());
  for (const auto& name : good) {
    const bool known = std::ranges::find(site, name) != site.end();
    if (names.size() < wanted && known && std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return fmt::format("{}", fmt::join(names, ","));
}

}  // namespace

std::vector<std::string> small_fleets(const plan::Plan& plan) {
  const auto measured = measured_in(plan);
  std::vector<std::string> ids;
  for (const auto& requirement : plan.profile.requirements) {
    if (!is_of_fleet(requirement) || !measured.contains(requirement.id)) continue;
    if (const auto members = members_of(plan, requirement); members && *members < judge::kSmallestFleet)
      ids.push_back(requirement.id);
  }
  return ids;
}

std::optional<InputError> too_few_nodes(const plan::Plan& plan, const PlanRequest& request,
                                        const std::vector<std::string>& site) {
  const std::vector<Lack> lacks = lacks_of(plan);
  if (lacks.empty()) return std::nullopt;
  const std::size_t wanted = std::ranges::max(lacks, {}, &Lack::nodes).nodes;
  std::string hint;
  const bool earlier = !request.continues.empty() && lacks.front().nodes == judge::kSmallestFleet;
  if (!request.nodes.empty() && site.size() >= wanted) {
    hint = fmt::format("measure them with others: --nodes {}", with_partners(plan, site, request.continues, wanted));
  } else {
    hint = fmt::format(
        "it takes {} nodes or more, or another profile (`assay list profiles`); with --allow-missing the rest is "
        "measured, which accepts nothing",
        wanted);
  }
  return InputError{
      fmt::format("profile {}", plan.profile.name),
      fmt::format("could not be accepted on {}: {}: {}{}{}", how_many(plan.site.nodes.size(), "node"),
                  lacks.front().requirement, lacks.front().why,
                  earlier ? ", and the run that is continued has no such fleet by the same profile and probes" : "",
                  lacks.size() == 1 ? "" : fmt::format("; {} more are like it", lacks.size() - 1)),
      hint};
}

namespace {

/// A maker of GPUs: its driver's devices, and the probes and the parameter by which its libraries are named.
struct Maker {
  const char* name;
  std::array<const char*, 5> devices;      ///< any of them will do
  std::array<std::string_view, 4> probes;  ///< how their names begin; empty ones are none
  const char* library;
  const char* hint;
};
constexpr Maker kMakers[] = {
    {"NVIDIA",
     {"/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/nvhost-ctrl-gpu", "/dev/nvgpu"},
     {"cuda_", "nccl_", "health_gpu", "gpu_attestation"},
     "nvml_library",
     "run it where the GPU and its driver are; in a container, hand the devices through"},
    {"AMD",
     {"/dev/kfd"},
     {"amd_", "rccl_", "health_amd"},
     "amd_smi_library",
     "run it where the GPU and amdgpu are; in a container, --device=/dev/kfd --device=/dev/dri"},
};

/// Whose GPUs `step` measures; null for none.
const Maker* maker_of(const plan::Step& step) {
  for (const Maker& maker : kMakers) {
    if (std::ranges::any_of(maker.probes,
                            [&](std::string_view name) { return !name.empty() && step.probe.starts_with(name); }))
      return &maker;
  }
  const auto engine = step.parameters.find("engine");
  const bool of_nvidia = engine != step.parameters.end() &&
                         (engine->second == Value(std::string("nccl")) || engine->second == Value(std::string("gpu")));
  return of_nvidia ? &kMakers[0] : nullptr;
}

bool is_here(const Maker& maker) {
  std::error_code unknown;
  return std::ranges::any_of(
      maker.devices, [&](const char* path) { return path != nullptr && std::filesystem::exists(path, unknown); });
}

}  // namespace

std::optional<InputError> no_gpu_here(const plan::Plan& plan) {
  for (const auto& step : plan.steps) {
    const Maker* const maker = maker_of(step);
    if (maker == nullptr || plan.site.node(step.nodes.front())->launcher != site::Launcher::local) continue;
    const auto required = std::ranges::find_if(step.requirements, [&](const std::string& id) {
      const plan::Requirement& one = *plan.requirement(id);
      return one.required && !one.parameters.contains(maker->library);
    });
    if (required == step.requirements.end() || is_here(*maker)) continue;
    return InputError{fmt::format("profile {}", plan.profile.name),
                      fmt::format("measures {} GPUs, and this machine shows none: {} is absent ({} needs it)",
                                  maker->name, maker->devices.front(), *required),
                      maker->hint};
  }
  return std::nullopt;
}

}  // namespace assay::cli
