// controls: finds the alike readings of each size and compares a test with their mean; see controls.h. Only + - * / and
// sqrt are used, so that a search takes the same course on every processor.
#include "orchestrator/judge/locate/controls.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace assay::judge {
namespace {

constexpr double kLeastDifference = 0.02;   // between readings that count as different
constexpr double kDeviations = 4;           // of alike readings, when that is more
constexpr std::size_t kFewestToExpect = 4;  // readings
constexpr int kMostPasses = 20;             // each can only widen the difference

/// How many of `falling` are alike: each is within `difference` of the mean of those before it.
std::size_t alike(const std::vector<double>& falling, double difference) {
  double sum = 0;
  std::size_t count = 0;
  for (const double share : falling) {
    if (count > 0 && share < (1 - difference) * sum / static_cast<double>(count)) break;
    sum += share;
    ++count;
  }
  return count;
}

/// The number of readings above the first gap that only a fault leaves: below half of the readings or more, within 2
/// % of each other; or four times as wide as any above it, or as any other if less than half of the readings are above
/// it. All, if there is none: then they scatter for a cause that all share.
std::size_t above_gap(const std::vector<double>& falling) {
  constexpr double kWider = 4;
  const double least = kLeastDifference * falling.front();
  std::vector<double> gaps;
  for (std::size_t i = 1; i < falling.size(); ++i) gaps.push_back(falling[i - 1] - falling[i]);
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    if (gaps[i] < least) continue;
    const bool few = 2 * i < gaps.size();
    if (!few && falling.front() - falling[i] <= least) return i + 1;
    double widest = 0;
    for (std::size_t other = 0; other < (few ? gaps.size() : i); ++other)
      widest = other == i ? widest : std::max(widest, gaps[other]);
    if (gaps[i] > kWider * widest) return i + 1;
  }
  return falling.size();
}

double mean(const std::vector<double>& falling, std::size_t count) {
  return std::accumulate(falling.begin(), falling.begin() + static_cast<std::ptrdiff_t>(count), 0.0) /
         static_cast<double>(count);
}

}  // namespace

bool Reading::meets() const {
  return !broken && std::ranges::all_of(shares, [](double share) { return share >= 1; });
}

void Controls::add(std::size_t size, const Reading& reading) {
  if (reading.broken) return;
  if (shares_.size() < reading.shares.size()) {
    shares_.resize(reading.shares.size());
    expected_.resize(reading.shares.size());
  }
  for (std::size_t limit = 0; limit < reading.shares.size(); ++limit) {
    auto& falling = shares_[limit][size];
    const double share = reading.shares[limit];
    falling.insert(std::ranges::upper_bound(falling, share, std::greater<>{}), share);
  }
}

void Controls::forget(std::size_t size) {
  for (auto& sizes : shares_) sizes.erase(size);
}

void Controls::expect(std::size_t size) {
  for (std::size_t limit = 0; limit < shares_.size(); ++limit) {
    expected_[limit] = {};
    const auto found = shares_[limit].find(size);
    if (found == shares_[limit].end() || found->second.size() < kFewestToExpect || !(found->second.front() > 0))
      continue;
    const auto& falling = found->second;
    const std::size_t count = above_gap(falling);
    if (count < 2) continue;
    const double centre = mean(falling, count);
    double squares = 0;
    for (std::size_t i = 0; i < count; ++i) squares += (falling[i] / centre - 1) * (falling[i] / centre - 1);
    const auto freedom = static_cast<double>(count - 1);
    const double relative = std::sqrt(squares / freedom);
    if (relative > Deviation{}.relative) expected_[limit] = {.relative = relative, .weight = freedom};
  }
}

double Controls::difference(std::size_t limit) const {
  double difference = kLeastDifference;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    const auto& [relative, weight] = expected_[limit];
    double squares = weight * relative * relative;
    double freedom = weight;
    for (const auto& [size, falling] : shares_[limit]) {
      const std::size_t count = alike(falling, difference);
      const double centre = mean(falling, count);
      if (!(centre > 0)) continue;
      for (std::size_t i = 0; i < count; ++i) squares += (falling[i] / centre - 1) * (falling[i] / centre - 1);
      freedom += static_cast<double>(count - 1);
    }
    const double wider = std::max(kLeastDifference, kDeviations * std::sqrt(squares / freedom));
    if (!(wider > difference)) break;
    difference = wider;
  }
  return difference;
}

std::size_t Controls::count(std::size_t size) const {
  if (shares_.empty()) return 0;
  std::size_t fewest = std::numeric_limits<std::size_t>::max();
  for (std::size_t limit = 0; limit < shares_.size(); ++limit) {
    const auto found = shares_[limit].find(size);
    fewest = std::min(fewest, found == shares_[limit].end() ? 0 : alike(found->second, difference(limit)));
  }
  return fewest;
}

std::optional<Compared> Controls::compare(std::size_t size, const Reading& reading) const {
  if (reading.broken) return std::nullopt;
  std::optional<Compared> worst;
  for (std::size_t limit = 0; limit < std::min(shares_.size(), reading.shares.size()); ++limit) {
    const auto found = shares_[limit].find(size);
    if (found == shares_[limit].end()) continue;
    const double delta = difference(limit);
    const double control = mean(found->second, alike(found->second, delta));
    const double share = reading.shares[limit];
    const Compared one{.is_short = share < (1 - delta) * control, .share = share, .control = control};
    const bool worse = !worst || (one.is_short && !worst->is_short) ||
                       (one.is_short == worst->is_short && one.share * worst->control < worst->share * one.control);
    if (worse) worst = one;
  }
  return worst;
}

bool Controls::meet_limits(std::size_t size) const {
  return !shares_.empty() && std::ranges::all_of(shares_, [&](const auto& sizes) {
    const auto found = sizes.find(size);
    const auto limit = static_cast<std::size_t>(&sizes - shares_.data());
    return found != sizes.end() && mean(found->second, alike(found->second, difference(limit))) >= 1;
  });
}

}  // namespace assay::judge
