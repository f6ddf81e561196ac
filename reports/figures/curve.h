// curve: a figure over the size of messages or of groups, as inline SVG.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "probes/core/statistics.h"

namespace assay::figures {

/// The values at one size; numbers in the base unit of the curve.
struct CurvePoint {
  double x = 0;                             ///< size, above 0
  std::string label;                        ///< of the size; empty: none
  bool marked = false;                      ///< its label is drawn, if others would touch it
  std::size_t subjects = 0;                 ///< that have a value here
  std::optional<double> low, high;          ///< smallest and largest value of all subjects; absent if none was measured
  std::optional<double> value;              ///< of the one that is drawn as a line
  std::optional<Interval> interval;         ///< of `value`
  std::optional<double> limit, acceptance;  ///< of the one that is drawn
  bool passes = false;                      ///< whether the drawn result passes
};

/// A horizontal line.
struct CurveLine {
  double value = 0;
  std::string words;
  std::string css_class;  ///< wire or reference
};

/// A figure of several sizes.
struct Curve {
  std::string title, description;
  std::string x_name, y_name;
  std::string unit;                ///< base unit of the values
  std::vector<CurvePoint> points;  ///< by rising x, at least two
  std::vector<CurveLine> lines;
};

/// The curve: size on a base-2 logarithmic axis; values from 0, or logarithmic where the largest is more than
/// kLinearRange times the smallest. Band: smallest to largest of all subjects; line with intervals: the one chosen;
/// dots pass, crosses do not.
std::string curve_svg(const Curve& curve);

/// Values that spread over more than that are drawn on a logarithmic axis.
inline constexpr double kLinearRange = 20;

}  // namespace assay::figures
