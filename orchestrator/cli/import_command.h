// import_command: `assay import`.
#pragma once

#include <string>
#include <vector>

namespace assay::cli {

struct ImportArguments {
  std::string tool;
  std::vector<std::string> files;
  std::string out;      ///< file; empty: stdout
  std::string command;  ///< the command that was run, where the output does not state it
  std::string beside;   ///< directory of a judged run; empty: none
  std::string against;  ///< name or file of a profile; empty: none
  bool json = false;    ///< with `beside`: the table as JSON
};

/// Writes the figures of another tool's outputs as JSON Lines, or with a run as a table on stdout, with the JSON Lines
/// in `out`; with a profile, how the figures stand to its limits. Nothing is written unless every file is read without
/// an error. Returns the process's exit code: against a profile kExitRejected when a required limit is missed, else
/// kExitIncomplete, because imported figures accept nothing.
int command_import(const ImportArguments& given);

}  // namespace assay::cli
