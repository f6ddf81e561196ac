// kv_verbs_absent: stand-in for kv_verbs in a build without verbs: it reports that.
#include "workloads/inference/kv_verbs.h"

namespace assay::inference {

void transfer_over_verbs(const Parameters&, const KvPlan&, const Placement&, Seconds, Recorder&) {
  throw Skip(
      "engine verbs: this build was configured with ASSAY_VERBS=OFF; hint: engine tcp sends over TCP, and the record "
      "says so");
}

}  // namespace assay::inference
