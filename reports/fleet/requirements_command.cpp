// requirements_command: `assay requirements`.

#include <algorithm>
#include <iostream>

#include <unistd.h>

#include <fmt/format.h>

#include "orchestrator/files/atomic_file.h"
#include "orchestrator/files/terminal.h"
#include "orchestrator/judge/verdict.h"
#include "probes/core/command.h"
#include "probes/core/text.h"
#include "reports/fleet/commands.h"
#include "reports/requirements/shown.h"

namespace assay::report_cli {
namespace {

int list_catalogues() {
  for (const auto& [name, unused] : requirements::embedded_catalogues()) {
    const auto catalogue = requirements::catalogue_named(name);
    if (!catalogue) return bad_input(catalogue.error());
    const auto outside =
        std::ranges::count_if(catalogue->rows, [](const auto& row) { return row.outside.has_value(); });
    std::cout << fmt::format("{:<24} {}, {} rows, {} of them outside, read {}\n", harmless(name),
                             harmless(catalogue->title), catalogue->rows.size(), outside, harmless(catalogue->date));
  }
  return files::kExitSuccess;
}

/// With --met: as a verdict of only the catalogue.
judge::Overall overall_of(const requirements::Mapping& mapping) {
  if (mapping.counts.at("not_met") > 0) return judge::Overall::rejected;
  return mapping.counts.at("not_tested") > 0 || mapping.counts.at("met") == 0 ? judge::Overall::incomplete
                                                                              : judge::Overall::accepted;
}

int run_requirements(const RequirementsArguments& given) {
  if (given.list) return list_catalogues();
  if (given.catalogue.empty() || given.directory.empty()) {
    return bad_input({"requirements", "needs a catalogue and --run",
                      "`assay requirements --list` shows the built-in ones; --run is the folder of a run or dossier"});
  }
  if (given.json && given.csv) return bad_input({"--csv", "does not go with --json", "ask for one after the other"});
  const auto catalogue = requirements::catalogue_named(given.catalogue);
  if (!catalogue) return bad_input(catalogue.error());
  const auto signers = allowed_signers(given.keys, given.policy);
  if (!signers) return bad_input(signers.error());
  if (!is_folder(given.directory)) return bad_input(not_a_folder(given.directory));
  const std::string directory = without_slash(given.directory);
  if (const auto problem = check_run_is_over(directory)) return bad_input(*problem);
  const auto run = dossier::open_run(directory, *signers);
  if (!run) return refused(run.error());
  if (const auto problem = requirements::check_names(*catalogue, run->content.run.plan)) return bad_input(*problem);
  const auto mapping = requirements::map(*catalogue, *run);
  if (!given.out.empty()) {
    if (const auto problem = files::create_file(given.out, requirements::page_of(mapping), 0644))
      return bad_input(*problem);
  }
  std::cout << harmless_page(given.json  ? requirements::json_of(mapping)
                             : given.csv ? requirements::csv(mapping)
                                         : requirements::table(mapping, files::terminal_of(STDOUT_FILENO).width));
  return given.met ? judge::exit_code(overall_of(mapping)) : files::kExitSuccess;
}

}  // namespace

void add_requirements_command(Command& app, RequirementsArguments& given, Action& action) {
  auto& command = app.add_command(
      "requirements", "map a catalogue of published demands over a run: met, not met, not tested or outside");
  add_option(command, "catalogue", given.catalogue, "NAME|FILE", "a built-in catalogue, or a file (assay.catalogue/1)");
  add_option(command, "--run", given.directory, "DIR", "folder of a run or of a dossier");
  add_repeated(command, "--key", given.keys, "FILE",
               "public key of a signer; refuse a dossier that none of them signed");
  add_option(command, "--policy", given.policy, "FILE",
             "refuse a dossier whose signatures this trust policy does not count");
  add_option(command, "--out", given.out, "FILE", "also write a page");
  command.add_flag("--json", given.json, "print JSON, assay.requirements/1");
  command.add_flag("--csv", given.csv, "print CSV");
  command.add_flag("--met", given.met, "exit code 1 where a row is not met, 3 where one is not tested");
  command.add_flag("--list", given.list, "list the built-in catalogues");
  end_command(command,
              "Example: assay requirements clustermax --run run/dossier --key lab.key.pub --out requirements.html",
              action, [&] { return run_requirements(given); });
}

}  // namespace assay::report_cli
