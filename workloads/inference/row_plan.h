// row_plan: which rows of an exchange go where in one step, as the host knows it before, and the memory of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "probes/collective/operation.h"
#include "workloads/inference/exchange_rows.h"
#include "workloads/inference/expert_exchange.h"
#include "workloads/inference/findings.h"

namespace assay::inference {

/// Most steps in a row, each with tables, tokens and sums of its own.
inline constexpr std::size_t kMostSteps = kBurstPeriod;

/// Tables of one step of one rank; see RowView.
struct RowPlan {
  std::uint64_t step = 0;
  std::vector<std::uint64_t> to, from;
  std::vector<std::int64_t> firsts;
  std::vector<std::uint32_t> tokens_of;
  std::vector<std::uint16_t> experts;
  std::vector<std::uint64_t> rows_of;
  std::vector<std::uint16_t> routes;
  std::vector<std::uint64_t> came_at, returned_at;  ///< by rank: where parts of this rank land in its memory, in B
  std::uint64_t tokens = 0;                         ///< of this rank
  ExchangeTraffic traffic;                          ///< copies and slots; bytes are counted from messages

  /// How many rows `work` has.
  [[nodiscard]] std::uint64_t rows(RowWork work) const;
};
RowPlan row_plan(const ExchangeJob& job, const Router& router, std::uint64_t step);

/// The view of a rank of `job` with the numbers alone, and no pointer.
RowView row_view(const ExchangeJob& job);

/// Bytes of each memory and table of a rank at most, in any family.
struct RowRooms {
  explicit RowRooms(const ExchangeJob& job);
  std::uint64_t leaving, came, made, returned, seen, found;                ///< once
  std::uint64_t tokens, sums, ranks, tokens_of, experts, rows_of, routes;  ///< for each step
  /// All of them, of kMostSteps steps.
  [[nodiscard]] std::uint64_t all() const;
};

/// The messages with every rank, of rows of `each` words, of which `firsts` is the first row of every rank. Nothing of
/// rank `own`, unless it `loops`.
std::vector<collective::Part> row_parts(std::span<const std::uint64_t> firsts, std::uint64_t each, std::uint32_t own,
                                        bool loops);

/// What `found` (see RowView) of one step has, in sentences that name both ranks and a token.
Findings row_findings(const ExchangeJob& job, Family family, std::uint64_t step, std::span<const std::uint64_t> found);

}  // namespace assay::inference
