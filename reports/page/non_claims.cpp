// non_claims: the limits of a report's and a signed statement's claim.
#include "reports/page/non_claims.h"

namespace assay::page {
namespace {

constexpr const char* kWordOfTheSigner =
    "It is not claimed that the samples were not invented: who holds the head node and the signing key can write any "
    "record. The signature is the signer's word that they were measured.";

}  // namespace

std::vector<std::string> non_claims() {
  return {
      "It is not claimed that the sensors and clocks of the nodes are correct.",
      "It is not claimed that the machines were operated in the same way before, during and after the test.",
      "It is not claimed that the measured performance is permanent; results relate to the tested items at the time of "
      "the test.",
      "It is not claimed that requirements outside the profile are met.",
      kWordOfTheSigner,
      "A self-signed statement proves that nothing was changed since it was signed, not the identity of the signer."};
}

bool is_non_claims(const std::vector<std::string>& claims) {
  const std::vector<std::string> now = non_claims();
  if (claims == now) return true;
  std::vector<std::string> before = now;  // html/4 and older had all but one sentence
  std::erase(before, kWordOfTheSigner);
  return claims == before;
}

}  // namespace assay::page
