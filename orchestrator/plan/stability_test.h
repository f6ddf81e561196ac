// stability_test: interruptions of a fleet under load, counted at looks between attempts: when they accept or reject
// it, and how often that errs.
//
// Interruptions come at a constant rate, so that those of all nodes together are a Poisson process over the time under
// load of all. Without an early stop the fleet is accepted with at most c of them in the time T, with the probability
//   P(Poisson(T / m) <= c) = P(chi2(2 c + 2) > 2 T / m)
// for a mean time m between interruptions of a node. An early stop has Wald's lines for the two means m1 > m0
// (Sequential Analysis, 1947; MIL-HDBK-781A, probability ratio sequential test), with the nominal risks a and b:
//   accept  r <= s T - ln((1 - a) / b) / d    d = ln(m1 / m0)
//   reject  r >= s T + ln((1 - b) / a) / d    s = (1 / m0 - 1 / m1) / d
// taken at the looks only and cut off at the last one, which accepts up to c and rejects beyond. Wald's own risks hold
// for neither, so both are computed from the distribution of the number of interruptions, look by look.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "probes/core/fields.h"

namespace assay::plan {

/// The boundaries once every node has had an attempt more.
struct Look {
  double hours = 0;  ///< of each node by then, at most
  int accept = -1;   ///< so many at most accept; -1: none do
  int reject = 0;    ///< so many at least reject
  bool operator==(const Look&) const = default;
};

/// The members in JSON.
template <class Io, Of<Look> L>
void fields(Io& io, L& look) {
  io("hours", look.hours), io("accept", look.accept), io("reject", look.reject);
}

/// The look that decides, from 0, and how.
struct Crossing {
  std::size_t look = 0;
  bool accepted = false;
};

/// Where the path of `interruptions`, all so far at each look that was made, first meets a boundary of `looks`; nothing
/// if it does not. Looks that were not made are missing at its end.
std::optional<Crossing> crossing(std::span<const Look> looks, std::span<const int> interruptions);

/// How a test of `looks` ends when `mean` interruptions are expected between two of them. 12 digits.
struct TestEnd {
  double accepted = 0;  ///< probability
  double looks = 0;     ///< made on average
};
TestEnd test_end(std::span<const Look> looks, double mean);

/// The inputs of a test. Hours are of each node between two looks; m0 and m1 are mean hours between interruptions.
struct StabilityDesign {
  std::size_t looks = 1, nodes = 1;
  double hours = 0;        ///< at most
  double least_hours = 0;  ///< at least, as a look demands it
  int tolerated = 0;       ///< by all nodes until the last look
  double refused_mtbf_h = 0, accepted_mtbf_h = 0;
  double vendor_risk = 0, buyer_risk = 0;
};

/// The risks of `looks`: of refusing nodes with the mean m1, for the most load, and of accepting some with m0, for the
/// least. Both are bounds for any load between, as interruptions only accumulate.
struct StabilityRisk {
  double vendor = 0, buyer = 0;
  [[nodiscard]] bool keeps(const StabilityDesign& design) const {
    return vendor <= design.vendor_risk && buyer <= design.buyer_risk;
  }
};
StabilityRisk risk_of(std::span<const Look> looks, const StabilityDesign& design);

/// The test that decides only at its end.
std::vector<Look> looks_at_end(const StabilityDesign& design);

/// The one that stops early: Wald's lines with the agreed risks, or with a smaller share of both, the largest of 0.8 to
/// the power of 0 to 60 with which the test still keeps them. If none does, that at the end.
std::vector<Look> looks_of_wald(const StabilityDesign& design);

/// `design` with the fewest looks, at most kMostLooks, and interruptions with which its risks are kept at the end;
/// nothing if none does.
std::optional<StabilityDesign> design_that_keeps(StabilityDesign design);

inline constexpr std::size_t kMostLooks = 100;
inline constexpr int kMostTolerated = 200;  ///< a fleet of which more is tolerated needs no bound but a rate

}  // namespace assay::plan
