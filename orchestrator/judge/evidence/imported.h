// imported: figures of another tool, read from its own output. Shown next to ours, never counted as ours; files of them
// are found where only evidence of the run may be.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/judge/evidence/journal.h"
#include "probes/core/error.h"
#include "probes/core/record.h"

namespace assay::judge {

/// The schema name in the first line of every import. It is not a record's, so no reader of records takes one.
inline constexpr const char* kImportedSchema = "assay.imported/1";

/// Where the figures come from.
struct ImportSource {
  std::string tool;     ///< one of imports::kImportTools: "nccl-tests", "fio", …
  std::string form;     ///< "text" or "json"
  std::string version;  ///< as the output says; empty if it does not
  std::string command;  ///< by the output, or by the importing user; empty if neither does
  std::string file;     ///< name without its folder
  std::size_t bytes = 0;
  std::string sha256;  ///< of the whole file as it was given
  Values facts;        ///< other facts of the measurement in the output, in the tool's own words
};

/// One figure. It is the tool's summary of many samples, never a sample, so it has a value and a statistic.
struct Figure {
  std::string metric;
  std::string unit;       ///< a base unit
  std::string statistic;  ///< mean, min, max, p50, p99, peak, count, …
  Values at;              ///< coordinates that distinguish figures of one metric: size, operation, row, column, …
  double value = 0;       ///< finite, in `unit`
  std::string from;       ///< its place: "line 12", "results[3].in_place"
};

/// Something in the output that is no figure, and why.
struct LeftOut {
  std::string from;
  std::string what;
  std::string why;
};

/// Everything taken from one file.
struct Import {
  ImportSource source;
  std::vector<Figure> figures;
  std::vector<LeftOut> left_out;
};

/// The import as JSON Lines: source, imported…, left_out…, end. The same bytes for the same import.
std::string import_text(const Import& import);

/// Bytes from the beginning of a file in which is_imported() looks: its first line states the source and its facts.
inline constexpr std::size_t kImportBeginning = 64 << 10;

/// True when `bytes` begin with an import's first line, however it is spelt; they may be the beginning of a file only.
bool is_imported(std::string_view bytes);

/// The message for an import in place of a measurement of ours.
InputError imported_refusal(const std::string& where);

/// An error when `directory` holds an import of another tool's output that the journal does not vouch for. One that it
/// does vouch for came from a node; the reader of records refuses it, and the attempt is an error.
std::optional<InputError> find_imported_files(const std::string& directory, const Journal& journal);

/// The same of `files`, contents by path in the run directory: the refusal of the first import that the journal does
/// not vouch for. Output of a node in a record's place stays the error of its own cells and no more.
std::optional<InputError> find_imported_files(const std::map<std::string, std::string>& files, const Journal& journal);

}  // namespace assay::judge
