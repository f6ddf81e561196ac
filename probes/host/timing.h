// timing: the loop that turns work into a wall time, and the means to keep a compiler from removing the work.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "probes/core/sampling.h"
#include "probes/core/units.h"

namespace assay::host {

/// Makes the compiler believe that `value` is read, so that its computation stays.
template <class T>
inline void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

/// How many rounds take about `goal`: doubles the rounds until one timed call takes a tenth of the goal, then scales.
/// `run(rounds)` returns the time it took, wall or CPU. At least 1; stops doubling at 2^40 rounds.
inline std::uint64_t rounds_for(Seconds goal, const std::function<Seconds(std::uint64_t)>& run) {
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

/// `seen` as samples that were taken together with those of `decided`: as many, warm-up first.
inline Sampling beside(const Sampling& decided, const std::vector<double>& seen) {
  const auto warmup = seen.begin() + static_cast<std::ptrdiff_t>(decided.warmup.size());
  return {.samples = {warmup, seen.end()}, .warmup = {seen.begin(), warmup}, .stopped = decided.stopped};
}

}  // namespace assay::host
