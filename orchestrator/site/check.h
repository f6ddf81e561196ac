// check: compares the reported facts of nodes that should be alike. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "orchestrator/site/launch_failure.h"
#include "probes/core/record.h"

namespace assay::site {

/// The answer of one node, or why there is none.
struct NodeAnswer {
  std::string node;
  std::optional<LaunchFailure> failure;      ///< when the node could not be reached
  std::string reason;                        ///< why it was not reached; or which facts are missing from its answer
  std::map<std::string, std::string> facts;  ///< by name, printable; only those that it reported
  std::optional<double> clock_offset_s;  ///< least difference of its clock to this machine's, signed; 0: none detected
};

/// One fact that differs between the nodes that answered.
struct Difference {
  std::string fact;
  std::string usual;  ///< the value on more than half of them; empty when there is none
  /// Node to value, "absent" where it is not reported; all nodes when there is no usual value.
  std::map<std::string, std::string> others;
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
/// The relative difference up to which two memory sizes count as equal: firmware reserves a little.
inline constexpr double kMemoryTolerance = 0.01;

/// The facts of a node from its agent (host_facts) and, where it was run, from health_inventory: without identifiers of
/// the one machine (serial numbers, addresses), and with parts of one kind counted: "8 x 400 Gb/s".
std::map<std::string, std::string> facts_of(const nlohmann::json& host, const Record* inventory);

/// The least offset of a node's clock that read `there` between `before` and `after` on this machine's clock, all in
/// seconds since 1970.
double clock_offset(double before, double there, double after);

/// Compares. `answers` are in the site's order.
SiteCheck compare_nodes(const std::vector<NodeAnswer>& answers);

/// For people, one line each; ends with a newline.
std::string check_text(const SiteCheck& check);
/// assay.site-check/1.
nlohmann::ordered_json check_document(const SiteCheck& check);

}  // namespace assay::site
