// rate: another tool's figures against the limits of a profile. It is no verdict: where and how the tool ran is not
// attested, so that nothing is accepted by it.
#pragma once

#include <string>
#include <vector>

#include "orchestrator/judge/evidence/imported.h"
#include "orchestrator/plan/profile.h"

namespace assay::imports {

/// One imported figure and a requirement of the same quantity. Not rated, with the reason in `differs`: a setting that
/// is another or not stated, a requirement with conditions or of a place in a fleet, a limit that other measurements
/// set.
struct Rated {
  std::size_t figure = 0;  ///< its place among the import's
  std::string requirement;
  bool required = false;
  bool meets = false;
  std::string limit;    ///< for people: "312.9 GB/s, at least 314.0 GB/s"
  std::string differs;  ///< not rated: why; else empty
};

/// The pairs of `import` in the order of its figures, then of the profile's requirements. A figure of an operation
/// between nodes or GPUs must state how many there were, and have as many as the profile's scope and nodes have.
std::vector<Rated> rate(const judge::Import& import, const plan::Profile& profile);

/// `rated` for people, with how many figures have no counterpart. Each line says that the figure is imported.
std::string rating_text(const judge::Import& import, const plan::Profile& profile, const std::vector<Rated>& rated);

}  // namespace assay::imports
