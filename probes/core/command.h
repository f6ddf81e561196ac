// command: commands and options of a program. They are passed on to CLI11, which only command.cpp and probe_main.cpp
// compile.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace assay {

/// The action of the chosen command; set while the words are parsed.
using Action = std::function<int()>;

/// Words that a command does not take; what() says which and why.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An option, a flag or an argument of a command. Its rules are applied when the words are parsed, and its help names
/// them.
class Option {
 public:
  explicit Option(CLI::Option& behind) : behind_(&behind) {}

  Option* required();
  Option* needs(const Option* other);
  Option* excludes(const Option* other);
  Option* one_of(const std::vector<std::string>& words);
  /// Of int, unsigned, std::size_t or double: both ends are allowed.
  template <class Number>
  Option* between(Number low, Number high);
  /// One value each time that it is given, and all are kept.
  Option* repeated();
  /// One value at most.
  Option* once();
  /// A value is a list with `sign` between its parts.
  Option* separated_by(char sign);
  /// The form of the value in the help: "FILE".
  Option* form(const std::string& text);
  /// The help names the value that the variable has now.
  Option* with_default();

 private:
  CLI::Option* behind_;
};

/// An option as the help shows it.
struct OptionText {
  std::string name, all_names, form, meaning;
  std::vector<std::string> long_names;  ///< without dashes
};

/// A program, or a command of one.
class Command {
 public:
  Command(const std::string& purpose, const std::string& name);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  Command& add_command(const std::string& name, const std::string& purpose);
  /// The option `names` ("--out,-o"), or without a dash an argument, whose value goes to `value`: a text, a number, one
  /// of them that may be absent, or a list. command.cpp lists the types.
  template <class Value>
  Option* add_option(const std::string& names, Value& value, const std::string& help);
  Option* add_flag(const std::string& name, bool& value, const std::string& help);
  /// `given` is called when the flag is there.
  Option* add_flag(const std::string& name, std::function<void()> given, const std::string& help);
  void add_version(const std::string& version,
                   const std::string& help = "Display program version information and exit");
  /// The option or argument of this name, which exists.
  Option* option(const std::string& name);
  /// The text below the help.
  void end_help(const std::string& text);
  /// Called when this is the command that was chosen.
  void when_chosen(std::function<void()> call);
  void need_commands(std::size_t least, std::size_t most);

  /// Takes the words of main. False where nothing is left to do: the help or the version was printed on stdout. Throws
  /// UsageError.
  [[nodiscard]] bool parse(int argc, char** argv);
  /// Unknown words are collected for unknown_words() in place of an error, here and in every command so far.
  void collect_unknown();
  std::vector<std::string> unknown_words() const;
  /// Throws UsageError for the first option or argument, here or in the chosen commands, with an empty value or nothing
  /// but white space: a shell writes `--challenge "$C"` with C unset in this way, and the program would take a demand
  /// for one that was never made.
  void refuse_empty_values() const;

  std::string name() const;
  std::string purpose() const;
  std::string help() const;
  std::string help_end() const;
  std::vector<OptionText> options() const;
  std::vector<const Command*> commands() const;
  /// The commands that were chosen.
  std::vector<const Command*> chosen() const;
  bool chose(const std::string& command) const;

 private:
  explicit Command(CLI::App& behind);
  Option* keep(CLI::Option& option);

  std::unique_ptr<CLI::App> own_;  ///< of a program; commands are owned by it
  CLI::App* behind_;
  std::vector<std::unique_ptr<Command>> commands_;
  std::vector<std::unique_ptr<Option>> options_;
};

/// Adds an option, or without a dash in `name` an argument, to `command`; its help shows the value as `form`: "FILE".
template <class Value>
Option* add_option(Command& command, const std::string& name, Value& value, const char* form, const std::string& help) {
  return command.add_option(name, value, help)->form(form);
}

/// The same of an option that may be repeated, and has one value each time.
template <class Value>
Option* add_repeated(Command& command, const std::string& name, Value& value, const char* form,
                     const std::string& help) {
  return add_option(command, name, value, form, help)->repeated();
}

/// Ends the help of `command` with `text`, and has `action` set to `run` when it is the chosen one.
inline void end_command(Command& command, const std::string& text, Action& action, Action run) {
  command.end_help(text);
  command.when_chosen([&action, run = std::move(run)] { action = run; });
}

/// Takes the words of main with `program`, whose commands set `action`, and runs that. An unknown word is refused with
/// the nearest name of the chosen command, or for a program of `others`, too. Returns the exit code, 2 for bad usage.
int run_command_line(Command& program, const Action& action, int argc, char** argv,
                     const std::vector<std::string>& others = {});

}  // namespace assay
