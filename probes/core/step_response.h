// step_response: rise, overshoot and settling of a step as a meter shows it, where the meter is fast enough. Pure.
#pragma once

#include <expected>
#include <optional>
#include <span>
#include <string>

namespace assay {

/// One reading; times of readings and of the step are on one clock, in s.
struct TimedValue {
  double at_s = 0, value = 0;
};

/// A step of a load, and how the meter looks at it.
struct StepSeen {
  double at_s = 0;        ///< when the load begins to change
  double until_s = 0;     ///< when it changes again
  double before_s = 0;    ///< from when on it was as it was until at_s
  double interval_s = 0;  ///< between two readings
  std::optional<double> averaging_s =
      {};              ///< window that a reading is the mean of, as the meter or its document states
  double clock_s = 0;  ///< by how much the clocks of load and meter may differ
};

/// A step up or down as it was seen. The levels are the medians of the halves of the holds that are away from the step.
struct StepResponse {
  double low = 0, high = 0;  ///< level before and after it, in the meter's unit
  double rise_s = 0;         ///< from 10 to 90 % of the way, straight lines between readings
  double slope = 0;          ///< 0.8 of the way over rise_s, in the meter's unit a second; below 0 for a step down
  double overshoot = 0;   ///< farthest reading beyond the new level, as a share of the way; 0 within three deviations
  double settling_s = 0;  ///< from at_s until all readings stay within 5 % of the way, or three deviations
  double deviation = 0;   ///< standard deviation of readings at the new level
};

/// A rise is seen within 10 % by readings and averages of at most this share of it.
inline constexpr double kSeenShare = 0.2;

/// What `readings`, in the order taken, show of `step`; why they show nothing: too few readings at a level, a step that
/// does not stand out of their scatter, an unknown averaging window, or one that is, as the interval may be, over a
/// fifth of the rise.
std::expected<StepResponse, std::string> step_response(std::span<const TimedValue> readings, const StepSeen& step);

}  // namespace assay
