// summary: the first lines of a verification, enough for a decision.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "reports/dossier/expectations.h"

namespace assay::report_cli {

/// Adds `tpm` to the document of a node, if it was asked.
void add_tpm(const judge::TpmAnswer& answer, nlohmann::ordered_json& node);

/// Adds `gpu_attestation` to the document of a node, if its GPUs were asked.
void add_gpus(const judge::GpuAnswers& answers, nlohmann::ordered_json& node);

/// "; TPM answered with the key 1f…, bound to its endorsement key; 8 GPUs answered"; empty for a node of which neither
/// was asked.
std::string hardware_words(const nlohmann::ordered_json& node);

/// Properties of a dossier that the receiver demanded, and those stated only by its signer. The words are those of
/// --json.
struct Pins {
  std::vector<std::string> pinned, open;
};

/// Of `expected`; `witnessed`: a witness has seen this run. Of the plan everything is pinned that it holds.
Pins pins_of(const dossier::Expectations& expected, bool witnessed);

/// Facts of a verified dossier, or of a joint one.
struct Summary {
  std::string verdict;               ///< the first line: "verified: accepted"
  std::vector<std::string> signers;  ///< each in one phrase
  Pins pins;
  std::size_t nodes = 0;
  std::string ended;                    ///< UTC of the last line of the run, or of the earliest of several
  std::vector<std::string> deviations;  ///< all of them
  std::string profile;                  ///< "host revision 3"
  bool built_in = false;
  std::vector<std::string> unknown;  ///< probes that this version does not know
};

/// Prints five lines: verdict; signers and their roles; pinned and open properties; deviations; profile and probes,
/// known or not. Texts from outside are made harmless here.
void print_summary(const Summary& summary);

}  // namespace assay::report_cli
