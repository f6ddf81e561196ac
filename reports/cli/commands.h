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
#include "probes/core/command.h"
#include "probes/core/error.h"
#include "reports/cli/opening.h"
#include "reports/dossier/head.h"
#include "reports/dossier/opened_run.h"
#include "reports/dossier/signer.h"
#include "reports/dossier/verify.h"
#include "reports/dossier/waiver.h"
#include "reports/page/content.h"

namespace assay::report_cli {

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

struct TrustArguments {
  std::vector<std::string> keys;  ///< "vendor=lab.key.pub"
  std::vector<std::string> require;
  std::string out, name = "draft";
  std::string from, until;  ///< days; empty: a year ago, in a year
};

/// Each adds a command, or several, to `app`; a parsed one sets `action`.
void add_proof_commands(Command& app, ProofArguments& given, std::function<int()>& action);
/// `trust init` writes a policy that `verify --policy` takes as it is; an existing file is kept.
void add_trust_command(Command& app, TrustArguments& given, std::function<int()>& action);
/// Makes room for the dossier of the run in `directory` in its usual place: one of the run as it was before it was
/// resumed is moved aside, which is said on stderr. Errors: the existing one is the dossier of the run as it is, or of
/// another run.
std::optional<InputError> make_room(const std::string& directory, const std::string& dossier);

/// The warning for a dossier whose run has continued since; empty for any other.
std::string gone_on_note(const std::string& dossier);

}  // namespace assay::report_cli
