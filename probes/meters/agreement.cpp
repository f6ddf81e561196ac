// agreement: means of windows, their Olympic score, ratios of the two sides and the line through the levels; see
// agreement.h.
#include "probes/meters/agreement.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <ranges>

#include <fmt/format.h>

namespace assay::meters {
namespace {

constexpr double kLeastReadings = 0.9;  // of those that were due: the procedure asks for even ones
constexpr double kLeastStep = 0.1;      // between levels, of the highest: else a gain is lost in noise
constexpr double kMovedShare = 0.1, kMovedLeast_w = 5;

/// The mean power of the window that begins at `begin_s`; nothing with too few readings.
std::optional<double> window_mean_w(std::span<const MeterReading> readings, double begin_s, const Expected& expected) {
  const double length_s = expected.window_s;
  double sum_w = 0;
  int count = 0;
  for (const auto& one : readings) {
    if (one.absent || one.quantity != Quantity::power || one.taken_s < begin_s || one.taken_s >= begin_s + length_s)
      continue;
    sum_w += one.value;
    ++count;
  }
  if (count < kLeastReadings * length_s / expected.interval_s) return std::nullopt;
  return sum_w / count;
}

}  // namespace

double olympic(std::array<double, kWindows> windows) {
  std::ranges::sort(windows);
  return std::accumulate(windows.begin() + 1, windows.end() - 1, 0.0) / (kWindows - 2);
}

std::expected<double, NamedDoubt> level_power_w(std::span<const MeterReading> readings, double begin_s,
                                                const Expected& expected) {
  std::vector<MeterReading> of_level;
  std::ranges::copy_if(readings, std::back_inserter(of_level), [&](const MeterReading& one) {
    return one.taken_s >= begin_s && one.taken_s < begin_s + kWindows * expected.window_s;
  });
  Expected held = expected;
  held.load_changed = false;  // within one level it does not
  if (auto doubts = doubts_of(of_level, held); !doubts.empty()) return std::unexpected(doubts.front());
  return olympic_power_w(of_level, begin_s, expected);
}

std::expected<double, NamedDoubt> olympic_power_w(std::span<const MeterReading> readings, double begin_s,
                                                  const Expected& expected) {
  std::array<double, kWindows> windows{};
  for (int i = 0; i < kWindows; ++i) {
    const auto mean_w = window_mean_w(readings, begin_s + i * expected.window_s, expected);
    if (!mean_w)
      return std::unexpected(
          NamedDoubt{Doubt::gaps, fmt::format("window {} of {} has less than {:.0f} readings", i + 1, kWindows,
                                              kLeastReadings * expected.window_s / expected.interval_s)});
    windows.at(static_cast<std::size_t>(i)) = *mean_w;
  }
  return olympic(windows);
}

std::optional<NamedDoubt> levels_doubt(std::span<const double> levels_w) {
  if (levels_w.size() < kLevels)
    return NamedDoubt{Doubt::gaps, fmt::format("{} of {} levels of load", levels_w.size(), kLevels)};
  std::vector<double> sorted(levels_w.begin(), levels_w.end());
  std::ranges::sort(sorted);
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    if (sorted[i] - sorted[i - 1] >= kLeastStep * sorted.back()) continue;
    return NamedDoubt{Doubt::gaps, fmt::format("two levels of load lie only {:.0f} W apart at {:.0f} W",
                                               sorted[i] - sorted[i - 1], sorted.back())};
  }
  return std::nullopt;
}

Agreement agreement_of(std::span<const MeterReading> meter, std::span<const MeterReading> reference,
                       std::span<const double> begins_s, const Expected& expected, double limit) {
  Agreement found;
  Expected over_all = expected;
  over_all.load_changed = true;
  for (const auto readings : {meter, reference}) {
    for (auto& doubt : doubts_of(readings, over_all)) {
      doubt.figures =
          fmt::format("{} {}", readings.empty() ? "instrument" : readings.front().instrument, doubt.figures);
      found.doubts.push_back(std::move(doubt));
    }
  }
  for (const double begin_s : begins_s) {
    if (!found.doubts.empty()) break;
    const auto mean_w = level_power_w(meter, begin_s, expected);
    const auto reference_w = level_power_w(reference, begin_s, expected);
    if (!mean_w) found.doubts.push_back(mean_w.error());
    if (!reference_w) found.doubts.push_back(reference_w.error());
    if (!mean_w || !reference_w) break;
    found.mean_w.push_back(*mean_w);
    found.reference_w.push_back(*reference_w);
    const double ratio = *mean_w / *reference_w;
    if (std::abs(ratio - 1) > std::abs(found.worst_ratio - 1)) found.worst_ratio = ratio;
  }
  if (!found.doubts.empty()) return found;
  if (auto doubt = levels_doubt(found.reference_w)) {
    found.doubts.push_back(std::move(*doubt));
    return found;
  }
  found.finding = std::abs(found.worst_ratio - 1) <= limit ? Finding::agrees : Finding::differs;
  return found;
}

