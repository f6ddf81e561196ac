// non_claims: the sentences, in the order in which they are printed.
#include "reports/page/non_claims.h"

namespace assay::page {

std::vector<std::string> non_claims() {
  return {
      "It is not claimed that the sensors and clocks of the nodes are honest.",
      "It is not claimed that the machines were treated alike before, during and after the test.",
      "It is not claimed that the measured performance lasts; results relate to the tested items at the time of the "
      "test.",
      "It is not claimed that requirements outside the profile are met.",
      "A self-signed statement shows that nothing was changed since it was signed; it does not show who signed it."};
}

}  // namespace assay::page
