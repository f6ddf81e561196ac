// simulation: inputs of a simulation: a seed, and the faults of its nodes and links.
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/site/site.h"
#include "probes/core/meter_list.h"

namespace assay::plan {

/// The word in plan, journal, verdict and statement for a run in which nothing was measured.
inline constexpr const char* kSimulated = "simulated";

/// A node, or the link between two, that performs worse than the others.
struct SimulatedFault {
  std::string node, other;  ///< `other` is empty for a node
  std::string metric;       ///< only this one; empty: every one
  double factor = 1;        ///< of the performance that is left: 0.8 is 80 % of a bandwidth, 1.25 times a latency
  double probability = 1;   ///< of showing in an attempt or a test; below 1 it flaps
};

/// How a meter of the simulated site sees one of its quantities, if it is not honest. Times are in s since the begin of
/// the load.
struct SimulatedMeter {
  std::string meter;
  Quantity quantity = Quantity::power;
  double gain = 1, offset = 0;  ///< offset in the quantity's unit
  double scale = 1;             ///< 0.1: a number of 10 W is taken for one of 1 W
  double lag_s = 0;
  std::optional<double> averaging_s = {}, quantum = {};
  std::optional<double> stuck_after_s = {}, stale_after_s = {}, dead_after_s = {};
  std::optional<double> constant = {};  ///< computed from a table, and said to be
  bool wraps_16_bit = false;
};

/// Two outlets of a strip whose plugs are exchanged: the site's list is wrong about both.
struct SwappedOutlets {
  std::string meter;
  int a = 0, b = 0;
};

/// A feed that carries nothing for a time; the other feeds of its rack take its part.
struct LostFeed {
  std::string meter;
  double after_s = 0;  ///< since the begin of the load
  std::optional<double> until_s = {};
};

/// Figures of healthy nodes. Whether a healthy fleet would be accepted depends on these numbers more than on any other;
/// they are shown with the outcome.
struct Healthy {
  double margin = 0.04;       ///< beyond the limit, as a share of it: floors are 0.93 to 0.95 of the measured value
  double spread = 0.005;      ///< relative standard deviation between nodes
  double run_to_run = 0.005;  ///< and between runs on one node; 2 % to 6 % on virtual machines with neighbours
  friend bool operator==(const Healthy&, const Healthy&) = default;
};

/// A feature of one node that does less than it should when it is switched on.
struct SimulatedSwitch {
  std::string node, parameter;
  double gain = 0;     ///< share of its gain on a healthy node that is left
  bool stuck = false;  ///< its recorded state is the same when it is switched off
};

/// A GPU of a rack, one link of it (a cable), or without a node the links of this number of all GPUs (a plane of
/// switches), of which the bandwidth left is a share of that of the others.
struct SimulatedPart {
  std::string node = {};
  std::optional<int> gpu = {}, link = {};  ///< from 0
  double factor = 1;
};

/// A common resource that is full with so many nodes: more of them together reach no more.
struct SimulatedKnee {
  int nodes = 0;
  std::string metric = {};   ///< of groups of nodes; empty: every one
  std::string counter = {};  ///< a condition of the probe that rises there; empty: none
};

/// All faults, and the figures of healthy nodes.
struct Faults {
  std::vector<SimulatedFault> faults;
  std::vector<std::string> dead;  ///< nodes whose agents do not answer
  /// By metric: relative standard deviation between healthy nodes, if it is not that of `healthy`.
  std::map<std::string, double> spread;
  Healthy healthy = {};
  std::vector<SimulatedMeter> meters = {};
  std::vector<SwappedOutlets> swapped_outlets = {};
  std::vector<LostFeed> lost_feeds = {};
  std::vector<SimulatedSwitch> switches = {};
  std::vector<SimulatedPart> parts = {};
  std::vector<SimulatedKnee> knees = {};
};

/// The inputs of a simulation; they stand in its plan.
struct Simulation {
  std::uint64_t seed = 0;
  Faults faults;
};

/// Reads and checks a faults document (schema faults.schema.json).
std::expected<Faults, InputError> read_faults(std::string_view text, const std::string& where);

/// Nothing if every node, meter and outlet that `faults` names is one of `site`'s, else which is not. A path between
/// tenants counts as a node: a bad link from a node to it is a leak.
std::optional<InputError> check_faults(const Faults& faults, const site::Site& site, const std::string& where);

/// The JSON form of `simulation`, every field present.
nlohmann::json to_json(const Simulation& simulation);

/// The JSON form of `healthy`, every field present.
nlohmann::json to_json(const Healthy& healthy);

/// Reads a simulation back.
std::expected<Simulation, InputError> simulation_from(const nlohmann::json& object, const std::string& where);

}  // namespace assay::plan
