// storage_use: evaluates the space rules of the probes' descriptions with the parameters of each step.
#include "orchestrator/plan/storage_use.h"

#include <set>

#include <fmt/format.h>

#include "probes/core/scale.h"

namespace assay::plan {
namespace {

std::string bytes_text(double bytes) { return for_people(bytes, "B"); }

/// Steps whose uses read alike.
struct Kind {
  std::string probe, directory;
  std::size_t nodes = 0;
  bool shared = false;
  double held = 0;
  friend auto operator<=>(const Kind&, const Kind&) = default;
};

struct Sum {
  std::size_t steps = 0;
  int attempts = 0;
  std::optional<double> written = 0;
};

std::string kind_text(const Kind& kind, const Sum& sum) {
  const bool own = kind.directory == ".";  // relative to the directory that the site gives the node
  std::string text = fmt::format("{} writes to {}: ", kind.probe, own ? "the node's directory" : kind.directory);
  if (kind.shared) {
    text += fmt::format("{} at one time, {} of each of {} nodes", bytes_text(kind.held),
                        bytes_text(kind.held / static_cast<double>(kind.nodes)), kind.nodes);
  } else {
    text += fmt::format("{} at one time on each node", bytes_text(kind.held));
  }
  text += fmt::format("; in {} {} of {} {}", sum.attempts, sum.attempts == 1 ? "attempt" : "attempts", sum.steps,
                      sum.steps == 1 ? "step" : "steps");
  return text + (sum.written ? fmt::format(" {}\n", bytes_text(*sum.written))
                             : std::string(" as much as their time allows\n"));
}

std::optional<double> left_in(const FreeSpace& free, const std::string& node, const std::string& directory) {
  const auto known = free.find(node);
  if (known == free.end()) return std::nullopt;
  const auto bytes = known->second.find(directory);
  return bytes == known->second.end() ? std::nullopt : std::optional(static_cast<double>(bytes->second));
}

InputError lacking(const StorageUse& use, const std::string& node, double left) {
  return {
      fmt::format("{} on {}", use.need.directory, node),
      fmt::format("{} are free; step {} puts up to {} there{} and needs a tenth more, {}", bytes_text(left),
                  use.step->id, bytes_text(use.need.held), use.need.shared ? " from all its nodes" : "",
                  bytes_text(use.demanded())),
      fmt::format("nothing was measured: free {} there and continue with `assay run --resume`, or give the probe less "
                  "to write, or another directory",
                  bytes_text(use.demanded() - left))};
}

}  // namespace

std::vector<StorageUse> storage_uses(const Plan& plan) {
  std::vector<StorageUse> uses;
  for (const auto& step : plan.steps) {
    const auto probe = plan.probes.find(step.probe);
    if (probe == plan.probes.end()) continue;
    for (auto& need : space_needs(probe->second.description.space, step.parameters, step.nodes.size()))
      uses.push_back({.step = &step, .need = std::move(need)});
  }
  return uses;
}

std::map<std::string, std::vector<std::string>> storage_directories(const std::vector<StorageUse>& uses) {
  std::map<std::string, std::set<std::string>> known;
  for (const auto& use : uses) {
    for (const auto& node : use.step->nodes) known[node].insert(use.need.directory);
  }
  std::map<std::string, std::vector<std::string>> lists;
  for (const auto& [node, directories] : known) lists[node].assign(directories.begin(), directories.end());
  return lists;
}

std::string storage_text(const std::vector<StorageUse>& uses) {
  std::map<Kind, Sum> kinds;
  for (const auto& use : uses) {
    const double ranks = use.need.shared ? 1 : static_cast<double>(use.step->nodes.size());
    Sum& sum = kinds[{.probe = use.step->probe,
                      .directory = use.need.directory,
                      .nodes = use.step->nodes.size(),
                      .shared = use.need.shared,
                      .held = use.need.held}];
    ++sum.steps;
    sum.attempts += use.step->attempts;
    sum.written = sum.written && use.need.written
                      ? std::optional(*sum.written + *use.need.written * ranks * use.step->attempts)
                      : std::nullopt;
  }
  std::string text;
  for (const auto& [kind, sum] : kinds) text += kind_text(kind, sum);
  return text;
}

std::vector<Shortage> short_of_space(const std::vector<StorageUse>& uses, const FreeSpace& free) {
  std::vector<Shortage> all;
  for (const auto& use : uses) {
    for (const auto& node : use.step->nodes) {
      if (!all.empty() && all.back().step == use.step) break;
      const auto left = left_in(free, node, use.need.directory);
      if (left && *left < use.demanded()) all.push_back({.step = use.step, .lacking = lacking(use, node, *left)});
    }
  }
  return all;
}

}  // namespace assay::plan
