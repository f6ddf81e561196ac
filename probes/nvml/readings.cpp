// readings: smallest, largest, means.
#include "probes/nvml/readings.h"

#include <algorithm>
#include <numeric>
#include <span>

namespace assay::nvml {
namespace {

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

void Readings::add(const std::optional<double>& reading) {
  if (reading) values_.push_back(*reading);
}

double Readings::min() const { return std::ranges::min(values_); }
double Readings::max() const { return std::ranges::max(values_); }
double Readings::mean() const { return mean_of(values_); }

std::optional<double> Readings::drift() const {
  constexpr std::size_t kFewest = 8, kQuarters = 4;
  if (values_.size() < kFewest) return std::nullopt;
  const std::size_t quarter = values_.size() / kQuarters;
  const auto newest = std::span(values_).last(quarter);
  const auto before = std::span(values_).last(2 * quarter).first(quarter);
  const double reference = mean_of(before);
  return reference > 0 ? std::optional(mean_of(newest) / reference) : std::nullopt;
}

}  // namespace assay::nvml