std::vector<MeterReading> sum_of(std::span<const std::vector<MeterReading>> parts) {
  if (parts.empty()) return {};
  std::map<std::int64_t, std::pair<std::size_t, double>> by_second;
  for (const auto& part : parts) {
    std::map<std::int64_t, double> once;  // an instrument that answers twice in a second counts once
    for (const auto& one : part) {
      if (!one.absent && one.quantity == Quantity::power)
        once[static_cast<std::int64_t>(std::floor(one.taken_s))] = one.value;
    }
    for (const auto& [second, value] : once) {
      auto& [count, sum_w] = by_second[second];
      ++count;
      sum_w += value;
    }
  }
  std::vector<MeterReading> sums;
  for (const auto& [second, of] : by_second) {
    if (of.first != parts.size()) continue;
    MeterReading one = parts.front().empty() ? MeterReading{} : parts.front().front();
    one.value = of.second;
    one.taken_s = static_cast<double>(second);
    one.stated_s.reset();
    for (const auto& part : parts.subspan(1)) {
      if (part.empty()) continue;
      one.quantum += part.front().quantum;
      if (part.front().origin == Origin::synthesised) one.origin = Origin::synthesised;
      if (part.front().averaging_s) one.averaging_s = std::max(one.averaging_s.value_or(0), *part.front().averaging_s);
    }
    sums.push_back(std::move(one));
  }
  return sums;
}

std::optional<Line> line_through(std::span<const double> x_w, std::span<const double> y_w) {
  if (x_w.size() != y_w.size() || x_w.size() < kLevels) return std::nullopt;
  const auto count = static_cast<double>(x_w.size());
  const double mean_x = std::accumulate(x_w.begin(), x_w.end(), 0.0) / count;
  const double mean_y = std::accumulate(y_w.begin(), y_w.end(), 0.0) / count;
  double xx = 0, xy = 0, yy = 0;
  for (std::size_t i = 0; i < x_w.size(); ++i) {
    xx += (x_w[i] - mean_x) * (x_w[i] - mean_x);
    xy += (x_w[i] - mean_x) * (y_w[i] - mean_y);
    yy += (y_w[i] - mean_y) * (y_w[i] - mean_y);
  }
  if (std::sqrt(xx / count) < kLeastStep / 2 * std::abs(mean_x) || xx <= 0) return std::nullopt;
  const double gain = xy / xx;
  return Line{.gain = gain, .offset_w = mean_y - gain * mean_x, .r_squared = yy > 0 ? xy * xy / (xx * yy) : 0};
}

std::vector<OutletFinding> prove_outlets(const std::map<std::string, std::vector<MeterReading>>& readings,
                                         const std::map<std::string, std::string>& map,
                                         std::span<const LoadedAlone> loads, double window_s) {
  const Expected window{.window_s = window_s};
  std::vector<OutletFinding> findings;
  for (const auto& load : loads) {
    OutletFinding finding{.node = load.node};
    std::map<std::string, double> rises;
    for (const auto& [outlet, series] : readings) {
      const auto idle_w = window_mean_w(series, load.idle_s, window);
      const auto loaded_w = window_mean_w(series, load.loaded_s, window);
      if (!idle_w || !loaded_w) continue;
      rises.emplace(outlet, *loaded_w - *idle_w);
      finding.seen.push_back(outlet);
    }
    const double strongest = rises.empty() ? 0 : std::ranges::max(rises | std::views::values);
    for (const auto& [outlet, rise_w] : rises) {
      if (rise_w >= std::max(kMovedShare * strongest, kMovedLeast_w)) finding.moved.push_back(outlet);
    }
    for (const auto& [outlet, node] : map) {
      if (node == load.node) finding.mapped.push_back(outlet);
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

}  // namespace assay::meters
