// exchange_check: whether every token was at each of its experts once and came back right, with the errors.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "workloads/inference/expert_exchange.h"
#include "workloads/inference/slot_layout.h"

namespace assay::inference {

/// Checks of one rank. All memory is its own.
class ExchangeCheck {
 public:
  explicit ExchangeCheck(const ExchangeJob& job);

  /// Tokens received by this rank in `came`, by source; the own slots are in `own`. Names source, token, expert and
  /// this rank.
  Findings arrivals(const Router& router, std::uint64_t step, SlotRegions& came, SlotRegions& own);
  /// Sums of this rank's tokens: `tokens` are the sent ones, `sums` the results in the slots of `returned`, the own
  /// ones in `own`.
  Findings results(const Router& router, std::uint64_t step, std::span<const std::uint64_t> tokens,
                   std::span<const std::uint64_t> sums, SlotRegions& returned, SlotRegions& own);

 private:
  void look_at(const Router& router, std::uint64_t step, std::size_t source, std::span<std::byte> slot,
               Findings& findings);
  void explain(std::uint64_t step, std::int64_t token, std::span<const std::uint64_t> words, SlotRegions& returned,
               SlotRegions& own, Findings& findings);

  ExchangeJob job_;
  SlotSizes sizes_;
  std::vector<std::uint16_t> seen_;  ///< by token and expert of this rank
  std::vector<std::int64_t> experts_;
};

}  // namespace assay::inference
