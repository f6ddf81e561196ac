// windows: the rate of a counter, window by window without a gap, and how ranks pass such rates on.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "probes/core/sampling.h"
#include "probes/core/units.h"

namespace assay::host {

/// Rates of a counter that other threads move.
class Windows {
 public:
  /// The first window begins now; `count` reads the counter.
  Windows(std::function<std::uint64_t()> count, Seconds window);

  /// Waits until a window has passed since the last one's end; the growth a second, by the wall clock. Throws
  /// std::runtime_error when the process is to stop.
  double next();

 private:
  using Clock = std::chrono::steady_clock;
  std::function<std::uint64_t()> count_;
  Seconds window_;
  Clock::time_point at_;
  std::uint64_t before_;
};

/// Samples for another rank, and as it reads them. Throws std::runtime_error for other words.
std::string words_of(const Sampling& taken);
Sampling windows_in(const std::string& words);

}  // namespace assay::host
