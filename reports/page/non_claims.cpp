// non_claims: what a report and a signed statement do not claim.
#include "reports/page/non_claims.h"

namespace assay::page {

std::vector<std::string> non_claims() {
  return {
      "It is not claimed that the sensors and clocks of the nodes are correct.",
      "It is not claimed that the machines were operated in the same way before, during and after the test.",
      "It is not claimed that the measured performance is permanent; results relate to the tested items at the time of "
      "the test.",
      "It is not claimed that requirements outside the profile are met.",
      "A self-signed statement proves that nothing was changed since it was signed, not the identity of the signer."};
}

}  // namespace assay::page
