// steadiness: fits a line through the means of twenty parts of the window; their scatter gives the uncertainty of the
// slope.
#include "probes/power/steadiness.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace assay::power {
namespace {

constexpr std::size_t kParts = 20;  // of a window: neighbouring readings depend on each other, means of parts hardly
constexpr double kCovered = 0.9;    // of a window, by readings
constexpr std::size_t kFewestParts = 15;  // with a reading
constexpr std::size_t kFewSteps = 3;      // of a sensor with coarse steps, in a window
constexpr double kLargeStep = 0.25;       // of the movement allowed in a window

/// Whether `values` went one way only, in a few steps of at least `step` each: a coarse sensor of something that moves
/// slowly, whose line may have any slope.
bool is_staircase(const std::vector<double>& values, double step) {
  std::size_t up = 0, down = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const double change = values[i] - values[i - 1];
    if (change == 0) continue;
    if (std::abs(change) < step) return false;
    ++(change > 0 ? up : down);
  }
  const std::size_t steps = up + down;
  return steps > 0 && steps <= kFewSteps && (up == 0 || down == 0);
}

}  // namespace

void Steadiness::add(const std::string& name, SteadyKind kind, double at_s, double value) {
  Series& series = series_[name];
  series.kind = kind;
  series.points.push_back({.at_s = at_s, .value = value});
  while (series.points.front().at_s < at_s - 2 * limits_.window_s) series.points.pop_front();
}

double Steadiness::limit_of(const Series& series, double mean) const {
  switch (series.kind) {
    case SteadyKind::temperature:
      return limits_.temperature_k_s;
    case SteadyKind::power:
      return limits_.power_share * std::abs(mean) / limits_.window_s;
    case SteadyKind::clock:
      break;
  }
  return limits_.clock_share * std::abs(mean) / limits_.window_s;
}

std::optional<SteadySlope> Steadiness::slope_in(const Series& series, double now_s) const {
  struct Part {
    double sum_t = 0, sum = 0;
    int count = 0;
  };
  std::array<Part, kParts> parts;
  std::vector<double> values;
  const double begin_s = now_s - limits_.window_s;
  double first_s = now_s, last_s = begin_s;
  for (const auto& [at_s, value] : series.points) {
    if (at_s <= begin_s || at_s > now_s) continue;
    const double place = (at_s - begin_s) / limits_.window_s * static_cast<double>(kParts);
    Part& part = parts[std::min(static_cast<std::size_t>(place), kParts - 1)];
    part.sum_t += at_s;
    part.sum += value;
    ++part.count;
    values.push_back(value);
    first_s = std::min(first_s, at_s);
    last_s = at_s;
  }
  std::vector<Point> means;
  for (const auto& part : parts)
    if (part.count > 0) means.push_back({.at_s = part.sum_t / part.count, .value = part.sum / part.count});
  if (means.size() < kFewestParts || last_s - first_s < kCovered * limits_.window_s) return std::nullopt;
  const double n = static_cast<double>(means.size());
  double mean_t = 0, mean = 0;
  for (const auto& one : means) {
    mean_t += one.at_s / n;
    mean += one.value / n;
  }
  double tt = 0, ty = 0, residuals = 0;
  for (const auto& one : means) {
    tt += (one.at_s - mean_t) * (one.at_s - mean_t);
    ty += (one.at_s - mean_t) * (one.value - mean);
  }
  const double slope = ty / tt;
  for (const auto& one : means) {
    const double off = one.value - mean - slope * (one.at_s - mean_t);
    residuals += off * off;
  }
  const double step = kLargeStep * limit_of(series, mean) * limits_.window_s;
  return SteadySlope{.slope = slope,
                     .error = std::sqrt(residuals / (n - 2) / tt),
                     .mean = mean,
                     .staircase = is_staircase(values, step)};
}

std::string Steadiness::words(const std::string& name, const Series& series, const SteadySlope& slope) const {
  constexpr double kMinute_s = 60, kPercent = 100;
  const double limit = limit_of(series, slope.mean), known = limits_.surely * slope.error;
  const char* verdict = std::abs(slope.slope) - known > limit ? "it moves" : "not known to be steady";
  if (series.kind == SteadyKind::temperature)
    return fmt::format("{} moves by {:.3f} K a minute, known to +-{:.3f} ({:g} standard errors); {:.2g} is steady: {}",
                       name, slope.slope * kMinute_s, known * kMinute_s, limits_.surely, limit * kMinute_s, verdict);
  const double whole = limits_.window_s / std::abs(slope.mean) * kPercent;
  return fmt::format(
      "{} moves by {:.2f} % in {:g} s, known to +-{:.2f} % ({:g} standard errors); {:.2g} % is steady: {}", name,
      slope.slope * whole, limits_.window_s, known * whole, limits_.surely, limit * whole, verdict);
}

std::string Steadiness::unsteady(double now_s) const {
  if (series_.empty()) return "nothing was read yet";
  for (const auto& [name, series] : series_) {
    const auto slope = slope_in(series, now_s);
    if (!slope) return fmt::format("{} has less than {:g} s of readings", name, limits_.window_s);
    if (slope->staircase) return fmt::format("{} moved one way in steps of its sensor", name);
    if (std::abs(slope->slope) + limits_.surely * slope->error > limit_of(series, slope->mean))
      return words(name, series, *slope);
  }
  return "";
}

std::string Steadiness::moving(double now_s) const {
  for (const auto& [name, series] : series_) {
    const auto slope = slope_in(series, now_s);
    if (!slope) return fmt::format("{} has less than {:g} s of readings", name, limits_.window_s);
    if (std::abs(slope->slope) - limits_.surely * slope->error > limit_of(series, slope->mean))
      return words(name, series, *slope);
  }
  return "";
}

void SteadyMark::look(const Steadiness& series, double now_s) {
  if (!mark_s_) {
    why_not_ = series.unsteady(now_s);
    if (why_not_.empty()) mark_s_ = now_s;
    return;
  }
  if (now_s - *mark_s_ < limits_.window_s) return;  // the window still has the readings of the mark
  std::string words = series.moving(now_s);
  if (words.empty()) return;
  why_not_ = std::move(words);
  mark_s_.reset();
  ++withdrawn_;
}

}  // namespace assay::power
