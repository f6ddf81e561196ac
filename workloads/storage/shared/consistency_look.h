// consistency_look: a reader's content, judged against the new and the old one. Pure but for the waiting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "probes/core/recorder.h"
#include "probes/core/rendezvous.h"
#include "probes/core/units.h"

namespace assay::cluster_storage {

/// Content of a file.
using Content = std::vector<std::byte>;

/// right: the content written last; old: the content before, or a beginning of the new; wrong: neither, which never was
/// the content.
enum class Seen { right, old, wrong };

/// One look of a reader.
struct Look {
  Seen seen = Seen::right;
  std::string text = {};  ///< the error; empty if all is right
};

/// Judges the content that was found, nothing if there is no such file, against the content expected now and the one
/// before.
Look judge_content(const std::optional<Content>& found, const std::optional<Content>& now,
                   const std::optional<Content>& before);

/// Judges a file to which `records` were appended in any order: each must be there once. Some missing is old, anything
/// else is wrong. All records have one size.
Look judge_records(const std::optional<Content>& found, const std::vector<Content>& records);

/// How the checks of one case ended, each of which counts once at most.
struct CaseTally {
  std::uint64_t checks = 0;
  std::uint64_t stale = 0;              ///< old at first, right within the time
  std::uint64_t wrong = 0;              ///< never was the content
  std::uint64_t lies = 0;               ///< a call reported success and its effect never came
  std::uint64_t failures = 0;           ///< calls that were refused
  double visible_after_s = 0;           ///< the longest from the first look until it was right, of the stale ones
  std::vector<std::string> named = {};  ///< the first fault of each class, in the order found

  /// Counts `number` faults of class `count`; `text` names the first.
  void fault(std::uint64_t CaseTally::*count, const std::string& text, std::uint64_t number = 1);
  /// Adds another rank's counts; its faults stay its own to name.
  void add(const CaseTally& other);
};

/// Looks until it is right, for `wait` at most while old content is seen, and counts how it ended. `who` names the
/// pair.
void check_until_right(CaseTally& tally, const std::function<Look()>& look, Seconds wait, const std::string& who);

/// The tallies of all ranks together, by the names of the cases. The first fault of each class
/// that a rank found is noted by rank 0.
std::map<std::string, CaseTally> gather_tallies(Rendezvous& group, const std::map<std::string, CaseTally>& mine,
                                                Recorder& record);

/// Records them at {"case": name}.
void record_tallies(const std::map<std::string, CaseTally>& tallies, Recorder& record);

}  // namespace assay::cluster_storage
