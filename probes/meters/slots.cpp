// slots: keeps the mean of each slot; when the series is full, pairs of slots become their mean, which keeps the energy
// of a stretch.
#include "probes/meters/slots.h"

#include <cmath>
#include <limits>

namespace assay::meters {
namespace {

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();
constexpr double kLongestGap_s = 7 * 86400;  // beyond it the clock was set, and the slots between are none

}  // namespace

void SlotSeries::add(double taken_s, double value) {
  auto slot = static_cast<std::int64_t>(std::floor(taken_s / interval_s_));
  if (slots_.empty()) first_ = slot;
  const auto last = first_ + static_cast<std::int64_t>(slots_.size()) - 1;
  if (!slots_.empty() && (slot < last || static_cast<double>(slot - last) * interval_s_ > kLongestGap_s)) {
    ++left_out_;
    return;
  }
  while (static_cast<std::size_t>(slot - first_) >= max_slots_) {
    join_pairs();
    slot = static_cast<std::int64_t>(std::floor(taken_s / interval_s_));
  }
  const auto wanted = static_cast<std::size_t>(slot - first_ + 1);
  if (wanted > slots_.size()) {
    slots_.resize(wanted, kGap);
    in_last_ = 0;
  }
  ++in_last_;
  slots_.back() = in_last_ == 1 ? value : slots_.back() + (value - slots_.back()) / in_last_;
}

void SlotSeries::join_pairs() {
  const std::int64_t first = first_ >= 0 ? first_ / 2 : (first_ - 1) / 2;
  std::vector<double> joined(
      static_cast<std::size_t>((first_ + static_cast<std::int64_t>(slots_.size()) - 1) / 2 - first + 1), kGap);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    double& into = joined[static_cast<std::size_t>((first_ + static_cast<std::int64_t>(i)) / 2 - first)];
    if (std::isnan(slots_[i])) continue;
    in_last_ = std::isnan(into) ? 1 : 2;
    into = in_last_ == 1 ? slots_[i] : (into + slots_[i]) / 2;
  }
  slots_ = std::move(joined);
  first_ = first;
  interval_s_ *= 2;
}

std::map<std::int64_t, double> SlotSeries::values() const {
  std::map<std::int64_t, double> all;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (!std::isnan(slots_[i])) all.emplace(first_ + static_cast<std::int64_t>(i), slots_[i]);
  }
  return all;
}

void SlotSeries::widen_to(double interval_s) {
  while (interval_s_ < interval_s && !slots_.empty()) join_pairs();
}

std::vector<Stretch> SlotSeries::stretches() const {
  std::vector<Stretch> all;
  bool open = false;
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (std::isnan(slots_[i])) {
      open = false;
      continue;
    }
    if (!open)
      all.push_back({.begin_s = static_cast<double>(first_ + static_cast<std::int64_t>(i)) * interval_s_,
                     .interval_s = interval_s_,
                     .samples = {}});
    open = true;
    all.back().samples.push_back(slots_[i]);
  }
  return all;
}

}  // namespace assay::meters
