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

#include "probes/core/error.h"
#include "probes/core/json_io.h"
#include "probes/core/words.h"

namespace assay::plan {

/// The kind of subject that a requirement judges. The last three are of several nodes together.
enum class JudgedScope { node, cpu, gpu, nic, drive, rank, pair, group, cluster };

constexpr auto words_of(JudgedScope) {
  using enum JudgedScope;
  return std::to_array<Word<JudgedScope>>({{node, "node"},
                                           {cpu, "cpu"},
                                           {gpu, "gpu"},
                                           {nic, "nic"},
                                           {drive, "drive"},
                                           {rank, "rank"},
                                           {pair, "pair"},
                                           {group, "group"},
                                           {cluster, "cluster"}});
}

/// Whether subjects of this scope, where a probe runs on several nodes, are nodes that work together.
constexpr bool is_together(JudgedScope scope) {
  return scope == JudgedScope::pair || scope == JudgedScope::group || scope == JudgedScope::cluster;
}
/// The same of a subject's kind as recorded.
constexpr bool is_together(std::string_view kind) {
  const auto scope = from_word<JudgedScope>(kind);
  return scope && is_together(*scope);
}

/// What makes a group of nodes. growing: the first 2, 4, 8, … and then all nodes.
enum class Grouping { rack, leaf, spine, growing };

constexpr auto words_of(Grouping) {
  using enum Grouping;
  return std::to_array<Word<Grouping>>({{rack, "rack"}, {leaf, "leaf"}, {spine, "spine"}, {growing, "growing"}});
}

/// Which pairs of nodes are measured. in_spine: of leaves that share a spine.
enum class PairChoice { all, in_leaf, across_leaves, in_spine, across_spines };

constexpr auto words_of(PairChoice) {
  using enum PairChoice;
  return std::to_array<Word<PairChoice>>({{all, "all"},
                                          {in_leaf, "in_leaf"},
                                          {across_leaves, "across_leaves"},
                                          {in_spine, "in_spine"},
                                          {across_spines, "across_spines"}});
}

/// The statistic of pooled samples that is judged.
enum class Statistic { median, min, max, p01, p05, p95, p99 };

constexpr auto words_of(Statistic) {
  using enum Statistic;
  return std::to_array<Word<Statistic>>(
      {{median, "median"}, {min, "min"}, {max, "max"}, {p01, "p01"}, {p05, "p05"}, {p95, "p95"}, {p99, "p99"}});
}

/// Where a figure comes from. Only sourced and inferred ones can accept; an unsourced one can only warn.
struct Source {
  std::string document, figure, date, method;
  std::string status;  ///< sourced | inferred | unsourced
};

/// What a limit's value is a share of.
enum class Reference {
  none,                     ///< the value is absolute, in the limit's unit
  peak,                     ///< of the profile's design peak `name`
  metric,                   ///< of the median of the metric `name` in the same record
  best_sample,              ///< of the best sample of the same measurement
  fleet_median,             ///< of the median over all subjects of this requirement
  smallest_group,           ///< of the same requirement on the smallest of its growing groups
  smallest_group_by_nodes,  ///< of that, times how many times as many nodes this group has
};

/// A promise as a closed set of operators, never an expression.
struct Limit {
  std::optional<double> at_least;  ///< absolute in `unit`, or a share of the reference
  std::optional<double> at_most;   ///< both given: the value must lie between
  std::string unit;                ///< of the metric judged, also when relative
  Reference reference = Reference::none;
  std::string name;  ///< of the peak or metric referred to
};

/// Whether a limit's reference is what other steps measured, so that one step alone cannot be judged by it.
constexpr bool is_of_others(Reference reference) {
  return reference == Reference::fleet_median || reference == Reference::smallest_group ||
         reference == Reference::smallest_group_by_nodes;
}
/// Whether it is the smallest of growing groups.
constexpr bool is_of_smallest(Reference reference) {
  return reference == Reference::smallest_group || reference == Reference::smallest_group_by_nodes;
}

/// A circumstance that must be proved beside the number; absent or unmet makes the verdict inconclusive.
struct RequiredCondition {
  std::string name;
  std::optional<Value> equals;
  std::optional<double> at_least;
  std::optional<double> at_most;
  std::string site = {};  ///< what the site says of the port of this plane: interface, device, address, leaf,
                          ///< switch_port; empty: one of those above
};

/// One promised figure.
struct Requirement {
  std::string id, title, probe;
  Values parameters;  ///< as given; the plan fills in the rest
  std::string metric;
  Values at;                              ///< coordinates of the measurement judged; empty: the one without coordinates
  JudgedScope scope = JudgedScope::node;  ///< every subject of that kind in the record. With a probe for several nodes,
                                          ///< also where it runs: node (each alone), pair, group, cluster
  std::optional<Grouping> by;             ///< scope group: rack when not given
  std::string
      plane;  ///< of the site: whose ports it is measured through, each rail by itself; empty: whichever the node uses
  std::optional<PairChoice> pairs;  ///< scope pair over nodes: all when not given
  bool alone = false;  ///< scope pair over nodes: nothing else of the plan runs meanwhile; else pairs run side by side
  int rounds = 0;      ///< scope pair over nodes: rounds of the tournament; 0: all pairs
  Statistic statistic = Statistic::median;
  Limit limit;
  std::vector<RequiredCondition> conditions;
  int repeat_n = 10;              ///< fewer samples are inconclusive
  int looks = 1;                  ///< attempts at most, pooled, the risk split among them; 1 to 3
  std::optional<double> power_w;  ///< design power of each node while it is measured; the profile's when not given
  bool required = true;           ///< severity `required`; else `advisory`: it warns and never accepts or rejects
  Source source;
};

/// A design figure that limits may refer to.
struct Peak {
  double value = 0;
  std::string unit;
  Source source;
};

/// The whole profile with everything inherited filled in.
struct Profile {
  std::string name, title;
  int revision = 1;
  double guard_factor = 1.645;  ///< w = guard_factor * u; 1.645 bounds false acceptance at the limit by 5 %
  double confidence = 0.95;     ///< of the interval of the judged statistic
  std::vector<std::string> companions;
  std::map<std::string, int> per_node;  ///< how many subjects of a kind a node of this design has: {"gpu": 8}
  std::optional<double> power_w;        ///< design power of a node under load; nothing where it is not told
  std::map<std::string, Peak> peaks;
  std::vector<Requirement> requirements;
};

/// The text of a profile by name, for `extends`; nothing when there is none.
using ProfileLibrary = std::function<std::optional<std::string>(const std::string& name)>;

/// Reads, inherits (requirements of the same id are replaced) and checks a profile. Refused: what schema.json refuses,
/// duplicate ids, a required limit without a source, a required scope finer than a node without its number per node, a
/// limit without an operator, a reference to an unknown peak, an inheritance deeper than eight or in a circle, a
/// requirement that would take the place of one of another probe or metric.
std::expected<Profile, InputError> read_profile(std::string_view text, const std::string& where,
                                                const ProfileLibrary& library);

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
