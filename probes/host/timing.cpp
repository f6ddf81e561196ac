// timing: calibration of the number of rounds.
#include "probes/host/timing.h"

#include <algorithm>
#include <cmath>

namespace assay::host {

std::uint64_t rounds_for(Seconds goal, const std::function<Seconds(std::uint64_t)>& run) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;  // work that is still immeasurable then was optimised away
  constexpr double kEnough = 0.1;  // of the goal: timer and start-up are then under 1 % of a burst
  std::uint64_t rounds = 1;
  double time = run(rounds).count;
  while (time < goal.count * kEnough && rounds < kMost) {
    rounds *= 2;
    time = run(rounds).count;
  }
  const double scaled = static_cast<double>(rounds) * goal.count / std::max(time, 1e-9);
  return std::clamp(static_cast<std::uint64_t>(std::llround(std::min(scaled, static_cast<double>(kMost)))),
                    std::uint64_t{1}, kMost);
}

}  // namespace assay::host
