// space: the space of a storage that a probe takes, computed from its parameters before it runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/record.h"
#include "probes/core/units.h"

namespace assay {

/// Writes of a probe into one directory. Of the rules into the same directory the first whose `when` holds counts.
struct SpaceRule {
  std::string_view into = "directory";  ///< the parameter that names the directory
  bool shared = false;          ///< `held` is of all ranks together, in a directory that all share; else of each
  std::string_view when = "";   ///< see holds() in products.h; empty: always
  std::string_view held = "";   ///< B held there at one time, at most; see product_of()
  std::string_view times = "";  ///< how often as much is written in one run; the same form. Empty: as often as the
                                ///< storage is fast, so that nothing can be said before
};

/// A rule as read from a description.
struct OwnSpaceRule {
  std::string into, when, held, times;
  bool shared = false;
};

/// Need of one run of a probe in one directory.
struct SpaceNeed {
  std::string directory;          ///< as its parameter says; relative: to the directory of the agent
  bool shared = false;            ///< the figures are of all ranks together
  double held = 0;                ///< B
  std::optional<double> written;  ///< B; nothing if it depends on how fast the storage is
};

/// A tenth more must be free than is held: metadata, and writes of a neighbour.
inline constexpr double kSpaceSlack = 1.1;

/// What `rules` make of `parameters`, which must be resolved, on `ranks` ranks: one for each directory in which a file
/// is held, in the order of the rules.
std::vector<SpaceNeed> space_needs(const std::vector<OwnSpaceRule>& rules, const Values& parameters, std::size_t ranks);

/// Why `rule` cannot be computed with a probe that has these parameters; empty if it can.
std::string space_rule_problem(const OwnSpaceRule& rule, const std::vector<std::string>& parameters);

/// Bytes free in `directory` for a user without privileges, or nothing if it cannot be asked within `patience`: a
/// server that is gone keeps a process waiting; nor if the file system reports no size. A process of its own asks.
std::optional<std::uint64_t> free_space(const std::string& directory, Seconds patience);

}  // namespace assay
