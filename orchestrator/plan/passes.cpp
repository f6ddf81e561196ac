// passes: orders the attempts: rows of steps, rotated a little further in each pass. See passes.h.
#include "orchestrator/plan/passes.h"

#include <algorithm>
#include <iterator>

namespace assay::plan {
namespace {

constexpr std::size_t kFewestToTurn = 3;  // of two rows, turning would put the last of a pass first in the next one

std::size_t width_of(std::span<const Step> row) {
  return std::ranges::max(row, {}, [](const Step& step) { return step.nodes.size(); }).nodes.size();
}

}  // namespace

Passes::Passes(const Plan& plan) {
  const std::span<const Step> steps = plan.steps;
  std::size_t width = 0;
  bool after = false;
  UnitOf unit_of;
  for (std::size_t begin = 0; begin < steps.size();) {
    std::size_t end = begin + 1;
    while (end < steps.size() && steps[end].requirements == steps[begin].requirements &&
           steps[end].parameters == steps[begin].parameters)
      ++end;
    const Row row = steps.subspan(begin, end - begin);
    if (widths_.empty() || width_of(row) != width || row.front().after != after) {
      widths_.emplace_back();
      unit_of.clear();
    }
    width = width_of(row);
    after = row.front().after;
    add(row, plan, widths_.back(), unit_of);
    first_ = std::max(first_, row.front().attempts);
    second_ = std::max(second_, row.front().more_attempts);
    begin = end;
  }
}

/// Adds `row` to the unit that shares a contrast with it; if two do, to the first, with the rows of the other.
void Passes::add(const Row& row, const Plan& plan, std::vector<Unit>& units, UnitOf& unit_of) {
  std::size_t mine = units.size();
  for (const auto& id : row.front().requirements) {
    if (const auto known = unit_of.find(id); known != unit_of.end()) mine = std::min(mine, known->second);
  }
  if (mine == units.size()) units.emplace_back();
  for (const auto& id : row.front().requirements) {
    const auto known = unit_of.find(id);
    if (known != unit_of.end() && known->second != mine) {
      const std::size_t other = known->second;
      std::ranges::move(units[other], std::back_inserter(units[mine]));
      units[other].clear();
      for (auto& [contrast, unit] : unit_of) {
        if (unit == other) unit = mine;
      }
    } else if (plan.requirement(id)->contrast) {
      unit_of[id] = mine;
    }
  }
  units[mine].push_back(row);
}

bool Passes::takes_part(const Step& step, Stage stage, int pass) const {
  const int attempts = attempts_of(step, stage);
  return step.after ? pass > count(stage) - attempts : pass <= attempts;
}

std::vector<const Step*> Passes::steps(Stage stage, int pass) const {
  const auto before =
      static_cast<std::size_t>(pass) - 1 + static_cast<std::size_t>(stage == Stage::second ? first_ : 0);
  std::vector<const Step*> turns;
  for (const auto& width : widths_) {
    std::vector<Unit> units;
    for (const Unit& unit : width) {
      Unit mine;
      std::ranges::copy_if(unit, std::back_inserter(mine),
                           [&](const Row& row) { return takes_part(row.front(), stage, pass); });
      if (before % 2 == 1) std::ranges::reverse(mine);
      if (!mine.empty()) units.push_back(std::move(mine));
    }
    const auto share = static_cast<std::size_t>(std::max(first_, 2));
    const std::size_t stride = units.size() < kFewestToTurn ? 0 : units.size() / share;
    for (std::size_t i = 0; i < units.size(); ++i) {
      const Unit& unit = units[(i + before * stride) % units.size()];
      for (std::size_t place = 0; place < unit.front().size(); ++place) {
        for (const Row& row : unit) turns.push_back(&row[place]);
      }
    }
  }
  return turns;
}

}  // namespace assay::plan
