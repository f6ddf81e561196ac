// derived: figures that a machine reports of its own design, for limits without a data sheet; a closed list.
#pragma once

#include <span>
#include <string_view>

namespace assay::plan {

/// Source of a derived figure.
enum class DerivedFrom {
  metric,      ///< a metric of the same subject in the same record
  inventory,   ///< a metric of the node in the record of health_inventory on the same node
  conditions,  ///< conditions of the same record, of every rank
};

/// One figure that limits may refer to as derived:NAME.
struct DerivedFigure {
  std::string_view name, unit;
  DerivedFrom from = DerivedFrom::metric;
  std::span<const std::string_view> parts;  ///< names of the metrics or conditions; all must be reported
  std::string_view meaning;                 ///< for people
};

/// The probe that DerivedFrom::inventory refers to.
inline constexpr std::string_view kInventoryProbe = "health_inventory";

/// Rate of a few TCP streams of one processor, in B/s: 100 Gb/s. A faster port is no promise of faster TCP.
inline constexpr double kFewStreams = 1.25e10;
/// A 4 KiB read of a drive without moving parts, and of one with, in s, that one in a hundred may take.
inline constexpr double kFlashPatience_s = 0.002, kDiskPatience_s = 0.05;

/// Every derived figure.
std::span<const DerivedFigure> derived_figures();

/// The one of this name, or nullptr.
const DerivedFigure* derived_figure(std::string_view name);

}  // namespace assay::plan
