// main: the command line of assay-fleet: nightly sweeps, other tools' results, and comparisons of runs.
#include <exception>
#include <iostream>
#include <string>
#include <string_view>

#include "orchestrator/cli/run_stages.h"
#include "orchestrator/fleet/drift_command.h"
#include "orchestrator/fleet/import_command.h"
#include "orchestrator/fleet/nightly.h"
#include "probes/core/manual.h"
#include "probes/core/text.h"
#include "reports/fleet/commands.h"

namespace assay::report_cli {
namespace {

int run(int argc, char** argv) {
  const bool manual = argc == 2 && std::string_view(argv[1]) == "--manual";  // for packages; no option of the help
  // Its commands are typed as those of assay, which passes them on.
  Command app{"assay-fleet: nightly sweeps of a fleet, other tools' results, and comparisons of runs",
              manual ? "assay-fleet" : "assay"};
  app.need_commands(0, 1);
  app.add_version(std::string("assay-fleet ") + ASSAY_VERSION);
  cli::NightlyArguments sweeps;
  cli::DriftArguments drift;
  cli::HistoryArguments history;
  cli::NightsArguments nights;
  cli::ImportArguments import;
  NightlyArguments nightly;
  CompareArguments compare;
  RequirementsArguments requirements;
  DrawArguments draw;
  CommonsArguments commons;
  Action action;
  cli::add_nightly(app, sweeps, action);
  cli::add_history(app, history, action);
  cli::add_drift(app, drift, action);
  cli::add_nights(app, nights, action);
  cli::add_import(app, import, action);
  add_nightly_commands(app, nightly, action);
  add_compare_command(app, compare, action);
  add_requirements_command(app, requirements, action);
  add_draw_command(app, draw, action);
  add_commons_command(app, commons, action);
  if (manual) {
    std::cout << harmless_page(manual_page(app));
    return files::kExitSuccess;
  }
  app.end_help("Example: assay sweep --site site.json --out sweep");  // commands that are added later would inherit it
  return run_command_line(app, action, argc, argv);
}

}  // namespace
}  // namespace assay::report_cli

int main(int argc, char** argv) {
  try {
    return assay::report_cli::run(argc, argv);
  } catch (const std::exception& error) {
    return assay::cli::report_error(
        {"", error.what(), "unexpected error: please report it with the command that was run"});
  }
}
