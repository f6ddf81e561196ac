// nights: months of nightly sweeps of a made-up fleet, from a seed and a list of events.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/drift/fleet.h"
#include "orchestrator/drift/night.h"
#include "orchestrator/drift/report.h"
#include "probes/core/error.h"
#include "probes/core/words.h"

namespace assay::simulate {
class SeededRandom;
}

namespace assay::rehearse {

enum class NightFaultKind {
  step,
  ramp,
  flap,
  spike,
  fleet_step,
  rollout,
  swap,
  preempt,
  missing,
  foreign_load,
  counter
};

constexpr auto words_of(NightFaultKind) { return names_as_words<NightFaultKind>(); }

enum class NoiseKind { gauss, t5 };

constexpr auto words_of(NoiseKind) { return names_as_words<NoiseKind>(); }

/// One thing that happens.
struct NightFault {
  NightFaultKind kind = NightFaultKind::step;
  std::string unit, metric;  ///< empty: all
  int from_night = 0;
  double sigma = 3;             ///< how much worse, in deviations
  std::optional<double> ratio;  ///< in place of it: the share that is left
  double p = 1;
};

/// The cause of a flag: a fault of a node concerns its metrics only, and from its night on.
enum class FlagCause { fault, other_metric, before_fault, no_fault };

constexpr auto words_of(FlagCause) {
  using enum FlagCause;
  return std::to_array<Word<FlagCause>>({{fault, "a fault"},
                                         {other_metric, "NO FAULT of this metric"},
                                         {before_fault, "NO FAULT yet"},
                                         {no_fault, "NO FAULT"}});
}

/// A document of schema assay.night-faults/1.
struct NightFaults {
  std::vector<NightFault> faults;
  NoiseKind noise = NoiseKind::gauss;
  double sigma = 0.01, rho = 0, sigma_spread = 0.25, unit_spread = 0.05, night_spread = 0.003;
};

/// Reads and checks it (profiles/schemas/night-faults.schema.json).
std::expected<NightFaults, InputError> read_night_faults(std::string_view text, const std::string& where);

/// The fleet that nights are made up of.
struct NightsShape {
  std::size_t nodes = 100, metrics = 10;
  std::size_t per_leaf = 16;
  std::uint64_t seed = 1;
  drift::Date first = drift::Date{std::chrono::days{20454}};  ///< 2026-01-01
};

/// Makes one night after the other; the same for the same seed. Each node is one unit, "node:n00003"; the metrics are
/// simulated.m00, …, levels of which more is better, and simulated.errors, a fatal count, where a fault has one.
class Nights {
 public:
  Nights(const NightsShape& shape, NightFaults faults);
  /// Grows when a unit is swapped; the address stays.
  [[nodiscard]] const drift::Fleet& fleet() const { return fleet_; }
  drift::Night next();
  /// Fresh tests of the night that next() made last: one more visit of each of `nodes` that was measured in it, with
  /// noise of its own and the same faults. `round` numbers the sets of tests of a night.
  [[nodiscard]] drift::Night retests(const std::set<std::string>& nodes, int round) const;
  /// The cause of a flag of this fleet, by its faults.
  [[nodiscard]] FlagCause cause_of(const drift::Flag& flag) const;

 private:
  [[nodiscard]] bool concerns(const NightFault& fault, std::size_t node, std::size_t metric) const;
  [[nodiscard]] double effect(const NightFault& fault, std::size_t node, double sigma) const;
  [[nodiscard]] double noise(simulate::SeededRandom& random) const;
  [[nodiscard]] double value_of(std::size_t node, std::size_t metric, double e) const;
  [[nodiscard]] double events_of(std::size_t node, std::size_t metric, const std::string& when) const;
  [[nodiscard]] drift::VisitState state_of(std::size_t node) const;
  [[nodiscard]] std::uint32_t cohort_of(std::size_t node) const;
  void swap(std::size_t node);
  void add_unit(std::size_t node, const std::string& id);

  NightsShape shape_;
  NightFaults faults_;
  drift::Fleet fleet_;
  std::vector<std::uint32_t> unit_of_;        ///< by node
  std::vector<std::uint32_t> first_series_;   ///< by unit
  std::vector<double> level_, sigma_, last_;  ///< by node and metric
  std::vector<double> common_;                ///< by metric: tonight's effect on all nodes
  std::uint64_t state_ = 0;                   ///< of the random numbers
  int night_ = -1;                            ///< of the night that was made last
  std::size_t levels_ = 0;
};

}  // namespace assay::rehearse
