// rehearsal: months as a real fleet has them: each night is judged, doubtful units are tested again in the same night,
// and judged again with those tests.
#pragma once

#include <vector>

#include "orchestrator/drift/detector.h"
#include "orchestrator/drift/policy.h"
#include "orchestrator/drift/report.h"
#include "orchestrator/rehearse/nights.h"

namespace assay::rehearse {

class Rehearsal {
 public:
  /// `nights` must outlive it. At most `rounds` sets of fresh tests a night, each of the nodes that the report before
  /// it wants tested again; 0: none.
  Rehearsal(Nights& nights, drift::Policy policy, int rounds, unsigned threads = 1);

  /// The sweeps of the next night: of the whole fleet, then each set of fresh tests.
  std::vector<drift::Night> next();
  /// As of that night with its tests.
  [[nodiscard]] const drift::DriftReport& report() const { return report_; }

 private:
  Nights& nights_;
  drift::Policy policy_;
  int rounds_ = 0;
  unsigned threads_ = 1;
  drift::Detector detector_;
  drift::DriftReport report_;
};

}  // namespace assay::rehearse
