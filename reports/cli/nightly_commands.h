// nightly_commands: trend, export and rma, from values to an exit code.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "reports/cli/export_run.h"
#include "reports/dossier/signer.h"

namespace CLI {
class App;
}

namespace assay::report_cli {

struct TrendArguments {
  std::string unit;  ///< id, or name of a node; empty with `fleet`
  std::string database, drift, out;
  std::size_t nights = 90;
  bool fleet = false;
};

struct ExportArguments {
  std::string kind, database, drift, out = "-";
  std::size_t nights = 90;
  ExportRunArguments run;  ///< of the formats of one run
};

struct RmaArguments {
  std::string unit, database, drift, out, check;
  dossier::SignerName signer;            ///< with `check`, its key is a public one
  std::vector<std::string> attachments;  ///< kind=file
  std::size_t nights = 90;
};

struct NightlyArguments {
  TrendArguments trend;
  ExportArguments exported;
  RmaArguments rma;
};

/// Adds the three commands to `app`; a parsed one sets `action`.
void add_nightly_commands(CLI::App& app, NightlyArguments& given, std::function<int()>& action);

/// Writes the page of the fleet, of a node or of a unit.
int run_trend(const TrendArguments& given);
/// Prints or writes an export.
int run_export(const ExportArguments& given);
/// Writes or checks the folder for a return.
int run_rma(const RmaArguments& given);

}  // namespace assay::report_cli
