// power_caps: limits of power that a machine has in force, and a limit that is lowered for a while and surely put back.
#pragma once

#include <optional>
#include <string>

#include "probes/core/record.h"
#include "probes/power/rapl.h"

namespace assay::power {

/// One limit in force.
struct PowerCap {
  Subject subject;
  double limit_w = 0;
  double window_s = 1;  ///< over which the power may not be above it on average
  std::string source;   ///< for people: the file, "NVML", "DCMI"
  std::string file;     ///< where root may write it, in microwatts; empty: nowhere
};

/// The lasting limit (constraint long_term) of the package of `zone`, if any.
std::optional<PowerCap> rapl_cap(const RaplZone& zone);

/// A limit that is lower for as long as this lives. A guardian, a process of its own session that is there before the
/// limit is lowered, writes the former number back when this process ends, by SIGKILL as well.
class LoweredCap {
 public:
  /// Starts the guardian, before other threads are started; nothing is changed yet. Throws std::runtime_error when it
  /// cannot be started.
  LoweredCap(const PowerCap& cap, double lower_w);
  LoweredCap(const LoweredCap&) = delete;
  LoweredCap& operator=(const LoweredCap&) = delete;
  /// Puts the former limit back, if restore() did not.
  ~LoweredCap();

  /// Writes the lower limit. Throws std::runtime_error, with nothing changed, when the file does not take it.
  void lower();
  /// Puts the former limit back and reads it. Throws std::runtime_error, naming file and number, when it is not back;
  /// the guardian then tries it once more.
  void restore();

 private:
  void release(char word);

  std::string file_;
  std::string former_, lower_;  ///< in microwatts, as the file takes them
  int to_guardian_ = -1;
  int guardian_ = -1;
  bool restored_ = true;
};

}  // namespace assay::power
