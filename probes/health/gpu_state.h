// gpu_state: the state of one GPU: errors it has counted, links, throttling, processes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "probes/core/record.h"
#include "probes/nvml/nvml_gpu.h"

namespace assay::health {

/// A value reported of one link of a GPU.
struct LinkValue {
  std::string_view metric;
  unsigned link = 0;
  double value = 0;
};

/// Values reported by one GPU, by the names of health_gpu's metrics and conditions.
struct GpuState {
  std::map<std::string_view, double> metrics;  ///< base units; those that were reported
  std::map<std::string_view, Value> conditions;
  std::vector<LinkValue> links;
  /// Its cluster and clique, or its state where the fabric has not taken it in: equal for GPUs that reach each other
  /// over the fabric. Nothing without a fabric.
  std::optional<std::string> fabric_place;
  bool in_fabric = false;         ///< the fabric has taken it in
  std::int64_t query_errors = 0;  ///< questions that the driver answered with an error
  bool lost = false;              ///< it fell off the bus, or could never be reached
  std::string first_error;        ///< the first of them, as a message; empty if there was none
};

/// Asks `gpu` everything. `nvml` has the words for errors.
GpuState read_gpu_state(const nvml::Nvml& nvml, const nvml::NvmlGpu& gpu);

/// For each of `states`, the metrics that another one has and it has not, sorted: a GPU that reports less than its
/// neighbours would otherwise escape their limits.
std::vector<std::vector<std::string>> missing_facts(const std::vector<GpuState>& states);

/// In how many cliques of the fabric they are: 1 on a node whose GPUs all reach each other. A GPU that is not taken in
/// counts as one more; nothing if none is.
std::optional<std::size_t> fabric_cliques(const std::vector<GpuState>& states);

}  // namespace assay::health
