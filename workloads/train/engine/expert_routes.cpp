// expert_routes: every rank computes the routes of all members of its ep group itself.
#include "workloads/train/engine/expert_routes.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace assay::train {
namespace {

constexpr std::uint64_t kRoutingSeed = 20240419;  // any would do

/// Copies of one rank's micro-batch, sorted by expert; a token's place decides within one.
struct Sorted {
  std::vector<std::size_t> copies, experts;
};

Sorted sorted_copies(const ModelShape& m, const ParallelPlan& plan, const RankPosition& at, std::int64_t layer,
                     std::int64_t micro_batch) {
  const std::size_t tokens = sized(plan.tokens()), k = sized(m.moe->top_k);
  const TokenPlaces places = tokens_of(plan, at);
  std::vector<std::size_t> chosen(k), expert_of(tokens * k);
  for (std::size_t token = 0; token < tokens; ++token) {
    choose_experts(*m.moe, layer, places.place(micro_batch, static_cast<std::int64_t>(token)), chosen);
    std::ranges::copy(chosen, expert_of.begin() + static_cast<std::ptrdiff_t>(token * k));
  }
  Sorted all;
  all.copies.resize(tokens * k);
  std::iota(all.copies.begin(), all.copies.end(), 0);
  std::ranges::stable_sort(all.copies, {}, [&](std::size_t copy) { return expert_of[copy]; });
  for (const std::size_t copy : all.copies) all.experts.push_back(expert_of[copy]);
  return all;
}

ExpertRoute route_of(const ModelShape& m, const ParallelPlan& plan, std::int64_t rank, bool replicated,
                     std::int64_t layer, std::int64_t micro_batch) {
  const auto members = members_of(plan, Group::ep, rank);
  const std::size_t here = sized(m.moe->experts / plan.ep);
  const std::size_t own = static_cast<std::size_t>(std::ranges::find(members, rank) - members.begin());
  ExpertRoute route;
  std::vector<std::vector<std::size_t>> counts;  // [sender][expert of this rank]
  for (std::size_t sender = 0; sender < members.size(); ++sender) {
    RankPosition at = position_of(plan, members[sender]);
    if (replicated) at.dp = 0;
    Sorted all = sorted_copies(m, plan, at, layer, micro_batch);
    auto& mine = counts.emplace_back(here, 0);
    for (const std::size_t expert : all.experts) {
      if (expert / here == own) ++mine[expert % here];
    }
    route.received.push_back(std::accumulate(mine.begin(), mine.end(), std::size_t{0}));
    if (sender != own) continue;
    route.sent.assign(members.size(), 0);
    for (const std::size_t expert : all.experts) ++route.sent[expert / here];
    route.copies = std::move(all.copies);
    route.experts = std::move(all.experts);
  }
  route.begins.assign(here + 1, 0);
  for (std::size_t expert = 0; expert < here; ++expert) {
    route.begins[expert + 1] = route.begins[expert];
    for (const auto& one : counts) route.begins[expert + 1] += one[expert];
  }
  std::vector<std::size_t> next(route.begins.begin(), route.begins.end() - 1);
  for (const auto& one : counts) {
    for (std::size_t expert = 0; expert < here; ++expert) {
      for (std::size_t i = 0; i < one[expert]; ++i) route.places.push_back(next[expert]++);
    }
  }
  return route;
}

}  // namespace

ExchangeCounts exchange_counts(const Op& op, const ExpertRoute& route, std::size_t width) {
  ExchangeCounts counts{.to = route.sent, .from = route.received};
  for (auto* numbers : {&counts.to, &counts.from}) {
    for (std::size_t& count : *numbers) count *= width;
  }
  // Copies go to their experts forward in dispatch and backward in combine; the others bring them back.
  if ((op.role == Role::dispatch) != (op.pass == Pass::forward)) std::swap(counts.to, counts.from);
  return counts;
}

bool is_of_experts(const ModelShape& model, const Op& op) {
  return model.is_mixture(op.layer) &&
         (op.role == Role::router || op.role == Role::dispatch || op.role == Role::combine);
}

TokenDraw tokens_of_step(const RankJob& job, std::uint64_t number) {
  RankPosition at = position_of(job.plan, job.rank);
  if (job.data == DataMode::replicated) at.dp = 0;
  return {.places = tokens_of(job.plan, at),
          .seed = mixed(kStepSeed, number),
          .vocab = static_cast<std::uint64_t>(job.model.vocab)};
}

void choose_experts(const Experts& experts, std::int64_t layer, std::uint64_t token, std::vector<std::size_t>& chosen) {
  const std::uint64_t seed = mixed(kRoutingSeed + static_cast<std::uint64_t>(layer), token);
  const auto all = static_cast<std::uint64_t>(experts.experts);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    // One of those that are left, counted past the ones that were taken (Floyd 1987: no repetition, no retry).
    const std::uint64_t last = all - chosen.size() + i;
    const auto one = static_cast<std::size_t>(mixed(seed, i) % (last + 1));
    const auto taken = chosen.begin() + static_cast<std::ptrdiff_t>(i);
    chosen[i] = std::find(chosen.begin(), taken, one) == taken ? one : static_cast<std::size_t>(last);
  }
}

ExpertRoutes::ExpertRoutes(const ModelShape& model, const ParallelPlan& plan, std::int64_t rank, bool replicated) {
  const ModelShape m = with_layers(model, plan.layers);
  routes_.resize(sized(m.layers));
  for (const Bucket& bucket : buckets_of(model, plan, position_of(plan, rank).pp)) {
    if (!bucket.experts) continue;
    for (std::int64_t i = 0; i < plan.micro_batches; ++i)
      routes_[sized(bucket.layer)].push_back(route_of(m, plan, rank, replicated, bucket.layer, i));
  }
}

std::size_t ExpertRoutes::most_rows(std::int64_t layer) const {
  std::size_t most = 0;
  for (const ExpertRoute& route : routes_[sized(layer)]) most = std::max(most, route.rows());
  return most;
}

}  // namespace assay::train
