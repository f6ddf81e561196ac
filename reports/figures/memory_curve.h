// memory_curve: latency of memory against the rate at which other cores use it, and distances between memory nodes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "probes/core/record.h"
#include "reports/figures/captions.h"

namespace assay::figures {

/// One figure for each step of host_loaded_latency in `results`, at most kMostMemoryCurves, drawn with the first
/// requirement of the same measurement: a point for each delay, the medians of all samples of its attempts; the band
/// spans those of single attempts. None for other probes, and where no record has two points.
std::vector<Chart> memory_curves(const plan::Plan& plan, const plan::Requirement& requirement,
                                 const std::vector<const judge::Result*>& results,
                                 const std::map<std::string, std::vector<Record>>& records);

/// Tables, HTML, of the distances between memory nodes (SLIT) by the first record of each step of health_memory in
/// `results`: one for each different matrix, at most kMostMemoryCurves, with the hosts that have it. Drawn with the
/// first requirement of the same measurement; none for other probes, and for hosts with one node.
std::string distance_tables(const plan::Plan& plan, const plan::Requirement& requirement,
                            const std::vector<const judge::Result*>& results,
                            const std::map<std::string, std::vector<Record>>& records);

/// More figures of one requirement are no help; the records have all.
inline constexpr std::size_t kMostMemoryCurves = 8;

}  // namespace assay::figures
