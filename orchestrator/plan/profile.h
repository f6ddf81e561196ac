// profile: the design targets of one hardware design, and the rule by which they are judged.
#pragma once

#include <expected>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "orchestrator/plan/required_condition.h"
#include "orchestrator/site/site.h"
#include "probes/core/error.h"
#include "probes/core/fields.h"
#include "probes/core/json_io.h"
#include "probes/core/words.h"

namespace assay::plan {

/// The kind of subject that a requirement judges. pair, group and cluster are of several nodes together; the kinds
/// after them are of the site's meters, and switch_port of its switches.
enum class JudgedScope {
  node,
  cpu,
  gpu,
  nic,
  drive,
  rank,
  pair,
  group,
  cluster,
  rack,
  feed,
  shelf,
  cdu,
  meter,
  switch_port
};

constexpr auto words_of(JudgedScope) { return names_as_words<JudgedScope>(); }

/// Whether subjects of this scope, where a probe runs on several nodes, are nodes that work together.
constexpr bool is_together(JudgedScope scope) {
  return scope == JudgedScope::pair || scope == JudgedScope::group || scope == JudgedScope::cluster;
}
/// The companion that the head runs once a site, which reads its meters.
inline constexpr const char* kSiteCompanion = "power_feed";
/// The same, which also records effects of a lost feed.
inline constexpr const char* kFailoverCompanion = "failover_watch";
/// The companion that the head runs once a site, which reads its switches.
inline constexpr const char* kSwitchCompanion = "switch_counters";
/// Whether a companion of this name reads the site's meters or switches, on the head and not on the nodes.
constexpr bool is_site_companion(std::string_view name) {
  return name == kSiteCompanion || name == kFailoverCompanion || name == kSwitchCompanion;
}
/// The probe that tries the paths between tenants.
inline constexpr const char* kCrossingProbe = "crossing_refused";
/// The probes that ask the TPM of a node, and its GPUs.
inline constexpr const char *kIdentityProbe = "tpm_quote", *kGpuIdentityProbe = "gpu_attestation";
/// Whether a probe of this name asks hardware a question of the attempt.
constexpr bool asks_hardware(std::string_view name) { return name == kIdentityProbe || name == kGpuIdentityProbe; }
/// The probe that loads all nodes together.
inline constexpr const char* kLoadProbe = "load_bank";
/// Whether a meter or switch of the site has such subjects, and a node never.
constexpr bool is_of_meters(JudgedScope scope) { return scope >= JudgedScope::rack; }
/// The same of a subject's kind as recorded.
constexpr bool is_together(std::string_view kind) {
  const auto scope = from_word<JudgedScope>(kind);
  return scope && is_together(*scope);
}

/// Rule of a group of nodes. growing: the first 2, 4, 8, … and then all nodes, of a probe with a knee in an order drawn
/// by the plan. path: of each path between tenants a
/// node that must not reach it, and one that does (crossing_spots.h).
enum class Grouping { rack, leaf, spine, growing, path };

constexpr auto words_of(Grouping) { return names_as_words<Grouping>(); }

/// Which pairs of nodes are measured. in_spine: of leaves that share a spine.
enum class PairChoice { all, in_leaf, across_leaves, in_spine, across_spines };

constexpr auto words_of(PairChoice) { return names_as_words<PairChoice>(); }

/// The statistic of pooled samples that is judged.
enum class Statistic { median, min, max, p01, p05, p95, p99 };

constexpr auto words_of(Statistic) { return names_as_words<Statistic>(); }

/// The share of a distribution below `statistic`; nothing for the extremes of the samples.
constexpr std::optional<double> quantile_of(Statistic statistic) {
  switch (statistic) {
    case Statistic::median:
      return 0.5;
    case Statistic::p01:
      return 0.01;
    case Statistic::p05:
      return 0.05;
    case Statistic::p95:
      return 0.95;
    case Statistic::p99:
      return 0.99;
    case Statistic::min:
    case Statistic::max:
      break;
  }
  return std::nullopt;
}

/// Where a figure comes from. Only sourced and inferred ones can accept; an unsourced one can only warn.
struct Source {
  std::string document, figure, date, method;
  std::string status;  ///< sourced | inferred | unsourced
  bool operator==(const Source&) const = default;
};

/// The members of a source in JSON.
template <class Io, Of<Source> S>
void fields(Io& io, S& source) {
  io("document", source.document), io.defaulted("figure", source.figure), io.sparse("date", source.date);
  io.defaulted("method", source.method), io("status", source.status);
}

/// Reference of a limit's value.
enum class Reference {
  none,                     ///< the value is absolute, in the limit's unit
  peak,                     ///< of the profile's design peak `name`
  metric,                   ///< of the median of the metric `name` in the same record
  best_sample,              ///< of the best sample of the same measurement
  fleet_median,             ///< of the median over all subjects of this requirement
  smallest_group,           ///< of the same requirement on the smallest of its growing groups
  smallest_group_by_nodes,  ///< of that, times how many times as many nodes this group has
  derived,                  ///< of the figure `name` of derived.h, which the machine reports of itself
};

/// As an `of` spells them, before the colon and the name; none has no `of`.
constexpr auto words_of(Reference) { return names_as_words<Reference>(); }

/// A promise as a closed set of operators, never an expression.
struct Limit {
  std::optional<double> at_least;  ///< absolute in `unit`, or a share of the reference
  std::optional<double> at_most;   ///< both given: the value must be between
  std::string unit;                ///< of the metric judged, also when relative
  Reference reference = Reference::none;
  std::string name;            ///< of the peak, metric or derived figure referred to
  std::string capped_by = {};  ///< a peak of the profile that the reference is never above; empty: none
};

/// Whether a limit's reference is measured by other steps, so that a single step cannot be judged by it.
constexpr bool is_of_others(Reference reference) {
  return reference == Reference::fleet_median || reference == Reference::smallest_group ||
         reference == Reference::smallest_group_by_nodes;
}
/// Whether it is measured by the same run, so that only the machines themselves set the limit.
constexpr bool is_relative(Reference reference) {
  return is_of_others(reference) || reference == Reference::best_sample || reference == Reference::metric;
}
/// Whether it is the smallest of growing groups.
constexpr bool is_of_smallest(Reference reference) {
  return reference == Reference::smallest_group || reference == Reference::smallest_group_by_nodes;
}

/// Deviation of the figures of two runs of a probe on the same machine, if a document states it.
struct Reproducibility {
  double u = 0;  ///< relative standard uncertainty between runs
  Source source;
};

/// Bound of every honest figure.
struct Ceiling {
  std::optional<double> value;            ///< in the metric's unit; nothing: the reference's
  Reference reference = Reference::none;  ///< peak or derived
  std::string name;                       ///< of the peak or derived figure
  Source source;                          ///< of a value
};

/// A feature that is switched on and off, and the gain that it must show.
struct Contrast {
  std::string parameter;  ///< of the probe
  Value on, off;          ///< its values, as given
  double at_least = 0;    ///< gain with the feature on, as a share: 0.05 is 5 % more, or of a time 5 % less
  std::string shown_by;   ///< condition that must be recorded, and differ between on and off
};

/// Of growing groups, up to how many nodes the figure must keep its plateau: the best of the groups that are smaller.
/// Larger groups are measured, and inform. Where one falls out, extra tests narrow the number of nodes (knee_search.h).
struct Knee {
  std::optional<int> at_least;  ///< nodes; nothing: all that work together
  /// Whether a group of so many nodes must keep it.
  [[nodiscard]] bool demands(std::size_t nodes) const {
    return !at_least || nodes <= static_cast<std::size_t>(*at_least);
  }
};

/// One promised figure.
struct Requirement {
  std::string id, title, probe;
  Values parameters;   ///< as given; the plan fills in the rest
  std::string metric;  ///< empty: `demand` is judged
  /// A recorded condition that is judged in place of a metric: it has no limit, statistic or samples, and one attempt
  /// shows it. Its statistic is max, which does not vary between runs.
  std::optional<RequiredCondition> demand = {};
  Values at;              ///< coordinates of the measurement judged; empty: the one without coordinates
  bool at_every = false;  ///< all of the metric's measurements, at all coordinates; the worst decides
  /// Every subject of that kind in the record. With a probe for several nodes, also its place: node (each node
  /// separately), pair, group, cluster.
  JudgedScope scope = JudgedScope::node;
  /// Of the site's meters, which the head reads: the probe that makes the load, and that `parameters` are of; the
  /// figure is judged while its steps on all nodes run. Empty: `probe` runs on nodes.
  std::string during;
  std::optional<Grouping> by;  ///< scope group: rack when not given
  std::optional<Knee> knee = {};
  /// Of the site: whose ports it is measured through, each rail separately; empty: the node's default.
  std::string plane;
  std::optional<PairChoice> pairs;  ///< scope pair over nodes: all when not given
  bool alone = false;  ///< scope pair over nodes: nothing else of the plan runs meanwhile; else pairs run side by side
  bool after = false;  ///< measured when every other step of its nodes is over: effects of the load
  bool rise = false;   ///< with `after`: judged is by how much a counter rose since the same was read before the load
  int rounds = 0;      ///< scope pair over nodes: rounds of the tournament; 0: all pairs
  Statistic statistic = Statistic::median;
  /// Judged is the ratio of the figure with a feature on and off, the larger the better; `limit` is filled in from it.
  std::optional<Contrast> contrast = {};
  Limit limit;
  std::optional<Ceiling> ceiling;
  bool when_told = false;  ///< if the machine does not report the figure or its reference: not judged, with a note
  std::vector<RequiredCondition> conditions;
  int repeat_n = 10;  ///< fewer samples are inconclusive
  /// Fresh processes that measure it, in passes over the plan; 1 to 10. 3 by default, 1 for an extreme of the samples.
  int attempts = 3;
  /// The second stage's, if those left a required cell open or failed; 0 to 10. 4 by default, 0 for an extreme.
  int more_attempts = 4;
  /// Stated between runs; a required rate that is measured once needs it.
  std::optional<Reproducibility> reproducibility;
  std::optional<double> power_w;  ///< design power of each node while it is measured; the profile's when not given
  bool required = true;           ///< severity `required`; else `advisory`: it warns and never accepts or rejects
  Source source;

