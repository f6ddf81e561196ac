// timing: the loop that turns work into a wall time, and the means to keep a compiler from removing the work.
#pragma once

#include <cstdint>
#include <functional>

#include "probes/core/units.h"

namespace assay::host {

/// Makes the compiler believe that `value` is read, so that what computes it stays.
template <class T>
inline void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

/// How many rounds take about `goal`: doubles the rounds until one timed call takes a tenth of the goal, then scales.
/// `run(rounds)` returns the time it took, wall or CPU. At least 1; stops doubling at 2^40 rounds.
std::uint64_t rounds_for(Seconds goal, const std::function<Seconds(std::uint64_t)>& run);

}  // namespace assay::host
