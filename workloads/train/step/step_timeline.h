// step_timeline: activities of a rank in one step, in stretches that a figure can show.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "workloads/train/graph/step_job.h"

namespace assay::train {

/// Activity of a rank; `collective` includes waiting for others, `beside` overlaps with later activities.
enum class Activity { forward, backward, collective, optimizer, beside };
/// Their words, in this order.
inline constexpr std::array<std::string_view, 5> kActivities = {"forward", "backward", "collective", "optimizer",
                                                                "beside"};

/// By activity, begin and end of each stretch in turn, in s since the step began. `spans` are those of `ops`; `beside`
/// is whether gradients were reduced during the backward pass. Gaps below a thousandth of the step are closed, so that
/// no activity has more than a thousand stretches.
std::array<std::vector<double>, kActivities.size()> stretches_of(const std::vector<Op>& ops,
                                                                 std::span<const OpSpan> spans, bool beside);

}  // namespace assay::train
