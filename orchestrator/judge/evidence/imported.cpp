// imported: writes and reads imports as JSON Lines whose schema no reader of records accepts.
#include "orchestrator/judge/evidence/imported.h"

#include <charconv>

#include <nlohmann/json.hpp>

#include "probes/core/json_io.h"
#include "probes/core/text.h"

namespace assay::judge {
namespace {

using nlohmann::ordered_json;

/// One line; bytes that are no UTF-8 are replaced, for names of devices come as the tool found them.
std::string line(std::size_t sequence, const char* kind, ordered_json body) {
  ordered_json document;
  if (sequence == 0) document["schema"] = kImportedSchema;
  document["sequence"] = sequence;
  document[kind] = std::move(body);
  return document.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

ordered_json body_of(const ImportSource& source) {
  ordered_json body = {{"tool", source.tool}, {"form", source.form}};
  if (!source.version.empty()) body["version"] = source.version;
  if (!source.command.empty()) body["command"] = source.command;
  body["file"] = source.file;
  body["bytes"] = source.bytes;
  body["sha256"] = source.sha256;
  body["facts"] = assay::to_json(source.facts);
  return body;
}

ordered_json body_of(const Figure& figure) {
  return {{"metric", figure.metric},         {"unit", figure.unit},   {"statistic", figure.statistic},
          {"at", assay::to_json(figure.at)}, {"value", figure.value}, {"from", figure.from}};
}

}  // namespace

std::string import_text(const Import& import) {
  std::size_t sequence = 0;
  std::string text = line(sequence++, "source", body_of(import.source));
  for (const auto& figure : import.figures) text += line(sequence++, "imported", body_of(figure));
  for (const auto& one : import.left_out)
    text += line(sequence++, "left_out", {{"from", one.from}, {"what", one.what}, {"why", one.why}});
  return text +
         line(sequence, "end",
              {{"status", "complete"}, {"imported", import.figures.size()}, {"left_out", import.left_out.size()}});
}

bool is_imported(std::string_view bytes) {
  // Without white space and with escaped letters as letters, so that an import that was laid out anew, in any order of
  // its members, is recognised as well. A quotation mark in a text stays escaped.
  constexpr std::size_t kEscape = 6;
  constexpr int kHexadecimal = 16;
  bytes = bytes.substr(0, kImportBeginning);
  std::string beginning;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto escape = bytes.substr(i, kEscape);
    char plain = 0;  // of an escape in ASCII
    if (escape.starts_with("\\u00"))
      std::from_chars(escape.data() + 4, escape.data() + escape.size(), plain, kHexadecimal);
    if (plain != 0 && has_only({&plain, 1}, "./_-")) {
      beginning += plain;
      i += kEscape - 1;
    } else if (escape.starts_with("\\/")) {
      beginning += '/';
      ++i;
    } else if (!std::string_view(" \t\r\n").contains(bytes[i])) {
      beginning += bytes[i];
    }
  }
  return beginning.contains("\"schema\":\"assay.imported/");
}

InputError imported_refusal(const std::string& where) {
  return {
      where, "was imported from another tool's output",
      "an imported figure is never a measurement of ours: keep the file outside the run, and lay the two side by side"};
}

}  // namespace assay::judge
