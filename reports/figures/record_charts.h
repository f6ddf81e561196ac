// record_charts: figures from the records of a requirement's steps: faults by place, memory, soaks, steps of power, and
// parts of a training step. A file draws each kind.
//
// All are drawn with the first requirement of the same measurement, from the steps in `results`; none for other probes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "probes/core/record.h"
#include "reports/figures/captions.h"

namespace assay::figures {

/// Results of one requirement, and the records of each step.
using ResultList = std::vector<const judge::Result*>;
using RecordsOf = std::map<std::string, std::vector<Record>>;

/// Most figures of one requirement: more are no help, and the records have all.
inline constexpr std::size_t kMostMemoryCurves = 8, kMostSoaks = 8, kMostCurves = 12;

/// The chart of `requirement` and of the others that allow no fault of the same measurement, wherever it was made: in
/// each cell how often the records counted one, cases or phases (rows) by class (columns). Empty if there are not two
/// such requirements, or the records have not two places, or those have not one coordinate each.
Chart fault_chart(const plan::Plan& plan, const plan::Requirement& requirement, const ResultList& results,
                  const RecordsOf& records);

/// One figure for each step of host_loaded_latency, at most kMostMemoryCurves: latency of memory against the rate at
/// which other cores use it, a point for each delay, the medians of all samples of its attempts; the band spans those
/// of single attempts. None if no record has two points.
std::vector<Chart> memory_curves(const plan::Plan& plan, const plan::Requirement& requirement,
                                 const ResultList& results, const RecordsOf& records);

/// Tables, HTML, of the distances between memory nodes (SLIT) by the first record of each step of health_memory: one
/// for each different matrix, at most kMostMemoryCurves, with the hosts that have it. None for hosts with one node.
std::string distance_tables(const plan::Plan& plan, const plan::Requirement& requirement, const ResultList& results,
                            const RecordsOf& records);

/// Figures of each record of thermal_soak, at most kMostCurves: its temperatures, its clocks and its power over the
/// time since the load began, with the steady mark. Readings are drawn evenly over the time before the mark and over
/// that after it, as the record has their order and not their times.
std::vector<Chart> heat_curves(const plan::Plan& plan, const plan::Requirement& requirement, const ResultList& results,
                               const RecordsOf& records);

/// Figures of how power answered a load that was switched, at most kMostCurves: of each package in a record of
/// power_step, and, where the requirement is a figure of steps during a load (judge::kOfSteps), of each subject of the
/// results by its meters in `watches`. Every step is a line of its own on the time since its mark; a square is one line
/// over the whole time.
std::vector<Chart> step_curves(const plan::Plan& plan, const plan::Requirement& requirement, const ResultList& results,
                               const RecordsOf& records, const std::map<int, Record>& watches);

/// One figure for each record of train_soak, at most kMostSoaks: its steps over time, the point at which it had settled
/// and its interruptions; the caption has the conclusion from the time under load, as the record has it. None if a
/// record has no windows.
std::vector<Chart> soak_charts(const plan::Plan& plan, const plan::Requirement& requirement, const ResultList& results,
                               const RecordsOf& records);

/// Figures of train_step (parts of the step of each subject; of one subject also each rank's time outside of
/// collectives, and the activities of ranks in one step) or fault_resume (parts of the time to repair, by kind of fault
/// and part of the step), from the raw samples. None if no record has all parts.
std::vector<Chart> training_charts(const plan::Plan& plan, const plan::Requirement& requirement,
                                   const ResultList& results, const RecordsOf& records);

}  // namespace assay::figures
