// manual: a command line as a manual page.
#include "probes/core/manual.h"

#include <string_view>

#include <fmt/format.h>

namespace assay {
namespace {

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

std::string options_of(const Command& command) {
  std::string text;
  for (const auto& option : command.options()) {
    text += fmt::format(".TP\n.B {}\n{}\n", roff(option.all_names + (option.form.empty() ? "" : " ") + option.form),
                        roff(option.meaning));
  }
  return text;
}

/// The command as a section, then its own commands.
void describe(const Command& command, const std::string& path, std::string& page) {
  page += fmt::format(".SS {}\n{}\n{}", roff(path), roff(command.purpose()), options_of(command));
  if (const std::string end = command.help_end(); !end.empty()) page += fmt::format(".PP\n{}\n", roff(end));
  for (const auto* inner : command.commands()) describe(*inner, path + " " + inner->name(), page);
}

}  // namespace

std::string manual_page(const Command& program) {
  const std::string name = program.name();
  std::string page = fmt::format(".TH {} 1 \"\" \"assay {}\"\n.SH NAME\n{} \\- {}\n.SH OPTIONS\n", name, ASSAY_VERSION,
                                 name, roff(program.purpose()));
  page += options_of(program);
  if (!program.commands().empty()) page += ".SH COMMANDS\n";
  for (const auto* command : program.commands()) describe(*command, name + " " + command->name(), page);
  return page + fmt::format(".SH NOTES\n{}\n", roff(program.help_end()));
}

}  // namespace assay
