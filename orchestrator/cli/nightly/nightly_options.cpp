// nightly_options: the options of `assay sweep`, `verdict`, `drain` and `install`.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "orchestrator/cli/nightly/nightly.h"
#include "orchestrator/sweep/verdict_cache.h"

namespace assay::cli {
namespace {

void add_sweep_place(CLI::App& command, SweepArguments& given) {
  command
      .add_option("--profile", given.profile,
                  "what is measured: nightly-2m, -5m, -15m, nightly-gpu-…, or a file [nightly-5m]")
      ->type_name("NAME|FILE");
  command.add_option("--site", given.site, "nodes and how to reach them [this machine]")->type_name("FILE");
  command.add_option("--directory", given.directory, "without --site: working directory of the probes")
      ->type_name("DIR");
  command.add_option("--nodes", given.nodes, "only these nodes of the site")->type_name("n[01-03],n7");
  command.add_option("-o,--out", given.out, "fresh folder of this sweep [assay-sweep-ID]")->type_name("DIR");
  command.add_option("--state", given.state, "folder of the ledger of visits [~/.local/state/assay/sweep]")
      ->type_name("DIR");
  command.add_option("--drift", given.drift, "drift.json: flagged and watched nodes come first")->type_name("FILE");
  command.add_option("--history", given.history, "database that the sweep is added to")->type_name("FILE");
  command.add_flag("--retests", given.retests,
                   "only the nodes that --drift wants tested again, with a partner where a figure needs one");
  command.add_flag("--quiet", given.quiet, "no line for each step");
}

void add_sweep_time(CLI::App& command, SweepArguments& given) {
  command.add_option("--budget", given.budget, "time of each node: 2min, 5min, 15min [5min]")->type_name("TIME");
  command.add_option("--rotate", given.rotate, "every node once in so many nights [1]")->check(CLI::Range(1, 1000));
  command.add_option("--max-age", given.max_age, "nights after which a node is due whatever else is [5]")
      ->check(CLI::Range(1, 1000));
  command.add_option("--until", given.until, "local time at which the sweep is over: 06:00")->type_name("TIME");
  command.add_option("--deadline", given.deadline, "the same from now: 4h, 90min")->type_name("TIME");
  command.add_option("--patience", given.patience, "with --slurm: stop when no node was begun for so long [30min]")
      ->type_name("TIME");
  command.add_option("--stagger", given.stagger, "workers: starts are spread over so long [0s]")->type_name("TIME");
  command.add_option("--night", given.night, "the night in place of the clock's: 2026-01-05")->type_name("DATE");
  command.add_option("--now", given.now, "the time in place of the clock's, in UTC: for rehearsals")->type_name("TIME");
}

void add_sweep(CLI::App& app, SweepArguments& given, Action& action) {
  auto* command =
      app.add_subcommand("sweep", "visit the nodes that are due tonight; a sweep accepts and rejects nothing");
  add_sweep_place(*command, given);
  add_sweep_time(*command, given);
  add_fan_out(*command, given.fan_out);
  auto* slurm = command->add_flag(
      "--slurm", given.slurm, "by whole-node jobs of lowest priority; --out is on a file system that all nodes share");
  auto* prepare = command->add_flag("--prepare", given.prepare, "write the due list for workers, and end");
  prepare->excludes(slurm);
  command->add_option("--board", given.board, "page to keep open in a browser: who runs what, what failed, time left")
      ->type_name("FILE")
      ->excludes(slurm)
      ->excludes(prepare);
  command->add_option("--worker", given.worker, "visit this node for the sweep in this folder")->type_name("DIR");
  command
      ->add_option("--node", given.node, "with --worker: the name of this node [SLURMD_NODENAME, NODE_NAME, host name]")
      ->type_name("NAME");
  command
      ->add_option("--pair", given.pair,
                   "with --worker: measure these two nodes together, in a job of Slurm that has both")
      ->type_name("n1,n2");
  command->add_option("--collect", given.collect, "enter what workers left in this folder")->type_name("DIR");
  command->add_flag("--dry-run", given.dry_run, "print who is due, without doing anything");
  command->add_flag("--json", given.json, "print the table as JSON");
  command->footer(
      "Example: assay sweep --site site.json --profile nightly-5m --budget 5min --rotate 5 --until 06:00 --out sweep");
  command->callback([&] { action = [&] { return command_sweep(given); }; });
}

void add_verdict(CLI::App& app, VerdictArguments& given, Action& action) {
  auto* command =
      app.add_subcommand("verdict", "print the cached verdict of a node: exit code 0 healthy, 1 flagged, 2 unknown");
  command->add_option("--file", given.file, fmt::format("to read [{}]", sweep::kVerdictPath))->type_name("FILE");
  command->add_option("--node", given.node, "the node whose verdict counts [this machine's name]")->type_name("NAME");
  command->add_flag("--publish", given.publish, "write the verdict of every node instead, from --drift and --history");
  command->add_option("--drift", given.drift, "drift.json")->type_name("FILE");
  command->add_option("--history", given.history, "database of nights")->type_name("FILE");
  command->add_option("--policy", given.policy, "how old a verdict may be [the defaults]")->type_name("FILE");
  command->add_option("--out", given.out, "folder for NODE.json; with --node the file itself")->type_name("DIR");
  command->add_flag("--json", given.json, "print a table as JSON");
  command->footer(
      "Example: assay verdict; assay verdict --publish --drift drift.json --history history.db --out verdicts");
  command->callback([&] { action = [&] { return command_verdict(given); }; });
}

void add_drain(CLI::App& app, DrainArguments& given, Action& action) {
  auto* command = app.add_subcommand(
      "drain", "take nodes with confirmed flags out of service, and put them back; a dry run without --apply");
  command->add_option("action", given.action, "plan, apply or release")
      ->type_name("")
      ->required()
      ->check(CLI::IsMember({"plan", "apply", "release"}));
  command->add_option("--drift", given.drift, "drift.json")->type_name("FILE")->required();
  command->add_option("--policy", given.policy, "caps, mode and prefix of reasons (assay.policy/1)")
      ->type_name("FILE")
      ->required();
  command->add_option("--site", given.site, "the nodes that the caps are shares of")->type_name("FILE")->required();
  command->add_option("--actor", given.actor, "slurm, kubernetes or hook [slurm]")
      ->check(CLI::IsMember({"slurm", "kubernetes", "hook"}));
  command->add_option("--program", given.program, "scontrol, kubectl, or the program of the hook [found in PATH]")
      ->type_name("FILE");
  command->add_option("--journal", given.journal, "account of all drains [~/.local/state/assay/drain.jsonl]")
      ->type_name("FILE");
  command->add_option("--history", given.history, "database that is told what was done")->type_name("FILE");
  command->add_option("--sweep", given.sweeps, "release: folder of a sweep that shows the node clean; may be repeated")
      ->type_name("DIR");
  command->add_option("--now", given.now, "the time in place of the clock's, in UTC: for rehearsals")
      ->type_name("TIME");
  command->add_flag("--apply", given.apply, "do it; the policy's mode must be drain");
  command->add_flag("--json", given.json, "print the table as JSON");
  command->footer("Example: assay drain plan --drift drift.json --policy policy.json --site site.json");
  command->callback([&] { action = [&] { return command_drain(given); }; });
}

void add_install(CLI::App& app, InstallArguments& given, Action& action) {
  auto* command =
      app.add_subcommand("install", "write the files that start sweeps every night; nothing is installed or started");
  command
      ->add_option("what", given.what,
                   "timer (systemd), slurm, cron (CronJob of Kubernetes) or npd (node-problem-detector)")
      ->type_name("")
      ->required()
      ->check(CLI::IsMember({"timer", "slurm", "cron", "npd"}));
  command->add_option("-o,--out", given.out, "folder for the files")->type_name("DIR")->required();
  command->add_option("--site", given.site, "site file on the machine that sweeps [/etc/assay/site.json]")
      ->type_name("FILE");
  command->add_option("--profile", given.profile, "profile [nightly-5m]")->type_name("NAME|FILE");
  command->add_option("--budget", given.budget, "time of each node [5min]")->type_name("TIME");
  command->add_option("--at", given.at, "local time of the start [01:00]")->type_name("TIME");
  command->add_option("--until", given.until, "local time of the end [06:00]")->type_name("TIME");
  command->add_option("--folder", given.folder, "where sweeps and their ledger lie [/var/lib/assay]")->type_name("DIR");
  command->add_option("--image", given.image, "cron: image that holds assay [assay:0.1.0]")->type_name("NAME");
  command->add_option("--namespace", given.kube_namespace, "cron: namespace [assay]")->type_name("NAME");
  command->add_option("--gpus", given.gpus, "cron: GPUs of each node [0]")->check(CLI::Range(0, 64));
  command
      ->add_option("--gpu-resource", given.gpu_resource, "cron: their name in Kubernetes, amd.com/gpu [nvidia.com/gpu]")
      ->type_name("NAME");
  command->add_option("--count", given.nodes, "cron: nodes visited in one night [1]")->check(CLI::Range(1, 10000));
  command->footer("Example: assay install timer -o units");
  command->callback([&] { action = [&] { return command_install(given); }; });
}

}  // namespace

void add_nightly(CLI::App& app, NightlyArguments& given, Action& action) {
  add_sweep(app, given.sweep, action);
  add_verdict(app, given.verdict, action);
  add_drain(app, given.drain, action);
  add_install(app, given.install, action);
}

}  // namespace assay::cli
