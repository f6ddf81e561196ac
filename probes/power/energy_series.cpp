// energy_series: adds up whole microjoules, so that a total is exact for any length of the window.
#include "probes/power/energy_series.h"

#include <utility>

namespace assay::power {

void EnergySeries::add(std::uint64_t energy_uj, double time_s) {
  energy_uj_ += energy_uj;
  time_s_ += time_s;
  pending_.energy_uj += energy_uj;
  pending_.time_s += time_s;
  if (++pending_count_ < intervals_per_sample_) return;
  spans_.push_back(pending_);
  pending_ = {};
  pending_count_ = 0;
  if (spans_.size() >= max_samples_) join_pairs();
}

void EnergySeries::close(std::uint64_t energy_uj, double time_s) {
  energy_uj_ += energy_uj;
  time_s_ += time_s;
  if (spans_.empty() && time_s_ > 0) spans_.push_back({energy_uj_, time_s_});
}

std::vector<double> EnergySeries::power_w() const {
  std::vector<double> result;
  result.reserve(spans_.size());
  for (const Span& span : spans_) result.push_back(static_cast<double>(span.energy_uj) * 1e-6 / span.time_s);
  return result;
}

void EnergySeries::join_pairs() {
  std::vector<Span> joined;
  joined.reserve(max_samples_);
  for (std::size_t i = 0; i + 1 < spans_.size(); i += 2) {
    joined.push_back({spans_[i].energy_uj + spans_[i + 1].energy_uj, spans_[i].time_s + spans_[i + 1].time_s});
  }
  spans_ = std::move(joined);
  intervals_per_sample_ *= 2;
}

}  // namespace assay::power
