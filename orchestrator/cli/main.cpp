// assay: the command line.
#include <algorithm>
#include <array>
#include <iostream>

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

namespace {

using namespace assay;  // main is the one place where nothing else is named
using namespace assay::cli;

/// Commands of the other half; `assay` hands them over as git does.
constexpr std::array<std::string_view, 7> kHandedOver = {"report", "sign",  "verify",  "keygen",
                                                         "export", "trend", "simulate"};

int hand_over(char** argv) {
  const std::string program = plan::installation().binaries + "/assay-report";
  argv[0] = const_cast<char*>("assay-report");  // execv takes char* and does not write
  ::execv(program.c_str(), argv);
  return report_error({program, "cannot be started", "it is installed beside assay"});
}

void add_plan_options(CLI::App& command, PlanRequest& request) {
  command.add_option("--profile", request.profile, "design targets: a name or a file [host]");
  command.add_option("--site", request.site, "nodes and how to reach them [this machine]");
  command.add_option("--directory", request.directory,
                     "without --site: where probes work, on the storage under test [/var/tmp/assay]");
  command.add_option("--only", request.only, "only these requirements; a part is never accepted");
  command.add_flag("--quick", request.quick, "a rehearsal with short measurements; it accepts nothing");
  command.add_flag("!--no-localise", request.localise,
                   "no extra tests that say who is at fault where groups fall short");
  command.add_flag("--dry-run", request.dry_run, "say what would be done and do nothing");
}

/// `assay site`: what it was asked for.
struct SiteRequest {
  SiteSource source;
  std::string site, profile = "host", image, directory = "/var/tmp/assay";
  int fan_out = kFanOut;
  bool json = false;
};

void add_fan_out(CLI::App& command, int& fan_out) {
  command.add_option("--fan-out", fan_out, fmt::format("agents that are started at the same time [{}]", kFanOut))
      ->check(CLI::Range(1, kMostFanOut));
}

CLI::App* add_site(CLI::App& app, SiteRequest& request) {
  auto* site = app.add_subcommand("site", "make a site file, or say what differs between its nodes");
  auto* from =
      site->add_option(
              "--from", request.source.from,
              "what to make it from: hostfile, ssh-config, slurm, kubectl; or what to add: lldp, ibnetdiscover")
          ->check(CLI::IsMember({"hostfile", "ssh-config", "slurm", "kubectl", "lldp", "ibnetdiscover"}));
  site->add_option("file", request.source.file,
                   "of hostfile, ssh-config or ibnetdiscover; of lldp a folder with NODE.json of every node")
      ->needs(from);
  site->add_option("--site", request.site, "of lldp and ibnetdiscover: the site to add leaves and switch ports to")
      ->needs(from);
  site->add_option("--plane", request.source.plane,
                   "of those: where ports go that the site does not have [they are left out]")
      ->needs(from)
      ->check(CLI::IsMember(std::vector<std::string>(site::kPlanes.begin(), site::kPlanes.end())));
  site->add_option("--name", request.source.options.name, "of the site [site]")->needs(from);
  site->add_option("--known-hosts", request.source.options.known_hosts, "file with host keys, for nodes over ssh")
      ->needs(from);
  site->add_option("--partition", request.source.options.partition, "of Slurm: only its nodes [all]")->needs(from);
  site->add_option("--namespace", request.source.kube_namespace, "of Kubernetes [that of its context]");
  site->add_option("--selector", request.source.selector, "of Kubernetes: the labels of agent pods [app=assay]")
      ->needs(from);
  site->require_subcommand(0, 1);
  site->footer(
      "Exit codes of check: 0 all alike, 1 something differs, 3 not all could be asked. lldp, ibnetdiscover: 1 the "
      "site says otherwise.\n"
      "Example: assay site --from hostfile hosts --known-hosts known_hosts > site.json; assay site check --site "
      "site.json");
  auto* check = site->add_subcommand(
      "check", "reach every node and say what differs: driver, firmware, kernel, GPUs, links, clock");
  check->add_option("--site", request.site, "nodes and how to reach them [this machine]");
  add_fan_out(*check, request.fan_out);
  check->add_flag("--json", request.json, "one JSON object");
  check->footer("Example: assay site check --site site.json");
  auto* sbatch = site->add_subcommand("sbatch", "print a batch script for Slurm");
  sbatch->add_option("--site", request.site, "with nodes of launcher slurm")->required();
  sbatch->add_option("--profile", request.profile, "design targets: a name or a file [host]");
  sbatch->footer("Example: assay site sbatch --site site.json > accept.sbatch");
  auto* manifest = site->add_subcommand("manifest", "print a Kubernetes DaemonSet of agent pods");
  manifest
      ->add_option("--image", request.image,
                   "container image with sh and coreutils; what the probes need besides is theirs to say")
      ->required();
  manifest->add_option("--namespace", request.source.kube_namespace, "where the pods run [default]");
  manifest->add_option("--directory", request.directory, "of the nodes, on the storage under test [/var/tmp/assay]");
  manifest->footer("Example: assay site manifest --image debian:12 | kubectl apply --filename -");
  return site;
}

int run_site(const CLI::App& site, const SiteRequest& request) {
  if (site.got_subcommand("check")) return command_site_check(request.site, request.fan_out, request.json);
  if (site.got_subcommand("sbatch")) return command_site_sbatch(request.site, request.profile);
  const std::string where = request.source.kube_namespace.empty() ? "default" : request.source.kube_namespace;
  if (site.got_subcommand("manifest")) return command_site_manifest(request.image, where, request.directory);
  if (request.source.from.empty())
    return report_error({"assay site", "needs --from, check, sbatch or manifest", "`assay site --help` shows them"});
  if (request.source.from == "lldp" || request.source.from == "ibnetdiscover")
    return command_site_cables(request.source, request.site);
  return command_site_from(request.source);
}

void add_run_options(CLI::App& command, RunWish& wish) {
  command.add_option("--deadline", wish.deadline, "start no step that is not over by then: 2h, 90min, 600s");
  command.add_option("--patience", wish.patience, "how long a node that was lost is tried again [30s]");
  command.add_flag("--stop-on-fail", wish.stop_on_fail, "start no step after the first required failure");
  command.add_flag("--json", wish.json, "events as JSON Lines on stdout");
}

/// The names a person may have meant, for an unknown word.
std::vector<std::string> names_in(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  if (!names.empty()) names.insert(names.end(), kHandedOver.begin(), kHandedOver.end());
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

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::ranges::find(kHandedOver, argv[1]) != kHandedOver.end()) return hand_over(argv);

