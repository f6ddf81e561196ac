// axis: numbers on a line of a figure. Any double may come, of a broken node or an enemy; work and places stay bounded.
#pragma once

#include <span>
#include <vector>

namespace assay::figures {

/// The double nearest to `value` that a figure can compute with: within ±1e290, 0 below 1e-290, and 0 for what is no
/// number.
double drawable(double value);

/// A linear axis.
class Axis {
 public:
  /// From 0 to 1.
  Axis() = default;
  /// From `low` to `high`, drawable both; wider if these cannot be told apart.
  Axis(double low, double high);
  /// Around `values`, with `margin` of their spread at both ends. Equal ones are in the middle, with `alone` of their
  /// size at both ends (1 around 0). What is not finite is passed over; 0 to 1 if nothing is left.
  static Axis around(std::span<const double> values, double margin, double alone = 1);

  [[nodiscard]] double low() const { return low_; }
  [[nodiscard]] double high() const { return high_; }
  /// 0 at the low end, 1 at the high one; what lies beyond is at that end, what is no number at the low one.
  [[nodiscard]] double share(double value) const;
  /// Round numbers within the axis: 3 to 9 of them, steps 1, 2 or 5 times a power of ten.
  [[nodiscard]] std::vector<double> marks() const;

 private:
  double low_ = 0, high_ = 1;
};

}  // namespace assay::figures
