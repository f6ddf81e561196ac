// commands: the subcommands of assay-report, from values to an exit code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "orchestrator/files/exit_codes.h"
#include "probes/core/error.h"

namespace assay::report_cli {

/// Prints the error on stderr; returns kExitBadInput.
int bad_input(const InputError& error);

struct ReportArguments {
  std::string directory, self_signed;
};

struct SignArguments {
  std::string directory, key, passphrase_file, out, role = "signer", name, organisation;
  bool self_signed = false, add = false;
};

struct VerifyArguments {
  std::string directory, plan, site;
  std::string profile;  ///< name, or file whose targets must equal those that were judged
  std::vector<std::string> keys;
  bool accepted = false;  ///< the exit code also reports the verdict
  bool json = false;
};

struct KeygenArguments {
  std::string file, passphrase_file;
};

struct SimulateArguments {
  std::string profile = "host", faults, out;
  std::size_t nodes = 0, per_rack = 0, per_leaf = 0;
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
/// Makes a key pair and prints its fingerprint.
int run_keygen(const KeygenArguments& given);
/// Prints the fingerprint of a public key.
int run_fingerprint(const std::string& file);

}  // namespace assay::report_cli
