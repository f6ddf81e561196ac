// manual: a command line as a manual page.
#include "probes/core/manual.h"

#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

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

}  // namespace

std::string manual_page(const CLI::App& app) {
  std::string page = fmt::format(".TH {} 1 \"\" \"assay {}\"\n.SH NAME\n{} \\- {}\n.SH OPTIONS\n", app.get_name(),
                                 ASSAY_VERSION, app.get_name(), roff(app.get_description()));
  page += options_of(app);
  if (!app.get_subcommands(nullptr).empty()) page += ".SH COMMANDS\n";
  for (const auto* command : app.get_subcommands(nullptr))
    describe(*command, app.get_name() + " " + command->get_name(), page);
  return page + fmt::format(".SH NOTES\n{}\n", roff(app.get_footer()));
}

}  // namespace assay
