// sampling: warm up until steady, then sample until the answer is known well enough or a cap is reached.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "probes/core/parameters.h"

namespace assay {

/// Samples of a run and the reason of its end.
struct Sampling {
  std::vector<double> samples;  ///< in the order taken
  std::vector<double> warmup;   ///< discarded from judgement
  std::string stopped;          ///< stable | sample_cap | time_cap | fixed
};

/// When warm-up and sampling end.
struct SamplingPlan {
  std::size_t min_samples = 10;   ///< below 6 no 95 % distribution-free interval exists; 10 gives ranks 2 and 9
  std::size_t max_samples = 50;   ///< a quantity that is not stable by then is reported as it is
  Seconds time_limit = {10};      ///< for the samples; min_samples are taken all the same
  Seconds warmup_limit = {3};     ///< cap of the warm-up
  Seconds warmup_least = {0};     ///< warm-up continues this long, steady or not, beyond the cap too
  Seconds load_least = {0};       ///< samples are taken this long, regardless of max_samples and time_limit
  double half_width_goal = 0.01;  ///< stop when the 95 % interval's half width is under this share of the median, at
                                  ///< min_samples, twice, four times, … as many, and at max_samples: who looks after
                                  ///< every sample stops when the interval is narrow by chance
};

/// The parameters that every sampled probe has; probe_main adds them to the spec.
inline constexpr Parameter kSamplingParameters[] = {
    parameter("min_samples", "1", "10", "samples taken at least"),
    parameter("max_samples", "1", "50", "samples taken at most", "20"),
    parameter("time_limit", "s", "10s", "time after which sampling ends", "2s"),
    parameter("warmup_limit", "s", "3s", "longest warm-up", "500ms"),
    spent("warmup_least", "0s", "shortest warm-up, steady or not; it may pass warmup_limit", "0s"),
};

/// The plan that `given` asks for.
SamplingPlan sampling_plan(const Parameters& given);

/// Calls `measure` for each sample. Warm-up ends when the last six values show no trend (the median of the newer three
/// is within the goal of the median of the older three) or at its cap, never before `warmup_least`, and has at least
/// one value; those are kept apart. A value that is not finite throws std::runtime_error.
Sampling sample(const SamplingPlan& plan, const std::function<double()>& measure);

/// Exactly `count` samples without warm-up, for work that cannot be repeated at will.
Sampling sample_fixed(std::size_t count, const std::function<double()>& measure);

/// Values as shares of `whole`, in the same unit.
Sampling share_of(Sampling values, double whole);

}  // namespace assay
