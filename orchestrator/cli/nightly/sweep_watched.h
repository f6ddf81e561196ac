// sweep_watched: what a drift report asks of a sweep: nodes that come first, and nodes that are tested again.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "orchestrator/cli/nightly/sweep_shared.h"
#include "orchestrator/sweep/retests.h"

namespace assay::cli {

/// Nodes of a drift report: watched for any reason, flagged, and wanted for a test again.
struct Watched {
  std::vector<std::string> watched, flagged;
  std::vector<sweep::RetestNode> wanted;
};

/// Reads the report at `path`; an empty path is a report without any.
std::expected<Watched, InputError> watched_in(const std::string& path);

/// The nodes that are wanted for a test again and their partners, visited tonight or not, in the order of retest_order.
/// `for_workers`: each is measured alone. Errors: a partner is wanted where there is none.
std::expected<std::vector<sweep::DueNode>, InputError> nodes_of_retest(const Watched& watched, const SweepPlan& plan,
                                                                       bool for_workers);

}  // namespace assay::cli
