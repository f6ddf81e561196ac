// search_record: the state of one search in Searches. Only the files of `searches` include it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/judge/locate/knee_search.h"
#include "orchestrator/judge/locate/searches.h"

namespace assay::judge {

/// A requirement that the step fell short of, with the limits that tests of the search are compared with: those that
/// the step had if they refer to other steps, the requirement's own otherwise.
struct Searches::Promise {
  const plan::Requirement* requirement = nullptr;
  std::optional<double> fleet_low, fleet_high;
};

/// One search, and the tests that it made; its course is described in searches.cpp.
struct Searches::SearchRecord {
  const plan::PlannedSearch* planned = nullptr;
  const plan::Step* step = nullptr;
  std::vector<Promise> promises;
  bool required = false;                   ///< some of them are; the search then is only for those
  std::vector<Reading> attempts;           ///< of the step itself
  std::vector<const SearchRecord*> after;  ///< searches of the same nodes that come first
  std::vector<std::string> excluded;
  std::vector<Peer> peers;
  std::unique_ptr<Localiser> localiser;  ///< nothing while the first test, without those known, is open
  std::optional<KneeSearch> knee;        ///< in place of it, where a figure with a knee falls out
  std::size_t offset = 0;                ///< of the localiser's numbers: the first test is not one of its own
  std::vector<ExtraTest> round;
  std::map<std::string, TestShown> shown;  ///< of this round
  std::optional<MadeTest> first;           ///< the test without those known
  bool begun = false, ended = false, clear = false;
  std::string stopped;  ///< why it goes no further, when it is not that it found out

  /// How many tests were asked for.
  [[nodiscard]] std::size_t asked() const;
  /// How many are allowed, with the findings so far.
  [[nodiscard]] std::size_t allowed() const;
};

/// "n03, n07 and 12 more".
std::string listed(const std::vector<std::string>& names);

}  // namespace assay::judge
