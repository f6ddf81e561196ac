// storage_use: writes of a plan's steps to storages, known before any of them runs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "orchestrator/plan/plan.h"
#include "probes/core/space.h"

namespace assay::plan {

/// Need of one step in one directory.
struct StorageUse {
  const Step* step = nullptr;
  SpaceNeed need;

  /// B that must be free for it on each node of the step.
  [[nodiscard]] double demanded() const { return need.held * kSpaceSlack; }
};

/// Every use of every step, in the order of the plan; a step's files are gone when it ends.
std::vector<StorageUse> storage_uses(const Plan& plan);

/// By node: the directories that steps write to there, sorted.
std::map<std::string, std::vector<std::string>> storage_directories(const std::vector<StorageUse>& uses);

/// A line for each kind of use, by probe and directory: bytes held there at one time, and bytes written in all planned
/// attempts of the first stage; empty if nothing is written.
std::string storage_text(const std::vector<StorageUse>& uses);

/// B free by node and directory.
using FreeSpace = std::map<std::string, std::map<std::string, std::uint64_t>>;

/// A step that does not fit, and the missing bytes.
struct Shortage {
  const Step* step = nullptr;
  InputError lacking;
};

/// Every step that does not fit in the free space, once, in the order of the plan. Directories missing in `free` are
/// unknown and refuse nothing.
std::vector<Shortage> short_of_space(const std::vector<StorageUse>& uses, const FreeSpace& free);

}  // namespace assay::plan
