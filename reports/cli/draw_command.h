// draw_command: `assay-report draw`: cells of a dossier that two parties draw together, and their repeats.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "reports/dossier/signer.h"

namespace CLI {
class App;
}

namespace assay::report_cli {

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

/// Adds the command to `app`; a parsed one sets `action`.
void add_draw_command(CLI::App& app, DrawArguments& given, std::function<int()>& action);

}  // namespace assay::report_cli
