// axis: numbers on a line of a figure, and as only the report shows them. Any double may come, of a broken node or an
// enemy; work and places stay bounded.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/scale.h"

namespace assay::figures {

/// The double nearest to `value` within ±1e290; 0 below 1e-290 and for NaN. A figure computes with these without
/// overflow.
double drawable(double value);

/// A linear axis.
class Axis {
 public:
  /// From 0 to 1.
  Axis() = default;
  /// From `low` to `high`, drawable both; wider if their difference is below 1e-9 of them.
  Axis(double low, double high);
  /// Around `values`, with `margin` of their spread at both ends; around equal ones, `single` of their size (1 around
  /// 0). Values that are not finite are passed over; 0 to 1 if none is left.
  static Axis around(std::span<const double> values, double margin, double single = 1);

  [[nodiscard]] double low() const { return low_; }
  [[nodiscard]] double high() const { return high_; }
  /// 0 at the low end, 1 at the high one; values beyond an end are at that end, NaN at the low one.
  [[nodiscard]] double share(double value) const;
  /// Round numbers within the axis: 3 to 9 of them, steps 1, 2 or 5 times a power of ten.
  [[nodiscard]] std::vector<double> marks() const;

 private:
  double low_ = 0, high_ = 1;
};

/// A base-unit number with every digit it has: "450000000000 B/s".
std::string exact_text(double value, std::string_view unit);

/// The scale for `marks` of an axis in base unit `unit`: round numbers, without the trailing zeros that all of them
/// share.
Scale scale_for_marks(std::span<const double> marks, std::string_view unit);

/// A size of messages, exact: "8 B", "64 KiB", "1 GiB"; sizes that are no whole number of those in bytes.
std::string size_words(double bytes);

/// A probability or share for people: "2.1 %", "< 0.001 %", "0 %".
std::string percent(double share);

}  // namespace assay::figures
