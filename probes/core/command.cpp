// command: each call is passed on to CLI11, whose errors become UsageError.
#include "probes/core/command.h"

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "probes/core/error.h"
#include "probes/core/probe.h"
#include "probes/core/suggest.h"
#include "probes/core/text.h"

namespace assay {

Option* Option::required() {
  behind_->required();
  return this;
}

Option* Option::needs(const Option* other) {
  behind_->needs(other->behind_);
  return this;
}

Option* Option::excludes(const Option* other) {
  behind_->excludes(other->behind_);
  return this;
}

Option* Option::one_of(const std::vector<std::string>& words) {
  behind_->check(CLI::IsMember(words));
  return this;
}

template <class Number>
Option* Option::between(Number low, Number high) {
  behind_->check(CLI::Range(low, high));
  return this;
}
template Option* Option::between(int, int);
template Option* Option::between(unsigned, unsigned);
template Option* Option::between(std::size_t, std::size_t);
template Option* Option::between(double, double);

Option* Option::repeated() {
  behind_->expected(1)->take_all();
  return this;
}

Option* Option::once() {
  behind_->expected(1);
  return this;
}

Option* Option::separated_by(char sign) {
  behind_->delimiter(sign);
  return this;
}

Option* Option::form(const std::string& text) {
  behind_->type_name(text);
  return this;
}

Option* Option::with_default() {
  behind_->capture_default_str();
  return this;
}

Command::Command(const std::string& purpose, const std::string& name)
    : own_(std::make_unique<CLI::App>(purpose, name)), behind_(own_.get()) {}

Command::Command(CLI::App& behind) : behind_(&behind) {}

Command::~Command() = default;

Option* Command::keep(CLI::Option& option) { return options_.emplace_back(std::make_unique<Option>(option)).get(); }

Command& Command::add_command(const std::string& name, const std::string& purpose) {
  return *commands_.emplace_back(new Command(*behind_->add_subcommand(name, purpose)));
}

template <class Value>
Option* Command::add_option(const std::string& names, Value& value, const std::string& help) {
  return keep(*behind_->add_option(names, value, help));
}
template Option* Command::add_option(const std::string&, std::string&, const std::string&);
template Option* Command::add_option(const std::string&, int&, const std::string&);
template Option* Command::add_option(const std::string&, unsigned&, const std::string&);
template Option* Command::add_option(const std::string&, std::size_t&, const std::string&);
template Option* Command::add_option(const std::string&, double&, const std::string&);
template Option* Command::add_option(const std::string&, std::optional<std::string>&, const std::string&);
template Option* Command::add_option(const std::string&, std::vector<std::string>&, const std::string&);

Option* Command::add_flag(const std::string& name, bool& value, const std::string& help) {
  return keep(*behind_->add_flag(name, value, help));
}

Option* Command::add_flag(const std::string& name, std::function<void()> given, const std::string& help) {
  return keep(*behind_->add_flag_callback(name, std::move(given), help));
}

void Command::add_version(const std::string& version, const std::string& help) {
  behind_->set_version_flag("--version", version, help);
}

Option* Command::option(const std::string& name) { return keep(*behind_->get_option(name)); }

void Command::end_help(const std::string& text) { behind_->footer(text); }

void Command::when_chosen(std::function<void()> call) { behind_->callback(std::move(call)); }

void Command::need_commands(std::size_t least, std::size_t most) { behind_->require_subcommand(least, most); }

void Command::collect_unknown() {
  behind_->allow_extras();
  for (const auto& command : commands_) command->collect_unknown();
}

bool Command::parse(int argc, char** argv) {
  try {
    behind_->parse(argc, argv);
    return true;
  } catch (const CLI::Success& done) {
    behind_->exit(done);
    return false;
  } catch (const CLI::ParseError& error) {
    throw UsageError(error.what());
  }
}

void Command::refuse_empty_values() const {
  for (const auto* option : behind_->get_options()) {
    const bool empty = std::ranges::any_of(option->results(), [](const std::string& value) {
      return value.find_first_not_of(" \t\r\n") == std::string::npos;
    });
    if (empty)
      throw UsageError(option->get_name() +
                       ": has an empty value: give one, or leave the option out (is a variable unset?)");
  }
  for (const auto* command : chosen()) command->refuse_empty_values();
}

std::string Command::name() const { return behind_->get_name(); }

std::string Command::purpose() const { return behind_->get_description(); }

std::string Command::help() const { return behind_->help(); }

std::string Command::help_end() const { return behind_->get_footer(); }

std::vector<OptionText> Command::options() const {
  std::vector<OptionText> all;
  for (const auto* option : behind_->get_options()) {
    all.push_back({.name = option->get_name(),
                   .all_names = option->get_name(!option->nonpositional()),
                   .form = option->get_type_name(),
                   .meaning = option->get_description(),
                   .long_names = option->get_lnames()});
  }
  return all;
}

std::vector<const Command*> Command::commands() const {
  std::vector<const Command*> all;
  for (const auto& command : commands_) all.push_back(command.get());
  return all;
}

std::vector<const Command*> Command::chosen() const {
  std::vector<const Command*> all;
  for (const auto& command : commands_) {
    if (command->behind_->parsed()) all.push_back(command.get());
  }
  return all;
}

bool Command::chose(const std::string& command) const { return behind_->got_subcommand(command); }

std::vector<std::string> Command::unknown_words() const {
  std::vector<std::string> words = behind_->remaining(true);
  std::erase(words, "--");  // which only ends the options
  return words;
}

namespace {

/// The command that was chosen within `program`, and in it; the program if there is none.
const Command& innermost(const Command& program) {
  const auto chosen = program.chosen();
  return chosen.empty() ? program : innermost(*chosen.front());
}

/// "assay site check"
std::string path_of(const Command& program) {
  const auto chosen = program.chosen();
  return program.name() + (chosen.empty() ? "" : " " + path_of(*chosen.front()));
}

int refuse(const Command& program, const std::string& what, const std::vector<std::string>& others) {
  const Command& command = innermost(program);
  const std::string path = path_of(program);
  const auto unknown = program.unknown_words();
  if (unknown.empty()) {
    std::cerr << harmless_page(InputError{path, what, fmt::format("`{} --help` shows the options", path)}.text())
              << '\n';
    return kExitUsage;
  }
  std::vector<std::string> names = &command == &program ? others : std::vector<std::string>();
  for (const auto* inner : command.commands()) names.push_back(inner->name());
  for (const auto& option : command.options()) names.push_back(option.name);
  const std::string word = unknown.front().substr(0, unknown.front().find('='));
  std::cerr
      << harmless_page(
             InputError{path, fmt::format("unknown command or option '{}'", word), suggestion(word, names)}.text())
      << '\n';
  return kExitUsage;
}

}  // namespace

int run_command_line(Command& program, const Action& action, int argc, char** argv,
                     const std::vector<std::string>& others) {
  program.collect_unknown();
  try {
    if (!program.parse(argc, argv)) return kExitComplete;
    program.refuse_empty_values();
  } catch (const UsageError& error) {
    return refuse(program, error.what(), others);
  }
  if (!program.unknown_words().empty()) return refuse(program, "", others);
  if (action) return action();
  std::cerr << harmless_page(program.help());
  return kExitUsage;
}

}  // namespace assay
