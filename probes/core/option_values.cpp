// option_values: the texts of every option as they were given, before a command sees them.
#include "probes/core/option_values.h"

#include <algorithm>
#include <string>

#include <CLI/CLI.hpp>

namespace assay {

void refuse_empty_values(const CLI::App& app) {
  for (const auto* option : app.get_options()) {
    const bool empty = std::ranges::any_of(option->results(), [](const std::string& value) {
      return value.find_first_not_of(" \t\r\n") == std::string::npos;
    });
    if (empty)
      throw CLI::ValidationError(option->get_name(),
                                 "has an empty value: give one, or leave the option out (is a variable unset?)");
  }
  for (const auto* command : app.get_subcommands()) refuse_empty_values(*command);
}

}  // namespace assay
