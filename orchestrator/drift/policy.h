// policy: the allowed number of false flags, the action on a flag, and the figures behind both.
#pragma once

#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "orchestrator/drift/fleet.h"
#include "probes/core/error.h"
#include "probes/core/words.h"

namespace assay::drift {

/// Action on a confirmed flag.
enum class Mode { shadow, alert, drain };

constexpr auto words_of(Mode) { return names_as_words<Mode>(); }

/// The policy's exceptions for one metric.
struct MetricPolicy {
  std::optional<MetricClass> type;
  std::optional<double> min_effect, expected, most_per_day;
  std::optional<Course> course;
  std::optional<bool> fatal, lower_is_better;
};

/// A document of schema assay.policy/1; every field may be left out and has the default below.
struct Policy {
  struct FalseFlags {
    double count = 1;  ///< flags that a fleet without fault may raise …
    int nights = 30;   ///< … in so many nights
  } false_flags;
  int max_age_nights = 10;   ///< a unit must be measured within so many nights
  int stale_nights = 7;      ///< a flag of a unit that was not visited for longer is stale, not healthy
  double min_effect = 0.01;  ///< as a share: smaller significant changes are only watched
  double nu0 = 20;           ///< weight of the cohort's variance, in degrees of freedom
  int warmup = 12;           ///< visits before a series is judged
  double winsor = 4;         ///< outliers are clipped to so many deviations when the reference is updated
  double clip = 3;           ///< scores of cohorts below 100 units, at most
  struct Retests {
    int k = 3;   ///< of one unit in one night
    int R = 30;  ///< units of one night
  } retests;
  struct Intermittent {
    int m = 4, of = 28;  ///< so many of the last visits …
    double z = 3;        ///< … with at least this score
  } intermittent;
  /// By name of the metric, with or without its coordinates. Beyond the rates of links there a port is bad even where
  /// all are alike: 120 an hour, 5 a minute and 10 a second (defaults of NVSentinel's check of network ports).
  std::map<std::string, MetricPolicy> metrics = {
      {"health_links.symbol_errors", {.most_per_day = 120 * 24}},
      {"health_links.link_recoveries", {.most_per_day = 5 * 60 * 24}},
      {"health_links.receive_errors", {.most_per_day = 10 * 3600 * 24}},
  };
  struct Caps {
    double ratio = 0.01;  ///< of the nodes, drained in one night: the lower of ratio and count, at least 1
    int count = 4;
    int per_leaf = 2;
    double total_ratio = 0.05;  ///< of the nodes, drained for any reason
  } caps;
  double fleet_ratio = 0.02;  ///< more flags than this share of tonight's nodes: nothing is drained
  std::string reason_prefix = "assay";
  double verdict_max_age_s = 36 * 3600;  ///< an older verdict is unknown
  Mode mode = Mode::shadow;
};

/// Reads and checks a policy (profiles/schemas/policy.schema.json).
std::expected<Policy, InputError> read_policy(std::string_view text, const std::string& where);

/// Every field, for the document itself and its SHA-256.
nlohmann::json to_json(const Policy& policy);

/// The bytes of a policy: sorted keys, one-space indent, final newline.
std::string policy_text(const Policy& policy);

}  // namespace assay::drift
