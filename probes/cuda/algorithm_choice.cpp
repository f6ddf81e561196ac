// algorithm_choice: sums over GPUs, short lists and ties.
#include "probes/cuda/algorithm_choice.h"

#include <algorithm>
#include <functional>

namespace assay::cuda {
namespace {

constexpr double kClose = 1.01;  // means of 0.8 s there and back repeat within 1 % (docs/MEASUREMENTS.md)
constexpr double kTie = 1.003;   // and those of another second each within 0.3 %
constexpr std::size_t kMostClose = 3;

double best_of(const AlgorithmRates& rates) { return std::ranges::max_element(rates, {}, &AlgorithmRate::rate)->rate; }

/// The `most` fastest of `rates` that are not slower than the fastest by `share`, and the first where `first` says so,
/// in their order.
std::vector<std::string> fastest_of(const AlgorithmRates& rates, std::size_t most, double share, bool first) {
  std::vector<std::size_t> order(rates.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) { return rates[i].rate; });
  if (first) {
    std::erase(order, std::size_t{0});
    order.insert(order.begin(), 0);
  }
  const double least = best_of(rates) / share;
  std::erase_if(order, [&](std::size_t i) { return rates[i].rate < least && !(first && i == 0); });
  order.resize(std::min(most, order.size()));
  std::ranges::sort(order);
  std::vector<std::string> names;
  for (const std::size_t i : order) names.push_back(rates[i].algorithm);
  return names;
}

}  // namespace

AlgorithmRates summed(std::span<const AlgorithmRates> gpus) {
  AlgorithmRates sums = gpus.front();
  for (const AlgorithmRates& other : gpus.subspan(1)) {
    std::erase_if(sums, [&](AlgorithmRate& one) {
      const auto same = std::ranges::find(other, one.algorithm, &AlgorithmRate::algorithm);
      if (same == other.end()) return true;
      one.rate += same->rate;
      return false;
    });
  }
  return sums;
}

std::vector<std::string> shortlist(const AlgorithmRates& rates, std::size_t most) {
  return fastest_of(rates, most, kNear, true);
}

std::vector<std::string> still_close(const AlgorithmRates& rates) {
  return fastest_of(rates, kMostClose, kClose, false);
}

AlgorithmChoice choose(const AlgorithmRates& rates) {
  const double best = best_of(rates);
  const auto chosen = std::ranges::find_if(rates, [&](const AlgorithmRate& one) { return one.rate * kTie >= best; });
  AlgorithmChoice choice{.algorithm = chosen->algorithm, .tried = rates};
  double other = 0;
  for (auto one = rates.begin(); one != rates.end(); ++one) {
    if (one != chosen) other = std::max(other, one->rate);
  }
  if (other > 0) choice.margin = chosen->rate / other - 1;
  return choice;
}

AlgorithmRates TrialBoard::exchange(std::size_t place, const std::string& model, const AlgorithmRates& rates,
                                    Barrier& barrier) {
  if (!together_) return rates;
  {
    const std::scoped_lock lock(mutex_);
    entries_[place] = {.model = model, .rates = rates};
  }
  barrier.wait_for_all();
  std::vector<AlgorithmRates> peers;
  {
    const std::scoped_lock lock(mutex_);
    for (const Entry& entry : entries_) {
      if (entry.model == model) peers.push_back(entry.rates);
    }
  }
  barrier.wait_for_all();  // all read these before any one leaves the next rates
  const AlgorithmRates sums = summed(peers);
  return sums.empty() ? rates : sums;
}

std::optional<AlgorithmChoice> TrialBoard::earlier(const std::string& model) const {
  const std::scoped_lock lock(mutex_);
  const auto found = chosen_.find(model);
  return found == chosen_.end() ? std::nullopt : std::optional(found->second);
}

void TrialBoard::keep(const std::string& model, const AlgorithmChoice& choice) {
  const std::scoped_lock lock(mutex_);
  if (!together_) chosen_.emplace(model, choice);
}

}  // namespace assay::cuda
