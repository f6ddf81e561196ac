// attention_choice: one reason speaks against fused attention on all ranks, whose bits are compared.
#include "workloads/train_gpu/attention_choice.h"

#include <algorithm>

#include <fmt/format.h>

#include "probes/core/parameters.h"

namespace assay::train_gpu {
namespace {

std::string reason_of(const std::vector<AttentionOffer>& offers) {
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    const AttentionOffer& own = offers[rank];
    if (!own.reason.empty()) return fmt::format("rank {}: {}", rank, own.reason);
    if (own.words != offers[0].words)
      return fmt::format("rank {} has {}; rank 0 has {}", rank, own.words, offers[0].words);
  }
  return "";
}

}  // namespace

std::string unfused_reason(const train::RankJob& job) {
  if (job.attention == train::AttentionKind::products) return "products were asked for";
  if (job.factors == train::FactorType::tf32) return "it takes BF16 numbers, type is tf32";
  if (job.data == train::DataMode::ring) return "exact steps are products, data is ring";
  if (job.plan.cp > 1) return fmt::format("it takes whole sequences, cp is {}", job.plan.cp);
  return "";
}

AttentionChoice chosen_attention(const train::RankJob& job, const std::vector<AttentionOffer>& offers,
                                 std::size_t block) {
  std::string reason = unfused_reason(job);
  if (reason.empty()) reason = reason_of(offers);
  if (!reason.empty()) {
    if (asks_fused(job))
      throw BadParameter(fmt::format("attention: it cannot be fused: {}; the nearest that runs: products", reason));
    return {.words =
                fmt::format("products over blocks of {} queries, probabilities kept; not fused: {}", block, reason)};
  }
  AttentionChoice choice{.kind = asks_fused(job) ? job.attention : train::AttentionKind::fused,
                         .ordered = offers[0].ordered,
                         .words = fmt::format("fused by {}; compared with products, not bit by bit", offers[0].words)};
  for (const AttentionOffer& one : offers) choice.room = std::max(choice.room, one.room);
  return choice;
}

}  // namespace assay::train_gpu
