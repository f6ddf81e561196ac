// step_evidence: computes the figures of steps from times, and compares prints; see step_evidence.h.
#include "workloads/train/step/step_evidence.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "probes/core/statistics.h"
#include "workloads/train/graph/step_edges.h"
#include "workloads/train/graph/virtual_time.h"

namespace assay::train {
namespace {

constexpr double kTail = 1.1;  // of the median: fleets of 512 to 8,192 GPUs have 0.4 to 0.8 % of their steps beyond it

double found(const AloneTimes& times, const Op& op) {
  const auto at = times.find({op.role, op.pass});
  return at == times.end() ? 0 : at->second;
}

/// Ranks that do the same work: those of one pipeline place.
std::vector<std::vector<std::size_t>> places(const ParallelPlan& plan) {
  std::vector<std::vector<std::size_t>> all(sized(plan.pp));
  for (std::int64_t rank = 0; rank < plan.world(); ++rank)
    all[sized(position_of(plan, rank).pp)].push_back(sized(rank));
  return all;
}

}  // namespace

std::vector<double> longest(const std::vector<RankSteps>& ranks, std::vector<double> RankSteps::*times) {
  std::vector<double> steps = ranks.front().*times;
  for (const RankSteps& rank : ranks) {
    if ((rank.*times).size() != steps.size()) throw std::runtime_error("ranks made different numbers of steps");
    for (std::size_t i = 0; i < steps.size(); ++i) steps[i] = std::max(steps[i], (rank.*times)[i]);
  }
  return steps;
}

double predicted_step(const ModelShape& model, const ParallelPlan& plan, const std::vector<RankSteps>& compute,
                      const std::vector<RankSteps>& comm, bool beside) {
  std::vector<std::vector<Op>> graphs;
  for (std::int64_t rank = 0; rank < plan.world(); ++rank) {
    graphs.push_back(step_graph(model, plan, rank));
    for (Op& op : graphs.back()) op.beside = op.beside && beside;
  }
  const Duration duration = [&](std::size_t rank, const Op& op, bool) {
    if (op.kind != OpKind::collective) return found(compute[rank].alone, op);
    // A message takes as long as its receiver waits for it while nothing else is done.
    return found(comm[op.motion == Motion::send ? sized(op.peer) : rank].alone, op);
  };
  return walk(plan, graphs, duration).total_s;
}

double tail_share(const std::vector<double>& steps) {
  const double limit = kTail * median(steps);
  const auto beyond = std::ranges::count_if(steps, [&](double step) { return step > limit; });
  return static_cast<double>(beyond) / static_cast<double>(steps.size());
}

double projected_share(double share, double more) { return share >= 1 ? 1 : -std::expm1(more * std::log1p(-share)); }

std::vector<RankStanding> standings(const ParallelPlan& plan, const std::vector<RankSteps>& full) {
  std::vector<RankStanding> all(full.size());
  for (const auto& place : places(plan)) {
    std::vector<double> medians;
    for (const std::size_t rank : place) {
      RankStanding& one = all[rank];
      for (std::size_t i = 0; i < full[rank].wall.size(); ++i) {
        one.self_time.push_back(full[rank].wall[i] - full[rank].collective[i]);
        double most = 0, least = full[rank].collective[i];
        for (const std::size_t other : place) {
          most = std::max(most, full[other].collective[i]);
          least = std::min(least, full[other].collective[i]);
        }
        one.lateness.push_back(most - full[rank].collective[i]);
        if (place.size() > 1 && full[rank].collective[i] <= least) one.last_share += 1;
      }
      one.last_share /= static_cast<double>(full[rank].wall.size());
      medians.push_back(median(one.self_time));
    }
    const auto shares = ratio_to_others(medians);
    for (std::size_t i = 0; i < place.size() && place.size() > 1; ++i) all[place[i]].self_share = shares[i];
  }
  return all;
}

Blame blame_of(const ModelShape& model, const ParallelPlan& plan, const std::vector<std::int64_t>& first_differing) {
  Blame blame;
  std::vector<std::int64_t> inherited;
  for (std::int64_t rank = 0; rank < plan.world(); ++rank) {
    const std::int64_t first = first_differing[sized(rank)];
    if (first < 0) continue;
    const Op op = step_graph(model, plan, rank)[sized(first)];
    if (op.kind == OpKind::collective) {
      inherited.push_back(rank);
      continue;
    }
    blame.ranks.push_back(rank);
    blame.words.push_back(fmt::format("rank {} computed operation {} in two ways", rank, first));
  }
  blame.mismatches = blame.ranks.size();
  if (!blame.ranks.empty() || inherited.empty()) return blame;
  blame.mismatches = 1;
  blame.words.push_back(fmt::format("a message to rank {} was changed on its way", fmt::join(inherited, ", ")));
  return blame;
}

namespace {

/// Adds to `blame` the vote of the `voters` on their prints.
void count_votes(const std::vector<std::int64_t>& voters,
                 const std::map<std::uint64_t, std::vector<std::int64_t>>& votes, const char* of, Blame& blame) {
  if (votes.size() == 1) return;
  const auto most = std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second.size(); });
  if (most->second.size() * 2 <= voters.size()) {
    ++blame.mismatches;
    blame.words.push_back(
        fmt::format("replicas {} differ{}, and no majority says which is wrong", fmt::join(voters, ", "), of));
    return;
  }
  for (const auto& [print, ranks] : votes) {
    if (print == most->first) continue;
    for (const std::int64_t rank : ranks) {
      ++blame.mismatches;
      if (std::ranges::find(blame.ranks, rank) == blame.ranks.end()) blame.ranks.push_back(rank);
    }
    blame.words.push_back(fmt::format("rank {} has other gradients{} than {} of its {} replicas",
                                      fmt::join(ranks, ", "), of, most->second.size(), voters.size()));
  }
}

}  // namespace

