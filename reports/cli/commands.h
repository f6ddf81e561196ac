// commands: the subcommands of assay-report, from values to an exit code.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/files/exit_codes.h"
#include "probes/core/error.h"
#include "reports/dossier/head.h"
#include "reports/dossier/opened_run.h"
#include "reports/dossier/signer.h"
#include "reports/dossier/verify.h"
#include "reports/dossier/waiver.h"
#include "reports/page/content.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace assay::report_cli {

/// Prints the error on stderr; returns kExitBadInput.
int bad_input(const InputError& error);
/// The same for a refusal; returns kExitRefused.
int refused(const InputError& error);
/// `path` without the slashes at its end, so that a neighbour's name can be made from it.
std::string without_slash(std::string path);
/// Whether `path` is a folder that can be looked at.
bool is_folder(const std::string& path);
/// The error of a path that is none.
InputError not_a_folder(const std::string& path);
/// The public keys in these files.
std::expected<std::vector<dossier::PublicKey>, InputError> public_keys(const std::vector<std::string>& paths);
/// The signers of dossiers that are opened: the keys in these files, or those that the policy at `policy` counts.
std::expected<dossier::Signers, InputError> allowed_signers(const std::vector<std::string>& keys,
                                                            const std::string& policy);

struct ReportArguments {
  std::string directory, self_signed;
  std::vector<std::string> waivers;  ///< files; with a policy and a page of its own
  std::string policy, out;
};

/// Expectations of a dossier; empty: anything.
struct ExpectationArguments {
  std::string policy;           ///< file, assay.trust/1
  std::string require;          ///< "buyer,vendor": roles besides those that the policy requires
  std::string plan;             ///< SHA-256 of plan.json
  std::string site;             ///< name, or file that the whole site must equal
  std::string nodes;            ///< "n01,n02", or file with a name on each line
  std::string profile;          ///< built-in name, or file, whose targets must equal those that were judged
  std::string probes;           ///< file with the SHA-256 of every program
  std::string not_before;       ///< UTC time, or day
  std::string max_age;          ///< "30d", "12h"
  std::string challenge;        ///< 64 hexadecimal digits
  std::string risk, stability;  ///< as `assay plan` has them
  std::string run_id;
  std::string supersedes;   ///< folder of the older dossier
  std::string authorities;  ///< file of certificates, PEM
  std::string serials;      ///< file with a node and the serial number of its machine on each line
  std::string tpm_roots;    ///< file of certificates, PEM
  std::string tpm_keys;     ///< file with a node and the SHA-256 of the key of its TPM on each line
  std::string gpu_roots;    ///< as tpm_roots
  std::string gpu_keys;     ///< file with the UUID of a GPU and the SHA-256 of its identity key on each line
  std::string crls;         ///< file of lists of revoked certificates, PEM
  bool no_deviations = false, without_report = false, unknown_probes = false;
};

struct SignArguments {
  std::string directory, out, role = "signer", name, organisation;
  dossier::SignerName signer;
  bool self_signed = false, add = false;
  std::string supersedes, reason;   ///< folder of an older dossier, and why there is a newer one
  std::vector<std::string> others;  ///< with `add`: public keys of earlier signers
  ExpectationArguments expected;    ///< with `add`
};

struct VerifyArguments {
  std::string directory;
  ExpectationArguments expected;
  std::vector<std::string> keys;
  std::vector<std::string> waivers;              ///< files; with expected.policy
  std::vector<std::string> heads, witness_keys;  ///< files
  bool accepted = false;                         ///< the exit code also reports the verdict
  bool json = false;
};

struct WaiveArguments {
  std::string directory, out;
  dossier::SignerName signer;
  std::string requirement, node, subject;
  std::string reason, until;
  ExpectationArguments expected;  ///< with a policy
};

struct KeygenArguments {
  std::string file, passphrase_file;
};

struct FingerprintArguments {
  std::string file, passphrase_file, certificate;
  bool is_private = false;  ///< `file` is a private key or one on a token, of whose public half it is
};

