// exports: a judged run in the formats of other programs. In none of them does anything but a pass look like one.
#pragma once

#include <map>
#include <string>

#include "reports/dossier/opened_run.h"

namespace assay::exports {

/// JUnit XML: a suite for each requirement, a test for each cell, and the verdict as the last test. A cell that fails
/// or that the measurement cannot decide is a failure with its outcome as type, one without a judged figure an error;
/// advisory cells that do not pass are skipped, because they reject nothing.
std::string junit(const dossier::OpenedRun& run);

/// CTRF JSON: a test for each cell and one for the verdict. pass is passed; fail and error are failed; an open one is
/// other; advisory cells that do not pass are other, too. rawStatus is the outcome.
std::string ctrf(const dossier::OpenedRun& run);

/// The output of OCP diagnostics 2.0 by file name, a line for each artifact: for each node its own steps
/// ("n01.jsonl"), and those of several nodes ("@together.jsonl", a name that no node can have). Validators are the
/// acceptance limits; fields unknown to OCP are metadata under "assay".
std::map<std::string, std::string> ocp(const dossier::OpenedRun& run);

/// OpenMetrics, with the time of the run's last line and "# EOF": value, limits and outcome of every cell, and the
/// verdict.
std::string run_metrics(const dossier::OpenedRun& run);

/// CSV (RFC 4180, but for line feeds at the ends of lines) with a row for each cell, numbers in base units. A text that
/// a spreadsheet would take for a formula has an apostrophe in front.
std::string csv(const dossier::OpenedRun& run);

/// CSV alike, with a row for each group and test of every knee (verdict.h).
std::string knees_csv(const dossier::OpenedRun& run);

}  // namespace assay::exports
