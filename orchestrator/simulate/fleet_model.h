// fleet_model: measurements of simulated nodes: values that meet the plan's limits with a margin, spread between nodes,
// and lowered by faults.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "orchestrator/plan/plan.h"
#include "orchestrator/simulate/instrument.h"
#include "orchestrator/simulate/training_model.h"
#include "probes/core/recorder.h"

namespace assay::simulate {

/// One number that a simulated probe measures.
struct MadeUpMetric {
  std::string metric;
  plan::JudgedScope scope = plan::JudgedScope::node;
  Values at;
  bool lower_is_better = false;
  bool fixed = false;  ///< a fact such as a number of GPUs: at its limit on every node, unless a fault names it
  /// Limits in force, in the metric's unit; none if only shares of a fleet or best sample are demanded.
  std::optional<double> low, high;
  double centre = 0;       ///< of healthy nodes
  double spread = 0;       ///< relative standard deviation between them
  std::string spread_key;  ///< metrics of one key are high or low together, so that their ratio is steady
  int samples = 1;
  bool by_nodes = false;         ///< grows with the nodes that work together
  std::string switched_by = {};  ///< parameter of a contrast, if this is its step with the feature on
  double gain = 1;               ///< by which it is better than with the feature off

  /// What `nodes` healthy nodes show together.
  [[nodiscard]] double centre_on(std::size_t nodes) const {
    return by_nodes ? centre * static_cast<double>(nodes) : centre;
  }
};

/// A condition that was demanded, with a value that meets it.
struct MetCondition {
  std::string name;
  Value value;            ///< unless it is the site's field of a port
  std::string site;       ///< the site's field of it: interface, device, address, leaf, switch_port; empty: `value`
  bool of_ports = false;  ///< recorded of each port of the node separately
  std::string switched_by = {};  ///< parameter of a contrast, if this is its step with the feature off
  Value on = {};                 ///< the value with the feature on
  plan::JudgedScope scope = plan::JudgedScope::node;  ///< of a demand: what it is recorded of
  std::optional<bool> larger_meets = {};              ///< of a number with a bound: whether a larger one meets it, too
};

/// The model of one plan, which must outlive it and have a simulation. The same plan gives the same numbers, in any
/// order of requests.
class FleetModel {
 public:
  explicit FleetModel(const plan::Plan& plan);
  FleetModel(const FleetModel&) = delete;
  FleetModel& operator=(const FleetModel&) = delete;

  /// Whether this node does not answer.
  [[nodiscard]] bool is_dead(const std::string& node) const { return dead_.contains(node); }
  /// Output of rank `rank` of an attempt of a step, or of an extra test made from one: a record whose host says that it
  /// is simulated. A load that began at `begin_s` (s since 1970 of virtual time) says when it was held.
  [[nodiscard]] std::string record(const plan::Step& step, int attempt, std::size_t rank,
                                   std::optional<double> begin_s = std::nullopt) const;

 private:
  /// Measurements of the probe of a step.
  struct Recipe {
    std::vector<MadeUpMetric> quantities;
    std::vector<MetCondition> conditions;
  };
  [[nodiscard]] Recipe recipe_of(const plan::Step& step) const;
  void add_limits(Recipe& recipe, const plan::Requirement& requirement) const;
  void contrast(const plan::Requirement& requirement, Recipe& on, Recipe& off) const;
  [[nodiscard]] const plan::SimulatedSwitch* switch_of(const std::vector<std::string>& nodes,
                                                       const std::string& parameter) const;
  [[nodiscard]] std::string recipe_key(const plan::Step& step) const;
  [[nodiscard]] std::vector<std::string> subjects_of(const MadeUpMetric& quantity, const plan::Step& step,
                                                     const site::Node& node) const;
  static void add_condition(Recipe& recipe, const plan::RequiredCondition& demand, plan::JudgedScope judged,
                            plan::JudgedScope of);
  void record_conditions(Recorder& recorder, const Recipe& recipe, const plan::Step& step, const site::Node& node,
                         const std::string& occasion) const;
  [[nodiscard]] double share_left(const std::vector<std::string>& nodes, const std::string& metric,
                                  const std::string& occasion, bool named_only) const;
  void record_counters(Recorder& recorder, const plan::Step& step, const std::string& node,
                       const std::string& occasion) const;
  void record_quantity(Recorder& recorder, const MadeUpMetric& quantity, const plan::Step& step, const site::Node& node,
                       const std::string& occasion) const;
  /// Whether `quantity` is of a training step whose graph is walked; it is recorded then.
  [[nodiscard]] bool record_training(Recorder& recorder, const MadeUpMetric& quantity, const plan::Step& step,
                                     const std::string& occasion) const;
  /// Whether `quantity` is of a rack as one subject; its GPUs, trays and planes are recorded then.
  [[nodiscard]] bool record_rack(Recorder& recorder, const MadeUpMetric& quantity, const plan::Step& step,
                                 const std::string& occasion) const;
  /// Whether `quantity` is of a curve of loaded latency, whose points are recorded then.
  [[nodiscard]] bool record_curve(Recorder& recorder, const MadeUpMetric& quantity, const plan::Step& step,
                                  const std::string& node, const std::string& occasion) const;
  void record_samples(Recorder& recorder, const MadeUpMetric& quantity, const Subject& subject, double centre,
                      const std::string& occasion, const std::function<double(double healthy)>& value) const;
  /// The model of the nodes of `step`, or nullptr when it is no step of training.
  [[nodiscard]] const TrainingModel* training_of(const plan::Step& step) const;
  [[nodiscard]] const TrainingShares& shares_of(const TrainingModel& model, const plan::Step& step,
                                                const std::string& occasion) const;
  [[nodiscard]] double value_of(const MadeUpMetric& quantity, const std::vector<std::string>& nodes,
                                const std::string& occasion, double healthy) const;

  const plan::Plan& plan_;
  const plan::Simulation& simulation_;
  std::unordered_map<std::string_view, const site::Node*> nodes_;
  std::map<std::string, std::vector<const plan::SimulatedFault*>> faults_of_;  ///< by their first node
  std::set<std::string> dead_;
  std::map<std::string, Instrument> instruments_;  ///< by probe
  std::map<std::string, Recipe> recipes_;  ///< by a step's first requirement, which has one place only; see recipe_key
  std::unordered_map<std::string_view, std::string_view> on_of_;  ///< steps with a feature on, by that with it off
  std::map<std::string_view, std::string> contrasts_;             ///< parameters of contrasts, by requirement
  /// Steps walked so far: by the step's first requirement and its number of nodes; and by model and speeds.
  mutable std::mutex walking_;  ///< of these two: records are made by several threads
  mutable std::map<std::pair<std::string, std::size_t>, std::optional<TrainingModel>> trainings_;
  mutable std::map<std::pair<const TrainingModel*, std::string>, TrainingShares> walked_;
};

}  // namespace assay::simulate
