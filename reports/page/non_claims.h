// non_claims: what a report and a signed statement do not claim.
#pragma once

#include <string>
#include <vector>

namespace assay::page {

/// One sentence each, in the order in which they are printed.
std::vector<std::string> non_claims();

}  // namespace assay::page
