// command: each call is passed on to CLI11, whose errors become UsageError.
#include "probes/core/command.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>

#include <CLI/CLI.hpp>

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
  for (auto* command : behind_->get_subcommands(nullptr)) command->allow_extras();
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

bool Command::is_program() const { return own_ != nullptr; }

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

std::vector<std::string> Command::unknown_words() const { return behind_->remaining(true); }

}  // namespace assay
