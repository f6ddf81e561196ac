// description: what `probe --describe` prints, written from a ProbeSpec and read back by the orchestrator.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "probes/core/error.h"
#include "probes/core/json_io.h"
#include "probes/core/probe.h"

namespace assay {

/// A ProbeSpec as read from `--describe`; the same fields, owning.
struct Description {
  struct OwnParameter {
    std::string name, unit, fallback, quick, meaning, choices;
    int spent = 0;  ///< how often a complete run spends this time, at least
  };
  struct OwnMetric {
    std::string name, unit, better, meaning;
    double instrument = 0;
    double between_runs = 0;  ///< least relative standard deviation between runs; 0: none is stated
    MetricKind kind = MetricKind::figure;
    Course course = Course::each_run;
    PairDirection direction = PairDirection::both;
    Recorded recorded = Recorded::always;
  };
  struct OwnCondition {
    std::string name, meaning;
    Recorded recorded = Recorded::always;
  };
  std::string name;
  int revision = 0;
  std::string scope;
  bool companion = false;
  std::string measures, method, source, needs;
  double typical_s = 0;
  double deadline_s = 0;
  std::vector<OwnParameter> parameters;
  std::vector<OwnMetric> metrics;
  std::vector<OwnCondition> conditions;
  std::vector<OwnSpaceRule> space;           ///< its writes to a storage; left out of the document if it is empty
  std::vector<OwnGroupSizeRule> group_size;  ///< numbers of nodes that it can use; left out if it is empty
  std::string between_runs;  ///< where the metrics' deviations between runs are from; empty: none has one
  nlohmann::json document;   ///< as read, to be written into a plan

  /// The metric of this name, or nullptr.
  [[nodiscard]] const OwnMetric* metric(std::string_view metric_name) const;
  /// Whether this condition is declared.
  [[nodiscard]] bool has_condition(std::string_view condition_name) const;
  /// Whether this condition is declared, and every rank of every complete run records it.
  [[nodiscard]] bool always_records(std::string_view condition_name) const;
  /// Time that a complete run with `values` cannot be shorter than, in s: what it spends by its parameters.
  [[nodiscard]] double spent_s(const Values& values) const;
  /// Every parameter with its value: from `given` where present (as text or typed JSON scalar), else the quick value
  /// under `quick`, else the fallback. Errors name the parameter; an unknown one gets the nearest match.
  [[nodiscard]] std::expected<Values, InputError> resolve(const Values& given, bool quick) const;
};

/// Every parameter of `spec`, those of sampling included.
std::vector<Parameter> all_parameters(const ProbeSpec& spec);

/// The conditions that probe_main records for every probe.
std::span<const ConditionSpec> common_conditions();

/// The `--describe` document of `spec`.
nlohmann::ordered_json describe(const ProbeSpec& spec);

/// `document` in the forms of earlier numbers: assay.probe/3 had `loads` in place of `spent`, and a
/// `typical_s` with all times but the least ones; assay.probe/2 no
/// `between_runs`, and assay.probe/1 no `recorded` either.
std::vector<nlohmann::json> in_old_forms(nlohmann::json document);

/// The description in `text`, assay.probe/4, or of an earlier number as plans of earlier versions have it; strict:
/// every field must be there and no other.
std::expected<Description, InputError> read_description(std::string_view text, const std::string& where);

}  // namespace assay
