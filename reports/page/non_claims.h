// non_claims: what a signature of ours does not say, for the report and for the signed statement.
#pragma once

#include <string>
#include <vector>

namespace assay::page {

/// What a signature of ours does not say; printed in every report.
std::vector<std::string> non_claims();

}  // namespace assay::page
