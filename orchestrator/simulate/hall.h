// hall: a simulated site during one load: its racks, feeds and cooling over time, and its meters' readings.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "orchestrator/plan/plan.h"
#include "orchestrator/simulate/plant.h"
#include "probes/meters/history.h"
#include "probes/meters/load_shape.h"

namespace assay::simulate {

/// How long a simulated `step` takes: the whole load of load_bank by its parameters, any other as its probe says.
double duration_of(const plan::Step& step);

/// When load_bank holds its load, in s since the begin of the step; nothing for another step.
std::optional<meters::HeldTime> held_time(const plan::Step& step);

/// A plan's site while `load` runs from `begin_s` on (s since 1970 of virtual time). Both must outlive it, and the plan
/// must have a simulation.
class Hall {
 public:
  Hall(const plan::Plan& plan, const plan::Step& load, double begin_s);

  /// Everything that a meter answers meanwhile, once a second, through its own errors and the faults of the simulation.
  [[nodiscard]] meters::MeterHistory history_of(const Meter& meter) const;
  /// The record of power_feed; its host says that it is simulated.
  [[nodiscard]] std::string record() const;

 private:
  using Trace = std::vector<double>;

  /// The true load of one outlet of a feed, independent of the site's map.
  [[nodiscard]] std::string plugged(const Meter& meter, int outlet) const;
  /// The number of a trace at a time in s since 1970, between its points on a line.
  [[nodiscard]] double at_time(const Trace& trace, double time_s) const;
  [[nodiscard]] bool is_lost(const Meter& feed, double time_s) const;
  [[nodiscard]] double share_of(const Meter& feed, double time_s) const;
  [[nodiscard]] std::map<Quantity, Truth> truths_of(const Meter& meter) const;
  [[nodiscard]] View view_of(const Meter& meter, Quantity quantity, int outlet) const;
  void trace_nodes();
  void trace_racks();

  const plan::Plan& plan_;
  const plan::Simulation& simulation_;
  const plan::Step& load_;
  double begin_s_ = 0, duration_s_ = 0;
  std::vector<plan::LostFeed> losses_;
  std::map<std::string, std::size_t> node_at_;              ///< by name, in the site's order
  std::map<std::string, std::vector<std::size_t>> racks_;   ///< nodes by rack
  std::map<std::string, std::vector<const Meter*>> feeds_;  ///< by rack
  std::vector<Trace> drawn_w_;                    ///< of each node, once a second from five minutes before the load on
  std::map<std::string, Trace> rack_w_, heat_w_;  ///< of each rack and its coolant, likewise
  Trace all_w_;                                   ///< of all racks
};

}  // namespace assay::simulate