  /// The name of the metric or condition that is judged.
  [[nodiscard]] const std::string& judged() const { return demand ? demand->name : metric; }
  /// The judged quantity, for people: "bandwidth", "rise of media_errors", "gain in bandwidth by huge_pages",
  /// "condition iommu_mode".
  [[nodiscard]] std::string figure() const {
    if (contrast) return "gain in " + metric + " by " + contrast->parameter;
    return (demand ? "condition " : rise ? "rise of " : "") + judged();
  }
  /// Whether other steps have a part in it, so that a single step cannot be judged by it.
  [[nodiscard]] bool is_of_others() const { return rise || contrast || plan::is_of_others(limit.reference); }
};

/// A design figure that limits may refer to.
struct Peak {
  double value = 0;
  std::string unit;
  Source source;
};

/// A limit that a profile made easier to meet than in the one that it extends.
struct Loosened {
  std::string requirement;  ///< id; empty: of the whole profile
  std::string what;         ///< the field: "limit.at_least"
  std::string from, to;     ///< as JSON writes them
  std::string base;         ///< the profile that had `from`
  friend bool operator==(const Loosened&, const Loosened&) = default;
};

/// Of a profile for nodes with any number of a part, in Profile::per_node; "site" in the document.
inline constexpr int kOfSite = 0;

/// The whole profile with everything inherited filled in.
struct Profile {
  std::string name, title;
  int revision = 1;
  double guard_factor = 1.645;  ///< the risk as a normal quantile: 1.645 bounds false acceptance at the limit by 5 %
  double confidence = 0.95;     ///< of the interval of the judged statistic
  std::vector<std::string> companions;
  std::map<std::string, int> per_node;  ///< how many subjects of a kind a node of this design has: {"gpu": 8};
                                        ///< kOfSite: as many as the site says that the node has
  std::optional<double> power_w;        ///< design power of a node under load; nothing if unknown
  std::map<std::string, Peak> peaks;
  std::vector<Requirement> requirements;
  std::string relative_only;       ///< why limits that only the machines themselves set will do; empty: they will not
  std::vector<Loosened> loosened;  ///< in the order of reading, from the deepest profile up
};

/// How many subjects of `kind` a node has by design: the profile's number, or the site's where the profile leaves it to
/// that; a pair of GPUs is one for each direction. Nothing if neither states it.
std::optional<int> designed_parts(const Profile& profile, const site::Node& node, const std::string& kind);

/// The text of a profile by name, for `extends`; nothing if there is none.
using ProfileLibrary = std::function<std::optional<std::string>(const std::string& name)>;

/// Reads, inherits (requirements of the same id are replaced) and checks a profile. Refused: as by schema.json and
/// check_profile (profile_check.h), duplicate ids, an inheritance deeper than eight or in a circle, a requirement that
/// would take the place of one of another probe or metric.
std::expected<Profile, InputError> read_profile(std::string_view text, const std::string& where,
                                                const ProfileLibrary& library);

/// A limit's `of`: "peak:hbm", "fleet_median"; empty for none.
std::string reference_text(Reference reference, const std::string& name);

/// The document of `profile`, resolved, every field present; read_profile takes it back unchanged.
nlohmann::json to_json(const Profile& profile);

/// The profiles that are built in, name to text.
const std::map<std::string, std::string_view>& embedded_profiles();

/// The built-in profile of this name, or the one in this file (a name with a slash, or that ends in .json). Errors:
/// those of read_profile; an unknown name gets the nearest match.
std::expected<Profile, InputError> profile_named(const std::string& name);

/// The library of the built-in profiles.
std::optional<std::string> embedded_profile(const std::string& name);

}  // namespace assay::plan
