// run_options: options that accept, plan and run share.
#include "orchestrator/cli/run_options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "orchestrator/site/site_file.h"

namespace assay::cli {

void add_plan_options(CLI::App& command, PlanRequest& request) {
  command.add_option("--profile", request.profile, "design targets: a name (`assay list profiles`) or a file [host]")
      ->type_name("NAME|FILE");
  command.add_option("--site", request.site, "nodes and how to reach them [this machine]")->type_name("FILE");
  command
      .add_option("--directory", request.directory,
                  fmt::format("without --site: working directory of the probes, on the storage under test [{}]",
                              site::default_directory()))
      ->type_name("DIR");
  command.add_option("--only", request.only, "plan only these requirements; a partial run is never accepted")
      ->type_name("ID");
  command.add_option("--nodes", request.nodes, "only these nodes of the site")->type_name("n[01-03],n7");
  command
      .add_option("--continues", request.continues,
                  "the run or dossier of which these nodes are measured anew; its plan's SHA-256 is in the new plan "
                  "and verdict")
      ->type_name("DIR");
  command
      .add_option("--challenge", request.challenge,
                  "64 hexadecimal digits that the receiver of the dossier made up; they show that the plan is younger")
      ->type_name("HEX");
  command.add_flag("--allow-missing", request.allow_missing,
                   "plan also with a probe missing in this build, or too few nodes: those figures are not measured");
  command.add_flag(
      "--allow-settings", request.allow_settings,
      "let probes change settings of machines where the profile says so, such as limits of power; they are "
      "put back in every end, and the report says that they were changed");
  command.add_flag("--quick", request.quick, "short measurements to rehearse the procedure; never accepted");
  command.add_flag_callback(
      "--no-localise", [&request] { request.localise = false; },
      "skip the extra tests that locate the faulty node after a group misses its limit");
  command.add_flag("--dry-run", request.dry_run, "print what would be done, without doing it");
  command
      .add_option(
          "--risk", request.risk,
          "agreed in per cent: all rates `beyond` their limits are refused with at most `vendor`, nodes (`bad` of "
          "them) `short` in one rate accepted with at most `buyer`; in plan, statement and report")
      ->type_name("beyond=4,vendor=5,short=2,buyer=5");
  command
      .add_option(
          "--stability", request.stability,
          "agreed for a soak: `hours` of each node with at most `tolerated` interruptions of all; nodes that run "
          "`accepted` hours between two are refused with at most `vendor` per cent, those of `refused` hours accepted "
          "with at most `buyer`; stop=early ends it by Wald's lines")
      ->type_name("hours=72,tolerated=3,refused=400,accepted=4000,vendor=5,buyer=5");
  command.add_option(
      "--healthy", request.healthy,
      "for the chance that a fleet without fault is accepted: above the limits, between nodes and between "
      "runs, in per cent (4,0.5,0.5)");
}

void add_run_options(CLI::App& command, RunSettings& settings) {
  command
      .add_option("--deadline", settings.deadline,
                  "start no step that would not finish within this time: 2h, 90min, 600s")
      ->type_name("TIME");
  command.add_option("--patience", settings.patience, "how long to try to reconnect to a lost node [30s]")
      ->type_name("TIME");
  command.add_flag("--stop-on-fail", settings.stop_on_fail, "start no step after the first required failure");
  command
      .add_option("--board", settings.board, "page to keep open in a browser: who runs what, what failed, time left")
      ->type_name("FILE");
  command.add_flag("--all", settings.all, "print a line for each cell of the verdict, not for each requirement");
  command.add_flag("--json", settings.json, "print events as JSON Lines on stdout");
}

void add_key_options(CLI::App& command, KeyRequest& key, const char* otherwise) {
  auto* file = command.add_option(
      "--key", key.key, fmt::format("key to sign with: its file, or as `assay sign` takes it [{}]", otherwise));
  file->type_name("FILE|URI");
  command.add_option("--passphrase-file", key.passphrase_file, "file whose first line decrypts the key")
      ->type_name("FILE")
      ->needs(file);
  command
      .add_option("--certificate", key.certificate,
                  "certificate of the key, PEM, for receivers whose policy names its issuer")
      ->type_name("FILE")
      ->needs(file);
}

}  // namespace assay::cli
