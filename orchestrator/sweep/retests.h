// retests: nodes to visit for fresh tests of flagged nodes. A figure of two nodes needs a partner.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace assay::sweep {

/// A node that a drift report wants tested again.
struct RetestNode {
  std::string name;
  bool with_partner = false;          ///< for a figure of two nodes
  std::vector<std::string> partners;  ///< those of its tests so far
};

/// The wanted nodes and a partner for each that needs one, out of `others`, nodes against which nothing is known: such
/// as it had in no test so far as long as there are any, chosen by `key`. In such an order that the first round of a
/// tournament (plan/pairing.h) joins each with its partner. If there are too few others, the wanted are joined.
std::vector<std::string> retest_order(std::span<const RetestNode> wanted, std::vector<std::string> others,
                                      const std::string& key);

}  // namespace assay::sweep
