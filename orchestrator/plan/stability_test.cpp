// stability_test: the distribution of interruptions, look by look. See stability_test.h.
#include "orchestrator/plan/stability_test.h"

#include <algorithm>
#include <cmath>

#include "probes/core/portable_math.h"

namespace assay::plan {
namespace {

/// Poisson probabilities of 0 to `most`.
std::vector<double> poisson(double mean, int most) {
  std::vector<double> all;
  double log_factorial = 0;
  for (int k = 0; k <= most; ++k) {
    if (k > 0) log_factorial += portable_log(k);
    all.push_back(mean > 0 ? portable_exp(k * portable_log(mean) - mean - log_factorial) : k == 0 ? 1 : 0);
  }
  return all;
}

std::vector<Look> looks_with(const StabilityDesign& design, double share) {
  const double ratio = portable_log(design.accepted_mtbf_h / design.refused_mtbf_h);
  const double rate = (1 / design.refused_mtbf_h - 1 / design.accepted_mtbf_h) / ratio;
  const double vendor = design.vendor_risk * share, buyer = design.buyer_risk * share;
  const double to_accept = portable_log((1 - vendor) / buyer) / ratio;
  const double to_reject = portable_log((1 - buyer) / vendor) / ratio;
  std::vector<Look> looks = looks_at_end(design);
  for (Look& look : looks) {
    const double middle = rate * look.hours * static_cast<double>(design.nodes);
    look.accept = static_cast<int>(std::clamp(std::floor(middle - to_accept), -1.0, design.tolerated * 1.0));
    look.reject = static_cast<int>(std::clamp(std::ceil(middle + to_reject), 0.0, design.tolerated + 1.0));
  }
  looks.back() = {.hours = looks.back().hours, .accept = design.tolerated, .reject = design.tolerated + 1};
  return looks;
}

}  // namespace

std::optional<Crossing> crossing(std::span<const Look> looks, std::span<const int> interruptions) {
  for (std::size_t i = 0; i < std::min(looks.size(), interruptions.size()); ++i) {
    const bool accepted = interruptions[i] <= looks[i].accept;
    if (accepted || interruptions[i] >= looks[i].reject) return Crossing{.look = i, .accepted = accepted};
  }
  return std::nullopt;
}

TestEnd test_end(std::span<const Look> looks, double mean) {
  const int most = looks.back().accept;  // any more are rejected then
  const std::vector<double> more = poisson(mean, most);
  std::vector<double> open(static_cast<std::size_t>(most) + 1);  // probability of no decision, by interruptions so far
  open[0] = 1;
  TestEnd result;
  for (const Look& look : looks) {
    for (const double one : open) result.looks += one;
    std::vector<double> next(open.size());
    for (std::size_t before = 0; before < open.size(); ++before) {
      for (std::size_t r = before; open[before] > 0 && r < next.size(); ++r) next[r] += open[before] * more[r - before];
    }
    for (std::size_t r = 0; r < next.size(); ++r) {
      const int count = static_cast<int>(r);
      if (count <= look.accept) result.accepted += next[r];
      if (count <= look.accept || count >= look.reject) next[r] = 0;
    }
    open = std::move(next);
  }
  return {.accepted = to_12_digits(std::min(result.accepted, 1.0)), .looks = to_12_digits(result.looks)};
}

StabilityRisk risk_of(std::span<const Look> looks, const StabilityDesign& design) {
  const auto nodes = static_cast<double>(design.nodes);
  return {.vendor = to_12_digits(1 - test_end(looks, nodes * design.hours / design.accepted_mtbf_h).accepted),
          .buyer = test_end(looks, nodes * design.least_hours / design.refused_mtbf_h).accepted};
}

std::vector<Look> looks_at_end(const StabilityDesign& design) {
  std::vector<Look> looks;
  for (std::size_t i = 1; i <= design.looks; ++i)
    looks.push_back({.hours = design.hours * static_cast<double>(i), .accept = -1, .reject = design.tolerated + 1});
  looks.back().accept = design.tolerated;
  return looks;
}

std::vector<Look> looks_of_wald(const StabilityDesign& design) {
  double share = 1;
  for (int i = 0; i <= 60; ++i, share *= 0.8) {
    auto looks = looks_with(design, share);
    if (risk_of(looks, design).keeps(design)) return looks;
  }
  return looks_at_end(design);
}

std::optional<StabilityDesign> design_that_keeps(StabilityDesign design) {
  const auto risk = [&] {  // without an early stop all looks are one
    StabilityDesign one = design;
    one.looks = 1;
    one.hours *= static_cast<double>(design.looks), one.least_hours *= static_cast<double>(design.looks);
    return risk_of(looks_at_end(one), one);
  };
  design.tolerated = 0;
  for (design.looks = 1; design.looks <= kMostLooks; ++design.looks) {
    while (design.tolerated < kMostTolerated && risk().vendor > design.vendor_risk) ++design.tolerated;
    if (risk().keeps(design)) return design;
  }
  return std::nullopt;
}

}  // namespace assay::plan
