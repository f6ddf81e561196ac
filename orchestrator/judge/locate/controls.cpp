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
constexpr std::size_t kOneIn = 5;           // of them the best, which lie about one deviation apart
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

/// The same number, and as many more as follow without a gap of twice the widest among those before: a fault leaves
/// one, a scatter that all groups share does not.
std::size_t unbroken(const std::vector<double>& falling, std::size_t count) {
  double widest = 0;
  for (std::size_t i = 1; i < falling.size(); ++i) {
    const double gap = falling[i - 1] - falling[i];
    if (i >= count && gap > 2 * widest) return i;
    widest = std::max(widest, gap);
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
    const double gap = 1 - falling[std::max<std::size_t>(2, (falling.size() + 4) / kOneIn) - 1] / falling.front();
    double near = std::max(kLeastDifference, kDeviations * gap);
    for (int pass = 0; pass < kMostPasses; ++pass) {
      const std::size_t count = unbroken(falling, alike(falling, near));
      const double centre = mean(falling, count);
      double squares = 0;
      for (std::size_t i = 0; i < count; ++i) squares += (falling[i] / centre - 1) * (falling[i] / centre - 1);
      const auto freedom = static_cast<double>(std::max<std::size_t>(count, 2) - 1);
      const double relative = std::sqrt(squares / freedom);
      if (relative > Deviation{}.relative) expected_[limit] = {.relative = relative, .weight = freedom};
      if (!(kDeviations * relative > near)) break;
      near = kDeviations * relative;
    }
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
