// rank_names: names of a group's ranks in records.
#pragma once

#include <string>
#include <vector>

#include "probes/core/rendezvous.h"

namespace assay {

/// Every rank's host name, by rank; with '#' and the rank's number behind it where ranks share a name. All ranks call
/// it.
std::vector<std::string> rank_names(Rendezvous& group);

}  // namespace assay
