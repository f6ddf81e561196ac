// fleet: the watched units, metrics, and the series of a metric on a unit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "probes/core/description.h"
#include "probes/core/words.h"

namespace assay::drift {

/// How a metric is judged.
enum class MetricClass {
  level,  ///< a figure above 0, compared with the unit's own history on a logarithmic scale
  count,  ///< a number of events, compared with the rate of the peers; of a fatal one, every event counts
  state,  ///< a value that must equal the expected one
};

constexpr auto words_of(MetricClass) { return names_as_words<MetricClass>(); }

/// A part that is watched. Its identity is its serial number; place and slot may change.
struct Unit {
  std::string id;       ///< "gpu:1324523049871"; where no serial is known "node:" and the node's machine id or name
  std::string kind;     ///< a kind of subject of a record (record.h): "node", "gpu", "nic", "drive", "pair", …
  bool serial = false;  ///< whether `id` comes from a serial number
  std::string node;     ///< name of the node it was last seen in
  std::string slot;     ///< on the node: "0000:1b:00.0", "nvme0n1"; empty: none
  std::string leaf = {}, rack = {};  ///< of the node; empty: not known
};

/// A measured quantity.
struct Metric {
  std::string name;  ///< "host_gemm.rate", with coordinates behind where a probe has several: "x.bandwidth{size=8}"
  std::string probe;
  int revision = 0;  ///< the probe's newest one that was seen
  std::string unit;  ///< base unit
  MetricClass type = MetricClass::level;
  bool lower_is_better = false;
  bool fatal = false;                   ///< count: every event counts
  Course course = Course::each_run;     ///< count: whether the value is a counter that runs on, and until when
  std::optional<double> expected = {};  ///< state; absent: the value of most peers
};

/// One metric on one unit. Numbers are indices into Fleet.
struct Series {
  std::uint32_t unit = 0, metric = 0;
  std::optional<double> accepted = {};  ///< the figure of the signed acceptance, in base units
};

/// All of them. Indices are in the order in which they were first seen and never change; nothing in a report depends on
/// this order.
struct Fleet {
  std::vector<Unit> units;
  std::vector<Metric> metrics;
  std::vector<Series> series;
  std::vector<std::string> cohorts;  ///< "H200 | driver 580.1 | fw 97.0 | rear": by which units are comparable
  bool simulated = false;
};

}  // namespace assay::drift
