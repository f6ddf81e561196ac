// rate: another tool's figures next to the results of a run, and against the limits of a profile. It is no verdict:
// where and how the tool ran is not attested, so that nothing is accepted by it.
#pragma once

#include <string>
#include <vector>

#include "orchestrator/judge/evidence/imported.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"
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

/// One imported figure and the cells of one requirement that hold the same quantity and statistic, at the same size and
/// of the same operation. Where another setting differs (block size, pattern, depth, type, nodes, …), or the figure has
/// `conditions`, they are not comparable and no number is given.
struct Comparison {
  std::size_t figure = 0;                      ///< its place among the import's
  std::string requirement, metric;             ///< "n01.bw", "verbs_bandwidth bandwidth_forward median"
  std::size_t cells = 0;                       ///< those with a value
  double lowest = 0, median = 0, highest = 0;  ///< of the cells' values, in the figure's unit
  std::string differs;  ///< not comparable: the first setting that is another, in the tool's words; else empty
};

/// The pairs of `import` in the order of its figures, then of the plan's requirements; figures without a counterpart
/// come in none.
std::vector<Comparison> compare(const judge::Import& import, const plan::Plan& plan, const judge::Verdict& verdict);

/// A table of `import` and the run for people, with the number of figures without a counterpart. It states that
/// imported figures are not judged.
std::string comparison_text(const judge::Import& import, const plan::Plan& plan, const judge::Verdict& verdict);

}  // namespace assay::imports
