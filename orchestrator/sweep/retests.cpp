// retests: the partners by a hash of the key, outermost in the order; the nodes without one are in its middle.
#include "orchestrator/sweep/retests.h"

#include <algorithm>
#include <tuple>

#include "orchestrator/sweep/due.h"

namespace assay::sweep {

std::vector<std::string> retest_order(std::span<const RetestNode> wanted, std::vector<std::string> others,
                                      const std::string& key) {
  std::vector<std::string> first, middle, last;
  for (const auto& node : wanted) {
    const auto rank = [&](const std::string& other) {
      const bool known = std::ranges::find(node.partners, other) != node.partners.end();
      return std::tuple(known, share_of_hash(key + "/" + node.name + "/" + other), other);
    };
    const auto partner = std::ranges::min_element(others, {}, rank);
    if (!node.with_partner || partner == others.end()) {
      middle.push_back(node.name);
      continue;
    }
    first.push_back(node.name);
    last.push_back(*partner);
    others.erase(partner);
  }
  // With an odd number of players the first one pauses.
  std::vector<std::string> order;
  if (middle.size() % 2 == 1) {
    order.push_back(middle.back());
    middle.pop_back();
  }
  order.insert(order.end(), first.begin(), first.end());
  order.insert(order.end(), middle.begin(), middle.end());
  order.insert(order.end(), last.rbegin(), last.rend());
  return order;
}

}  // namespace assay::sweep
