// slurm_nodes: what `scontrol show node` prints, one-line form or not, as fields. Pure.
#pragma once

#include <cstddef>
#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/error.h"

namespace assay::site {

/// One node.
struct SlurmNode {
  std::string name;
  std::map<std::string, std::string> fields;  ///< "State" and others in front of the reason; of OS its first word
  std::string reason;                         ///< without its user and time
  bool reason_ends_surely = true;             ///< false: another end of the reason could be meant
  std::size_t line = 0;                       ///< its first
};

/// Reads the output of `scontrol show node`, with --oneliner or without. Slurm prints a reason as
/// "Reason=TEXT [USER@TIME]"; Comment=, Extra=, Topology= and others follow on the same line in newer versions. TEXT,
/// Comment and Extra are free text. The reason ends at the first "[USER@TIME]" that ends the node or precedes a known
/// field, or at the only one before an unknown field; without any, with the node: rather a longer text than was set
/// than a shorter one. Errors name `where` and the line.
std::expected<std::vector<SlurmNode>, InputError> read_slurm_nodes(std::string_view text, const std::string& where);

}  // namespace assay::site
