// nights: the last nights by a history and a drift report, for pages and exports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "orchestrator/drift/report.h"
#include "orchestrator/history/history.h"

namespace assay::nightly {

/// State of a node in one night, from little to much; of several units the last in this order counts.
enum class NodeNight : std::uint8_t {
  unseen,  ///< no sweep names it
  not_due,
  busy,
  preempted,
  not_measured,
  measured,
  watch,  ///< measured, and since its onset a change that is too small to matter
  flagged,
  confirmed,
};

inline constexpr std::size_t kNodeNights = 9;

/// The words of a legend: "measured, as before".
const char* words_for(NodeNight state);

/// One node, or several if they are shown as one row.
struct NodeRow {
  std::string name, leaf, rack;
  std::size_t nodes = 1;
  std::vector<NodeNight> nights;  ///< as many as Overview::nights
};

/// The whole fleet.
struct Overview {
  std::vector<drift::Date> nights;   ///< every date up to the report's, the last ones
  std::vector<NodeRow> nodes;        ///< sorted by name, as people count: n2 before n10
  std::vector<drift::Event> events;  ///< of these nights
  std::string last_started;          ///< UTC start of the newest sweep; empty: none
};

/// The last `most` nights up to the report's.
history::Result<Overview> overview_of(const history::History& history, const drift::DriftReport& report,
                                      std::size_t most);

/// Rows of neighbours that are shown as one: by leaf, if there is none by rack, and otherwise `per_row` in a row. Of a
/// night the worst is shown.
std::vector<NodeRow> grouped(const std::vector<NodeRow>& nodes, std::size_t per_row);

/// One figure of a series.
struct SeriesNight {
  drift::Date night = {};
  double value = 0;              ///< base unit
  std::optional<double> cohort;  ///< median of the units that are comparable in this night, from kFewestPeers on
  bool retest = false;
  std::string run_sha256;
};

/// Fewer peers have no median that is shown.
inline constexpr std::size_t kFewestPeers = 4;

/// One metric of a unit.
struct SeriesTrend {
  drift::Metric metric;
  std::optional<double> accepted;   ///< figure of the signed acceptance
  std::vector<SeriesNight> nights;  ///< ascending
  std::optional<std::size_t> flag;  ///< place in DriftReport::flags
};

/// One unit.
struct UnitTrend {
  drift::Unit unit;
  drift::UnitState state = drift::UnitState::steady;
  std::vector<SeriesTrend> series;   ///< those with a flag first, then by metric
  std::vector<drift::Event> events;  ///< of the unit, its node, or the fleet
};

/// The units with this id, or of the node with this name, those with a flag first. An error with the nearest match when
/// there is none.
history::Result<std::vector<UnitTrend>> trends_of(const history::History& history, const drift::DriftReport& report,
                                                  const std::string& unit_or_node, std::size_t most);

}  // namespace assay::nightly
