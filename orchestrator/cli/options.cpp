// options: those that accept, plan and run share, and those of `assay site` and its commands.
#include <string>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/cli/options.h"
#include "orchestrator/cli/run_stages.h"
#include "orchestrator/site/site_file.h"
#include "probes/core/command.h"

namespace assay::cli {
namespace {

constexpr int kMostPods = 100000, kMostGpusOfNode = 64;

int run_site(const Command& site, const SiteArguments& given) {
  if (site.chose("check")) return command_site_check(given.site, given.fan_out, given.json);
  if (site.chose("sbatch")) return command_site_sbatch(given.site, given.profile);
  if (site.chose("manifest")) {
    launch::AgentPods pods = given.pods;
    pods.workload = *from_word<launch::Workload>(given.kind);
    return command_site_manifest(pods);
  }
  if (given.source.from.empty())
    return report_error({"assay site", "needs --from, check, sbatch or manifest", "`assay site --help` lists them"});
  if (given.source.from == "lldp" || given.source.from == "ibnetdiscover")
    return command_site_cables(given.source, given.site);
  return command_site_from(given.source);
}

void add_site_source(Command& site, SiteArguments& given) {
  SiteSource& source = given.source;
  auto* from =
      site.add_option(
              "--from", source.from,
              "source of the nodes: hostfile, ssh-config, slurm, kubectl; of their cabling: lldp, ibnetdiscover")
          ->one_of({"hostfile", "ssh-config", "slurm", "kubectl", "lldp", "ibnetdiscover"});
  add_option(site, "file", source.file, "FILE|DIR",
             "input of hostfile, ssh-config or ibnetdiscover; for lldp a folder with one NODE.json per node")
      ->needs(from);
  add_option(site, "--site", given.site, "FILE", "lldp, ibnetdiscover: the site file to add leaves and switch ports to")
      ->needs(from);
  add_option(site, "--plane", source.plane, "NAME",
             "lldp, ibnetdiscover: plane of ports that the site does not list [omit them]")
      ->needs(from)
      ->one_of(std::vector<std::string>(site::kPlanes.begin(), site::kPlanes.end()));
  source.options.name = site::this_machine().name;
  add_option(site, "--name", source.options.name, "NAME", "name of the site [the name of this machine]")->needs(from);
  add_option(site, "--known-hosts", source.options.known_hosts, "FILE", "file with host keys, for nodes over ssh")
      ->needs(from);
  add_option(site, "--directory", source.directory, "DIR",
             fmt::format("working directory of the probes on the nodes, on the storage under test [{}]",
                         site::default_directory()))
      ->needs(from);
  add_option(site, "--partition", source.options.partition, "NAME", "slurm: only the nodes of this partition [all]")
      ->needs(from);
  add_option(site, "--namespace", source.kube_namespace, "NAME",
             "kubectl: namespace of the pods [that of the context]");
  add_option(site, "--selector", source.selector, "LABEL", "kubectl: label selector of the agent pods [app=assay]")
      ->needs(from);
}

void add_site_commands(Command& site, SiteArguments& given) {
  auto& check = site.add_command(
      "check", "connect to every node and list the differences: driver, firmware, kernel, GPUs, links, clock");
  add_option(check, "--site", given.site, "FILE", "nodes and how to reach them [this machine]");
  add_fan_out(check, given.fan_out);
  check.add_flag("--json", given.json, "print one JSON object");
  check.end_help("Example: assay site check --site site.json");
  auto& sbatch = site.add_command("sbatch", "print a batch script for Slurm");
  add_option(sbatch, "--site", given.site, "FILE", "site file with nodes of launcher slurm")->required();
  add_option(sbatch, "--profile", given.profile, "NAME|FILE", "design targets: a name or a file [host]");
  sbatch.end_help("Example: assay site sbatch --site site.json > accept.sbatch");
  auto& manifest = site.add_command("manifest", "print a Kubernetes manifest of agent pods");
  launch::AgentPods& pods = given.pods;
  add_option(manifest, "--image", pods.image, "NAME",
             "container image with sh, coreutils and what the probes need (`assay list --markdown`)")
      ->required();
  manifest
      .add_option("--kind", given.kind, "daemonset: a pod on every node; job, jobset: on --nodes nodes [daemonset]")
      ->one_of({"daemonset", "job", "jobset"});
  manifest.add_option("--nodes", pods.nodes, "job, jobset: number of nodes")->between(1, kMostPods);
  manifest.add_option("--gpus", pods.gpus, "job, jobset: GPUs that each pod asks for [0]")->between(1, kMostGpusOfNode);
  add_option(manifest, "--gpu-resource", pods.gpu_resource, "NAME",
             "their name in Kubernetes, amd.com/gpu [nvidia.com/gpu]");
  add_option(manifest, "--queue", pods.queue, "NAME", "job, jobset: queue of Kueue that admits it [none]");
  add_option(manifest, "--namespace", pods.kube_namespace, "NAME", "namespace of the pods [default]");
  add_option(manifest, "--directory", pods.directory, "DIR",
             "directory of the nodes, on the storage under test [/var/tmp/assay]");
  manifest.end_help("Example: assay site manifest --image debian:12 | kubectl apply --filename -");
}

}  // namespace

void add_site(Command& app, SiteArguments& given, Action& action) {
  auto& command = app.add_command("site", "write a site file, or compare its nodes");
  add_site_source(command, given);
  command.need_commands(0, 1);
  add_site_commands(command, given);
  end_command(
      command,
      "Exit codes of check: 0 no differences, 1 differences, 3 some nodes could not be reached. Of lldp and "
      "ibnetdiscover: 1 the site file states other cables.\n"
      "Example: assay site --from hostfile hosts --known-hosts known_hosts > site.json; assay site check --site "
      "site.json",
      action, [&] { return run_site(command, given); });
}

void add_plan_options(Command& command, PlanRequest& request) {
  add_option(command, "--profile", request.profile, "NAME|FILE",
             "design targets: a name (`assay list profiles`) or a file [host]");
  add_option(command, "--site", request.site, "FILE", "nodes and how to reach them [this machine]");
  add_option(command, "--directory", request.directory, "DIR",
             fmt::format("without --site: working directory of the probes, on the storage under test [{}]",
                         site::default_directory()));
  add_option(command, "--only", request.only, "ID", "plan only these requirements; a partial run is never accepted");
  add_option(command, "--nodes", request.nodes, "n[01-03],n7", "only these nodes of the site");
  add_option(command, "--continues", request.continues, "DIR",
             "the run or dossier of which these nodes are measured anew; its plan's SHA-256 is in the new plan "
             "and verdict");
  add_option(command, "--challenge", request.challenge, "HEX",
             "64 hexadecimal digits that the receiver of the dossier made up; they show that the plan is younger");
  command.add_flag("--allow-missing", request.allow_missing,
                   "plan also with a probe missing in this build, or too few nodes: those figures are not measured");
  command.add_flag(
      "--allow-settings", request.allow_settings,
      "let probes change settings of machines where the profile says so, such as limits of power; they are "
      "put back in every end, and the report says that they were changed");
  command.add_flag("--quick", request.quick, "short measurements to rehearse the procedure; never accepted");
  command.add_flag(
      "--no-localise", [&request] { request.localise = false; },
      "skip the extra tests that locate the faulty node after a group misses its limit");
  command.add_flag("--dry-run", request.dry_run, "print what would be done, without doing it");
  add_option(command, "--risk", request.risk, "beyond=4,vendor=5,short=2,buyer=5",
             "agreed in per cent: all rates `beyond` their limits are refused with at most `vendor`, nodes (`bad` of "
             "them) `short` in one rate accepted with at most `buyer`; in plan, statement and report");
  add_option(
      command, "--stability", request.stability, "hours=72,tolerated=3,refused=400,accepted=4000,vendor=5,buyer=5",
      "agreed for a soak: `hours` of each node with at most `tolerated` interruptions of all; nodes that run "
      "`accepted` hours between two are refused with at most `vendor` per cent, those of `refused` hours accepted "
      "with at most `buyer`; stop=early ends it by Wald's lines");
  command.add_option(
      "--healthy", request.healthy,
      "for the chance that a fleet without fault is accepted: above the limits, between nodes and between "
      "runs, in per cent (4,0.5,0.5)");
}

void add_run_options(Command& command, RunSettings& settings) {
  add_option(command, "--deadline", settings.deadline, "TIME",
             "start no step that would not finish within this time: 2h, 90min, 600s");
  add_option(command, "--patience", settings.patience, "TIME", "how long to try to reconnect to a lost node [30s]");
  command.add_flag("--stop-on-fail", settings.stop_on_fail, "start no step after the first required failure");
  add_option(command, "--board", settings.board, "FILE",
             "page to keep open in a browser: who runs what, what failed, time left");
  command.add_flag("--all", settings.all, "print a line for each cell of the verdict, not for each requirement");
  command.add_flag("--json", settings.json, "print events as JSON Lines on stdout");
}

void add_key_options(Command& command, KeyRequest& key, const char* otherwise) {
  auto* file = command.add_option(
      "--key", key.key, fmt::format("key to sign with: its file, or as `assay sign` takes it [{}]", otherwise));
  file->form("FILE|URI");
  add_option(command, "--passphrase-file", key.passphrase_file, "FILE", "file whose first line decrypts the key")
      ->needs(file);
  add_option(command, "--certificate", key.certificate, "FILE",
             "certificate of the key, PEM, for receivers whose policy names its issuer")
      ->needs(file);
}

}  // namespace assay::cli
