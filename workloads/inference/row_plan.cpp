// row_plan: the router's choices as tables.
#include "workloads/inference/row_plan.h"

#include <algorithm>
#include <array>
#include <numeric>

#include <fmt/format.h>

#include "workloads/inference/kv_shape.h"
#include "workloads/inference/slot_layout.h"

namespace assay::inference {
namespace {

/// By fault.
constexpr std::array<std::string_view, kRowFaults> kSentences = {
    "{count} slots from rank {rank} to rank {own} have a head that none of its tokens has",
    "{count} tokens of rank {rank} have other bytes on rank {own}, token {token} first",
    "{count} tokens of rank {rank} are on rank {own} for an expert that they are not for, token {token} first",
    "{count} tokens of rank {rank} were lost: an expert on rank {own} never had them, token {token} first",
    "{count} tokens of rank {rank} were doubled: an expert on rank {own} had them more than once, token {token} first",
    "what rank {rank} made of {count} tokens of rank {own} is missing or wrong, token {token} first",
    "the sums of {count} tokens of rank {own} are wrong, token {token} first"};

std::vector<std::uint64_t> firsts_of(const std::vector<std::uint64_t>& counts) {
  std::vector<std::uint64_t> firsts(counts.size() + 1);
  std::partial_sum(counts.begin(), counts.end(), firsts.begin() + 1);
  return firsts;
}

std::span<const std::int64_t> experts_of(const std::vector<std::int64_t>& all, const RowPlan& plan, std::size_t rank,
                                         std::size_t top_k) {
  return std::span(all).subspan(train::sized(plan.firsts[rank]) * top_k,
                                train::sized(plan.firsts[rank + 1] - plan.firsts[rank]) * top_k);
}

/// Tables of the rows that leave, in their order, out of the experts of this rank's tokens.
void lay_out_rows(const ExchangeJob& job, std::span<const std::int64_t> experts, RowPlan& plan) {
  const RowView view = row_view(job);
  std::vector<std::uint64_t> filled(plan.to.begin(), plan.to.end() - 1);
  std::vector<std::uint32_t> used(plan.to.back());  // experts in a row
  plan.tokens_of.resize(plan.to.back());
  plan.experts.assign(plan.to.back() * view.places, kNoExpert);
  plan.rows_of.assign(experts.size() / view.top_k * view.copies, kNoRow);
  for_each_copy(job, experts, [&](std::size_t token, std::size_t target, std::uint16_t expert, bool is_new) {
    const std::uint64_t row = is_new ? filled[target]++ : filled[target] - 1;
    plan.experts[row * view.places + used[row]++] = expert;
    if (!is_new) return;
    plan.tokens_of[row] = static_cast<std::uint32_t>(token);
    const auto own = std::span(plan.rows_of).subspan(token * view.copies, view.copies);
    *std::ranges::find(own, kNoRow) =
        region_offset(plan.to[target], target, view.back_slot()) + (row - plan.to[target]) * view.back_slot();
  });
}

}  // namespace

std::uint64_t RowPlan::rows(RowWork work) const {
  switch (work) {
    case RowWork::pack:
    case RowWork::check_returned:
      return to.back();
    case RowWork::work:
    case RowWork::check_came:
      return from.back();
    case RowWork::check_experts:
      return static_cast<std::uint64_t>(firsts.back());
    default:
      return tokens;
  }
}

RowPlan row_plan(const ExchangeJob& job, const Router& router, std::uint64_t step) {
  const std::size_t ranks = train::sized(job.routing.ranks), own = train::sized(job.rank);
  const std::size_t top_k = train::sized(job.routing.top_k);
  RowPlan plan;
  plan.step = step;
  for (std::size_t rank = 0; rank <= ranks; ++rank)
    plan.firsts.push_back(router.first_token(static_cast<std::int64_t>(rank)));
  std::vector<std::int64_t> experts(train::sized(job.routing.tokens) * top_k);
  for (std::int64_t token = 0; token < job.routing.tokens; ++token)
    router.choose(step, token, std::span(experts).subspan(train::sized(token) * top_k, top_k));
  plan.tokens = static_cast<std::uint64_t>(plan.firsts[own + 1] - plan.firsts[own]);
  plan.routes.assign(experts.begin(), experts.end());
  std::vector<std::vector<std::uint64_t>> slots(ranks, std::vector<std::uint64_t>(ranks));  // by source and target
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    for_each_copy(job, experts_of(experts, plan, rank, top_k),
                  [&](std::size_t, std::size_t target, std::uint16_t, bool is_new) {
                    slots[rank][target] += is_new ? 1 : 0;
                    if (rank == own) plan.traffic.count_copy(job, target);
                  });
  }
  const auto to_rank = [&](std::size_t target) {
    std::vector<std::uint64_t> counts;
    for (const auto& of_source : slots) counts.push_back(of_source[target]);
    return firsts_of(counts);
  };
  plan.to = firsts_of(slots[own]);
  plan.from = to_rank(own);
  const RowView view = row_view(job);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    plan.came_at.push_back(region_offset(to_rank(rank)[own], own, view.out_slot()) * kWord);
    plan.returned_at.push_back(region_offset(firsts_of(slots[rank])[own], own, view.back_slot()) * kWord);
  }
  plan.traffic.slots = static_cast<std::int64_t>(plan.to.back());
  lay_out_rows(job, experts_of(experts, plan, own, top_k), plan);
  return plan;
}

