// load_report: the message of a load's ranks to the first of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace assay::power {

/// The figures of one rank. Times in s.
struct LoadReport {
  double level_error = 0;             ///< greatest difference of the level that was due and its own
  double late_s = 0;                  ///< from when it was to begin until its last part did
  std::optional<double> throttled_s;  ///< the part that its temperature slowed down longest; nothing: not counted
  std::optional<double> brake_s;      ///< the same of a signal
  std::vector<double> rates = {};     ///< FLOP/s, second by second
};

/// As a line of numbers; of the rates at most the first 20,000, since a message has a bound.
std::string text_of(const LoadReport& told);
/// Throws std::runtime_error for another text.
LoadReport load_told_in(const std::string& text);

}  // namespace assay::power