  CLI::App app{
      "assay puts AI-cluster hardware to the proof: it measures, compares with what was promised, and signs what it "
      "saw."};
  app.name("assay");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("assay ") + ASSAY_VERSION);
  app.footer(
      "Also: assay report|sign|verify|keygen|simulate …, the commands of assay-report.\n"
      "Exit codes: 0 accepted, 1 rejected, 2 bad usage or input, 3 incomplete, 4 verification refused.\n"
      "Example: assay accept --profile host --out run");
  PlanRequest request;
  RunWish wish;
  std::string out, key, directory, plan_file, resume, probe;
  bool json = false;
  bool markdown = false;

  auto* accept = app.add_subcommand("accept", "plan, run, judge, report and sign in one go");
  add_plan_options(*accept, request);
  accept->add_option("--out", out, "run directory [assay-run-<time>]");
  accept->add_option("--key", key, "private key that signs [this machine's own]");
  add_fan_out(*accept, wish.fan_out);
  add_run_options(*accept, wish);
  accept->footer("Example: assay accept --profile host --site site.json --out run --key lab.key");

  auto* plan = app.add_subcommand("plan", "freeze every step of a run");
  add_plan_options(*plan, request);
  plan->add_option("--out", out, "file [stdout]");
  plan->footer("Example: assay plan --profile host --site site.json --out plan.json");

  auto* run = app.add_subcommand("run", "carry a plan out, or go on with an interrupted run; then judge");
  auto* plan_option = run->add_option("plan", plan_file, "plan.json");
  run->add_option("--resume", resume, "run directory to go on with")->excludes(plan_option);
  run->add_option("--out", out, "run directory [assay-run-<time>]");
  add_fan_out(*run, wish.fan_out);
  add_run_options(*run, wish);
  run->footer("Example: assay run plan.json --out run; assay run --resume run");

  auto* judge = app.add_subcommand("judge", "judge a run again from its evidence");
  judge->add_option("directory", directory, "run directory")->required();
  judge->add_flag("--json", json, "print verdict.json");
  judge->footer("Example: assay judge run");

  auto* status = app.add_subcommand("status", "say how far a run is");
  status->add_option("directory", directory, "run directory")->required();
  status->add_flag("--json", json, "one JSON object");
  status->footer("Example: assay status run");

  auto* list = app.add_subcommand("list", "list the probes");
  list->add_flag("--json", json, "every description as JSON");
  list->add_flag("--markdown", markdown, "a table, as in the README");
  list->footer("Example: assay list");

  auto* describe = app.add_subcommand("describe", "tell method, parameters, metrics and conditions of a probe");
  describe->add_option("probe", probe, "name")->required();
  describe->add_flag("--json", json, "the description as JSON");
  describe->footer("Example: assay describe host_gemm");

  SiteRequest about_site;
  const auto* const site = add_site(app, about_site);

  BundleRequest contents;
  auto* bundle =
      app.add_subcommand("bundle", "pack this installation for machines that have a driver and nothing else");
  bundle->add_option("--out", out, "folder, or FILE.tar; the same bytes every time")->required();
  bundle->add_option("--probe", contents.probes, "only these probes [all]");
  bundle->add_flag("--with-libraries", contents.with_libraries, "also libcublasLt and libnccl, under NVIDIA's terms");
  bundle->add_option("--library-path", contents.library_paths,
                     "folder that has those, more than once if need be [the usual places]");
  bundle->add_flag("--dry-run", request.dry_run, "say what would be packed and do nothing");
  bundle->footer("Example: assay bundle --out assay.tar --with-libraries");

  ImportArguments outputs;
  auto* import = app.add_subcommand("import", "read another tool's output, to lay it beside ours; it is never judged");
  import->add_option("tool", outputs.tool, "nccl-tests, perftest, nvbandwidth, fio or osu")->required();
  import->add_option("files", outputs.files, "what the tool printed, one run a file")->required();
  import->add_option("--out", outputs.out, "file that does not exist yet [stdout]");
  import->add_option("--command", outputs.command, "what was run, where the output does not tell");
  import->add_option("--beside", outputs.beside,
                     "a judged run: print a table of both for people in place of JSON Lines");
  import->footer("Example: assay import perftest bw.json --command 'ib_write_bw --report_gbits' --out vendor.jsonl");

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& done) {
    return app.exit(done);
  } catch (const CLI::ParseError& error) {
    return refuse(app, error, argc, argv);
  }
  try {
    if (*accept) return command_accept(request, wish, out, key);
    if (*plan) return command_plan(request, out);
    if (*run && !resume.empty()) return command_resume(resume, wish);
    if (*run && plan_file.empty())
      return report_error({"assay run", "needs a plan or --resume", "assay run plan.json --out run"});
    if (*run) return command_run(plan_file, out, wish);
    if (*judge) return command_judge(directory, json);
    if (*status) return command_status(directory, json);
    if (*list) return command_list(markdown ? ListForm::markdown : json ? ListForm::json : ListForm::text);
    if (*site) return run_site(*site, about_site);
    if (*bundle) return command_bundle(contents, out, request.dry_run);
    if (*import) return command_import(outputs);
    return command_describe(probe, json);
  } catch (const std::exception& error) {
    return report_error({"", error.what(), "this should have been a clearer message: please report it"});
  }
}
