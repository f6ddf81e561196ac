// reliability: computes rates and intervals; the chi-squared quantile is Boost's.
#include "workloads/train/step/reliability.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <boost/math/distributions/chi_squared.hpp>

#include "probes/core/statistics.h"

namespace assay::train {
namespace {

constexpr double kConfidence = 0.95;
constexpr std::size_t kFewestTimes = 4, kFewestValues = 10, kMostValues = 1500;

double chi_squared(std::int64_t interruptions) {
  const boost::math::chi_squared distribution(2 * static_cast<double>(interruptions) + 2);
  return boost::math::quantile(distribution, kConfidence);
}

/// Medians of neighbours, so that at most kMostValues are left.
std::vector<double> joined(std::span<const double> values) {
  const std::size_t together = (values.size() + kMostValues - 1) / kMostValues;
  std::vector<double> fewer;
  for (std::size_t i = 0; i + together <= values.size(); i += together) {
    const auto part = values.subspan(i, together);
    fewer.push_back(median(part));
  }
  return fewer;
}

}  // namespace

double mtbf_bound_s(double load_s, std::int64_t interruptions) { return 2 * load_s / chi_squared(interruptions); }

double load_to_show_s(double mtbf_s) { return mtbf_s * chi_squared(0) / 2; }

std::optional<double> laplace_trend(std::span<const double> at_s, double load_s) {
  if (at_s.size() < kFewestTimes || load_s <= 0) return std::nullopt;
  double sum = 0;
  for (const double one : at_s) sum += one;
  const auto count = static_cast<double>(at_s.size());
  return (sum / count / load_s - 0.5) * std::sqrt(12 * count);
}

std::optional<Drift> drift_of(std::span<const double> times, std::span<const double> values) {
  const auto x = joined(times), y = joined(values);
  const std::size_t count = y.size();
  if (count < kFewestValues) return std::nullopt;
  const double middle = median(y);
  if (middle <= 0) return std::nullopt;
  std::vector<double> slopes;
  slopes.reserve(count * (count - 1) / 2);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i + 1; j < count; ++j) slopes.push_back((y[j] - y[i]) / (x[j] - x[i]));
  }
  std::ranges::sort(slopes);
  const auto n = static_cast<double>(count), pairs = static_cast<double>(slopes.size());
  const double spread = normal_quantile(kConfidence) * std::sqrt(n * (n - 1) * (2 * n + 5) / 18);
  const double rank = std::min(std::ceil((pairs + spread) / 2), pairs - 1);
  const double share = (x.back() - x.front()) / middle;
  return Drift{.per_length = median(slopes) * share, .bound = slopes[static_cast<std::size_t>(rank)] * share};
}
namespace {

void add(std::optional<std::int64_t>& sum, const std::optional<std::int64_t>& more) {
  if (more) sum = sum.value_or(0) + *more;
}

}  // namespace

MachineErrors machine_errors(const MachineTree& tree) {
  MachineErrors found;
  const std::string cpus = "sys/devices/system/cpu";
  for (const auto& cpu : tree.names(cpus)) {
    for (const char* file : {"core_throttle_count", "package_throttle_count"})
      add(found.throttled, tree.number(cpus + "/" + cpu + "/thermal_throttle/" + file));
  }
  const std::string controllers = "sys/devices/system/edac/mc";
  for (const auto& controller : tree.names(controllers)) {
    add(found.corrected, tree.number(controllers + "/" + controller + "/ce_count"));
    add(found.uncorrected, tree.number(controllers + "/" + controller + "/ue_count"));
  }
  return found;
}

std::optional<std::int64_t> risen(const std::optional<std::int64_t>& before, const std::optional<std::int64_t>& after) {
  if (!before || !after) return std::nullopt;
  return *after >= *before ? *after - *before : *after;
}

}  // namespace assay::train
