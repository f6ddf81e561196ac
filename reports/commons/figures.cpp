// figures: a histogram with steps of equal ratio, which adds up exactly (Masson et al. 2019, DDSketch).
#include "reports/commons/figures.h"

#include <cmath>

#include "probes/core/portable_math.h"

namespace assay::commons {

void Sketch::add(double figure) { add(static_cast<int>(std::ceil(portable_log(figure) / portable_log(kStep))), 1); }

void Sketch::add(const Sketch& other) {
  for (const auto& [step, boards] : other.counts_) add(step, boards);
}

void Sketch::add(int step, std::uint64_t boards) {
  counts_[step] += boards;
  boards_ += boards;
}

double Sketch::quantile(double share) const {
  const auto rank = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(boards_)));
  std::uint64_t below = 0;
  int found = counts_.begin()->first;
  for (const auto& [step, boards] : counts_) {
    if (below > 0 && below >= rank) break;
    below += boards;
    found = step;
  }
  return 2 * portable_exp(found * portable_log(kStep)) / (1 + kStep);
}

}  // namespace assay::commons
