// proof_commands: `timestamp` and `witness`: proofs of others about a run besides its signature.
#pragma once

#include <functional>
#include <string>

#include "reports/dossier/signer.h"

namespace CLI {
class App;
}

namespace assay::report_cli {

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

/// Adds both commands to `app`; a parsed one sets `action`.
void add_proof_commands(CLI::App& app, ProofArguments& given, std::function<int()>& action);

}  // namespace assay::report_cli
