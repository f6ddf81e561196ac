// put_plan: one exchange between GPUs that put their parts into the memory of others, and the counts that they raise.
//
// Every rank has a count for each other, which that one raises in its memory when its parts are there. A rank waits
// for the counts that it expects, so that an exchange of all ends on a rank when it has begun to end on every other:
// the next parts then overwrite nothing that a rank still reads before it. The counts follow from the exchange.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "probes/collective/operation.h"

namespace assay::inference {

/// Where parts land: by rank, the offset in its memory in B; whether all ranks take part, or a pair.
struct Landing {
  std::span<const std::uint64_t> at = {};
  bool all = true;
};

/// Ranks of one domain of loads and stores at most: all that a kernel gets as arguments (an NVL72 has 72).
inline constexpr std::size_t kMostPutRanks = 128;

/// The arguments of the kernels of one exchange, by rank.
struct PutPlan {
  std::uint32_t ranks = 0, own = 0;
  std::uint64_t from[kMostPutRanks] = {}, at[kMostPutRanks] = {}, bytes[kMostPutRanks] = {};  ///< of parts, in B
};
/// Counts to write into the memory of each rank and to wait for from each; 0: none.
struct SignalPlan {
  std::uint32_t ranks = 0, own = 0;
  std::uint64_t raise[kMostPutRanks] = {}, await[kMostPutRanks] = {};
};

/// Counts of the exchanges of one rank.
class PutCounts {
 public:
  PutCounts(std::size_t ranks, std::size_t own) : own_(own), raised_(ranks), awaited_(ranks) {
    if (ranks > kMostPutRanks) throw std::runtime_error("more ranks than GPUs can put parts to");
  }

  [[nodiscard]] PutPlan puts(std::span<const collective::Part> to, const Landing& landing) const {
    PutPlan plan{.ranks = static_cast<std::uint32_t>(raised_.size()), .own = static_cast<std::uint32_t>(own_)};
    for (std::size_t rank = 0; rank < raised_.size(); ++rank) {
      plan.from[rank] = to[rank].offset;
      plan.at[rank] = landing.at[rank];
      plan.bytes[rank] = to[rank].bytes;
    }
    return plan;
  }
  /// The signals of the next exchange.
  [[nodiscard]] SignalPlan signals(std::span<const collective::Part> to, std::span<const collective::Part> from,
                                   const Landing& landing) {
    SignalPlan plan{.ranks = static_cast<std::uint32_t>(raised_.size()), .own = static_cast<std::uint32_t>(own_)};
    for (std::size_t rank = 0; rank < raised_.size(); ++rank) {
      if (rank == own_) continue;
      if (landing.all || to[rank].bytes > 0) plan.raise[rank] = ++raised_[rank];
      if (landing.all || from[rank].bytes > 0) plan.await[rank] = ++awaited_[rank];
    }
    return plan;
  }

 private:
  std::size_t own_;
  std::vector<std::uint64_t> raised_, awaited_;
};

}  // namespace assay::inference
