// roce_absent: stand-in for roce in a build without verbs: it reports that.
#include "probes/core/probe.h"
#include "workloads/crossing/roce.h"

namespace assay::crossing {

Tried try_roce(const Target&, const NoteFolder&, int, Clock::time_point, const std::string&) {
  throw Skip("this build was configured with ASSAY_VERBS=OFF");
}
Arrivals watch_roce(const Target&, const NoteFolder&, Clock::time_point, const std::string&) {
  throw Skip("this build was configured with ASSAY_VERBS=OFF");
}

}  // namespace assay::crossing
