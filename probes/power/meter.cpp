// meter: reads the clock right after the instrument, so that an interval ends at its reading.
#include "probes/power/meter.h"

#include <algorithm>

namespace assay::power {

EnergyMeter::EnergyMeter(EnergyCounter counter)
    : counter_(std::move(counter)), last_uj_(counter_.read_uj()), last_(Clock::now()) {}

void EnergyMeter::read(bool whole) {
  if (!last_uj_) return;
  if (whole && std::chrono::duration<double>(Clock::now() - last_).count() < counter_.shortest_s) return;
  const auto now_uj = counter_.read_uj();
  const auto now = Clock::now();
  const bool back = now_uj && *now_uj < *last_uj_ && counter_.range_uj == 0;
  if (!now_uj || back) {
    last_uj_.reset();
    return;
  }
  const double time_s = std::chrono::duration<double>(now - last_).count();
  const std::uint64_t energy_uj = energy_between_uj(*last_uj_, *now_uj, counter_.range_uj);
  if (whole) {
    series_.add(energy_uj, time_s);
  } else {
    series_.close(energy_uj, time_s);
  }
  longest_s_ = std::max(longest_s_, time_s);
  last_uj_ = now_uj;
  last_ = now;
}

void GaugeMeter::read() {
  const auto power_w = gauge_.read_w();
  if (!power_w) return;
  pending_sum_w_ += *power_w;
  if (++pending_count_ < readings_per_sample_) return;
  samples_w_.push_back(pending_sum_w_ / readings_per_sample_);
  pending_sum_w_ = 0;
  pending_count_ = 0;
  if (samples_w_.size() < max_samples_) return;
  for (std::size_t i = 0; i + 1 < samples_w_.size(); i += 2)
    samples_w_[i / 2] = (samples_w_[i] + samples_w_[i + 1]) / 2;
  samples_w_.resize(samples_w_.size() / 2);
  readings_per_sample_ *= 2;
}

}  // namespace assay::power
