// flag_register: a flag from the night that raised it to its end. Nothing ends a confirmed flag but an event.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "orchestrator/drift/level.h"

namespace assay::drift {

/// Unit and metric.
using FlagKey = std::pair<std::string, std::string>;

/// A flag that is not closed.
struct OpenFlag {
  Flag flag;
  std::uint32_t unit = 0, metric = 0, series = 0;
  double s = 0;              ///< deviation at the raise
  double effect = 0;         ///< logarithm, now
  double visits = 0;         ///< of its reference
  double size = 0;           ///< of the effect at the raise, in deviations, without its sign
  double pooled = 0;         ///< visits up to the raise, those that raised it too; 0: of no level
  double pooled_mean = 0;    ///< their mean over the reference, in deviations
  double noise = 1;          ///< of a test, in deviations: more than 1 where the unit scatters more than its peers
  double min_effect = 0.01;  ///< as a share
  bool pair = false;         ///< of a figure that two nodes measured together
  int clean = 0;             ///< good visits since a repair
};

/// Reported facts of one test of a flagged series.
struct Observation {
  Day day = 0;
  double residual = 0;  ///< in deviations; below 0 is worse
  double ratio = 1;
  bool regular = true;
  std::string partner, run_sha256;
};

class FlagRegister {
 public:
  std::map<FlagKey, OpenFlag> open;
  std::map<FlagKey, std::vector<Day>> raised;  ///< nights of all flags, open and closed

  /// Takes a new flag; its id and relapses are filled in.
  OpenFlag& raise(OpenFlag flag, Day day);
  /// A test, a nightly visit or a fresh one. True when the flag is refuted or repaired and must be released.
  bool observe(OpenFlag& one, const Observation& seen, const Policy& policy);
  /// The end of a night in which the series was visited: `effect` is the newest estimate, `clear` whether both charts
  /// are at 0, `learning` whether it has fewer visits than the warm-up: then it is watched only. True when the flag
  /// must be released.
  bool settle(OpenFlag& one, double effect, bool clear, bool learning);

 private:
  void relapse(OpenFlag& one, Day day);
  /// The flag is raised once more by `seen`, whose tests begin anew.
  void raise_again(OpenFlag& one, const Observation& seen);
};

/// The fresh tests that an open flag still needs; 0: none.
int tests_wanted(const OpenFlag& one);

/// The sentence of a flag.
std::string words_of_flag(const OpenFlag& one);

}  // namespace assay::drift
