// readings: values that were read again and again while something ran.
#pragma once

#include <optional>
#include <vector>

namespace assay::nvml {

/// Readings in the order taken.
class Readings {
 public:
  /// Keeps `reading` when there is one.
  void add(const std::optional<double>& reading);
  [[nodiscard]] bool empty() const { return values_.empty(); }
  /// None of these may be asked while empty().
  [[nodiscard]] double min() const;
  [[nodiscard]] double max() const;
  [[nodiscard]] double mean() const;
  [[nodiscard]] double first() const { return values_.front(); }
  [[nodiscard]] double last() const { return values_.back(); }
  /// Mean of the last quarter of the readings over that of the quarter before: 1 where nothing moves any more. Nothing
  /// with fewer than eight, of which a quarter is two.
  [[nodiscard]] std::optional<double> drift() const;

 private:
  std::vector<double> values_;
};

}  // namespace assay::nvml
