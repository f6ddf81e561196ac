// check: compares the reported facts of nodes that should be alike, and says what differs, a line for each fact. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "orchestrator/site/launch_failure.h"
#include "probes/core/record.h"

namespace assay::site {

/// One fact that differs between nodes.
struct Difference {
  std::string fact;
  std::string usual;  ///< the value on more than half of them; empty when there is none
  /// Node to value, "absent" where it is not reported; all nodes when there is no usual value.
  std::map<std::string, std::string> others;
};

/// The relative difference up to which two memory sizes count as equal: firmware reserves a little.
inline constexpr double kMemoryTolerance = 0.01;

/// The value that more than half of the nodes have; empty when none has. `by_node`: of every node, "absent" where it is
/// not reported. The fact "memory" may differ by kMemoryTolerance.
std::string usual_value(const std::string& fact, const std::map<std::string, std::string>& by_node);

/// How the nodes differ in `fact`; nothing if all have the usual value.
std::optional<Difference> difference_of(const std::string& fact, const std::map<std::string, std::string>& by_node);

/// A line for people: "30 nodes passthrough; n07 and n12 translated", of `nodes` nodes in all. Values with blanks are
/// quoted, of long ones the words are shown that not all have, and the rarest of many values are counted.
std::string difference_words(const Difference& difference, std::size_t nodes);

/// The answer of one node, or why there is none.
struct NodeAnswer {
  std::string node;
  std::optional<LaunchFailure> failure;      ///< when the node could not be reached
  std::string reason;                        ///< why it was not reached; or which facts are missing from its answer
  std::map<std::string, std::string> facts;  ///< by name, printable; only those that it reported
  std::optional<double> clock_offset_s;  ///< least difference of its clock to this machine's, signed; 0: none detected
};

/// The comparison.
struct SiteCheck {
  std::size_t nodes = 0;
  std::vector<NodeAnswer> unreachable;      ///< in the site's order
  std::vector<NodeAnswer> partial;          ///< answered with some facts missing
  std::map<std::string, std::string> same;  ///< facts that are equal on all nodes that answered
  std::vector<Difference> differences;      ///< by name of the fact
  std::map<std::string, double> clocks;     ///< nodes whose clock is off by more than kClockTolerance_s

  [[nodiscard]] bool alike() const { return differences.empty() && clocks.empty(); }
};

/// Seconds. A clock with a time source is closer than this; NTP keeps a hundredth of it.
inline constexpr double kClockTolerance_s = 0.5;
/// The probes whose records are compared, in the order in which they are asked.
inline constexpr std::array<std::string_view, 2> kComparedProbes = {"health_inventory", "host_configuration"};

/// The facts of a node from its agent (host_facts) and from records of kComparedProbes: without identifiers of the one
/// machine (serial numbers, addresses), and with parts of one kind counted: "8 x 400 Gb/s". What two records have is
/// taken from the first.
std::map<std::string, std::string> facts_of(const nlohmann::json& host, const std::vector<Record>& records);

/// The least offset of a node's clock that read `there` between `before` and `after` on this machine's clock, all in
/// seconds since 1970.
double clock_offset(double before, double there, double after);

/// Compares. `answers` are in the site's order.
SiteCheck compare_nodes(const std::vector<NodeAnswer>& answers);

/// For people, a line for each fact that differs; ends with a newline.
std::string check_text(const SiteCheck& check);
/// assay.site-check/1.
nlohmann::ordered_json check_document(const SiteCheck& check);

}  // namespace assay::site
