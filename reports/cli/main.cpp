// main: the command line of assay-report.
#include <exception>
#include <functional>
#include <iostream>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "probes/core/manual.h"
#include "probes/core/option_values.h"
#include "probes/core/suggest.h"
#include "probes/core/text.h"
#include "reports/cli/commands.h"
#include "reports/cli/commons_command.h"
#include "reports/cli/compare_command.h"
#include "reports/cli/draw_command.h"
#include "reports/cli/join_command.h"
#include "reports/cli/nightly_commands.h"
#include "reports/cli/proof_commands.h"
#include "reports/cli/requirements_command.h"
#include "reports/cli/signer_options.h"
#include "reports/cli/trust_command.h"

namespace assay::report_cli {
namespace {

using Action = std::function<int()>;

constexpr const char* kFooter =
    "Exit codes: 0 done or verified, whatever the verdict (see verify --accepted), 2 bad usage or input, 4 refused.\n"
    "Example: assay-report verify assay-run-20260105/dossier --key signer.pub";

void add_report(CLI::App& app, ReportArguments& given, Action& action) {
  auto* command = app.add_subcommand("report", "render DIR/report.html from a judged run");
  command->add_option("directory", given.directory, "folder of the run")->type_name("DIR")->required();
  command->add_option("--self-signed", given.self_signed, "fingerprint of the signing key, where the tester signs")
      ->type_name("SHA256");
  command->add_option("--waiver", given.waivers, "a waiver to show on the first page; may be repeated")
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
  command->add_option("--policy", given.policy, "with --waiver: trust policy that says who may waive")
      ->type_name("FILE");
  command->add_option("--out", given.out, "with --waiver: the page to write, which is none of a dossier")
      ->type_name("FILE");
  command->footer("Example: assay report run");
  command->callback([&] { action = [&] { return run_report(given); }; });
}

/// Options on whose TPMs and GPUs have answered.
std::vector<CLI::Option*> add_hardware(CLI::App& command, ExpectationArguments& given) {
  return {command
              .add_option("--tpm-roots", given.tpm_roots,
                          "refuse a node whose TPM did not answer with a key that these makers certify (PEM)")
              ->type_name("FILE"),
          command
              .add_option("--tpm-keys", given.tpm_keys,
                          "refuse other TPMs: a file with a node and the SHA-256 of its TPM's key a line")
              ->type_name("FILE"),
          command
              .add_option("--gpu-roots", given.gpu_roots,
                          "refuse a GPU without an attestation report by a key that these makers certify (PEM)")
              ->type_name("FILE"),
          command
              .add_option("--gpu-keys", given.gpu_keys,
                          "refuse other GPUs: a file with a GPU's UUID and the SHA-256 of its identity key a line")
              ->type_name("FILE"),
          command
              .add_option("--crls", given.crls,
                          "with --tpm-roots or --gpu-roots: refuse certificates that these lists revoke (CRLs, PEM)")
              ->type_name("FILE")};
}

/// Expectations of verify and `sign --add` on a dossier; `needs`, if given, is the option without which they have no
/// sense.
void add_expectations(CLI::App& command, ExpectationArguments& given, CLI::Option* needs) {
  if (needs == nullptr) {
    command.add_option("--supersedes", given.supersedes, "refuse what does not supersede this older dossier")
        ->type_name("DIR");
  }
  std::vector<CLI::Option*> options = {
      command
          .add_option("--policy", given.policy,
                      "refuse signatures that this trust policy does not count (assay.trust/1)")
          ->type_name("FILE"),
      command.add_option("--require", given.require, "roles of --policy that must have signed: buyer,vendor")
          ->type_name("ROLES"),
      command
          .add_option("--profile", given.profile,
                      "refuse other targets: a built-in name, or a file, compared limit by limit, or their digest")
          ->type_name("NAME|FILE|SHA256"),
      command
          .add_option("--site", given.site, "refuse another site: its name, the whole of a site file, or its digest")
          ->type_name("NAME|FILE|SHA256"),
      command.add_option("--nodes", given.nodes, "refuse other nodes: n01,n02, n[01-04], or a file of names")
          ->type_name("LIST|FILE"),
      command.add_option("--probes", given.probes, "refuse other programs: their SHA-256, as in a bundle's SHA256SUMS")
          ->type_name("FILE"),
      command.add_option("--plan", given.plan, "refuse another plan (SHA-256)")->type_name("SHA256"),
      command
          .add_option("--challenge", given.challenge,
                      "refuse a plan that was not made for this one (HEX of `assay plan`)")
          ->type_name("HEX"),
      command.add_option("--risk", given.risk, "refuse a plan without this agreement on risks")->type_name("TEXT"),
      command.add_option("--stability", given.stability, "refuse a plan without this agreement on hours of a soak")
          ->type_name("TEXT"),
      command.add_option("--tsa", given.authorities, "refuse a signature without a time stamp by one of these (PEM)")
          ->type_name("FILE"),
      command.add_option("--run-id", given.run_id, "refuse another run")->type_name("ID"),
      command
          .add_option("--serials", given.serials,
                      "refuse other machines: a file with a node and its serial number a line")
          ->type_name("FILE"),
      command.add_option("--not-before", given.not_before, "refuse a run that began earlier: 2026-01-05")
          ->type_name("TIME"),
      command.add_option("--max-age", given.max_age, "refuse a run that ended longer ago: 30d, 12h")->type_name("TIME"),
      command.add_flag("--no-deviations", given.no_deviations, "refuse a run that was disturbed, resumed or cut short"),
      command.add_flag("--without-report", given.without_report,
                       "pass over a report.html of another version, which cannot be compared"),
      command.add_flag(
          "--unknown-probes", given.unknown_probes,
          "with --profile or --probes: take the signer's word for probes that this version does not know")};
  const auto of_hardware = add_hardware(command, given);
  options.insert(options.end(), of_hardware.begin(), of_hardware.end());
  for (auto* option : options) {
    if (needs != nullptr) option->needs(needs);
  }
}

void add_sign(CLI::App& app, SignArguments& given, Action& action) {
  auto* command =
      app.add_subcommand("sign", "make DIR/dossier from a run with its report, or add a signature to a dossier");
  command->add_option("directory", given.directory, "folder of the run; with --add of the dossier")
      ->type_name("DIR")
      ->required();
  add_signer_options(*command, given.signer)->required();
  command->add_option("--out", given.out, "folder to make [DIR/dossier]")->type_name("DIR");
  command->add_option("--role", given.role, "role of the signer in the test")
      ->type_name("ROLE")
      ->capture_default_str()
      ->check(CLI::IsMember(std::vector<std::string>(dossier::kRoles.begin(), dossier::kRoles.end())));
  command->add_option("--name", given.name, "name of the signer")->type_name("NAME");
  command->add_option("--organisation", given.organisation, "organisation of the signer")->type_name("NAME");
  command->add_flag("--self-signed", given.self_signed, "state that the key belongs to the tester");
  auto* supersedes =
      command->add_option("--supersedes", given.supersedes, "older dossier that the new one replaces or amends")
          ->type_name("DIR");
  command->add_option("--reason", given.reason, "with --supersedes: why")->type_name("TEXT")->needs(supersedes);
  auto* add = command->add_flag("--add", given.add, "verify a dossier, show it, and sign the same statement");
  add->excludes(supersedes);
  command->add_option("--with-key", given.others, "with --add: public key of who signed before; may be repeated")
      ->needs(add)
      ->expected(1)
      ->take_all();
  add_expectations(*command, given.expected, add);
  command->footer("Example: assay sign run --key lab.key --name 'Ada Example' --organisation 'Example Lab'");
  command->callback([&] { action = [&] { return run_sign(given); }; });
}

void add_verify(CLI::App& app, VerifyArguments& given, Action& action) {
  auto* command = app.add_subcommand("verify", "check a dossier, judge its evidence again, and print what it proves");
  command->add_option("dossier", given.directory, "folder of the dossier")->type_name("DIR")->required();
  command->add_option("--key", given.keys, "public key of a required signer; may be repeated [with --policy: none]")
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
  add_expectations(*command, given.expected, nullptr);
  command->add_option("--head", given.heads, "a witness's head of the journal, or a folder of *.head; may be repeated")
      ->type_name("FILE|DIR")
      ->expected(1)
      ->take_all();
  command
      ->add_option("--witness-key", given.witness_keys,
                   "with --head: public key of the witness; with --policy one of its keys")
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
  command->add_option("--waiver", given.waivers, "with --policy: a waiver, which changes no verdict; may be repeated")
      ->type_name("FILE")
      ->expected(1)
      ->take_all();
  command->add_flag("--accepted", given.accepted, "exit with the verdict: 0 accepted, 1 rejected, 3 incomplete");
  command->add_flag("--json", given.json, "print the result as JSON");
  command->footer(
      "Example: assay verify run/dossier --key lab.key.pub --accepted\n"
      "         assay verify run/dossier --policy trust.json --require vendor,buyer");
  command->callback([&] { action = [&] { return run_verify(given); }; });
}

void add_waive(CLI::App& app, WaiveArguments& given, Action& action) {
  auto* command = app.add_subcommand("waive", "verify a dossier, and sign a waiver of cells of it that do not pass");
  command->add_option("dossier", given.directory, "folder of the dossier")->type_name("DIR")->required();
  add_signer_options(*command, given.signer, " of a buyer or commissioner")->required();
  command->add_option("--requirement", given.requirement, "id of the requirement")->type_name("ID")->required();
  command->add_option("--node", given.node, "only the cells of this node")->type_name("NAME");
  command->add_option("--subject", given.subject, "only the cell of this subject")->type_name("NAME");
  command->add_option("--reason", given.reason, "why")->type_name("TEXT")->required();
  command->add_option("--until", given.until, "when the waiver runs out: 2027-01-05")->type_name("TIME")->required();
  command->add_option("--out", given.out, "file to write")->type_name("FILE")->required();
  add_expectations(*command, given.expected, nullptr);
  command->footer(
      "Example: assay-report waive run/dossier --key buyer.key --policy trust.json --requirement memory.copy --node "
      "n03\n"
      "           --reason 'module comes in March' --until 2027-03-31 --out memory.waiver");
  command->callback([&] { action = [&] { return run_waive(given); }; });
}

void add_simulate(CLI::App& app, SimulateArguments& given, Action& action) {
  auto* command =
      app.add_subcommand("simulate", "rehearse a run on a simulated fleet; the result is never an acceptance");
  command->add_option("--profile", given.profile, "design targets: a name or a file [host]")->type_name("NAME|FILE");
  command->add_option("--nodes", given.nodes, "nodes of the fleet")->required()->check(CLI::Range(1, 100000));
  command->add_option("--nodes-per-rack", given.per_rack, "nodes in a rack [no racks]");
  command->add_option("--nodes-per-leaf", given.per_leaf,
                      "nodes on a leaf switch [no leaves; 16 where the profile names a plane or pairs by leaf]");
  command
      ->add_option("--rails", given.rails,
                   "ports of a node in each plane that the profile names, on leaves of their own [1]")
      ->check(CLI::Range(1, 64));
  command->add_option("--seed", given.seed, "random seed; the same seed gives the same fleet [1]");
  command->add_option("--faults", given.faults, "file of faults to inject, assay.faults/1 [none]")->type_name("FILE");
  command->add_option("--out", given.out, "new folder for plan, journal, verdict, report and summary [write nothing]")
      ->type_name("DIR");
  command->add_flag("--json", given.json, "print the summary as JSON");
  command->footer(
      "Months of nightly sweeps have options of their own: `assay simulate --nights 120 --help`.\n"
      "Example: assay simulate --profile host --nodes 1000 --seed 7 --faults faults.json --out rehearsal");
  command->callback([&] { action = [&] { return run_simulate(given); }; });
}

void add_key_commands(CLI::App& app, KeygenArguments& keygen, FingerprintArguments& key, Action& action) {
  auto* generate = app.add_subcommand("keygen", "make a signing key, FILE and FILE.pub, and print its fingerprint");
  generate->add_option("file", keygen.file, "private key to write (mode 0600)")->type_name("FILE")->required();
  generate
      ->add_option("--passphrase-file", keygen.passphrase_file,
                   "file with a passphrase in its first line, to encrypt the key")
      ->type_name("FILE");
  generate->footer("Example: assay keygen lab.key");
  generate->callback([&] { action = [&] { return run_keygen(keygen); }; });
  auto* fingerprint = app.add_subcommand("fingerprint", "print the fingerprint of a key");
  fingerprint->add_option("file", key.file, "public key, PEM or of OpenSSH")->type_name("FILE")->required();
  fingerprint->add_flag("--private", key.is_private,
                        "a private key, or pkcs11:…: print the fingerprint of its public half");
  fingerprint
      ->add_option("--passphrase-file", key.passphrase_file,
                   "file whose first line decrypts a private key, or is a PIN")
      ->type_name("FILE");
  fingerprint->add_option("--certificate", key.certificate, "with --private: refuse the certificate of another key")
      ->type_name("FILE");
  fingerprint->footer("Example: assay-report fingerprint lab.key.pub");
  fingerprint->callback([&] { action = [&] { return run_fingerprint(key); }; });
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
                             chosen.empty() ? "" : " " + command.get_name(), harmless(extra.front()),
                             suggestion(extra.front(), names_of(command)));
  } else {
    std::cerr << fmt::format("assay-report{}: {}\nhint: `assay-report{} --help` lists the options\n",
                             chosen.empty() ? "" : " " + command.get_name(), harmless(error.what()),
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
  WaiveArguments waive;
  SimulateArguments simulate;
  KeygenArguments keygen;
  FingerprintArguments fingerprint;
  NightlyArguments nightly;
  CompareArguments compare;
  ProofArguments proofs;
  JoinCommands joins;
  DrawArguments draw;
  CommonsArguments commons;
  RequirementsArguments requirements;
  TrustArguments trust;
  Action action;
  add_report(app, report, action);
  add_sign(app, sign, action);
  add_verify(app, verify, action);
  add_waive(app, waive, action);
  add_simulate(app, simulate, action);
  add_key_commands(app, keygen, fingerprint, action);
  add_nightly_commands(app, nightly, action);
  add_compare_command(app, compare, action);
  add_requirements_command(app, requirements, action);
  add_commons_command(app, commons, action);
  add_proof_commands(app, proofs, action);
  add_join_commands(app, joins, action);
  add_draw_command(app, draw, action);
  add_trust_command(app, trust, action);
  if (argc == 2 && std::string_view(argv[1]) == "--manual") {  // for packages; no option of the help
    std::cout << harmless_page(manual_page(app));
    return files::kExitSuccess;
  }
  // Unknown words are collected, so that the error can name the nearest match.
  app.allow_extras();
  for (auto* command : app.get_subcommands(nullptr)) command->allow_extras();
  try {
    app.parse(argc, argv);
    refuse_empty_values(app);
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
    std::cerr << "assay-report: " << assay::harmless(error.what()) << '\n';
    return assay::files::kExitBadInput;
  }
}
