// terminal: asks the kernel and the environment, and breaks lines at blanks.
#include "orchestrator/files/terminal.h"

#include <algorithm>
#include <cstdlib>

#include <sys/ioctl.h>
#include <unistd.h>

namespace assay::files {
namespace {

constexpr std::size_t kUsualWidth = 80;

bool is_set(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

Terminal terminal_of(int file) {
  if (::isatty(file) != 1) return {};
  Terminal terminal{.width = kUsualWidth, .colour = !is_set("NO_COLOR") && is_set("TERM")};
  if (terminal.colour) terminal.colour = std::string_view(std::getenv("TERM")) != "dumb";
  winsize size{};
  if (::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) terminal.width = size.ws_col;
  return terminal;
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

std::string wrapped(std::string_view text, std::size_t width, std::string_view first) {
  const std::string blanks(columns_of(first), ' ');
  std::string result;
  std::string line(first);
  bool empty = true;  // no word in the line yet
  while (!text.empty()) {
    const auto end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!empty && width > 0 && columns_of(line) + 1 + columns_of(word) > width) {
      result += line + "\n";
      line = blanks;
      empty = true;
    }
    if (!empty) line += ' ';
    line += word;
    empty = false;
  }
  return result + line + "\n";
}

}  // namespace assay::files
