// sweep_file: the files of a sweep's folder: due.json (assay.due/1) and sweep.json (assay.sweep/1), with strict
// readers.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/sweep/due.h"
#include "orchestrator/sweep/ledger.h"
#include "orchestrator/sweep/pairs.h"
#include "probes/core/error.h"

namespace assay::sweep {

/// due.json: the tasks of a sweep, written before it begins and never changed.
struct DueFile {
  std::string id;  ///< of the sweep, a UUID
  Night night = {};
  bool night_given = false;           ///< the night was named by an option, not read off the clock
  bool retest = false;                ///< its visits are fresh tests of flagged nodes, and count for no rotation
  std::string started;                ///< UTC
  std::string until;                  ///< UTC at which it is over; empty: no such time
  std::string profile;                ///< its name
  double budget_s = 0;                ///< of one node
  double stagger_s = 0;               ///< starts are spread over so long
  std::vector<std::string> only;      ///< requirement ids of tonight
  std::vector<std::string> left_out;  ///< requirement ids that did not fit
  std::vector<DueEntry> due;          ///< of a retest in the order of retest_order()
  std::vector<NightPair> pairs;       ///< that jobs of two nodes are for; empty: pairs are measured with the nodes
};

/// sweep.json: its results.
struct SweepFile {
  DueFile plan;
  std::vector<NodeVisit> visits;      ///< in the order of the due list
  std::vector<PairVisit> pairs;       ///< of jobs of two nodes
  std::vector<std::string> runs;      ///< run folders of the figures, relative to the sweep's folder
  std::vector<std::string> findings;  ///< nodes that were missed too often: a hole in the coverage
};

/// Bytes: sorted keys, one-space indent, final newline.
std::string due_text(const DueFile& file);
std::string sweep_text(const SweepFile& file);
/// Read back; strict. Errors name `where` and the field.
std::expected<DueFile, InputError> read_due(std::string_view text, const std::string& where);
std::expected<SweepFile, InputError> read_sweep(std::string_view text, const std::string& where);

/// The bytes of visit.json, one node's outcome in the folder of a worker, and back.
std::string visit_text(const NodeVisit& visit);
std::expected<NodeVisit, InputError> read_visit(std::string_view text, const std::string& where);

/// The bytes of pair.json, the outcome of a pair in the folder of its worker, and back.
std::string pair_text(const PairVisit& visit);
std::expected<PairVisit, InputError> read_pair(std::string_view text, const std::string& where);

/// Makes the folder `path`, which must not exist: the claim of a worker to a node or pair. True for the one process
/// that made it; false where another had. Errors: it cannot be made.
std::expected<bool, InputError> claim(const std::string& path);

}  // namespace assay::sweep
