// journal_guard: which members a line of the journal may have, and that its times follow each other.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "orchestrator/judge/evidence/journal.h"

namespace assay::judge {

/// How far wall clock and monotonic clock may part between two lines before the writer says so in a line of its own, in
/// seconds: NTP slews by a thousandth of it. Without such a line times go back by no more than that.
inline constexpr double kMostDrift_s = 1;

/// Checks one line after the other, before its event is taken.
class JournalGuard {
 public:
  explicit JournalGuard(Journal& journal) : journal_(journal) {}

  /// The error of `line`; nothing if it may follow here. Refused: a kind that is not known, a member that its kind does
  /// not have, a time that is not UTC, and, in a measured run, a time before that of the line above it unless a
  /// clock_jump accounts for it. A resumption is written by another process, whose clock was not compared with the one
  /// before: if it goes back it becomes a clock jump of `journal`.
  std::optional<std::string> problem_of(const nlohmann::json& line);

 private:
  using Moment = std::chrono::system_clock::time_point;
  std::optional<std::string> problem_of_time(const nlohmann::json& line, const std::string& kind, Moment now);

  Journal& journal_;
  std::optional<Moment> last_;
};

}  // namespace assay::judge