Blame votes_of(const ParallelPlan& plan, const std::vector<RankPrint>& prints, Ballot ballot) {
  Blame blame;
  const auto vote = [&](std::int64_t rank, Group group, std::uint64_t RankPrint::*print, const char* of) {
    std::vector<std::int64_t> voters = members_of(plan, group, rank);
    if (ballot == Ballot::gradients)
      std::erase_if(voters, [&](auto other) { return position_of(plan, other).cp != position_of(plan, rank).cp; });
    if (voters.front() != rank) return;  // each group once
    std::map<std::uint64_t, std::vector<std::int64_t>> votes;
    for (const std::int64_t voter : voters) votes[prints[sized(voter)].*print].push_back(voter);
    count_votes(voters, votes, of, blame);
  };
  for (std::int64_t rank = 0; rank < plan.world(); ++rank) {
    vote(rank, Group::replicas, &RankPrint::shared, "");
    vote(rank, Group::expert_replicas, &RankPrint::experts, " in experts");
  }
  return blame;
}

Blame against_one_rank(const ParallelPlan& plan, const std::vector<RankPrint>& prints, const RankPrint& expected) {
  const auto replica_of = [&](std::int64_t rank) {
    const RankPosition at = position_of(plan, rank);
    return at.cp + plan.cp * at.dp;
  };
  std::vector<std::uint64_t> shared(sized(plan.replicas()), 0), experts(sized(plan.replicas() / plan.ep), 0);
  for (std::int64_t rank = 0; rank < plan.world(); ++rank) {
    shared[sized(replica_of(rank))] += prints[sized(rank)].shared;
    experts[sized(replica_of(rank) / plan.ep)] += prints[sized(rank)].experts;
  }
  Blame blame;
  for (std::size_t replica = 0; replica < shared.size(); ++replica) {
    if (shared[replica] == expected.shared && experts[replica / sized(plan.ep)] == expected.experts) continue;
    ++blame.mismatches;
    blame.words.push_back(fmt::format("replica {} has other weights than one rank alone", replica));
  }
  return blame;
}

}  // namespace assay::train
