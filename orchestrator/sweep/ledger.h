// ledger: which nodes were visited in which night, and the measurements; it makes the due list (assay.visits/1).
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "orchestrator/drift/night.h"
#include "orchestrator/site/site.h"
#include "orchestrator/sweep/choice.h"
#include "orchestrator/sweep/due.h"
#include "probes/core/error.h"
#include "probes/core/strict_object.h"

namespace assay::sweep {

/// Result of one node in one sweep.
struct NodeVisit {
  std::string node;
  drift::VisitState state = drift::VisitState::not_measured;
  std::string reason = {};  ///< why it was not measured; empty if it was
  friend bool operator==(const NodeVisit&, const NodeVisit&) = default;
};

/// One sweep as the ledger keeps it.
struct SweepEntry {
  Night night = {};
  std::string sweep;                      ///< its id: the same sweep is entered once
  std::vector<std::string> requirements;  ///< ids that were measured
  std::vector<NodeVisit> visits;
};

/// All sweeps, in the order in which they were entered.
struct Ledger {
  std::vector<SweepEntry> sweeps;
};

/// The line of `entry`.
std::string line_of(const SweepEntry& entry);
/// Reads lines; an error names the line. A sweep that is there twice counts once.
std::expected<Ledger, InputError> read_ledger(const std::vector<std::string>& lines, const std::string& where);

/// Nights that a ledger keeps whole: as many as a requirement can age (30), for a --night of the past and a clock that
/// is set back, before the 30 in which a requirement gains weight.
inline constexpr int kWholeNights = 60;

/// `ledger` without the visits that decide nothing any more. Entries of more than kWholeNights before the newest night
/// keep of each node its last measurement among them and the misses since; one that is left empty goes. The results of
/// due_nodes() and aged() are the same for every night from 30 before the newest on. A measurement of the whole nights
/// drops no older one, for it may be of a wrong clock.
Ledger shortened(Ledger ledger);

/// Size from which a ledger is shortened when a sweep is entered: a month of 10,000 nodes (0.54 MB a night), and a
/// sixteenth of the largest document.
inline constexpr std::size_t kLongLedger = std::size_t{16} << 20;

/// Enters `entry` into the file `path`, unless its sweep is there already. On disk when it returns. A file of more than
/// `most_bytes` is made anew, shortened, in one step.
std::optional<InputError> enter(const std::string& path, const SweepEntry& entry, std::size_t most_bytes = kLongLedger);

/// The nodes of `site` as the due list wants them. `watched`: nodes that are watched, flagged or were repaired;
/// `flagged`: nodes whose leaf makes its others weigh more. Nights after `tonight` do not count.
std::vector<DueNode> due_nodes(const site::Site& site, const Ledger& ledger, Night tonight,
                               const std::vector<std::string>& watched, const std::vector<std::string>& flagged);

/// `candidates` with the nights since each was measured last, by the ledger.
std::vector<Candidate> aged(std::vector<Candidate> candidates, const Ledger& ledger, Night tonight);

/// {"node", "state", "reason"}; the reason printable.
nlohmann::json to_json(const NodeVisit& visit);

/// The visit that `object` is; refuses it as a StrictObject does.
NodeVisit visit_from(StrictObject object);

}  // namespace assay::sweep
