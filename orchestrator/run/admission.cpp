// admission: sums of power, counts of steps, time until the deadline.
#include "orchestrator/run/admission.h"

namespace assay::run {
namespace {

constexpr double kPowerSlack = 1e-9;  // relative; sums of watts are not exact

std::chrono::steady_clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

Admission::Admission(std::optional<double> power_cap_w, std::optional<Seconds> deadline) : power_cap_w_(power_cap_w) {
  if (deadline) deadline_ = Clock::now() + duration_of(deadline->count);
}

bool Admission::fits_power(const plan::Step& step) const {
  return !power_cap_w_ || power_w_ + step.power_w <= *power_cap_w_ * (1 + kPowerSlack);
}

bool Admission::fits_time(const plan::Step& step) const {
  return deadline_ == Clock::time_point::max() || Clock::now() + duration_of(step.typical_s) <= deadline_;
}

void Admission::begin(const plan::Step& step) {
  power_w_ += step.power_w;
  ++running_;
  alone_ = step.alone;
}

void Admission::end(const plan::Step& step) {
  power_w_ -= step.power_w;
  --running_;
  alone_ = false;
}

}  // namespace assay::run
