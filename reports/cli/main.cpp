// main: the command line of assay-report.
#include <exception>
#include <iostream>
#include <vector>

#include <fmt/format.h>

#include "probes/core/command.h"
#include "probes/core/manual.h"
#include "probes/core/text.h"
#include "reports/cli/commands.h"
#include "reports/cli/join_command.h"
#include "reports/cli/signer_options.h"

namespace assay::report_cli {
namespace {

constexpr const char* kFooter =
    "Exit codes: 0 done or verified, whatever the verdict (see verify --accepted), 2 bad usage or input, 4 refused.\n"
    "Example: assay-report verify assay-run-20260105/dossier --key signer.pub";

void add_report(Command& app, ReportArguments& given, Action& action) {
  auto& command = app.add_command("report", "render DIR/report.html from a judged run");
  add_option(command, "directory", given.directory, "DIR", "folder of the run")->required();
  add_option(command, "--self-signed", given.self_signed, "SHA256",
             "fingerprint of the signing key, where the tester signs");
  add_repeated(command, "--waiver", given.waivers, "FILE", "a waiver to show on the first page; may be repeated");
  add_option(command, "--policy", given.policy, "FILE", "with --waiver: trust policy that says who may waive");
  add_option(command, "--out", given.out, "FILE", "with --waiver: the page to write, which is none of a dossier");
  end_command(command, "Example: assay report run", action, [&] { return run_report(given); });
}

/// Options on whose TPMs and GPUs have answered.
std::vector<Option*> add_hardware(Command& command, ExpectationArguments& given) {
  return {add_option(command, "--tpm-roots", given.tpm_roots, "FILE",
                     "refuse a node whose TPM did not answer with a key that these makers certify (PEM)"),
          add_option(command, "--tpm-keys", given.tpm_keys, "FILE",
                     "refuse other TPMs: a file with a node and the SHA-256 of its TPM's key a line"),
          add_option(command, "--gpu-roots", given.gpu_roots, "FILE",
                     "refuse a GPU without an attestation report by a key that these makers certify (PEM)"),
          add_option(command, "--gpu-keys", given.gpu_keys, "FILE",
                     "refuse other GPUs: a file with a GPU's UUID and the SHA-256 of its identity key a line"),
          add_option(command, "--crls", given.crls, "FILE",
                     "with --tpm-roots or --gpu-roots: refuse certificates that these lists revoke (CRLs, PEM)")};
}

/// Expectations of verify and `sign --add` on a dossier; `needs`, if given, is the option without which they have no
/// sense.
void add_expectations(Command& command, ExpectationArguments& given, Option* needs) {
  if (needs == nullptr) {
    add_option(command, "--supersedes", given.supersedes, "DIR", "refuse what does not supersede this older dossier");
  }
  std::vector<Option*> options = {
      add_option(command, "--policy", given.policy, "FILE",
                 "refuse signatures that this trust policy does not count (assay.trust/1)"),
      add_option(command, "--require", given.require, "ROLES", "roles of --policy that must have signed: buyer,vendor"),
      add_option(command, "--profile", given.profile, "NAME|FILE|SHA256",
                 "refuse other targets: a built-in name, or a file, compared limit by limit, or their digest"),
      add_option(command, "--site", given.site, "NAME|FILE|SHA256",
                 "refuse another site: its name, the whole of a site file, or its digest"),
      add_option(command, "--nodes", given.nodes, "LIST|FILE",
                 "refuse other nodes: n01,n02, n[01-04], or a file of names"),
      add_option(command, "--probes", given.probes, "FILE",
                 "refuse other programs: their SHA-256, as in a bundle's SHA256SUMS"),
      add_option(command, "--plan", given.plan, "SHA256", "refuse another plan (SHA-256)"),
      add_option(command, "--challenge", given.challenge, "HEX",
                 "refuse a plan that was not made for this one (HEX of `assay plan`)"),
      add_option(command, "--risk", given.risk, "TEXT", "refuse a plan without this agreement on risks"),
      add_option(command, "--stability", given.stability, "TEXT",
                 "refuse a plan without this agreement on hours of a soak"),
      add_option(command, "--tsa", given.authorities, "FILE",
                 "refuse a signature without a time stamp by one of these (PEM)"),
      add_option(command, "--run-id", given.run_id, "ID", "refuse another run"),
      add_option(command, "--serials", given.serials, "FILE",
                 "refuse other machines: a file with a node and its serial number a line"),
      add_option(command, "--not-before", given.not_before, "TIME", "refuse a run that began earlier: 2026-01-05"),
      add_option(command, "--max-age", given.max_age, "TIME", "refuse a run that ended longer ago: 30d, 12h"),
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

void add_sign(Command& app, SignArguments& given, Action& action) {
  auto& command =
      app.add_command("sign", "make DIR/dossier from a run with its report, or add a signature to a dossier");
  add_option(command, "directory", given.directory, "DIR", "folder of the run; with --add of the dossier")->required();
  add_signer_options(command, given.signer)->required();
  add_option(command, "--out", given.out, "DIR", "folder to make [DIR/dossier]");
  add_option(command, "--role", given.role, "ROLE", "role of the signer in the test")
      ->with_default()
      ->one_of(std::vector<std::string>(dossier::kRoles.begin(), dossier::kRoles.end()));
  add_option(command, "--name", given.name, "NAME", "name of the signer");
  add_option(command, "--organisation", given.organisation, "NAME", "organisation of the signer");
  command.add_flag("--self-signed", given.self_signed, "state that the key belongs to the tester");
  auto* supersedes =
      add_option(command, "--supersedes", given.supersedes, "DIR", "older dossier that the new one replaces or amends");
  add_option(command, "--reason", given.reason, "TEXT", "with --supersedes: why")->needs(supersedes);
  auto* add = command.add_flag("--add", given.add, "verify a dossier, show it, and sign the same statement");
  add->excludes(supersedes);
  command.add_option("--with-key", given.others, "with --add: public key of who signed before; may be repeated")
      ->needs(add)
      ->repeated();
  add_expectations(command, given.expected, add);
  end_command(command, "Example: assay sign run --key lab.key --name 'Ada Example' --organisation 'Example Lab'",
              action, [&] { return run_sign(given); });
}

void add_verify(Command& app, VerifyArguments& given, Action& action) {
  auto& command = app.add_command("verify", "check a dossier, judge its evidence again, and print what it proves");
  add_option(command, "dossier", given.directory, "DIR", "folder of the dossier")->required();
  add_repeated(command, "--key", given.keys, "FILE",
               "public key of a required signer; may be repeated [with --policy: none]");
  add_expectations(command, given.expected, nullptr);
  add_repeated(command, "--head", given.heads, "FILE|DIR",
               "a witness's head of the journal, or a folder of *.head; may be repeated");
  add_repeated(command, "--witness-key", given.witness_keys, "FILE",
               "with --head: public key of the witness; with --policy one of its keys");
  add_repeated(command, "--waiver", given.waivers, "FILE",
               "with --policy: a waiver, which changes no verdict; may be repeated");
  command.add_flag("--accepted", given.accepted, "exit with the verdict: 0 accepted, 1 rejected, 3 incomplete");
  command.add_flag("--json", given.json, "print the result as JSON");
  end_command(command,
              "Example: assay verify run/dossier --key lab.key.pub --accepted\n"
              "         assay verify run/dossier --policy trust.json --require vendor,buyer",
              action, [&] { return run_verify(given); });
}

void add_waive(Command& app, WaiveArguments& given, Action& action) {
  auto& command = app.add_command("waive", "verify a dossier, and sign a waiver of cells of it that do not pass");
  add_option(command, "dossier", given.directory, "DIR", "folder of the dossier")->required();
  add_signer_options(command, given.signer, " of a buyer or commissioner")->required();
  add_option(command, "--requirement", given.requirement, "ID", "id of the requirement")->required();
  add_option(command, "--node", given.node, "NAME", "only the cells of this node");
  add_option(command, "--subject", given.subject, "NAME", "only the cell of this subject");
  add_option(command, "--reason", given.reason, "TEXT", "why")->required();
  add_option(command, "--until", given.until, "TIME", "when the waiver runs out: 2027-01-05")->required();
  add_option(command, "--out", given.out, "FILE", "file to write")->required();
  add_expectations(command, given.expected, nullptr);
  end_command(
      command,
      "Example: assay-report waive run/dossier --key buyer.key --policy trust.json --requirement memory.copy --node "
      "n03\n"
      "           --reason 'module comes in March' --until 2027-03-31 --out memory.waiver",
      action, [&] { return run_waive(given); });
}

void add_simulate(Command& app, SimulateArguments& given, Action& action) {
  auto& command = app.add_command("simulate", "rehearse a run on a simulated fleet; the result is never an acceptance");
  add_option(command, "--profile", given.profile, "NAME|FILE", "design targets: a name or a file [host]");
  command.add_option("--nodes", given.nodes, "nodes of the fleet")->required()->between(1, 100000);
  command.add_option("--nodes-per-rack", given.per_rack, "nodes in a rack [no racks]");
  command.add_option("--nodes-per-leaf", given.per_leaf,
                     "nodes on a leaf switch [no leaves; 16 where the profile names a plane or pairs by leaf]");
  command
      .add_option("--rails", given.rails,
                  "ports of a node in each plane that the profile names, on leaves of their own [1]")
      ->between(1, 64);
  command.add_option("--seed", given.seed, "random seed; the same seed gives the same fleet [1]");
  add_option(command, "--faults", given.faults, "FILE", "file of faults to inject, assay.faults/1 [none]");
  add_option(command, "--out", given.out, "DIR",
             "new folder for plan, journal, verdict, report and summary [write nothing]");
  command.add_flag("--json", given.json, "print the summary as JSON");
  end_command(command,
              "Months of nightly sweeps have options of their own: `assay simulate --nights 120 --help`.\n"
              "Example: assay simulate --profile host --nodes 1000 --seed 7 --faults faults.json --out rehearsal",
              action, [&] { return run_simulate(given); });
}

void add_key_commands(Command& app, KeygenArguments& keygen, FingerprintArguments& key, Action& action) {
  auto& generate = app.add_command("keygen", "make a signing key, FILE and FILE.pub, and print its fingerprint");
  add_option(generate, "file", keygen.file, "FILE", "private key to write (mode 0600)")->required();
  add_option(generate, "--passphrase-file", keygen.passphrase_file, "FILE",
             "file with a passphrase in its first line, to encrypt the key");
  end_command(generate, "Example: assay keygen lab.key", action, [&] { return run_keygen(keygen); });
  auto& fingerprint = app.add_command("fingerprint", "print the fingerprint of a key");
  add_option(fingerprint, "file", key.file, "FILE", "public key, PEM or of OpenSSH")->required();
  fingerprint.add_flag("--private", key.is_private,
                       "a private key, or pkcs11:…: print the fingerprint of its public half");
  add_option(fingerprint, "--passphrase-file", key.passphrase_file, "FILE",
             "file whose first line decrypts a private key, or is a PIN");
  add_option(fingerprint, "--certificate", key.certificate, "FILE",
             "with --private: refuse the certificate of another key");
  end_command(fingerprint, "Example: assay-report fingerprint lab.key.pub", action,
              [&] { return run_fingerprint(key); });
}

}  // namespace

int run(int argc, char** argv) {
  Command app{"assay-report: report, sign and verify acceptance tests of AI-cluster hardware", "assay-report"};
  app.end_help(kFooter);
  app.add_version(ASSAY_VERSION, "print the version");
  ReportArguments report;
  SignArguments sign;
  VerifyArguments verify;
  WaiveArguments waive;
  SimulateArguments simulate;
  KeygenArguments keygen;
  FingerprintArguments fingerprint;
  ProofArguments proofs;
  JoinCommands joins;
  TrustArguments trust;
  Action action;
  add_report(app, report, action);
  add_sign(app, sign, action);
  add_verify(app, verify, action);
  add_waive(app, waive, action);
  add_simulate(app, simulate, action);
  add_key_commands(app, keygen, fingerprint, action);
  add_proof_commands(app, proofs, action);
  add_join_commands(app, joins, action);
  add_trust_command(app, trust, action);
  if (argc == 2 && std::string_view(argv[1]) == "--manual") {  // for packages; no option of the help
    std::cout << harmless_page(manual_page(app));
    return files::kExitSuccess;
  }
  return run_command_line(app, action, argc, argv);
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
