// stonewall: sums over the clients at the stonewall, quantiles of times, and measures of how even the clients were.
#include "workloads/storage/shared/stonewall.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "probes/core/statistics.h"

namespace assay::cluster_storage {
namespace {

constexpr std::uint64_t kClassesPerOctave = 64;
constexpr int kClassBits = 6;
static_assert(1U << kClassBits == kClassesPerOctave);

/// The class of a time in ns: below 64 the time itself, then 64 classes for each octave.
std::size_t class_of(std::uint64_t time_ns) {
  if (time_ns < kClassesPerOctave) return static_cast<std::size_t>(time_ns);
  const int octave = static_cast<int>(std::bit_width(time_ns)) - 1 - kClassBits;
  return static_cast<std::size_t>((static_cast<std::uint64_t>(octave) + 1) * kClassesPerOctave +
                                  ((time_ns >> octave) - kClassesPerOctave));
}

/// The largest time of a class, in ns.
double end_of_class(std::size_t number) {
  if (number < kClassesPerOctave) return static_cast<double>(number);
  const auto octave = static_cast<int>(number / kClassesPerOctave - 1);
  const auto within = static_cast<double>(number % kClassesPerOctave + kClassesPerOctave + 1);
  return std::ldexp(within, octave) - 1;
}

}  // namespace

void Progress::add(Seconds at, std::uint64_t bytes) {
  const auto slot = static_cast<std::size_t>(std::max(0.0, at.count) / kSlot_s);
  if (slot >= slots_.size()) slots_.resize(slot + 1);
  slots_[slot] += bytes;
  total_ += bytes;
}

double Progress::bytes_by(Seconds at) const {
  double bytes = 0;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    const double passed = std::clamp(at.count / kSlot_s - static_cast<double>(slot), 0.0, 1.0);
    if (passed == 0) break;
    bytes += passed * static_cast<double>(slots_[slot]);
  }
  return bytes;
}

void Progress::add(const Progress& other) {
  if (slots_.size() < other.slots_.size()) slots_.resize(other.slots_.size());
  for (std::size_t slot = 0; slot < other.slots_.size(); ++slot) slots_[slot] += other.slots_[slot];
  total_ += other.total_;
}

std::optional<double> stonewall_of(std::span<const Standing> clients, std::optional<double> duration_s) {
  if (clients.empty()) return std::nullopt;
  std::optional<double> first = duration_s;
  for (const auto& client : clients) {
    if (client.out_of_work || !first) first = std::min(first.value_or(client.end_s), client.end_s);
  }
  return first;
}

std::optional<double> jain_index(std::span<const double> values) {
  double sum = 0, squares = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  if (!(squares > 0)) return std::nullopt;
  return std::min(1.0, sum * sum / (static_cast<double>(values.size()) * squares));
}

std::optional<double> smallest_share(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  const auto [least, most] = std::ranges::minmax(values);
  if (!(most > 0)) return std::nullopt;
  return least / most;
}

std::optional<std::vector<double>> shares_of_median(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  const double middle = median(values);
  if (!(middle > 0)) return std::nullopt;
  std::vector<double> shares;
  for (const double value : values) shares.push_back(value / middle);
  return shares;
}

void TimeClasses::add(double time_s) {
  constexpr double kNanoseconds = 1e9;
  const std::size_t number = class_of(static_cast<std::uint64_t>(std::max(1.0, time_s * kNanoseconds)));
  if (number >= counts_.size()) counts_.resize(number + 1);
  ++counts_[number];
  ++count_;
}

void TimeClasses::add(const TimeClasses& other) {
  if (counts_.size() < other.counts_.size()) counts_.resize(other.counts_.size());
  for (std::size_t number = 0; number < other.counts_.size(); ++number) counts_[number] += other.counts_[number];
  count_ += other.count_;
}

std::optional<double> TimeClasses::quantile(double fraction) const {
  if (count_ == 0) return std::nullopt;
  const auto rank = std::max(1.0, std::ceil(fraction * static_cast<double>(count_)));
  double seen = 0;
  for (std::size_t number = 0; number < counts_.size(); ++number) {
    seen += static_cast<double>(counts_[number]);
    if (seen >= rank) return end_of_class(number) * 1e-9;
  }
  return std::nullopt;
}

}  // namespace assay::cluster_storage