RowView row_view(const ExchangeJob& job) {
  const SlotSizes sizes(job);
  const std::int64_t copies = job.once_per_rank ? std::min(job.routing.top_k, job.routing.ranks) : job.routing.top_k;
  return {.nonce = job.nonce,
          .ranks = static_cast<std::uint32_t>(job.routing.ranks),
          .own = static_cast<std::uint32_t>(job.rank),
          .top_k = static_cast<std::uint32_t>(job.routing.top_k),
          .places = static_cast<std::uint32_t>(sizes.experts),
          .copies = static_cast<std::uint32_t>(copies),
          .experts_each = static_cast<std::uint64_t>(job.routing.experts_per_rank()),
          .loops = job.routing.ranks == 1,
          .before = sizes.before() / kWord,
          .out = sizes.out / kWord,
          .back = sizes.back / kWord};
}

RowRooms::RowRooms(const ExchangeJob& job) {
  const MostSlots most(job);
  const RowView view = row_view(job);
  const auto all_tokens = static_cast<std::uint64_t>(job.routing.tokens);
  leaving = region_words(most.sent, view.ranks, view.out_slot()) * kWord;
  returned = region_words(most.sent, view.ranks, view.back_slot()) * kWord;
  came = region_words(most.received, view.ranks, view.out_slot()) * kWord;
  made = region_words(most.received, view.ranks, view.back_slot()) * kWord;
  seen = all_tokens * view.experts_each * sizeof(std::uint32_t);
  found = found_words(view.ranks) * kWord * kMostSteps;
  tokens = most.tokens * view.out * kWord;
  sums = most.tokens * view.back * kWord;
  ranks = (view.ranks + 1) * kWord;
  tokens_of = most.sent * sizeof(std::uint32_t);
  experts = most.sent * view.places * sizeof(std::uint16_t);
  rows_of = most.tokens * view.copies * kWord;
  routes = all_tokens * view.top_k * sizeof(std::uint16_t);
}

std::uint64_t RowRooms::all() const {
  return leaving + came + made + returned + seen + found +
         kMostSteps * (tokens + sums + 3 * ranks + tokens_of + experts + rows_of + routes);
}

std::vector<collective::Part> row_parts(std::span<const std::uint64_t> firsts, std::uint64_t each, std::uint32_t own,
                                        bool loops) {
  std::vector<collective::Part> parts(firsts.size() - 1);
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    if (rank == own && !loops) continue;
    parts[rank] = {.offset = region_offset(firsts[rank], rank, each) * kWord,
                   .bytes = (firsts[rank + 1] - firsts[rank]) * each * kWord};
  }
  return parts;
}

Findings row_findings(const ExchangeJob& job, Family family, std::uint64_t step, std::span<const std::uint64_t> found) {
  Findings findings;
  const std::size_t ranks = train::sized(job.routing.ranks);
  for (std::size_t i = 0; i < kRowFaults * ranks; ++i) {
    if (found[i] == 0) continue;
    findings.add(fmt::format("{} step {}: {}", family, step,
                             fmt::format(fmt::runtime(kSentences[i / ranks]), fmt::arg("count", found[i]),
                                         fmt::arg("rank", i % ranks), fmt::arg("own", job.rank),
                                         fmt::arg("token", ~found[kRowFaults * ranks + i]))),
                 found[i]);
  }
  return findings;
}

}  // namespace assay::inference
