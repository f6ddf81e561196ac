// completion: walks the commands and options.
#include "orchestrator/cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

namespace assay::cli {
namespace {

/// Commands and long options of `command`, with blanks between.
std::string words_of(const CLI::App& command) {
  std::string words;
  for (const auto* inner : command.get_subcommands(nullptr)) words += " " + inner->get_name();
  for (const auto* option : command.get_options()) {
    for (const auto& name : option->get_lnames()) words += " --" + name;
  }
  return words;
}

/// `text` for roff: backslashes and hyphens escaped, no line begins with a request.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '-') out += '\\';
    out += c;
    if (c == '\n') out += "\\&";
  }
  return out;
}

std::string options_of(const CLI::App& command) {
  std::string text;
  for (const auto* option : command.get_options()) {
    std::string name = option->get_name(!option->nonpositional());
    if (const std::string type = option->get_type_name(); !type.empty()) name += " " + type;
    text += fmt::format(".TP\n.B {}\n{}\n", roff(name), roff(option->get_description()));
  }
  return text;
}

/// The command as a section, then its own commands.
void describe(const CLI::App& command, const std::string& path, std::string& page) {
  page += fmt::format(".SS {}\n{}\n{}", roff(path), roff(command.get_description()), options_of(command));
  if (const std::string footer = command.get_footer(); !footer.empty()) page += fmt::format(".PP\n{}\n", roff(footer));
  for (const auto* inner : command.get_subcommands(nullptr)) describe(*inner, path + " " + inner->get_name(), page);
}

/// What the completions of both programs use: the options that `--help` lists, and the words and files that fit.
constexpr const char* kShared = R"sh(_assay_options() {
  "$@" --help 2>/dev/null | sed -nE 's/^  (-h,)?(--[a-z-]+).*/\2/p'
}
_assay_offer() {
  local word=${COMP_WORDS[COMP_CWORD]}
  COMPREPLY=()
  case $word in
    -*) mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$1" -X '--*' -- "$word"; [ "$COMP_CWORD" -gt 1 ] && compgen -f -- "$word") ;;
  esac
}
_assay_report() {
  local words
  words=$(_assay_options "${COMP_WORDS[@]:0:$((COMP_CWORD > 1 ? 2 : 1))}")
  [ "$COMP_CWORD" -gt 1 ] || words+=" $("${COMP_WORDS[0]}" --help 2>/dev/null | sed -nE 's/^  ([a-z]+) .*/\1/p')"
  _assay_offer "$words"
}
)sh";

}  // namespace

std::string bash_completion(const CLI::App& app, const std::vector<std::string>& passed_on) {
  std::string commands = words_of(app);
  for (const auto& name : passed_on) commands += fmt::format(" {}", name);
  std::string script = fmt::format(
      "# bash completion of {0} and {0}-report, written by `{0} completion`.\n{1}_{0}() {{\n", app.get_name(), kShared);
  script += "  local words=\n  if [ \"$COMP_CWORD\" -gt 1 ]; then\n    case ${COMP_WORDS[1]} in\n";
  for (const auto* command : app.get_subcommands(nullptr))
    script += fmt::format("      {}) words='{}' ;;\n", command->get_name(), words_of(*command).substr(1));
  // The commands of the other program are asked for their options when they are completed.
  return script + fmt::format(
                      "      {2}) words=$(_{0}_options \"${{COMP_WORDS[@]:0:2}}\") ;;\n"
                      "    esac\n  else\n    words='{1}'\n  fi\n  _{0}_offer \"$words\"\n}}\n"
                      "complete -o filenames -F _{0} {0}\ncomplete -o filenames -F _{0}_report {0}-report\n",
                      app.get_name(), commands.substr(1), fmt::join(passed_on, "|"));
}

std::string manual_page(const CLI::App& app) {
  std::string page = fmt::format(".TH {} 1 \"\" \"assay {}\"\n.SH NAME\n{} \\- {}\n.SH COMMANDS\n", app.get_name(),
                                 ASSAY_VERSION, app.get_name(), roff(app.get_description()));
  for (const auto* command : app.get_subcommands(nullptr))
    describe(*command, app.get_name() + " " + command->get_name(), page);
  return page + fmt::format(".SH NOTES\n{}\n", roff(app.get_footer()));
}

}  // namespace assay::cli
