// options: the forms in which the commands of our programs take options.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>

namespace assay {

/// What the chosen command does; set while the command line is parsed.
using Action = std::function<int()>;

/// Adds an option, or without a dash in `name` an argument, to `command`; its help shows the value as `form`: "FILE".
template <class Value>
CLI::Option* add_option(CLI::App& command, const std::string& name, Value& value, const char* form,
                        const std::string& help) {
  return command.add_option(name, value, help)->type_name(form);
}

/// The same of an option that may be repeated, and has one value each time.
template <class Value>
CLI::Option* add_repeated(CLI::App& command, const std::string& name, Value& value, const char* form,
                          const std::string& help) {
  return add_option(command, name, value, form, help)->expected(1)->take_all();
}

/// Ends the help of `command` with `footer`, and has `action` set to `run` when it is the chosen one.
inline void end_command(CLI::App& command, const std::string& footer, Action& action, Action run) {
  command.footer(footer);
  command.callback([&action, run = std::move(run)] { action = run; });
}

}  // namespace assay
