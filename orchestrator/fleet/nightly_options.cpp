// nightly_options: the options of `assay sweep`, `verdict`, `drain` and `install`.
#include <fmt/format.h>

#include "orchestrator/fleet/nightly.h"
#include "orchestrator/sweep/verdict_cache.h"
#include "probes/core/command.h"

namespace assay::cli {
namespace {

void add_sweep_place(Command& command, SweepArguments& given) {
  add_option(command, "--profile", given.profile, "NAME|FILE",
             "what is measured: nightly-2m, -5m, -15m, nightly-gpu-…, or a file [nightly-5m]");
  add_option(command, "--site", given.site, "FILE", "nodes and how to reach them [this machine]");
  add_option(command, "--directory", given.directory, "DIR", "without --site: working directory of the probes");
  add_option(command, "--nodes", given.nodes, "n[01-03],n7", "only these nodes of the site");
  add_option(command, "-o,--out", given.out, "DIR", "fresh folder of this sweep [assay-sweep-ID]");
  add_option(command, "--state", given.state, "DIR", "folder of the ledger of visits [~/.local/state/assay/sweep]");
  add_option(command, "--drift", given.drift, "FILE", "drift.json: flagged and watched nodes come first");
  add_option(command, "--history", given.history, "FILE", "database that the sweep is added to");
  command.add_flag("--retests", given.retests,
                   "only the nodes that --drift wants tested again, with a partner where a figure needs one");
  command.add_flag("--quiet", given.quiet, "no line for each step");
}

void add_sweep_time(Command& command, SweepArguments& given) {
  add_option(command, "--budget", given.budget, "TIME", "time of each node: 2min, 5min, 15min [5min]");
  command.add_option("--rotate", given.rotate, "every node once in so many nights [1]")->between(1, 1000);
  command.add_option("--max-age", given.max_age, "nights after which a node is due whatever else is [5]")
      ->between(1, 1000);
  add_option(command, "--until", given.until, "TIME", "local time at which the sweep is over: 06:00");
  add_option(command, "--deadline", given.deadline, "TIME", "the same from now: 4h, 90min");
  add_option(command, "--patience", given.patience, "TIME",
             "with --slurm: stop when no node was begun for so long [30min]");
  add_option(command, "--stagger", given.stagger, "TIME", "workers: starts are spread over so long [0s]");
  add_option(command, "--night", given.night, "DATE", "the night in place of the clock's: 2026-01-05");
  add_option(command, "--now", given.now, "TIME", "the time in place of the clock's, in UTC: for rehearsals");
}

void add_sweep(Command& app, SweepArguments& given, Action& action) {
  auto& command = app.add_command("sweep", "visit the nodes that are due tonight; a sweep accepts and rejects nothing");
  add_sweep_place(command, given);
  add_sweep_time(command, given);
  add_fan_out(command, given.fan_out);
  auto* slurm = command.add_flag(
      "--slurm", given.slurm, "by whole-node jobs of lowest priority; --out is on a file system that all nodes share");
  auto* prepare = command.add_flag("--prepare", given.prepare, "write the due list for workers, and end");
  prepare->excludes(slurm);
  add_option(command, "--board", given.board, "FILE",
             "page to keep open in a browser: who runs what, what failed, time left")
      ->excludes(slurm)
      ->excludes(prepare);
  add_option(command, "--worker", given.worker, "DIR", "visit this node for the sweep in this folder");
  add_option(command, "--node", given.node, "NAME",
             "with --worker: the name of this node [SLURMD_NODENAME, NODE_NAME, host name]");
  add_option(command, "--pair", given.pair, "n1,n2",
             "with --worker: measure these two nodes together, in a job of Slurm that has both");
  add_option(command, "--collect", given.collect, "DIR", "enter what workers left in this folder");
  command.add_flag("--dry-run", given.dry_run, "print who is due, without doing anything");
  command.add_flag("--json", given.json, "print the table as JSON");
  end_command(
      command,
      "Example: assay sweep --site site.json --profile nightly-5m --budget 5min --rotate 5 --until 06:00 --out sweep",
      action, [&] { return command_sweep(given); });
}

void add_verdict(Command& app, VerdictArguments& given, Action& action) {
  auto& command =
      app.add_command("verdict", "print the cached verdict of a node: exit code 0 healthy, 1 flagged, 2 unknown");
  add_option(command, "--file", given.file, "FILE", fmt::format("to read [{}]", sweep::kVerdictPath));
  add_option(command, "--node", given.node, "NAME", "the node whose verdict counts [this machine's name]");
  command.add_flag("--publish", given.publish, "write the verdict of every node instead, from --drift and --history");
  add_option(command, "--drift", given.drift, "FILE", "drift.json");
  add_option(command, "--history", given.history, "FILE", "database of nights");
  add_option(command, "--policy", given.policy, "FILE", "how old a verdict may be [the defaults]");
  add_option(command, "--out", given.out, "DIR", "folder for NODE.json; with --node the file itself");
  command.add_flag("--json", given.json, "print a table as JSON");
  end_command(command,
              "Example: assay verdict; assay verdict --publish --drift drift.json --history history.db --out verdicts",
              action, [&] { return command_verdict(given); });
}

void add_drain(Command& app, DrainArguments& given, Action& action) {
  auto& command = app.add_command(
      "drain", "take nodes with confirmed flags out of service, and put them back; a dry run without --apply");
  add_option(command, "action", given.action, "", "plan, apply or release")
      ->required()
      ->one_of({"plan", "apply", "release"});
  add_option(command, "--drift", given.drift, "FILE", "drift.json")->required();
  add_option(command, "--policy", given.policy, "FILE", "caps, mode and prefix of reasons (assay.policy/1)")
      ->required();
  add_option(command, "--site", given.site, "FILE", "the nodes that the caps are shares of")->required();
  command.add_option("--actor", given.actor, "slurm, kubernetes or hook [slurm]")
      ->one_of({"slurm", "kubernetes", "hook"});
  add_option(command, "--program", given.program, "FILE",
             "scontrol, kubectl, or the program of the hook [found in PATH]");
  add_option(command, "--journal", given.journal, "FILE", "account of all drains [~/.local/state/assay/drain.jsonl]");
  add_option(command, "--history", given.history, "FILE", "database that is told what was done");
  add_option(command, "--sweep", given.sweeps, "DIR",
             "release: folder of a sweep that shows the node clean; may be repeated");
  add_option(command, "--now", given.now, "TIME", "the time in place of the clock's, in UTC: for rehearsals");
  command.add_flag("--apply", given.apply, "do it; the policy's mode must be drain");
  command.add_flag("--json", given.json, "print the table as JSON");
  end_command(command, "Example: assay drain plan --drift drift.json --policy policy.json --site site.json", action,
              [&] { return command_drain(given); });
}

void add_install(Command& app, InstallArguments& given, Action& action) {
  auto& command =
      app.add_command("install", "write the files that start sweeps every night; nothing is installed or started");
  add_option(command, "what", given.what, "",
             "timer (systemd), slurm, cron (CronJob of Kubernetes) or npd (node-problem-detector)")
      ->required()
      ->one_of({"timer", "slurm", "cron", "npd"});
  add_option(command, "-o,--out", given.out, "DIR", "folder for the files")->required();
  add_option(command, "--site", given.site, "FILE", "site file on the machine that sweeps [/etc/assay/site.json]");
  add_option(command, "--profile", given.profile, "NAME|FILE", "profile [nightly-5m]");
  add_option(command, "--budget", given.budget, "TIME", "time of each node [5min]");
  add_option(command, "--at", given.at, "TIME", "local time of the start [01:00]");
  add_option(command, "--until", given.until, "TIME", "local time of the end [06:00]");
  add_option(command, "--folder", given.folder, "DIR", "where sweeps and their ledger lie [/var/lib/assay]");
  add_option(command, "--history", given.history, "FILE",
             "database of nights, on a local disk of the machine that sweeps [history.db in --folder]");
  add_option(command, "--image", given.image, "NAME", "cron: image that holds assay [assay:0.1.0]");
  add_option(command, "--namespace", given.kube_namespace, "NAME", "cron: namespace [assay]");
  command.add_option("--gpus", given.gpus, "cron: GPUs of each node [0]")->between(0, 64);
  add_option(command, "--gpu-resource", given.gpu_resource, "NAME",
             "cron: their name in Kubernetes, amd.com/gpu [nvidia.com/gpu]");
  command.add_option("--count", given.nodes, "cron: nodes visited in one night [1]")->between(1, 10000);
  end_command(command, "Example: assay install timer -o units", action, [&] { return command_install(given); });
}

}  // namespace

void add_nightly(Command& app, NightlyArguments& given, Action& action) {
  add_sweep(app, given.sweep, action);
  add_verdict(app, given.verdict, action);
  add_drain(app, given.drain, action);
  add_install(app, given.install, action);
}

}  // namespace assay::cli
