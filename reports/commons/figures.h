// figures: passed figures of boards of one kind, as counts in narrow steps of their size. Counts of sites
// can be added up, and show no single board of a large group.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>

#include "probes/core/record.h"

namespace assay::commons {

/// Figures that may be added up: of one model, measured in one way under the same conditions.
struct Group {
  std::string model;  ///< of the accelerator or the processor, as its record has it
  std::string probe;
  std::int64_t revision = 0;
  std::string metric, unit, better, statistic;
  Values at;          ///< coordinates of the figure
  Values parameters;  ///< of the probe, those that are not its defaults
  Values conditions;  ///< those of kGroupConditions that the record has
  friend auto operator<=>(const Group&, const Group&) = default;
};

/// Conditions that make figures of one model incomparable.
inline constexpr const char* kGroupConditions[] = {"power_limit_w", "mig", "ecc", "compute_partition",
                                                   "memory_partition"};

/// Positive figures counted by size: step i holds figures over kStep^(i-1), up to kStep^i. A quantile is within 0.25 %.
class Sketch {
 public:
  static constexpr double kStep = 1.005;

  void add(double figure);
  void add(const Sketch& other);
  void add(int step, std::uint64_t boards);
  [[nodiscard]] std::uint64_t boards() const { return boards_; }
  [[nodiscard]] const std::map<int, std::uint64_t>& counts() const { return counts_; }
  /// The middle of the step in which the ceil(share x boards)-th smallest is; there must be one.
  [[nodiscard]] double quantile(double share) const;

 private:
  std::map<int, std::uint64_t> counts_;
  std::uint64_t boards_ = 0;
};

/// Figures of one group.
struct Figures {
  Sketch boards;
  std::uint64_t contributors = 1;
};
using AllFigures = std::map<Group, Figures>;

}  // namespace assay::commons
