// moe_evidence: arithmetic on the ranks' answers.
#include "workloads/inference/moe_evidence.h"

#include <algorithm>
#include <stdexcept>

#include "probes/core/statistics.h"

namespace assay::inference {

using nlohmann::json;

void MoeSteps::add(const ExchangeStep& step) {
  dispatch.push_back(step.times.dispatch_s);
  combine.push_back(step.times.combine_s);
  self.push_back(step.times.self_s);
  wait.push_back(step.times.wait_s);
  traffic.add(step.traffic);
  findings.take(step.findings);
}

json to_words(const MoeSteps& steps) {
  const ExchangeTraffic& t = steps.traffic;
  return {{"dispatch", steps.dispatch},
          {"combine", steps.combine},
          {"self", steps.self},
          {"wait", steps.wait},
          {"traffic", {t.own, t.node, t.network, t.slots, t.node_bytes, t.network_bytes}},
          {"pair", steps.pair.value_or(0)},
          {"wrong", steps.findings.count},
          {"words", steps.findings.words}};
}

MoeSteps moe_steps_from(const json& words) {
  const json& t = words.at("traffic");
  const double pair = words.at("pair");
  return {.dispatch = words.at("dispatch"),
          .combine = words.at("combine"),
          .self = words.at("self"),
          .wait = words.at("wait"),
          .traffic = {.own = t.at(0),
                      .node = t.at(1),
                      .network = t.at(2),
                      .slots = t.at(3),
                      .node_bytes = t.at(4),
                      .network_bytes = t.at(5)},
          .pair = pair > 0 ? std::optional(pair) : std::nullopt,
          .findings = {.count = words.at("wrong"), .words = words.at("words")}};
}

void FamilySteps::add(const std::vector<MoeSteps>& ranks, std::int64_t tokens_per_step) {
  const std::size_t count = ranks.front().dispatch.size();
  std::vector<double> out(count), back(count);
  double pair = 0;
  for (const MoeSteps& rank : ranks) {
    if (rank.dispatch.size() != count || rank.combine.size() != count)
      throw std::runtime_error("ranks made different numbers of steps");
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = std::max(out[i], rank.dispatch[i]);
      back[i] = std::max(back[i], rank.combine[i]);
    }
    traffic.add(rank.traffic);
    if (rank.pair) pair = std::max(pair, *rank.pair);
  }
  if (pair > 0) pairs.push_back(pair);
  dispatch.insert(dispatch.end(), out.begin(), out.end());
  combine.insert(combine.end(), back.begin(), back.end());
  tokens += tokens_per_step * static_cast<std::int64_t>(count);
}

std::vector<double> FamilySteps::last(std::size_t count) const {
  std::vector<double> sums;
  for (std::size_t i = dispatch.size() - count; i < dispatch.size(); ++i) sums.push_back(dispatch[i] + combine[i]);
  return sums;
}

std::vector<train::RankSteps> as_rank_steps(const std::vector<MoeSteps>& ranks) {
  std::vector<train::RankSteps> all;
  for (const MoeSteps& rank : ranks) {
    train::RankSteps& one = all.emplace_back();
    one.collective = rank.wait;
    for (std::size_t i = 0; i < rank.self.size(); ++i) one.wall.push_back(rank.self[i] + rank.wait[i]);
  }
  return all;
}

std::vector<train::RankStanding> moe_standings(const std::vector<MoeSteps>& ranks) {
  return train::standings({.dp = static_cast<std::int64_t>(ranks.size())}, as_rank_steps(ranks));
}

std::vector<std::optional<double>> edge_shares(const std::vector<Edge>& edges) {
  constexpr std::size_t kLeastEdges = 3;
  constexpr double kFastQuarter = 0.25;
  std::vector<double> classes[2];
  for (const Edge& edge : edges) classes[edge.within ? 1 : 0].push_back(median(edge.times));
  std::vector<std::optional<double>> shares;
  for (const Edge& edge : edges) {
    const auto& like = classes[edge.within ? 1 : 0];
    shares.emplace_back();
    if (like.size() >= kLeastEdges) shares.back() = median(edge.times) / percentile(like, kFastQuarter);
  }
  return shares;
}

std::int64_t partner_in(std::int64_t round, std::int64_t rank, std::int64_t ranks) {
  const std::int64_t even = ranks + ranks % 2, circle = even - 1;
  std::int64_t other = 0;
  if (rank == even - 1)
    other = round * (even / 2) % circle;  // the one that meets itself: twice its place is the round
  else
    other = ((round - rank) % circle + circle) % circle;
  if (other == rank) other = even - 1;
  return other < ranks ? other : -1;
}

}  // namespace assay::inference
