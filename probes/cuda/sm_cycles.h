// sm_cycles: how many cycles the multiprocessors of a GPU spend on work, by their own counters.
#pragma once

#include <optional>

#include "probes/core/units.h"
#include "probes/cuda/device.h"

namespace assay::cuda {

/// Cycles between two points of a stream. Each point is a small kernel with one block on every multiprocessor; the work
/// between them needs no pause. Unlike NVML's readings of the clock, which are up to 10 % away from it under a power
/// cap (docs/MEASUREMENTS.md), these are exact.
class SmCycles {
 public:
  /// Of `device`, which is current.
  explicit SmCycles(const Device& device);

  /// Marks the begin, and the end, behind all work enqueued in `stream` so far.
  void begin(const Stream& stream);
  void end(const Stream& stream);

  struct Counted {
    double cycles = 0;    ///< of all multiprocessors together
    double clock_hz = 0;  ///< their mean clock
  };
  /// What was counted from begin to end; waits for the end. Nothing where one multiprocessor was not read.
  [[nodiscard]] std::optional<Counted> counted() const;

 private:
  void mark_point(const Stream& stream, std::size_t point, const Event& event);

  std::size_t processors_;
  Bytes shared_;  ///< memory of a block that leaves no room for another one beside it
  DeviceBuffer stamps_;
  Event begin_, end_;
};

}  // namespace assay::cuda
