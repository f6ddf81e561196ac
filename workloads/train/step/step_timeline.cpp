// step_timeline: joins successive operations that do the same into one stretch.
#include "workloads/train/step/step_timeline.h"

#include <algorithm>

namespace assay::train {
namespace {

constexpr double kGap = 1e-3;  // of the step: less than a figure shows

Activity activity_of(const Op& op, bool beside) {
  if (op.kind == OpKind::collective) return op.beside && beside ? Activity::beside : Activity::collective;
  if (op.kind == OpKind::optimizer) return Activity::optimizer;
  return op.pass == Pass::forward ? Activity::forward : Activity::backward;
}

}  // namespace

std::array<std::vector<double>, kActivities.size()> stretches_of(const std::vector<Op>& ops,
                                                                 std::span<const OpSpan> spans, bool beside) {
  double whole_s = 0;
  for (const auto& span : spans) whole_s = std::max(whole_s, span.end_s);
  std::array<std::vector<double>, kActivities.size()> all;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (spans[i].end_s <= 0) continue;  // it did not run
    auto& stretches = all.at(static_cast<std::size_t>(activity_of(ops[i], beside)));
    if (!stretches.empty() && spans[i].begin_s - stretches.back() <= kGap * whole_s)
      stretches.back() = std::max(stretches.back(), spans[i].end_s);
    else
      stretches.insert(stretches.end(), {spans[i].begin_s, spans[i].end_s});
  }
  return all;
}

}  // namespace assay::train
