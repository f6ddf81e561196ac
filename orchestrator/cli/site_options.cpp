// site_options: the options of `assay site` and of its commands.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "orchestrator/cli/options.h"
#include "orchestrator/cli/run_stages.h"
#include "orchestrator/site/site_file.h"

namespace assay::cli {
namespace {

constexpr int kMostPods = 100000, kMostGpusOfNode = 64;

int run_site(const CLI::App& site, const SiteArguments& given) {
  if (site.got_subcommand("check")) return command_site_check(given.site, given.fan_out, given.json);
  if (site.got_subcommand("sbatch")) return command_site_sbatch(given.site, given.profile);
  if (site.got_subcommand("manifest")) return command_site_manifest(given.pods);
  if (given.source.from.empty())
    return report_error({"assay site", "needs --from, check, sbatch or manifest", "`assay site --help` lists them"});
  if (given.source.from == "lldp" || given.source.from == "ibnetdiscover")
    return command_site_cables(given.source, given.site);
  return command_site_from(given.source);
}

void add_site_source(CLI::App& site, SiteArguments& given) {
  SiteSource& source = given.source;
  auto* from =
      site.add_option(
              "--from", source.from,
              "source of the nodes: hostfile, ssh-config, slurm, kubectl; of their cabling: lldp, ibnetdiscover")
          ->check(CLI::IsMember({"hostfile", "ssh-config", "slurm", "kubectl", "lldp", "ibnetdiscover"}));
  site.add_option("file", source.file,
                  "input of hostfile, ssh-config or ibnetdiscover; for lldp a folder with one NODE.json per node")
      ->type_name("FILE|DIR")
      ->needs(from);
  site.add_option("--site", given.site, "lldp, ibnetdiscover: the site file to add leaves and switch ports to")
      ->type_name("FILE")
      ->needs(from);
  site.add_option("--plane", source.plane,
                  "lldp, ibnetdiscover: plane of ports that the site does not list [omit them]")
      ->type_name("NAME")
      ->needs(from)
      ->check(CLI::IsMember(std::vector<std::string>(site::kPlanes.begin(), site::kPlanes.end())));
  source.options.name = site::this_machine().name;
  site.add_option("--name", source.options.name, "name of the site [the name of this machine]")
      ->type_name("NAME")
      ->needs(from);
  site.add_option("--known-hosts", source.options.known_hosts, "file with host keys, for nodes over ssh")
      ->type_name("FILE")
      ->needs(from);
  site.add_option("--directory", source.directory,
                  fmt::format("working directory of the probes on the nodes, on the storage under test [{}]",
                              site::default_directory()))
      ->type_name("DIR")
      ->needs(from);
  site.add_option("--partition", source.options.partition, "slurm: only the nodes of this partition [all]")
      ->type_name("NAME")
      ->needs(from);
  site.add_option("--namespace", source.kube_namespace, "kubectl: namespace of the pods [that of the context]")
      ->type_name("NAME");
  site.add_option("--selector", source.selector, "kubectl: label selector of the agent pods [app=assay]")
      ->type_name("LABEL")
      ->needs(from);
}

void add_site_commands(CLI::App& site, SiteArguments& given) {
  auto* check = site.add_subcommand(
      "check", "connect to every node and list the differences: driver, firmware, kernel, GPUs, links, clock");
  check->add_option("--site", given.site, "nodes and how to reach them [this machine]")->type_name("FILE");
  add_fan_out(*check, given.fan_out);
  check->add_flag("--json", given.json, "print one JSON object");
  check->footer("Example: assay site check --site site.json");
  auto* sbatch = site.add_subcommand("sbatch", "print a batch script for Slurm");
  sbatch->add_option("--site", given.site, "site file with nodes of launcher slurm")->type_name("FILE")->required();
  sbatch->add_option("--profile", given.profile, "design targets: a name or a file [host]")->type_name("NAME|FILE");
  sbatch->footer("Example: assay site sbatch --site site.json > accept.sbatch");
  auto* manifest = site.add_subcommand("manifest", "print a Kubernetes manifest of agent pods");
  launch::AgentPods& pods = given.pods;
  manifest
      ->add_option("--image", pods.image,
                   "container image with sh, coreutils and what the probes need (`assay list --markdown`)")
      ->type_name("NAME")
      ->required();
  manifest
      ->add_option_function<std::string>(
          "--kind", [&pods](const std::string& word) { pods.workload = *from_word<launch::Workload>(word); },
          "daemonset: a pod on every node; job, jobset: on --nodes nodes [daemonset]")
      ->check(CLI::IsMember({"daemonset", "job", "jobset"}));
  manifest->add_option("--nodes", pods.nodes, "job, jobset: number of nodes")->check(CLI::Range(1, kMostPods));
  manifest->add_option("--gpus", pods.gpus, "job, jobset: GPUs that each pod asks for [0]")
      ->check(CLI::Range(1, kMostGpusOfNode));
  manifest->add_option("--gpu-resource", pods.gpu_resource, "their name in Kubernetes, amd.com/gpu [nvidia.com/gpu]")
      ->type_name("NAME");
  manifest->add_option("--queue", pods.queue, "job, jobset: queue of Kueue that admits it [none]")->type_name("NAME");
  manifest->add_option("--namespace", pods.kube_namespace, "namespace of the pods [default]")->type_name("NAME");
  manifest
      ->add_option("--directory", pods.directory, "directory of the nodes, on the storage under test [/var/tmp/assay]")
      ->type_name("DIR");
  manifest->footer("Example: assay site manifest --image debian:12 | kubectl apply --filename -");
}

}  // namespace

void add_fan_out(CLI::App& command, int& fan_out) {
  command.add_option("--fan-out", fan_out, fmt::format("agents that are started at the same time [{}]", kFanOut))
      ->check(CLI::Range(1, kMostFanOut));
}

void add_site(CLI::App& app, SiteArguments& given, Action& action) {
  auto* command = app.add_subcommand("site", "write a site file, or compare its nodes");
  add_site_source(*command, given);
  command->require_subcommand(0, 1);
  add_site_commands(*command, given);
  command->footer(
      "Exit codes of check: 0 no differences, 1 differences, 3 some nodes could not be reached. Of lldp and "
      "ibnetdiscover: 1 the site file states other cables.\n"
      "Example: assay site --from hostfile hosts --known-hosts known_hosts > site.json; assay site check --site "
      "site.json");
  command->callback([&, command] { action = [&, command] { return run_site(*command, given); }; });
}

}  // namespace assay::cli
