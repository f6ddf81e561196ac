// non_claims: the limits of a report's and a signed statement's claim.
#pragma once

#include <string>
#include <vector>

namespace assay::page {

/// One sentence each, in the order in which they are printed.
std::vector<std::string> non_claims();

/// Whether this version or an earlier one prints `claims`. A list of another wording would be a promise, or an
/// omission, of the signer.
bool is_non_claims(const std::vector<std::string>& claims);

}  // namespace assay::page
