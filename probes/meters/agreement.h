// agreement: whether two instruments of one boundary agree, and how one depends on the other. Pure: readings in,
// figures and named doubts out. The procedure is that of MLPerf Training (power_measurement.adoc): five separate
// windows of one minute, at idle and under two loads, the Olympic score of each, and a limit on their ratio.
#pragma once

#include <array>
#include <expected>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "probes/meters/doubts.h"
#include "probes/meters/reading.h"

namespace assay::meters {

inline constexpr int kWindows = 5;
/// Levels of load that the procedure asks for: idle and two loads.
inline constexpr std::size_t kLevels = 3;

/// The mean without the largest and the smallest.
double olympic(std::array<double, kWindows> windows);

/// The Olympic mean of the power in `readings` over five windows of expected.window_s from `begin_s`, in W. An error
/// when a window has less than nine tenths of the readings that were due, or the readings of the level are doubtful.
std::expected<double, NamedDoubt> level_power_w(std::span<const MeterReading> readings, double begin_s,
                                                const Expected& expected);

/// The same without a look for doubts: only a window with too few readings is an error.
std::expected<double, NamedDoubt> olympic_power_w(std::span<const MeterReading> readings, double begin_s,
                                                  const Expected& expected);

/// Whether these levels, in W, are idle and two loads at least, each a tenth of the highest from the next; else why
/// not.
std::optional<NamedDoubt> levels_doubt(std::span<const double> levels_w);

/// Outcome of a comparison. undecided: an instrument is doubtful, or a level is missing.
enum class Finding { agrees, differs, undecided };

constexpr auto words_of(Finding) { return names_as_words<Finding>(); }

/// Two instruments over all levels. `mean_w` and `reference_w` have one number for each level, idle first.
struct Agreement {
  Finding finding = Finding::undecided;
  std::vector<double> mean_w, reference_w;
  double worst_ratio = 1;  ///< the ratio that is farthest from 1
  std::vector<NamedDoubt> doubts;
};

/// Compares `meter` with `reference`, which cover the same boundary, at the levels that begin at `begins_s`. The levels
/// must differ by a tenth of the highest power at least, or the load was not reached: undecided.
Agreement agreement_of(std::span<const MeterReading> meter, std::span<const MeterReading> reference,
                       std::span<const double> begins_s, const Expected& expected, double limit);

/// The sum of the readings of several instruments, second by second: feeds A and B of a node. A second in which one has
/// no reading has no sum.
std::vector<MeterReading> sum_of(std::span<const std::vector<MeterReading>> parts);

/// y = gain * x + offset by least squares.
struct Line {
  double gain = 0, offset_w = 0;
  double r_squared = 0;
};

/// The line through at least three levels; nothing if x hardly changes.
std::optional<Line> line_through(std::span<const double> x_w, std::span<const double> y_w);

/// One node under load while all others are idle.
struct LoadedAlone {
  std::string node;
  double idle_s = 0;    ///< when a window without load begins
  double loaded_s = 0;  ///< when a window of load begins
};

/// The map of outlets and the outlets' behaviour.
struct OutletFinding {
  std::string node;
  std::vector<std::string> mapped, moved;  ///< outlets, as "pdu-a1/3", sorted
  std::vector<std::string> seen;           ///< those with readings in both windows
  [[nodiscard]] bool proved() const { return !moved.empty() && mapped == moved; }
};

/// For each node the outlets that rose by a tenth of the strongest rise, and 5 W, when only it was loaded, from the
/// mean of one window of `window_s` to that of the other. `readings` and `map` go by outlet name.
std::vector<OutletFinding> prove_outlets(const std::map<std::string, std::vector<MeterReading>>& readings,
                                         const std::map<std::string, std::string>& map,
                                         std::span<const LoadedAlone> loads, double window_s = 60);

}  // namespace assay::meters
