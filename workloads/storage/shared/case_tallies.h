// case_tallies: findings of all ranks by case, in the record of rank 0.
#pragma once

#include <map>
#include <string>

#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "workloads/storage/shared/consistency_look.h"

namespace assay::cluster_storage {

/// The tallies of all ranks together, by the names of the cases. The first fault of each class
/// that a rank found is noted by rank 0.
std::map<std::string, CaseTally> gather_tallies(Rendezvous& group, const std::map<std::string, CaseTally>& mine,
                                                Recorder& record);

/// Records them at {"case": name}.
void record_tallies(const std::map<std::string, CaseTally>& tallies, Recorder& record);

}  // namespace assay::cluster_storage
