// sweep_measure: one plan of a sweep made, run and judged, stopped at once by a signal.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/judge/evidence/evidence.h"
#include "orchestrator/judge/verdict.h"
#include "orchestrator/plan/plan.h"
#include "orchestrator/run/board.h"
#include "orchestrator/sweep/sweep_file.h"
#include "probes/core/units.h"

namespace assay::cli {

/// Whether SIGTERM or SIGINT came. While it lives the process does not die of them.
class SweepStop {
 public:
  SweepStop();
  /// A run had the signals for itself and gave them back to the system: takes them again.
  void take_signals();
  [[nodiscard]] bool requested() const;
  /// A run was interrupted by one.
  void note();
};

/// A run of a sweep and its judgement.
struct Measured {
  judge::Run run;
  judge::Verdict verdict;
  bool interrupted = false;
  run::BoardView board;  ///< as the page showed it last
};

/// Inputs of measure() besides the place.
struct SweepTools {
  plan::Profile profile;  ///< of sweep::as_sweep
  std::vector<plan::Program> programs;
  int fan_out = 32;
  bool quiet = false;  ///< no line for each step
  std::string board;   ///< page that follows the runs; empty: none
};

/// Plans the requirements `only` on `site` into the new folder `folder`, runs and judges them. No step starts that
/// would typically end after `deadline`. `last`: the page says at the end that nothing follows.
std::expected<Measured, InputError> measure(const std::string& folder, const SweepTools& tools, const site::Site& site,
                                            const std::vector<std::string>& only, std::optional<Seconds> deadline,
                                            SweepStop& stop, bool last = true);

/// The checks on `site`, then the `chosen` steps on the nodes that are not in use, into folder/check and folder/run;
/// the visit of every node of `site`. `chosen` has the checks after the measurement.
std::expected<std::vector<sweep::NodeVisit>, InputError> visit_nodes(const std::string& folder, const SweepTools& tools,
                                                                     const site::Site& site,
                                                                     const std::vector<std::string>& chosen,
                                                                     std::optional<Seconds> deadline, SweepStop& stop);

/// Tries the paths between the tenants of `site` into the new folder `folder`, from all of their nodes, due or not: an
/// attempt disturbs no work, and a leak waits for no turn.
std::optional<InputError> try_crossings(const std::string& folder, const SweepTools& tools, const site::Site& site,
                                        std::optional<Seconds> deadline, SweepStop& stop);

/// The installed probes that a sweep by `profile` may start, those of try_crossings among them.
std::expected<std::vector<plan::Program>, InputError> sweep_programs(const plan::Profile& profile);

/// What try_crossings would send, a line for each path and tenant, or why it cannot.
std::string crossing_lines(const SweepTools& tools, const site::Site& site);

/// The site with only the nodes `names`, in that order.
site::Site site_of(const site::Site& site, const std::vector<std::string>& names);

/// "2h", "90min", "600s" as seconds; the error names `option`.
std::expected<Seconds, InputError> seconds_of(const char* option, const std::string& text);

}  // namespace assay::cli
