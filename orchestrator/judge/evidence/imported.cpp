// imported: writes and reads imports as JSON Lines whose schema no reader of records accepts, recognises them by the
// first line of a file, and refuses those that no journal line names.
#include "orchestrator/judge/evidence/imported.h"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "orchestrator/judge/evidence/run_state.h"
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

namespace fs = std::filesystem;

bool begins_imported(const fs::path& path) {
  std::string beginning(kImportBeginning, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  return is_imported(std::string_view(beginning).substr(0, static_cast<std::size_t>(file.gcount())));
}

std::set<std::string> vouched_for(const Journal& journal) {
  std::set<std::string> paths;
  journal.each_file([&](const EvidenceFile& file) { paths.insert(file.path); });
  return paths;
}

/// "dossier", and "dossier-1" for one that was moved aside.
bool is_dossier(const std::string& name) {
  return name == kDossierFolder || name.starts_with(std::string(kDossierFolder) + "-");
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

std::optional<InputError> find_imported_files(const std::string& directory, const Journal& journal) {
  const auto known = vouched_for(journal);
  std::error_code failed;
  fs::recursive_directory_iterator entry(directory, failed);
  for (; !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
    const std::string path = fs::path(entry->path()).lexically_relative(directory).string();
    if (entry.depth() == 0 && is_dossier(path)) entry.disable_recursion_pending();  // `verify` looks into that
    std::error_code unknown;  // a file that vanishes meanwhile is absent
    if (!known.contains(path) && entry->symlink_status(unknown).type() == fs::file_type::regular &&
        begins_imported(entry->path())) {
      return imported_refusal(directory + "/" + path);
    }
  }
  if (failed)
    return InputError{directory, fmt::format("cannot be looked through: {}", failed.message()),
                      "check its permissions"};
  return std::nullopt;
}

std::optional<InputError> find_imported_files(const std::map<std::string, std::string>& files, const Journal& journal) {
  const auto known = vouched_for(journal);
  for (const auto& [path, bytes] : files) {
    if (!known.contains(path) && is_imported(bytes)) return imported_refusal(path);
  }
  return std::nullopt;
}

}  // namespace assay::judge