struct SimulateArguments {
  std::string profile = "host", faults, out;
  std::size_t nodes = 0, per_rack = 0, per_leaf = 0, rails = 0;
  std::uint64_t seed = 1;
  bool json = false;
};

/// Plans, runs in virtual time, judges, localises and reports a fleet that does not exist; exit code 0 unless the input
/// is bad.
int run_simulate(const SimulateArguments& given);
/// Writes DIR/report.html. Each prints its result on stdout, errors on stderr, and returns the exit code.
int run_report(const ReportArguments& given);
/// Makes a dossier, or adds a signature to one.
int run_sign(const SignArguments& given);
/// Verifies a dossier and prints its contents. With `accepted`, the exit code of a verified dossier is that of its
/// verdict: 1 rejected, 3 incomplete.
int run_verify(const VerifyArguments& given);
/// Verifies a dossier, shows it, and writes a signed waiver of cells of it that do not pass.
int run_waive(const WaiveArguments& given);
/// The waivers in these files, checked against the policy and the run.
std::expected<std::vector<dossier::Waiver>, InputError> read_waivers(const std::vector<std::string>& paths,
                                                                     const dossier::TrustPolicy& policy,
                                                                     const dossier::WaivedRun& run,
                                                                     dossier::Moment now);
/// Puts the waivers in these files, counted by the trust policy at `policy`, onto the first page of `content`; the exit
/// code of their error, once it is printed.
std::optional<int> show_waivers(page::ReportContent& content, const std::vector<std::string>& paths,
                                const std::string& policy);
/// The heads in the files of `given`, checked against the journal of the dossier, in the order of their times.
std::expected<std::vector<dossier::WitnessedHead>, InputError> read_heads(const VerifyArguments& given,
                                                                          const dossier::Expectations& expected,
                                                                          const dossier::CheckedContents& contents);
/// Values of the options, with the clock of this machine.
std::expected<dossier::Expectations, InputError> expectations_of(const ExpectationArguments& given);
/// Prints a dossier that was verified by `expected` for people: its summary (summary.h), then nodes, times, targets.
void print_verified(const dossier::Verified& verified, const dossier::Expectations& expected);
/// Makes a key pair and prints its fingerprint.
int run_keygen(const KeygenArguments& given);
/// Prints the fingerprint of a public key, or of the public half of a private one.
int run_fingerprint(const FingerprintArguments& given);

/// Formats of one run; openmetrics is one of nights, too, and then has no run.
inline constexpr std::array<std::string_view, 7> kRunKinds = {"junit", "ctrf",        "ocp", "csv",
                                                              "knees", "openmetrics", "pdf"};

struct ExportRunArguments {
  std::string directory;  ///< of a run or of a dossier
  std::vector<std::string> keys;
  std::string policy;
  std::vector<std::string> waivers;  ///< files, for the first page of a pdf; they need the policy
};

/// Writes the run in `kind` to `out`, a file or "-", of ocp a new folder; returns the exit code, which is not that of
/// the verdict.
int export_run(const std::string& kind, const ExportRunArguments& given, const std::string& out);

struct TrendArguments {
  std::string unit;  ///< id, or name of a node; empty with `fleet`
  std::string database, drift, out;
  std::size_t nights = 90;
  bool fleet = false;
};

struct ExportArguments {
  std::string kind, database, drift, out = "-";
  std::size_t nights = 90;
  ExportRunArguments run;  ///< of the formats of one run
};

struct RmaArguments {
  std::string unit, database, drift, out, check;
  dossier::SignerName signer;            ///< with `check`, its key is a public one
  std::vector<std::string> attachments;  ///< kind=file
  std::size_t nights = 90;
};

struct NightlyArguments {
  TrendArguments trend;
  ExportArguments exported;
  RmaArguments rma;
};

