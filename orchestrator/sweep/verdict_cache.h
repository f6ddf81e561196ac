// verdict_cache: the last judgement of one node, in a small file that health checks of Slurm and Kubernetes read
// (assay.cached-verdict/1). Reading never measures and never waits.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/drift/policy.h"
#include "orchestrator/drift/report.h"
#include "probes/core/error.h"
#include "probes/core/words.h"

namespace assay::sweep {

/// State of a node.
enum class NodeHealth { healthy, flagged, unknown };

constexpr auto words_of(NodeHealth) { return names_as_words<NodeHealth>(); }

/// Default path of the file on a node.
inline constexpr const char* kVerdictPath = "/run/assay/verdict.json";
/// The longest text, in bytes: the limit of node-problem-detector for a plugin's output.
inline constexpr std::size_t kLongestVerdict = 80;
/// Bytes of the largest file that is read.
inline constexpr std::size_t kLargestVerdict = 4096;

/// The file's content.
struct CachedVerdict {
  std::string node;
  NodeHealth health = NodeHealth::unknown;
  std::string text;                ///< at most kLongestVerdict bytes of printable ASCII
  std::string as_of, valid_until;  ///< UTC; after the second it says nothing any more
  friend bool operator==(const CachedVerdict&, const CachedVerdict&) = default;
};

/// A unit of a node and when it was measured last, if ever, as the history knows it.
struct KnownUnit {
  std::string unit, node;
  std::optional<drift::Date> measured = {};
};

/// The verdict of `node`: flagged when a flag of it is open; unknown when a unit of it is overdue, stale, still
/// learning or was never measured, when it has no unit that is still watched, or when the report is of a simulation;
/// healthy otherwise. Valid for the policy's verdict_max_age_s from the end of the night that the report is of.
CachedVerdict verdict_for(const std::string& node, const drift::DriftReport& report, const drift::Policy& policy,
                          const std::vector<KnownUnit>& units);

/// The bytes of the file.
std::string verdict_text(const CachedVerdict& verdict);

/// Output and exit code: 0 healthy, 1 flagged, 2 unknown.
struct Answer {
  std::string line;  ///< at most kLongestVerdict bytes, without a line break
  int code = 2;
};

/// The answer from the file `path` at `now`: unknown when it is missing, refused by read_deciding_file, damaged, of
/// another node than `node` or the first part of that name, too old, or from the future.
Answer answer_from(const std::string& path, const std::string& node, std::chrono::system_clock::time_point now);

}  // namespace assay::sweep
