// command_line: what assay and assay-fleet do with their words: parse, refuse what is unknown with the nearest name,
// act.
#pragma once

#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "orchestrator/cli/run_stages.h"
#include "orchestrator/files/exit_codes.h"
#include "probes/core/command.h"
#include "probes/core/suggest.h"
#include "probes/core/text.h"

namespace assay::cli {

/// Commands and options of `app`, and `others`: the candidates for an unknown word.
inline std::vector<std::string> names_in(const Command& app, const std::vector<std::string>& others) {
  std::vector<std::string> names;
  for (const auto* command : app.commands()) names.push_back(command->name());
  if (app.is_program()) names.insert(names.end(), others.begin(), others.end());
  for (const auto& option : app.options()) names.push_back(option.name);
  return names;
}

inline int refuse(const Command& app, const UsageError& error, int argc, char** argv,
                  const std::vector<std::string>& others) {
  const auto chosen = app.chosen();
  const Command& scope = chosen.empty() ? app : *chosen.front();
  const auto names = names_in(scope, others);
  if (chosen.empty() && argc > 1 && argv[1][0] != '-') {
    return report_error({"", fmt::format("'{}' is not a command", argv[1]), suggestion(argv[1], names)});
  }
  std::string hint = fmt::format("`{} --help` shows the options", chosen.empty() ? "assay" : "assay " + scope.name());
  for (int i = 1; i < argc; ++i) {
    const std::string word = std::string(argv[i]).substr(0, std::string_view(argv[i]).find('='));
    if (word.starts_with("--") && std::ranges::find(names, word) == names.end()) hint = suggestion(word, names);
  }
  return report_error({"", error.what(), hint});
}

/// Parses the words with `app`, whose commands set `action`, and runs that. `others`: commands of other programs that
/// an unknown word may mean. Returns the exit code; errors go to stderr.
inline int run_command_line(Command& app, const Action& action, int argc, char** argv,
                            const std::vector<std::string>& others) {
  try {
    if (!app.parse(argc, argv)) return files::kExitSuccess;
    app.refuse_empty_values();
    if (!action) {
      std::cerr << harmless_page(app.help());
      return files::kExitBadInput;
    }
  } catch (const UsageError& error) {
    return refuse(app, error, argc, argv, others);
  }
  return action();
}

}  // namespace assay::cli
