// main: the command line of assay.
#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "orchestrator/cli/bundle.h"
#include "orchestrator/cli/commands.h"
#include "orchestrator/cli/import_command.h"
#include "orchestrator/cli/site_command.h"
#include "orchestrator/cli/stages.h"
#include "orchestrator/plan/programs.h"
#include "probes/core/suggest.h"

namespace assay::cli {
namespace {

/// What the chosen command does; set by its callback while the command line is parsed.
using Action = std::function<int()>;

constexpr const char* kFooter =
    "Commands of assay-report that assay passes on: report, sign, verify, keygen, simulate.\n"
    "Exit codes: 0 accepted or done, 1 rejected, 2 bad usage or input, 3 incomplete, 4 verification refused.\n"
    "Example: assay accept --profile host --out run";

/// Commands that are passed on to assay-report.
constexpr std::array<std::string_view, 5> kPassedOn = {"report", "sign", "verify", "keygen", "simulate"};

int pass_on(char** argv) {
  const std::string program = plan::installation().binaries + "/assay-report";
  argv[0] = const_cast<char*>("assay-report");  // execv takes char* and does not write
  ::execv(program.c_str(), argv);
  return report_error({program, "cannot be started", "it is installed beside assay"});
}

void add_plan_options(CLI::App& command, PlanRequest& request) {
  command.add_option("--profile", request.profile, "design targets: a name or a file [host]");
  command.add_option("--site", request.site, "nodes and how to reach them [this machine]");
  command.add_option("--directory", request.directory,
                     "without --site: working directory of the probes, on the storage under test [/var/tmp/assay]");
  command.add_option("--only", request.only, "plan only these requirements; a partial run is never accepted");
  command.add_flag("--quick", request.quick, "short measurements to rehearse the procedure; never accepted");
  command.add_flag_callback(
      "--no-localise", [&request] { request.localise = false; },
      "skip the extra tests that locate the faulty node after a group misses its limit");
  command.add_flag("--dry-run", request.dry_run, "print what would be done, without doing it");
}

void add_fan_out(CLI::App& command, int& fan_out) {
  command.add_option("--fan-out", fan_out, fmt::format("agents that are started at the same time [{}]", kFanOut))
      ->check(CLI::Range(1, kMostFanOut));
}

void add_run_options(CLI::App& command, RunSettings& settings) {
  command.add_option("--deadline", settings.deadline,
                     "start no step that would not finish within this time: 2h, 90min, 600s");
  command.add_option("--patience", settings.patience, "how long to try to reconnect to a lost node [30s]");
  command.add_flag("--stop-on-fail", settings.stop_on_fail, "start no step after the first required failure");
  command.add_flag("--json", settings.json, "print events as JSON Lines on stdout");
}

struct AcceptArguments {
  PlanRequest request;
  RunSettings settings;
  std::string out, key;
};

void add_accept(CLI::App& app, AcceptArguments& given, Action& action) {
  auto* command = app.add_subcommand("accept", "plan, run, judge, report and sign in one command");
  add_plan_options(*command, given.request);
  command->add_option("--out", given.out, "run directory [assay-run-<time>]");
  command->add_option("--key", given.key, "private key to sign with [this machine's own key]");
  add_fan_out(*command, given.settings.fan_out);
  add_run_options(*command, given.settings);
  command->footer("Example: assay accept --profile host --site site.json --out run --key lab.key");
  command->callback(
      [&] { action = [&] { return command_accept(given.request, given.settings, given.out, given.key); }; });
}

struct PlanArguments {
  PlanRequest request;
  std::string out;
};

void add_plan(CLI::App& app, PlanArguments& given, Action& action) {
  auto* command = app.add_subcommand("plan", "write the plan: every step of a run");
  add_plan_options(*command, given.request);
  command->add_option("--out", given.out, "file [stdout]");
  command->footer("Example: assay plan --profile host --site site.json --out plan.json");
  command->callback([&] { action = [&] { return command_plan(given.request, given.out); }; });
}

struct RunArguments {
  RunSettings settings;
  std::string plan_file, resume, out;
};

int run_or_resume(const RunArguments& given) {
  if (!given.resume.empty()) return command_resume(given.resume, given.settings);
  if (given.plan_file.empty())
    return report_error({"assay run", "needs a plan or --resume", "assay run plan.json --out run"});
  return command_run(given.plan_file, given.out, given.settings);
}

void add_run(CLI::App& app, RunArguments& given, Action& action) {
  auto* command = app.add_subcommand("run", "run a plan, or resume an interrupted run; then judge");
  auto* plan_file = command->add_option("plan", given.plan_file, "plan.json");
  command->add_option("--resume", given.resume, "run directory to resume")->excludes(plan_file);
  command->add_option("--out", given.out, "run directory [assay-run-<time>]");
  add_fan_out(*command, given.settings.fan_out);
  add_run_options(*command, given.settings);
  command->footer("Example: assay run plan.json --out run; assay run --resume run");
  command->callback([&] { action = [&] { return run_or_resume(given); }; });
}

/// Of commands that read one thing.
struct ReadArguments {
  std::string name;
  bool json = false;
};

void add_judge(CLI::App& app, ReadArguments& given, Action& action) {
  auto* command = app.add_subcommand("judge", "judge a run again from its evidence");
  command->add_option("directory", given.name, "run directory")->required();
  command->add_flag("--json", given.json, "print verdict.json");
  command->footer("Example: assay judge run");
  command->callback([&] { action = [&] { return command_judge(given.name, given.json); }; });
}

void add_status(CLI::App& app, ReadArguments& given, Action& action) {
  auto* command = app.add_subcommand("status", "print the progress of a run");
  command->add_option("directory", given.name, "run directory")->required();
  command->add_flag("--json", given.json, "print one JSON object");
  command->footer("Example: assay status run");
  command->callback([&] { action = [&] { return command_status(given.name, given.json); }; });
}

struct ListArguments {
  bool json = false, markdown = false;
};

void add_list(CLI::App& app, ListArguments& given, Action& action) {
  auto* command = app.add_subcommand("list", "list the probes");
  command->add_flag("--json", given.json, "print every description as JSON");
  command->add_flag("--markdown", given.markdown, "print a Markdown table");
  command->footer("Example: assay list");
  command->callback([&] {
    action = [&] {
      return command_list(given.markdown ? ListForm::markdown : given.json ? ListForm::json : ListForm::text);
    };
  });
}

void add_describe(CLI::App& app, ReadArguments& given, Action& action) {
  auto* command = app.add_subcommand("describe", "print the method, parameters, metrics and conditions of a probe");
  command->add_option("probe", given.name, "name of the probe")->required();
  command->add_flag("--json", given.json, "print the description as JSON");
  command->footer("Example: assay describe host_gemm");
  command->callback([&] { action = [&] { return command_describe(given.name, given.json); }; });
}

struct SiteArguments {
  SiteSource source;
  std::string site, profile = "host", image, directory = "/var/tmp/assay";
  int fan_out = kFanOut;
  bool json = false;
};

int run_site(const CLI::App& site, const SiteArguments& given) {
  if (site.got_subcommand("check")) return command_site_check(given.site, given.fan_out, given.json);
  if (site.got_subcommand("sbatch")) return command_site_sbatch(given.site, given.profile);
  const std::string where = given.source.kube_namespace.empty() ? "default" : given.source.kube_namespace;
  if (site.got_subcommand("manifest")) return command_site_manifest(given.image, where, given.directory);
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
      ->needs(from);
  site.add_option("--site", given.site, "lldp, ibnetdiscover: the site file to add leaves and switch ports to")
      ->needs(from);
  site.add_option("--plane", source.plane,
                  "lldp, ibnetdiscover: plane of ports that the site does not list [omit them]")
      ->needs(from)
      ->check(CLI::IsMember(std::vector<std::string>(site::kPlanes.begin(), site::kPlanes.end())));
  site.add_option("--name", source.options.name, "name of the site [site]")->needs(from);
  site.add_option("--known-hosts", source.options.known_hosts, "file with host keys, for nodes over ssh")->needs(from);
  site.add_option("--partition", source.options.partition, "slurm: only the nodes of this partition [all]")
      ->needs(from);
  site.add_option("--namespace", source.kube_namespace, "kubectl: namespace of the pods [that of the context]");
  site.add_option("--selector", source.selector, "kubectl: label selector of the agent pods [app=assay]")->needs(from);
}

void add_site_commands(CLI::App& site, SiteArguments& given) {
  auto* check = site.add_subcommand(
      "check", "connect to every node and list the differences: driver, firmware, kernel, GPUs, links, clock");
  check->add_option("--site", given.site, "nodes and how to reach them [this machine]");
  add_fan_out(*check, given.fan_out);
  check->add_flag("--json", given.json, "print one JSON object");
  check->footer("Example: assay site check --site site.json");
  auto* sbatch = site.add_subcommand("sbatch", "print a batch script for Slurm");
  sbatch->add_option("--site", given.site, "site file with nodes of launcher slurm")->required();
  sbatch->add_option("--profile", given.profile, "design targets: a name or a file [host]");
  sbatch->footer("Example: assay site sbatch --site site.json > accept.sbatch");
  auto* manifest = site.add_subcommand("manifest", "print a Kubernetes DaemonSet of agent pods");
  manifest
      ->add_option("--image", given.image,
                   "container image with sh, coreutils and what the probes need (`assay list --markdown`)")
      ->required();
  manifest->add_option("--namespace", given.source.kube_namespace, "namespace of the pods [default]");
  manifest->add_option("--directory", given.directory,
                       "directory of the nodes, on the storage under test [/var/tmp/assay]");
  manifest->footer("Example: assay site manifest --image debian:12 | kubectl apply --filename -");
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

struct BundleArguments {
  BundleRequest contents;
  std::string out;
  bool dry_run = false;
};

void add_bundle(CLI::App& app, BundleArguments& given, Action& action) {
  auto* command = app.add_subcommand("bundle", "pack this installation for machines with only a driver installed");
  command->add_option("--out", given.out, "folder, or FILE.tar; reproducible byte for byte")->required();
  command->add_option("--probe", given.contents.probes, "only these probes [all]");
  command->add_flag("--with-libraries", given.contents.with_libraries,
                    "include libcublasLt and libnccl, under NVIDIA's terms");
  command->add_option("--library-path", given.contents.library_paths,
                      "folder of those libraries; may be repeated [the usual places]");
  command->add_flag("--dry-run", given.dry_run, "list what would be packed, without writing it");
  command->footer("Example: assay bundle --out assay.tar --with-libraries");
  command->callback([&] { action = [&] { return command_bundle(given.contents, given.out, given.dry_run); }; });
}

void add_import(CLI::App& app, ImportArguments& given, Action& action) {
  auto* command = app.add_subcommand(
      "import", "read another tool's output to compare it with a run; imported figures are never judged");
  command->add_option("tool", given.tool, "nccl-tests, perftest, nvbandwidth, fio or osu")->required();
  command->add_option("files", given.files, "output files of the tool, one run per file")->required();
  command->add_option("--out", given.out, "new file [stdout]");
  command->add_option("--command", given.command, "the command that was run, where the output does not state it");
  command->add_option("--beside", given.beside, "a judged run: print a table of both instead of JSON Lines");
  command->footer("Example: assay import perftest bw.json --command 'ib_write_bw --report_gbits' --out vendor.jsonl");
  command->callback([&] { action = [&] { return command_import(given); }; });
}

/// Commands and options of `app`: what an unknown word is compared with.
std::vector<std::string> names_in(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  if (!names.empty()) names.insert(names.end(), kPassedOn.begin(), kPassedOn.end());
  for (const auto* option : app.get_options()) names.push_back(option->get_name());
  return names;
}

int refuse(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const auto chosen = app.get_subcommands();
  const CLI::App& scope = chosen.empty() ? app : *chosen.front();
  const auto names = names_in(scope);
  if (chosen.empty() && argc > 1 && argv[1][0] != '-') {
    return report_error({"", fmt::format("'{}' is not a command", argv[1]), suggestion(argv[1], names)});
  }
  std::string hint =
      fmt::format("`{} --help` shows the options", chosen.empty() ? "assay" : "assay " + scope.get_name());
  for (int i = 1; i < argc; ++i) {
    const std::string word = std::string(argv[i]).substr(0, std::string_view(argv[i]).find('='));
    if (word.starts_with("--") && std::ranges::find(names, word) == names.end()) hint = suggestion(word, names);
  }
  return report_error({"", error.what(), hint});
}

int run(int argc, char** argv) {
  CLI::App app{
      "assay measures AI-cluster hardware, compares the results with design targets, and signs a report with its "
      "evidence.",
      "assay"};
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("assay ") + ASSAY_VERSION);
  app.footer(kFooter);
  AcceptArguments accept;
  PlanArguments plan;
  RunArguments run;
  ReadArguments judge, status, describe;
  ListArguments list;
  SiteArguments site;
  BundleArguments bundle;
  ImportArguments import;
  Action action;
  add_accept(app, accept, action);
  add_plan(app, plan, action);
  add_run(app, run, action);
  add_judge(app, judge, action);
  add_status(app, status, action);
  add_list(app, list, action);
  add_describe(app, describe, action);
  add_site(app, site, action);
  add_bundle(app, bundle, action);
  add_import(app, import, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    return refuse(app, error, argc, argv);
  }
  return action();
}

}  // namespace
}  // namespace assay::cli

int main(int argc, char** argv) {
  namespace cli = assay::cli;
  if (argc > 1 && std::ranges::find(cli::kPassedOn, argv[1]) != cli::kPassedOn.end()) return cli::pass_on(argv);
  try {
    return cli::run(argc, argv);
  } catch (const std::exception& error) {
    return cli::report_error({"", error.what(), "unexpected error: please report it with the command that was run"});
  }
}
