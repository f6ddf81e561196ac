// count_and_state: one metric of class count or state, night after night.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "orchestrator/drift/level.h"

namespace assay::drift {

/// Tonight's value of a slot, of a regular visit or a fresh test.
struct PlainInput {
  std::uint32_t slot = 0, cohort = 0;
  double value = 0;
  std::uint64_t boot = 0;  ///< which boot of the node
  bool regular = true;
};

/// State of one series.
struct PlainState {
  double last = 0;  ///< value of the last visit; of a state the first one that was seen
  std::uint64_t boot = 0;
  Day last_day = kNever;
  std::uint32_t seen = 0, held = 0;
};

/// The finding of an input.
struct PlainFinding {
  std::size_t input = 0;  ///< its place in the night's
  bool bad = false, regular = true;
  double events = 0, expected = 0;  ///< of a count; of a state: value and expected value
};

/// How such a metric is judged.
struct PlainRules {
  MetricClass type = MetricClass::count;
  bool fatal = false;
  Course course = Course::each_run;
  std::optional<double> most_per_day = {};  ///< of a count: more are bad regardless of the peers
  std::optional<double> expected = {};
};

class PlainMetric {
 public:
  PlainMetric() = default;
  explicit PlainMetric(PlainRules rules) : rules_(rules) {}

  std::vector<PlainState> states;   ///< by slot
  double events = 0, exposure = 0;  ///< of all peers; exposure in nights

  /// Takes `inputs` in ascending order of slots, those of a slot in the order of their times; `p` is the probability at
  /// which a count is unusual. Gives a finding for every value that can be judged.
  std::vector<PlainFinding> night(Day day, std::span<const PlainInput> inputs, double p);

 private:
  [[nodiscard]] double events_since(const PlainState& kept, const PlainInput& input) const;
  PlainFinding count(Day day, const PlainInput& input, double p);
  PlainFinding state(const PlainInput& input, const std::map<std::uint32_t, double>& modes);
  PlainRules rules_;
};

}  // namespace assay::drift
