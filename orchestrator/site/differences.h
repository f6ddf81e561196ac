// differences: what differs between nodes that should be alike, one line for each fact. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

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

}  // namespace assay::site
