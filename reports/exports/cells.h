// cells: the fields of a cell in every format, and its outcome there.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "orchestrator/judge/evidence/journal.h"
#include "orchestrator/judge/verdict.h"
#include "reports/dossier/opened_run.h"

namespace assay::exports {

/// When the attempts of a step were, in milliseconds since 1970; 0 if there were none.
struct StepTime {
  std::int64_t begin = 0, end = 0;
  std::int64_t busy = 0;  ///< of all attempts together
  double share_s = 0;     ///< its part of the run's time: steps at one moment divide it, so that all parts add up to it
};

/// Of every step of the run.
std::map<std::string, StepTime, std::less<>> step_times(const judge::Journal& journal);

/// Milliseconds since 1970 of a time in the journal; 0 for an empty one.
std::int64_t milliseconds(std::string_view utc);

/// "reset (xid_numbers 48): Drain the GPU …", "not known"; empty for a cell that asks for no action.
std::string action_of(const dossier::OpenedRun& run, const judge::Result& result);

/// Why the run as a whole is no acceptance although every cell may pass: simulated, quick or partial; empty for others.
std::string never_accepts(const dossier::OpenedRun& run);

/// `text` as a field of CSV; one that a spreadsheet would calculate begins with an apostrophe.
std::string csv_field(std::string_view text);

}  // namespace assay::exports
