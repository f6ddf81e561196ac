// commands: those of assay-fleet that read runs, dossiers and histories, from values to an exit code.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/files/exit_codes.h"
#include "probes/core/command.h"
#include "reports/cli/opening.h"
#include "reports/dossier/signer.h"

namespace assay::report_cli {

/// Formats of one run; openmetrics is one of nights, too, and then has no run.
inline constexpr std::array<std::string_view, 7> kRunKinds = {"junit", "ctrf",        "ocp", "csv",
                                                              "knees", "openmetrics", "pdf"};

struct ExportRunArguments {
  std::string directory;  ///< of a run or of a dossier
  std::vector<std::string> keys;
  std::string policy;
  std::vector<std::string> waivers;  ///< files, for the first page of a pdf; they need the policy
};

/// Writes the run in `kind` to `out`, a file or "-", of ocp a new folder; returns the exit code, which is not that of
/// the verdict.
int export_run(const std::string& kind, const ExportRunArguments& given, const std::string& out);

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

struct CompareArguments {
  std::string a, b;  ///< folders of runs or of dossiers
  std::vector<std::string> keys;
  std::string policy, out;
  double alpha = 0.05, smallest_change = 1;  ///< the latter in percent
  bool json = false, no_worse = false;
};

struct RequirementsArguments {
  std::string catalogue;  ///< a file, or the name of a built-in one
  std::string directory;  ///< of a run or of a dossier
  std::vector<std::string> keys;
  std::string policy, out;  ///< out: a page beside the output
  bool list = false, json = false, csv = false, met = false;
};

struct CommonsArguments {
  std::vector<std::string> inputs;  ///< contribute: folders of dossiers; merge: files
  std::vector<std::string> keys;    ///< files of public keys of the signers
  std::string policy;               ///< contribute
  dossier::SignerName signer;
  std::string out;
  std::string file, model;  ///< show
  bool json = false;
};

struct DrawArguments {
  std::string dossier, policy;
  dossier::SignerName signer;                   ///< commit
  std::size_t cells = 0;                        ///< commit
  std::vector<std::string> commitments, seeds;  ///< challenge: files, in the same order; reveal: one's own
  std::vector<std::string> others;              ///< reveal: commitments of the other parties
  std::string challenge;                        ///< plan, check: file
  std::string repeat;                           ///< check: folder of a dossier
  double alpha = 0.05, smallest_change = 5;     ///< check; the latter in percent
  std::string out;
  bool json = false;
};

/// Each adds a command, or several, to `app`; a parsed one sets `action`.
void add_nightly_commands(Command& app, NightlyArguments& given, std::function<int()>& action);
void add_compare_command(Command& app, CompareArguments& given, std::function<int()>& action);
void add_requirements_command(Command& app, RequirementsArguments& given, std::function<int()>& action);
void add_commons_command(Command& app, CommonsArguments& given, std::function<int()>& action);
void add_draw_command(Command& app, DrawArguments& given, std::function<int()>& action);

}  // namespace assay::report_cli
