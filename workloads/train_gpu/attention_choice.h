// attention_choice: fused attention or products, from the offers of all ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "workloads/train/graph/step_job.h"

namespace assay::train_gpu {

/// Whether `job` asks for fused attention, so that another is a refusal.
inline bool asks_fused(const train::RankJob& job) {
  return job.attention == train::AttentionKind::fused || job.attention == train::AttentionKind::fused_unordered;
}

/// The reason against fused attention of `job` that no library changes; empty: there is none.
std::string unfused_reason(const train::RankJob& job);

/// The offer of one rank's library.
struct AttentionOffer {
  std::string reason;      ///< why it has no plans; empty: it has
  std::string words;       ///< its version and engines
  std::uint64_t room = 0;  ///< B that it needs
  bool ordered = false;    ///< sums of the backward pass have one order
};
/// How attention is done: never automatic.
struct AttentionChoice {
  train::AttentionKind kind = train::AttentionKind::products;
  std::uint64_t room = 0;
  bool ordered = false;
  std::string words;  ///< for the record
};
/// Fused if every rank offers the same, else products. No offers: unfused_reason() speaks against it. `block`: queries
/// of products. Throws BadParameter with the reason when the job asks for fused attention.
AttentionChoice chosen_attention(const train::RankJob& job, const std::vector<AttentionOffer>& offers,
                                 std::size_t block);

}  // namespace assay::train_gpu
