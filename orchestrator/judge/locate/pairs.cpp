// pairs: turns results into the pairs of each figure and gives them to pair_matrix.h.
#include "orchestrator/judge/locate/pairs.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>

#include "orchestrator/judge/locate/pair_matrix.h"
#include "orchestrator/judge/locate/searches.h"

namespace assay::judge {
namespace {

bool is_short(const Result& result) { return misses_limit(result) || result.outcome == Outcome::error; }

/// Attempts of `result` that miss its limit each.
std::size_t missed_attempts(const Result& result) {
  return static_cast<std::size_t>(std::ranges::count_if(result.each, [&](double value) {
    return (result.limit_low && value < *result.limit_low) || (result.limit_high && value > *result.limit_high);
  }));
}

/// The requirements whose pairs are one matrix: a single one on figures without direction; those that differ by the
/// direction of their figure together.
struct PairFigure {
  std::string name;
  std::string_view plane = {};
  bool required = false;
  std::vector<std::string> requirements = {};
  std::map<std::string_view, PairMatrix> by_rail = {};
};

/// The metric of a requirement; null where the plan has no step of its probe, and so nothing of it is measured.
const Description::OwnMetric* metric_of(const plan::Plan& plan, const plan::Requirement& requirement) {
  const auto probe = plan.probes.find(requirement.probe);
  return probe == plan.probes.end() ? nullptr : probe->second.description.metric(requirement.metric);
}

/// The common part of the figures of two requirements that are the two directions of one, both required or both
/// advisory; of a figure without direction its requirement.
std::string figure_of(const plan::Plan& plan, const plan::Requirement& requirement) {
  const Description::OwnMetric* metric = metric_of(plan, requirement);
  if (metric == nullptr || metric->direction == PairDirection::both || requirement.contrast) return requirement.id;
  std::string name = requirement.metric;
  const std::string_view direction = word_of(metric->direction);
  if (const auto at = name.find(direction); at != std::string::npos) name.erase(at, direction.size());
  return fmt::format("{} {} {} {} {} {} {} {}", requirement.required, requirement.probe, name, requirement.statistic,
                     requirement.plane, to_json(requirement.parameters).dump(), to_json(requirement.at).dump(),
                     requirement.pairs ? word_of(*requirement.pairs) : "");
}

PairDirection direction_of(const plan::Plan& plan, const plan::Requirement& requirement) {
  const Description::OwnMetric* metric = metric_of(plan, requirement);
  return metric == nullptr || requirement.contrast ? PairDirection::both : metric->direction;
}

/// Of one rail of one plane: nodes accused there by a required figure explain pairs short with them by others.
using Network = std::pair<std::string_view, std::string_view>;

/// The pairs of every requirement of scope pair, in the order of the profile, by figure.
class Figures {
 public:
  explicit Figures(const plan::Plan& plan) : plan_(plan) {
    for (const auto& requirement : plan.profile.requirements) {
      if (requirement.scope != plan::JudgedScope::pair || requirement.demand) continue;
      const std::string name = figure_of(plan, requirement);
      const auto known = std::ranges::find(figures_, name, &PairFigure::name);
      PairFigure& figure = known == figures_.end() ? figures_.emplace_back(PairFigure{.name = name}) : *known;
      figure.requirements.push_back(requirement.id);
      figure.plane = requirement.plane;
      figure.required = requirement.required && !requirement.contrast;  // a switch explains no slow pair
      judged_[requirement.id] = {.figure = static_cast<std::size_t>(&figure - figures_.data()),
                                 .direction = direction_of(plan, requirement)};
    }
    for (const auto& node : plan.site.nodes) {
      index_.emplace(node.name, names_.size());
      names_.push_back(node.name);
    }
  }

  [[nodiscard]] bool empty() const { return figures_.empty(); }

  /// `lost`: as of localise_pairs.
  void take(const Result& result, const std::set<std::string>& lost) {
    const auto judged = judged_.find(result.requirement);
    if (judged == judged_.end() || (!result.value && !is_short(result))) return;
    const auto* const step = plan_.step(result.step);
    if (step == nullptr || step->nodes.size() != 2) return;
    const auto& nodes = step->nodes;
    // A pair that broke because one of its nodes went away says nothing of the other.
    if (result.outcome == Outcome::error &&
        std::ranges::any_of(nodes, [&](const std::string& node) { return lost.contains(node); }))
      return;
    const std::size_t attempts = result.value ? result.each.size() : static_cast<std::size_t>(result.attempts);
    figures_[judged->second.figure].by_rail[step->rail].add(
        {.a = index_.at(nodes[0]),
         .b = index_.at(nodes[1]),
         .direction = judged->second.direction,
         .bad = is_short(result),
         .sure = result.outcome != Outcome::conditional_fail,
         .broken = !result.value,
         .share = result.value ? share_of(result) : 0,
         .attempts = attempts,
         .missed = result.value ? missed_attempts(result) : attempts,
         .step = step->id});
  }

  std::vector<Localised> localised() {
    std::map<Network, std::set<std::size_t>> at_fault;
    for (auto& figure : figures_) {
      for (auto& [rail, matrix] : figure.by_rail) {
        std::set<std::size_t> accused = matrix.accuse();
        auto& known = at_fault[{figure.plane, rail}];
        if (figure.required) known.merge(accused);
      }
    }
    std::vector<Localised> all;
    for (const auto& figure : figures_) {
      for (const auto& [rail, matrix] : figure.by_rail) {
        if (!matrix.has_bad()) continue;
        all.push_back(matrix.found(names_, at_fault.at({figure.plane, rail})));
        all.back().requirements = figure.requirements;
        all.back().rail = rail;
        if (!rail.empty()) all.back().reason = fmt::format("On rail {}: {}", rail, all.back().reason);
      }
    }
    return all;
  }

 private:
  struct Judged {
    std::size_t figure = 0;
    PairDirection direction = PairDirection::both;
  };

  const plan::Plan& plan_;
  std::vector<PairFigure> figures_;
  std::unordered_map<std::string_view, Judged> judged_;  ///< by requirement
  std::unordered_map<std::string_view, std::size_t> index_;
  std::vector<std::string> names_;
};

}  // namespace

std::vector<Localised> localise_pairs(const plan::Plan& plan, const Results& results, const std::set<std::string>& lost,
                                      const NodesByHost& hosts) {
  Figures figures(plan);
  if (!figures.empty()) {
    for (const auto& result : results) figures.take(result, lost);
  }
  std::vector<Localised> all = figures.localised();
  std::ranges::move(localise_parts(plan, results, hosts), std::back_inserter(all));
  return all;
}

}  // namespace assay::judge
