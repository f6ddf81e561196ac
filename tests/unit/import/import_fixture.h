// import_fixture: recorded outputs of other tools, and a figure of an import by its coordinates.
#pragma once

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "orchestrator/import/import.h"
#include "tests/unit/paths.h"

namespace assay::fixture {

/// The recorded output `name`.
inline std::string recorded(const std::string& name) {
  auto bytes = read_file(golden_file("imports/" + name));
  if (!bytes) throw std::runtime_error(bytes.error().text());
  return *bytes;
}

/// `text` with the one place where `from` stands replaced.
inline std::string changed(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("the recorded output has no " + from);
  return text.replace(at, from.size(), to);
}

inline std::expected<judge::Import, InputError> imported(const std::string& tool, const std::string& text,
                                                         const std::string& command = "") {
  return imports::import_output({.tool = tool, .bytes = text, .path = "given.txt", .command = command});
}

/// The import of the recorded output `name`; throws the refusal when there is one.
inline judge::Import import_of(const std::string& tool, const std::string& name, const std::string& command = "") {
  auto import = imported(tool, recorded(name), command);
  if (!import) throw std::runtime_error(import.error().text());
  return *import;
}

/// The refusal's text; "imported" when there is none.
inline std::string refusal(const std::string& tool, const std::string& text, const std::string& command = "") {
  const auto import = imported(tool, text, command);
  return import ? "imported" : import.error().text();
}

/// The figure that has this metric and statistic and at least these coordinates; nothing when there is none or more
/// than one.
inline std::optional<double> value(const judge::Import& import, const std::string& metric, const std::string& statistic,
                                   const Values& at) {
  std::optional<double> found;
  for (const auto& figure : import.figures) {
    const bool matches =
        figure.metric == metric && figure.statistic == statistic && std::ranges::all_of(at, [&](const auto& one) {
          const auto own = figure.at.find(one.first);
          return own != figure.at.end() && own->second == one.second;
        });
    if (!matches) continue;
    if (found) return std::nullopt;
    found = figure.value;
  }
  return found;
}

/// Why what stands at `from` was left out: the first reason, empty when nothing there was.
inline std::string why(const judge::Import& import, const std::string& from) {
  const auto found = std::ranges::find(import.left_out, from, &judge::LeftOut::from);
  return found == import.left_out.end() ? "" : found->why;
}

inline Value text(const std::string& word) { return word; }
inline Value whole(std::int64_t number) { return number; }

}  // namespace assay::fixture
