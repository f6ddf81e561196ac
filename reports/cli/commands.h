// commands: the subcommands of assay-report, from values to an exit code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace assay::report_cli {

/// Exit codes of assay-report; rejected and incomplete verdicts that verify are a success of verification.
inline constexpr int kExitVerified = 0, kExitBadInput = 2, kExitRefused = 4;

/// What `report` was asked.
struct ReportArguments {
  std::string directory, self_signed;
};
/// What `sign` was asked.
struct SignArguments {
  std::string directory, key, passphrase_file, out, role = "signer", name, organisation;
  bool self_signed = false, add = false;
};
/// What `verify` was asked.
struct VerifyArguments {
  std::string directory, plan, site;
  std::string profile;  ///< name, or path of a file whose targets must be those that were judged
  std::vector<std::string> keys;
  bool accepted = false;  ///< the exit code says the verdict, too
  bool json = false;
};
/// What `keygen` was asked.
struct KeygenArguments {
  std::string file, passphrase_file;
};

/// What `simulate` was asked.
struct SimulateArguments {
  std::string profile = "host", faults, out;
  std::size_t nodes = 0, per_rack = 0, per_leaf = 0;
  std::uint64_t seed = 1;
  bool json = false;
};

/// Plans, runs in virtual time, judges, localises and reports a fleet that does not exist; exit code 0 when that was
/// done.
int run_simulate(const SimulateArguments& given);
/// Writes DIR/report.html. Each prints its result on stdout, errors on stderr, and returns the exit code.
int run_report(const ReportArguments& given);
/// Makes a dossier, or adds a signature to one.
int run_sign(const SignArguments& given);
/// Verifies a dossier and prints what it says. With `accepted`, a dossier that holds and whose verdict is not accepted
/// gives the exit code of that verdict: 1 rejected, 3 incomplete.
int run_verify(const VerifyArguments& given);
/// Makes a key pair and prints its fingerprint.
int run_keygen(const KeygenArguments& given);
/// Prints the fingerprint of a public key.
int run_fingerprint(const std::string& file);

}  // namespace assay::report_cli
