// import_command: what `assay import` was asked.
#pragma once

#include <string>
#include <vector>

namespace assay::cli {

struct ImportArguments {
  std::string tool;
  std::vector<std::string> files;
  std::string out;      ///< file; empty: stdout
  std::string command;  ///< what was run, where the output does not tell
  std::string beside;   ///< directory of a judged run; empty: none
};

/// Writes the figures of another tool's outputs as JSON Lines, or beside a run as a table on stdout, with the JSON
/// Lines where `out` says; nothing is written unless every file is understood whole. Returns the process's exit code.
int command_import(const ImportArguments& given);

}  // namespace assay::cli
