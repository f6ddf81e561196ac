// main: the command line of assay-report.
#include <algorithm>
#include <exception>
#include <functional>
#include <iostream>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "probes/core/suggest.h"
#include "reports/cli/commands.h"

namespace assay::report_cli {
namespace {

using Action = std::function<int()>;

constexpr const char* kFooter =
    "Exit codes: 0 done or verified, whatever the verdict (see verify --accepted), 2 usage or bad input, 4 refused.\n"
    "Example: assay-report verify assay-run-20260105/dossier --key signer.pub";

void add_report(CLI::App& app, ReportArguments& given, Action& action) {
  auto* command = app.add_subcommand("report", "render DIR/report.html from a judged run");
  command->add_option("directory", given.directory, "folder of the run")->required();
  command->add_option("--self-signed", given.self_signed,
                      "fingerprint of the key with which whoever ran the test will sign");
  command->callback([&] { action = [&] { return run_report(given); }; });
}

void add_sign(CLI::App& app, SignArguments& given, Action& action) {
  auto* command =
      app.add_subcommand("sign", "make DIR/dossier from a run with its report, or add a signature to a dossier");
  command->add_option("directory", given.directory, "folder of the run, or the dossier with --add")->required();
  command->add_option("--key", given.key, "private key, PKCS#8 PEM")->required();
  command->add_option("--passphrase-file", given.passphrase_file, "file whose first line opens the key");
  command->add_option("--out", given.out, "the folder to make instead of DIR/dossier");
  command->add_option("--role", given.role, "what the signer is in this test")->capture_default_str();
  command->add_option("--name", given.name, "who signs");
  command->add_option("--organisation", given.organisation, "for whom");
  command->add_flag("--self-signed", given.self_signed, "say that the key belongs to whoever ran the test");
  command->add_flag("--add", given.add, "add a signature over the same statement");
  command->callback([&] { action = [&] { return run_sign(given); }; });
}

void add_verify(CLI::App& app, VerifyArguments& given, Action& action) {
  auto* command = app.add_subcommand("verify", "check a dossier, judge its evidence again, and say what it proves");
  command->add_option("dossier", given.directory, "the dossier's folder")->required();
  command->add_option("--key", given.keys, "public key of a signer you demand; may be given several times")
      ->required()
      ->expected(1)
      ->take_all();
  command->add_option("--plan", given.plan, "refuse a dossier of another plan (SHA-256)");
  command->add_option("--site", given.site, "refuse a dossier of another site");
  command->add_option(
      "--profile", given.profile,
      "refuse a dossier of another profile: its name, or its file, whose targets are compared one by one");
  command->add_flag("--accepted", given.accepted, "exit 0 only when the verdict is accepted; 1 rejected, 3 incomplete");
  command->add_flag("--json", given.json, "print the result as JSON");
  command->callback([&] { action = [&] { return run_verify(given); }; });
}

void add_simulate(CLI::App& app, SimulateArguments& given, Action& action) {
  auto* command = app.add_subcommand("simulate", "rehearse a run on a fleet that does not exist; it accepts nothing");
  command->add_option("--profile", given.profile, "design targets: a name or a file [host]");
  command->add_option("--nodes", given.nodes, "nodes of the fleet")->required()->check(CLI::Range(1, 100000));
  command->add_option("--nodes-per-rack", given.per_rack, "nodes in a rack [racks are not told]");
  command->add_option("--nodes-per-leaf", given.per_leaf, "nodes on a leaf switch [leaves are not told]");
  command->add_option("--seed", given.seed, "the same seed gives the same fleet [1]");
  command->add_option("--faults", given.faults, "what is wrong with it (assay.faults/1) [nothing]");
  command->add_option("--out", given.out,
                      "fresh folder for plan, journal, verdict, report and summary [nothing is written]");
  command->add_flag("--json", given.json, "the summary as JSON");
  command->footer("Example: assay simulate --profile host --nodes 1000 --seed 7 --faults faults.json --out rehearsal");
  command->callback([&] { action = [&] { return run_simulate(given); }; });
}

void add_key_commands(CLI::App& app, KeygenArguments& keygen, std::string& public_key, Action& action) {
  auto* generate = app.add_subcommand("keygen", "make a signing key FILE and FILE.pub; prints the fingerprint");
  generate->add_option("file", keygen.file, "private key to write (mode 0600)")->required();
  generate->add_option("--passphrase-file", keygen.passphrase_file, "file whose first line encrypts the key");
  generate->callback([&] { action = [&] { return run_keygen(keygen); }; });
  auto* fingerprint = app.add_subcommand("fingerprint", "print the fingerprint of a public key");
  fingerprint->add_option("file", public_key, "public key, PEM")->required();
  fingerprint->callback([&] { action = [&] { return run_fingerprint(public_key); }; });
}

/// Every long option of `command`, and every subcommand.
std::vector<std::string> names_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const auto* option : command.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  for (const auto* inner : command.get_subcommands(nullptr)) names.push_back(inner->get_name());
  return names;
}

int usage(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  const auto extra = app.remaining(true);
  if (!extra.empty()) {
    std::cerr << fmt::format("assay-report{}: there is no '{}'\nhint: {}\n",
                             chosen.empty() ? "" : " " + command.get_name(), extra.front(),
                             suggestion(extra.front(), names_of(command)));
  } else {
    std::cerr << fmt::format("assay-report{}: {}\nhint: `assay-report{} --help` tells more\n",
                             chosen.empty() ? "" : " " + command.get_name(), error.what(),
                             chosen.empty() ? "" : " " + command.get_name());
  }
  return kExitBadInput;
}

}  // namespace

int run(int argc, char** argv) {
  CLI::App app{"assay-report: report, sign and verify acceptance tests of AI-cluster hardware", "assay-report"};
  app.footer(kFooter);
  app.set_version_flag("--version", ASSAY_VERSION, "print the version");
  ReportArguments report;
  SignArguments sign;
  VerifyArguments verify;
  SimulateArguments simulate;
  KeygenArguments keygen;
  std::string public_key;
  Action action;
  add_report(app, report, action);
  add_sign(app, sign, action);
  add_verify(app, verify, action);
  add_simulate(app, simulate, action);
  add_key_commands(app, keygen, public_key, action);
  // What is not known is collected and then named together with its nearest match.
  app.allow_extras();
  for (auto* command : app.get_subcommands(nullptr)) command->allow_extras();
  try {
    app.parse(argc, argv);
    if (!app.remaining(true).empty()) throw CLI::ExtrasError(app.remaining(true));
    if (!action) throw CLI::RequiredError("a command");
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    return usage(app, error);
  }
  return action();
}

}  // namespace assay::report_cli

int main(int argc, char** argv) {
  try {
    return assay::report_cli::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "assay-report: " << error.what() << '\n';
    return assay::report_cli::kExitBadInput;
  }
}
