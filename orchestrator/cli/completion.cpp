// completion: walks the commands and options.
#include "orchestrator/cli/completion.h"
#include "probes/core/command.h"

#include <fmt/ranges.h>

namespace assay::cli {
namespace {

/// Commands and long options of `command`, with blanks between.
std::string words_of(const Command& command) {
  std::string words;
  for (const auto* inner : command.commands()) words += " " + inner->name();
  for (const auto& option : command.options()) {
    for (const auto& name : option.long_names) words += " --" + name;
  }
  return words;
}

/// Inputs of the completions of both programs: the options that `--help` lists, and the words and files that fit.
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

/// `text` within single quotes of zsh, or of fish, where a backslash counts in them too.
std::string quoted(std::string_view text, bool fish) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += fish ? "\\'" : "'\\''";
    } else {
      if (fish && c == '\\') out += c;
      out += c == '\n' ? ' ' : c;
    }
  }
  return out + "'";
}

/// A word that can be completed and its purpose.
struct Choice {
  std::string word, meaning;
};

std::vector<Choice> choices_of(const Command& command) {
  std::vector<Choice> all;
  for (const auto* inner : command.commands()) all.push_back({inner->name(), inner->purpose()});
  for (const auto& option : command.options()) {
    for (const auto& name : option.long_names) all.push_back({"--" + name, option.meaning});
  }
  return all;
}

/// The words of `app` itself, those of the other programs among them.
std::vector<Choice> first_choices(const Command& app, const std::vector<std::string>& passed_on) {
  auto all = choices_of(app);
  for (const auto& name : passed_on) all.push_back({name, app.name() + " " + name + " --help"});
  return all;
}

/// ('name:meaning' …), for zsh's _describe.
std::string zsh_array(const std::vector<Choice>& choices) {
  std::string text = "(";
  for (const auto& one : choices) text += " " + quoted(one.word + ":" + one.meaning, false);
  return text + " )";
}

/// Before the words of `assay`: how the options and commands of a program are read from its help.
constexpr const char* kZshHead = R"zsh(#compdef assay assay-report
# zsh completion of assay and assay-report, written by `assay completion zsh`.
_assay_asked() {
  reply=(${(f)"$("$@" --help 2>/dev/null | sed -nE 's/^  (-h,)?(--[a-z-]+).*/\2/p')"})
  [[ $# -gt 1 ]] || reply+=(${(f)"$("$@" --help 2>/dev/null | sed -nE 's/^  ([a-z]+) .*/\1/p')"})
}
_assay() {
  local -a choices reply
  local program=${words[1]} command=
  (( CURRENT > 2 )) && command=${words[2]}
  if [[ ${program:t} == assay-report ]]; then
    _assay_asked $program $command
    choices=($reply)
  else
    case $command in
)zsh";

std::string bash_completion(const Command& app, const std::vector<std::string>& passed_on) {
  std::string commands = words_of(app);
  for (const auto& name : passed_on) commands += fmt::format(" {}", name);
  std::string script = fmt::format(
      "# bash completion of {0} and {0}-report, written by `{0} completion`.\n{1}_{0}() {{\n", app.name(), kShared);
  script += "  local words=\n  if [ \"$COMP_CWORD\" -gt 1 ]; then\n    case ${COMP_WORDS[1]} in\n";
  for (const auto* command : app.commands())
    script += fmt::format("      {}) words='{}' ;;\n", command->name(), words_of(*command).substr(1));
  // The commands of other programs are asked for their options when they are completed.
  return script + fmt::format(
                      "      {2}) words=$(_{0}_options \"${{COMP_WORDS[@]:0:2}}\") ;;\n"
                      "    esac\n  else\n    words='{1}'\n  fi\n  _{0}_offer \"$words\"\n}}\n"
                      "complete -o filenames -F _{0} {0}\ncomplete -o filenames -F _{0}_report {0}-report\n",
                      app.name(), commands.substr(1), fmt::join(passed_on, "|"));
}

std::string zsh_completion(const Command& app, const std::vector<std::string>& passed_on) {
  std::string script = kZshHead;
  script += fmt::format("      '') choices={} ;;\n", zsh_array(first_choices(app, passed_on)));
  for (const auto* command : app.commands())
    script += fmt::format("      {}) choices={} ;;\n", command->name(), zsh_array(choices_of(*command)));
  return script +
         fmt::format(
             "      {}) _assay_asked $program $command; choices=($reply) ;;\n    esac\n  fi\n"
             "  _describe -V word choices\n  if (( CURRENT > 2 )); then _files; fi\n}}\n"
             "if [[ ${{funcstack[1]}} == _assay ]]; then _assay \"$@\"; else compdef _assay assay assay-report; fi\n",
             fmt::join(passed_on, "|"));
}

/// The help of a program as words for fish.
constexpr const char* kFishHead =
    R"fish(# fish completion of assay and assay-report, written by `assay completion fish`.
function __assay_options
    $argv --help 2>/dev/null | string replace -rf '^  (?:-h,)?(--[a-z-]+).*' '$1'
end
function __assay_commands
    $argv --help 2>/dev/null | string replace -rf '^  ([a-z]+) .*' '$1'
end
function __assay_is
    set -l words (commandline -opc)
    test (count $words) -gt 1; and contains -- $words[2] $argv
end
function __assay_first
    test (count (commandline -opc)) -eq 1
end
complete -c assay -n __assay_first -f
complete -c assay-report -n __assay_first -f -a '(__assay_commands assay-report)'
complete -c assay-report -n __assay_first -f -a '(__assay_options assay-report)'
complete -c assay-report -n 'not __assay_first' -a '(__assay_options assay-report (commandline -opc)[2])'
)fish";

std::string fish_completion(const Command& app, const std::vector<std::string>& passed_on) {
  std::string script = kFishHead;
  const auto add = [&](const std::string& condition, const std::vector<Choice>& choices) {
    for (const auto& one : choices) {
      const std::string what = one.word.starts_with("--") ? "-l " + one.word.substr(2) : "-a " + one.word;
      script +=
          fmt::format("complete -c {} -n '{}' {} -d {}\n", app.name(), condition, what, quoted(one.meaning, true));
    }
  };
  add("__assay_first", first_choices(app, passed_on));
  for (const auto* command : app.commands()) add("__assay_is " + command->name(), choices_of(*command));
  return script + fmt::format("complete -c {0} -n '__assay_is {1}' -a '(__assay_options {0} (commandline -opc)[2])'\n",
                              app.name(), fmt::join(passed_on, " "));
}

}  // namespace

std::string completion_script(const std::string& shell, const Command& app, const std::vector<std::string>& passed_on) {
  if (shell == "zsh") return zsh_completion(app, passed_on);
  return shell == "fish" ? fish_completion(app, passed_on) : bash_completion(app, passed_on);
}

}  // namespace assay::cli
