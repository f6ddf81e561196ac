// contribution: the figures of accepted runs of one site, without a name, a serial number or a time of day.
#pragma once

#include <expected>
#include <map>
#include <string>
#include <vector>

#include "reports/commons/figures.h"
#include "reports/dossier/opened_run.h"

namespace assay::commons {

/// Figures of verified runs.
struct Contribution {
  AllFigures figures;
  std::map<std::string, std::size_t> left_out;  ///< passed figures that are not in it, by the reason
};

/// The figures of nodes and accelerators that passed, one for each board and group: of a board that several runs have,
/// that of the last. Left out: figures of pairs, groups and other parts, of counts of faults, of contrasts, without a
/// model, and of parameters whose text could name something. Refused: a run that is not verified, accepted and
/// measured whole.
std::expected<Contribution, InputError> contribution_of(const std::vector<dossier::OpenedRun>& runs);

}  // namespace assay::commons
