// sweep_watched: drift.json read for a sweep.
#include "orchestrator/cli/nightly/sweep_watched.h"

#include <algorithm>

#include "orchestrator/cli/documents.h"
#include "orchestrator/cli/run_stages.h"
#include "orchestrator/drift/report.h"

namespace assay::cli {

std::expected<Watched, InputError> watched_in(const std::string& path) {
  Watched found;
  if (path.empty()) return found;
  const auto text = read_file(path);
  if (!text) return std::unexpected(text.error());
  const auto report = drift::read_report(*text, path);
  if (!report) return std::unexpected(report.error());
  for (const auto& flag : report->flags) {
    found.watched.push_back(flag.node);
    if (flag.state != drift::UnitState::watch) found.flagged.push_back(flag.node);
  }
  for (const auto& one : report->retests_wanted) {
    auto node = std::ranges::find(found.wanted, one.node, &sweep::RetestNode::name);
    if (node == found.wanted.end()) node = found.wanted.insert(node, {.name = one.node, .partners = {}});
    node->with_partner = node->with_partner || one.other_partner;
    const auto flag = std::ranges::find(report->flags, one.flag, &drift::Flag::id);
    if (flag == report->flags.end()) continue;
    for (const auto& test : flag->retests) node->partners.push_back(test.partner);
  }
  return found;
}

std::expected<std::vector<sweep::DueNode>, InputError> nodes_of_retest(const Watched& watched, const SweepPlan& plan,
                                                                       bool for_workers) {
  std::vector<sweep::RetestNode> wanted;
  std::vector<std::string> others;
  for (const auto& node : plan.site.nodes) {
    const auto found = std::ranges::find(watched.wanted, node.name, &sweep::RetestNode::name);
    if (found != watched.wanted.end()) {
      wanted.push_back(*found);
    } else if (std::ranges::find(watched.watched, node.name) == watched.watched.end()) {
      others.push_back(node.name);
    }
  }
  const auto joint = std::ranges::find(wanted, true, &sweep::RetestNode::with_partner);
  if (joint != wanted.end() && for_workers)
    return std::unexpected(InputError{joint->name, "is wanted with a partner, and a worker is alone on its node",
                                      "test again over ssh, or with --slurm"});
  if (joint != wanted.end() && wanted.size() + others.size() < 2)
    return std::unexpected(InputError{joint->name, "is wanted with a partner, and there is none among the nodes",
                                      "let --nodes name one more, or leave it out"});
  std::vector<sweep::DueNode> nodes;
  for (auto& name : sweep::retest_order(wanted, std::move(others), plan.file.id)) nodes.push_back({.name = name});
  return nodes;
}

}  // namespace assay::cli
