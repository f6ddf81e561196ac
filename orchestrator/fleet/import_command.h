// import_command: `assay import`.
#pragma once

#include <string>
#include <vector>
#include "probes/core/command.h"

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

/// Adds `assay import`.
void add_import(Command& app, ImportArguments& given, Action& action);

}  // namespace assay::cli
