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
  for (std::size_t begin = 0; begin < steps.size();) {
    std::size_t end = begin + 1;
    while (end < steps.size() && steps[end].requirements == steps[begin].requirements) ++end;
    const Row row = steps.subspan(begin, end - begin);
    if (widths_.empty() || width_of(row) != width || row.front().after != after) widths_.emplace_back();
    width = width_of(row);
    after = row.front().after;
    widths_.back().push_back(row);
    first_ = std::max(first_, row.front().attempts);
    second_ = std::max(second_, row.front().more_attempts);
    begin = end;
  }
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
    std::vector<Row> rows;
    std::ranges::copy_if(width, std::back_inserter(rows),
                         [&](Row row) { return takes_part(row.front(), stage, pass); });
    const auto share = static_cast<std::size_t>(std::max(first_, 2));
    const std::size_t stride = rows.size() < kFewestToTurn ? 0 : rows.size() / share;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (const Step& step : rows[(i + before * stride) % rows.size()]) turns.push_back(&step);
    }
  }
  return turns;
}

}  // namespace assay::plan
