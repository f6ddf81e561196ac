// kept_states: places of one rank's saved states: its own memory, another rank's, a folder of its node, a shared one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "workloads/train/faults/fault_plan.h"

namespace assay::train {

/// The state of one rank after some steps.
struct KeptState {
  std::uint64_t print = 0;  ///< of the values, from print_of()
  std::vector<float> values;
};

/// States by rank and step, in memory and in files.
class KeptStates {
 public:
  /// Folders that are there; an empty one is no tier.
  KeptStates(std::string local, std::string shared) : local_(std::move(local)), shared_(std::move(shared)) {}

  /// All numbers of `parts` after `step` steps of `rank`, kept in memory.
  const KeptState& take(std::int64_t rank, std::int64_t step, const std::vector<std::span<float>>& parts);
  /// Memory for the state of another rank, of `count` numbers.
  KeptState& room(std::int64_t rank, std::int64_t step, std::size_t count);
  /// One that is in memory; null if there is none.
  KeptState* find(std::int64_t rank, std::int64_t step);
  /// Writes one that is in memory into a file of the tier, which is local or shared and has a folder. Whole under its
  /// name or not at all; not forced onto the disk. Throws std::system_error when it cannot be written.
  void write(Tier tier, std::int64_t rank, std::int64_t step) const;
  /// Reads a file back; nothing if there is none or it has another size.
  [[nodiscard]] std::optional<KeptState> read(Tier tier, std::int64_t rank, std::int64_t step, std::size_t count) const;
  /// Forgets all steps but these two, and removes the files of `rank` for others.
  void keep_only(std::int64_t rank, std::int64_t step, std::int64_t before);
  [[nodiscard]] bool has(Tier tier) const { return !folder(tier).empty(); }
  /// The file of a state.
  [[nodiscard]] std::string path(Tier tier, std::int64_t rank, std::int64_t step) const;

 private:
  [[nodiscard]] const std::string& folder(Tier tier) const { return tier == Tier::shared ? shared_ : local_; }

  std::string local_, shared_;
  std::map<std::pair<std::int64_t, std::int64_t>, KeptState> memory_;  ///< by rank and step
  std::vector<std::int64_t> written_;                                  ///< steps that have files
};

/// Puts `values` back where take() had them from. Throws std::logic_error when their number differs.
void put_back(const std::vector<float>& values, const std::vector<std::span<float>>& parts);

}  // namespace assay::train
