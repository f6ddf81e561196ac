// check: what differs between nodes that should be alike. Pure: from what they told to what is said of it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "probes/core/record.h"

namespace assay::site {

/// What one node said, or why it did not.
struct NodeAnswer {
  std::string node;
  std::string kind;                          ///< of the LaunchError when it could not be reached; empty: it answered
  std::string reason;                        ///< why not; or, of a node that answered, what it could not tell
  std::map<std::string, std::string> facts;  ///< by name, printable; a fact that it does not tell is missing
  std::optional<double>
      clock_offset_s;  ///< its clock is off ours by at least this, signed; 0: no difference can be seen
};

/// One fact that is not the same on every node that answered.
struct Difference {
  std::string fact;
  std::string usual;  ///< what more than half of them say; empty when no value has that
  std::map<std::string, std::string>
      others;  ///< node to value, "absent" where it does not tell; all of them without a usual one
};

/// The comparison.
struct SiteCheck {
  std::size_t nodes = 0;
  std::vector<NodeAnswer> unreachable;      ///< in the site's order
  std::vector<NodeAnswer> partial;          ///< answered, and could not tell everything
  std::map<std::string, std::string> same;  ///< facts that all who answered agree on
  std::vector<Difference> differences;      ///< by name of the fact
  std::map<std::string, double> clocks;     ///< nodes whose clock is off by more than kClockTolerance_s

  [[nodiscard]] bool alike() const { return differences.empty() && clocks.empty(); }
};

/// Seconds. Below, a clock follows a time source by any standard; NTP keeps a hundredth of it.
inline constexpr double kClockTolerance_s = 0.5;
/// The share by which two sizes of memory may differ and be the same: firmware takes a little for itself.
inline constexpr double kMemoryTolerance = 0.01;

/// The facts of a node by what its agent said of its host (host_facts) and, where it was run, by health_inventory: what
/// tells one machine from its twin (serial numbers, addresses) is left out, and parts of one kind are counted: "8 x 400
/// Gb/s".
std::map<std::string, std::string> facts_of(const nlohmann::json& host, const Record* inventory);

/// How far the clock of a node that wrote `there` is off, when that happened between `before` and `after` here, all in
/// seconds since 1970: the least that must be true.
double clock_offset(double before, double there, double after);

/// Compares. `answers` are in the site's order.
SiteCheck compare_nodes(const std::vector<NodeAnswer>& answers);

/// For people, one line each; ends with a newline.
std::string check_text(const SiteCheck& check);
/// assay.site-check/1.
nlohmann::ordered_json check_document(const SiteCheck& check);

}  // namespace assay::site