struct CompareArguments {
  std::string a, b;  ///< folders of runs or of dossiers
  std::vector<std::string> keys;
  std::string policy, out;
  double alpha = 0.05, smallest_change = 1;  ///< the latter in percent
  bool json = false, no_worse = false;
};

struct RequirementsArguments {
  std::string catalogue;  ///< a file, or the name of a built-in one
  std::string directory;  ///< of a run or of a dossier
  std::vector<std::string> keys;
  std::string policy, out;  ///< out: a page beside the output
  bool list = false, json = false, csv = false, met = false;
};

struct CommonsArguments {
  std::vector<std::string> inputs;  ///< contribute: folders of dossiers; merge: files
  std::vector<std::string> keys;    ///< files of public keys of the signers
  std::string policy;               ///< contribute
  dossier::SignerName signer;
  std::string out;
  std::string file, model;  ///< show
  bool json = false;
};

struct TimestampArguments {
  std::string directory, key;         ///< dossier, and public key of whose signature it is
  std::string request;                ///< file to write
  std::string response, authorities;  ///< files: the authority's answer, and its certificates
};

struct WitnessArguments {
  std::string journal;  ///< folder of a run, or a journal; "-": standard input
  std::string out;
  std::string every;                ///< "60s": heads at intervals into the folder `out`; empty: one head
  std::string patience = "86400s";  ///< with `every`
  dossier::SignerName signer;
};

struct ProofArguments {
  TimestampArguments timestamp;
  WitnessArguments witness;
};

struct DrawArguments {
  std::string dossier, policy;
  dossier::SignerName signer;                   ///< commit
  std::size_t cells = 0;                        ///< commit
  std::vector<std::string> commitments, seeds;  ///< challenge: files, in the same order; reveal: one's own
  std::vector<std::string> others;              ///< reveal: commitments of the other parties
  std::string challenge;                        ///< plan, check: file
  std::string repeat;                           ///< check: folder of a dossier
  double alpha = 0.05, smallest_change = 5;     ///< check; the latter in percent
  std::string out;
  bool json = false;
};

struct TrustArguments {
  std::vector<std::string> keys;  ///< "vendor=lab.key.pub"
  std::vector<std::string> require;
  std::string out, name = "draft";
  std::string from, until;  ///< days; empty: a year ago, in a year
};

/// Each adds a command, or several, to `app`; a parsed one sets `action`.
void add_nightly_commands(CLI::App& app, NightlyArguments& given, std::function<int()>& action);
void add_compare_command(CLI::App& app, CompareArguments& given, std::function<int()>& action);
void add_requirements_command(CLI::App& app, RequirementsArguments& given, std::function<int()>& action);
void add_commons_command(CLI::App& app, CommonsArguments& given, std::function<int()>& action);
void add_proof_commands(CLI::App& app, ProofArguments& given, std::function<int()>& action);
void add_draw_command(CLI::App& app, DrawArguments& given, std::function<int()>& action);
/// `trust init` writes a policy that `verify --policy` takes as it is; an existing file is kept.
void add_trust_command(CLI::App& app, TrustArguments& given, std::function<int()>& action);
/// Adds --key (returned), --passphrase-file and --certificate; `whose` key is meant is in the help: "of the witness".
CLI::Option* add_signer_options(CLI::App& command, dossier::SignerName& signer, const std::string& whose = "");

/// The error of a run that a process still writes to; nothing if none does.
std::optional<InputError> check_run_is_over(const std::string& directory);

/// Makes room for the dossier of the run in `directory` in its usual place: one of the run as it was before it was
/// resumed is moved aside, which is said on stderr. Errors: the existing one is the dossier of the run as it is, or of
/// another run.
std::optional<InputError> make_room(const std::string& directory, const std::string& dossier);

/// The error of a run directory that was named in place of the dossier in it; nothing for anything else.
std::optional<InputError> check_is_dossier(const std::string& directory);

/// The warning for a dossier whose run has continued since; empty for any other.
std::string gone_on_note(const std::string& dossier);

}  // namespace assay::report_cli
