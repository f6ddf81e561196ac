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
    "Exit codes: 0 done or verified, whatever the verdict (see verify --accepted), 2 bad usage or input, 4 refused.\n"
    "Example: assay-report verify assay-run-20260105/dossier --key signer.pub";

void add_report(CLI::App& app, ReportArguments& given, Action& action) {
  auto* command = app.add_subcommand("report", "render DIR/report.html from a judged run");
  command->add_option("directory", given.directory, "folder of the run")->required();
  command->add_option("--self-signed", given.self_signed, "fingerprint of the signing key, where the tester signs");
  command->callback([&] { action = [&] { return run_report(given); }; });
}

void add_sign(CLI::App& app, SignArguments& given, Action& action) {
  auto* command =
      app.add_subcommand("sign", "make DIR/dossier from a run with its report, or add a signature to a dossier");
  command->add_option("directory", given.directory, "folder of the run; with --add of the dossier")->required();
  command->add_option("--key", given.key, "private key, PKCS#8 PEM")->required();
  command->add_option("--passphrase-file", given.passphrase_file, "file whose first line decrypts the key");
  command->add_option("--out", given.out, "folder to make [DIR/dossier]");
  command->add_option("--role", given.role, "role of the signer in the test")->capture_default_str();
  command->add_option("--name", given.name, "name of the signer");
  command->add_option("--organisation", given.organisation, "organisation of the signer");
  command->add_flag("--self-signed", given.self_signed, "state that the key belongs to the tester");
  command->add_flag("--add", given.add, "add a signature over the same statement");
  command->callback([&] { action = [&] { return run_sign(given); }; });
}

void add_verify(CLI::App& app, VerifyArguments& given, Action& action) {
  auto* command = app.add_subcommand("verify", "check a dossier, judge its evidence again, and print what it proves");
  command->add_option("dossier", given.directory, "folder of the dossier")->required();
  command->add_option("--key", given.keys, "public key of a required signer; may be repeated")
      ->required()
      ->expected(1)
      ->take_all();
  command->add_option("--plan", given.plan, "refuse a dossier of another plan (SHA-256)");
  command->add_option("--site", given.site, "refuse a dossier of another site");
  command->add_option("--profile", given.profile,
                      "refuse a dossier of another profile: a name, or a file whose targets must be the same");
  command->add_flag("--accepted", given.accepted, "exit with the verdict: 0 accepted, 1 rejected, 3 incomplete");
  command->add_flag("--json", given.json, "print the result as JSON");
  command->callback([&] { action = [&] { return run_verify(given); }; });
}

void add_simulate(CLI::App& app, SimulateArguments& given, Action& action) {
  auto* command =
      app.add_subcommand("simulate", "rehearse a run on a simulated fleet; the result is never an acceptance");
  command->add_option("--profile", given.profile, "design targets: a name or a file [host]");
  command->add_option("--nodes", given.nodes, "nodes of the fleet")->required()->check(CLI::Range(1, 100000));
  command->add_option("--nodes-per-rack", given.per_rack, "nodes in a rack [no racks]");
  command->add_option("--nodes-per-leaf", given.per_leaf, "nodes on a leaf switch [no leaves]");
  command->add_option("--seed", given.seed, "random seed; the same seed gives the same fleet [1]");
  command->add_option("--faults", given.faults, "file of faults to inject, assay.faults/1 [none]");
  command->add_option("--out", given.out, "new folder for plan, journal, verdict, report and summary [write nothing]");
  command->add_flag("--json", given.json, "print the summary as JSON");
  command->footer("Example: assay simulate --profile host --nodes 1000 --seed 7 --faults faults.json --out rehearsal");
  command->callback([&] { action = [&] { return run_simulate(given); }; });
}

void add_key_commands(CLI::App& app, KeygenArguments& keygen, std::string& public_key, Action& action) {
  auto* generate = app.add_subcommand("keygen", "make a signing key, FILE and FILE.pub, and print its fingerprint");
  generate->add_option("file", keygen.file, "private key to write (mode 0600)")->required();
  generate->add_option("--passphrase-file", keygen.passphrase_file,
                       "file with a passphrase in its first line, to encrypt the key");
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
    std::cerr << fmt::format("assay-report{}: unknown command or option '{}'\nhint: {}\n",
                             chosen.empty() ? "" : " " + command.get_name(), extra.front(),
                             suggestion(extra.front(), names_of(command)));
  } else {
    std::cerr << fmt::format("assay-report{}: {}\nhint: `assay-report{} --help` lists the options\n",
                             chosen.empty() ? "" : " " + command.get_name(), error.what(),
                             chosen.empty() ? "" : " " + command.get_name());
  }
  return files::kExitBadInput;
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
  // Unknown words are collected, so that the error can name the nearest match.
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
    return assay::files::kExitBadInput;
  }
}
