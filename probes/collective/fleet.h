// fleet: all ranks of all nodes as one. The leader of each node has its local ranks; the leader of rank 0 asks, the
// others pass on.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "probes/core/rendezvous.h"
#include "probes/core/units.h"

namespace assay::collective {

/// The ranks of all nodes. A request is a JSON object with "do"; an answer is one, too: with "error", or with values as
/// asked for. Global ranks count node by node: node x ranks of a node + local rank.
class Fleet {
 public:
  /// Asks this node's ranks: a line to each, a line of each, within a limit; throws when one is lost.
  using AskLocal = std::function<std::vector<std::string>(std::string_view, Seconds)>;

  /// `group` connects the leaders of several nodes and outlives the fleet; null on one node. `titles` names the ranks
  /// of this node. On every node: exchanges names and counts. Throws std::runtime_error when the nodes differ in their
  /// number of ranks.
  Fleet(AskLocal ask, std::vector<std::string> titles, std::string node, Rendezvous* group);

  /// Names of the nodes, in order.
  [[nodiscard]] const std::vector<std::string>& nodes() const { return nodes_; }
  /// Number of ranks of all nodes.
  [[nodiscard]] std::size_t ranks() const { return titles_.size(); }
  /// Ranks of one node.
  [[nodiscard]] std::size_t ranks_per_node() const { return titles_.size() / nodes_.size(); }

  /// Node 0: puts `request` to every rank and returns their answers by global rank. `limit` bounds the work of one
  /// rank. Throws std::runtime_error with the first rank that answers with an error, if there is one
  /// that does not wait for others, or is lost.
  std::vector<nlohmann::json> ask(const nlohmann::json& request, Seconds limit);
  /// The other nodes: passes requests on until node 0 releases them; the last answers of this node's ranks by "do".
  std::map<std::string, std::vector<nlohmann::json>> follow();
  /// Node 0: announces to the others that no request follows.
  void release();

 private:
  std::string ask_here(const std::string& message);

  AskLocal ask_;
  Rendezvous* group_;
  std::vector<std::string> nodes_, titles_;
};

}  // namespace assay::collective
