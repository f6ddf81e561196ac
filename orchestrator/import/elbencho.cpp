// elbencho: the table that elbencho writes with --csvfile, one row for each phase, and the output of elbencho 3 with
// --jsonfile, one object a line for each phase, which has every number as a text.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"
#include "probes/core/json_io.h"

namespace assay::imports {
namespace {


struct ElbenchoColumn {
  std::string_view column;
  FigureName name;
};

/// "[last]" is when every thread was done and is the figure; "[first]", when the first one was, is the stonewall.
const ElbenchoColumn kElbenchoFigures[] = {
    {"MiB/s [last]", {"bandwidth", "B/s", "mean", kMebibyte}},
    {"MiB/s [first]", {"bandwidth_stonewall", "B/s", "mean", kMebibyte}},
    {"IOPS [last]", {"iops", "1/s", "mean"}},
    {"IOPS [first]", {"iops_stonewall", "1/s", "mean"}},
    {"entries/s [last]", {"entry_rate", "1/s", "mean"}},
    {"entries/s [first]", {"entry_rate_stonewall", "1/s", "mean"}},
    {"time ms [last]", {"duration", "s", "max", kMillisecond}},
    {"time ms [first]", {"duration", "s", "min", kMillisecond}},
    {"IO lat us [min]", {"latency", "s", "min", kMicrosecond}},
    {"IO lat us [avg]", {"latency", "s", "mean", kMicrosecond}},
    {"IO lat us [max]", {"latency", "s", "max", kMicrosecond}},
    {"Ent lat us [min]", {"entry_latency", "s", "min", kMicrosecond}},
    {"Ent lat us [avg]", {"entry_latency", "s", "mean", kMicrosecond}},
    {"Ent lat us [max]", {"entry_latency", "s", "max", kMicrosecond}},
};

/// Columns of settings, and the coordinate that each becomes.
constexpr std::pair<std::string_view, const char*> kElbenchoSettings[] = {
    {"operation", "operation"}, {"path type", "path_type"}, {"hosts", "hosts"},
    {"threads", "threads"},     {"file size", "file_size"}, {"block size", "block_size"},
    {"direct IO", "direct"},    {"random", "random"},       {"IO depth", "io_depth"},
    {"label", "label"}};

class ElbenchoReader {
 public:
  ElbenchoReader(judge::ImportSource& source, Figures& figures) : source_(source), figures_(figures) {}

  void line(const TextLine& line) {
    const auto cells = parts_of(line.text, ',');
    if (std::ranges::find(cells, "operation") != cells.end()) return heading(cells, line);
    if (columns_.empty())
      throw ImportRefusal{line.from(), "comes before the heading", "import the file of --csvfile as it was written"};
    if (cells.size() != columns_.size()) {
      throw ImportRefusal{line.from(), fmt::format("{} columns, the heading has {}", cells.size(), columns_.size()),
                          "a label with a comma, or rows of another version: import one version's rows per file"};
    }
    row(cells, line);
  }

 private:
  void heading(const std::vector<std::string_view>& cells, const TextLine& line) {
    columns_.clear();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!columns_.emplace(cells[i], i).second)
        throw ImportRefusal{line.from(), fmt::format("the column '{}' appears twice", cells[i]), ""};
    }
    if (!columns_.contains("MiB/s [last]"))
      throw ImportRefusal{line.from(), "has no column 'MiB/s [last]'", "is this the --csvfile of elbencho?"};
  }

  [[nodiscard]] std::string_view cell(const std::vector<std::string_view>& cells, std::string_view column) const {
    const auto found = columns_.find(column);
    return found == columns_.end() ? std::string_view() : cells[found->second];
  }

  void row(const std::vector<std::string_view>& cells, const TextLine& line) {
    ++rows_;
    Values at{{"row", rows_}};
    for (const auto& [column, name] : kElbenchoSettings) {
      const std::string_view text = cell(cells, column);
      if (text.empty()) continue;
      const auto number = whole_from(text);
      at[name] = number ? Value(*number) : Value(std::string(text));
    }
    if (const auto version = cell(cells, "version"); !version.empty()) source_.version = version;
    if (const auto command = cell(cells, "command"); !command.empty()) source_.command = command;
    if (cell(cells, "direct IO") == "0")
      figures_.leave_out(line.from(), "direct I/O", "it was off: the page cache may have been measured");
    // A blank cell is of a kind of work that the phase does not do.
    for (const auto& one : kElbenchoFigures) {
      const std::string_view text = cell(cells, one.column);
      if (!text.empty()) figures_.word(one.name, at, text, fmt::format("{}, {}", line.from(), one.column));
    }
    for (const auto& [column, place] : columns_) {
      if (column.starts_with("rwmix read ") && !cells[place].empty())
        figures_.leave_out(line.from(), std::string(column), "the reads of a mixed phase are not imported");
    }
  }

  judge::ImportSource& source_;
  Figures& figures_;
  std::map<std::string_view, std::size_t> columns_;  ///< of the heading that was read last
  std::int64_t rows_ = 0;
};

using nlohmann::json;

constexpr double kJsonMillisecond = 1e-3, kJsonMicrosecond = 1e-6;
constexpr const char* kWholeFile = "import the file of --jsonfile as it was written";

struct ElbenchoField {
  const char* part;  ///< "first_done", or "last_done" and below
  const char* field;
  FigureName name;
};

/// "last_done" is when every thread was done and is the figure; "first_done", when the first one was, is the stonewall.
const ElbenchoField kElbenchoFields[] = {
    {"/last_done", "bytes/s", {"bandwidth", "B/s", "mean"}},
    {"/first_done", "bytes/s", {"bandwidth_stonewall", "B/s", "mean"}},
    {"/last_done", "iops", {"iops", "1/s", "mean"}},
    {"/first_done", "iops", {"iops_stonewall", "1/s", "mean"}},
    {"/last_done", "entries/s", {"entry_rate", "1/s", "mean"}},
    {"/first_done", "entries/s", {"entry_rate_stonewall", "1/s", "mean"}},
    {"/last_done", "elapsed_time_ms", {"duration", "s", "max", kJsonMillisecond}},
    {"/first_done", "elapsed_time_ms", {"duration", "s", "min", kJsonMillisecond}},
    {"/last_done/latency/IO", "min_us", {"latency", "s", "min", kJsonMicrosecond}},
    {"/last_done/latency/IO", "avg_us", {"latency", "s", "mean", kJsonMicrosecond}},
    {"/last_done/latency/IO", "max_us", {"latency", "s", "max", kJsonMicrosecond}},
    {"/last_done/latency/entries", "min_us", {"entry_latency", "s", "min", kJsonMicrosecond}},
    {"/last_done/latency/entries", "avg_us", {"entry_latency", "s", "mean", kJsonMicrosecond}},
    {"/last_done/latency/entries", "max_us", {"entry_latency", "s", "max", kJsonMicrosecond}},
};

/// Members of "config", and the coordinate that each becomes: those of the table that --csvfile writes.
constexpr std::pair<const char*, const char*> kElbenchoConfig[] = {
    {"path_type", "path_type"},   {"hosts", "hosts"},      {"threads", "threads"},       {"file_size", "file_size"},
    {"block_size", "block_size"}, {"direct_io", "direct"}, {"random_offsets", "random"}, {"io_depth", "io_depth"}};

/// The object at `pointer` of `phase`; nullptr if there is none. "/" in names of members is no separator here.
const json* elbencho_part(const json& phase, std::string_view pointer) {
  const json* part = &phase;
  for (std::size_t begin = 1; begin <= pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', begin), pointer.size());
    const auto found = part->find(std::string(pointer.substr(begin, end - begin)));
    if (found == part->end() || !found->is_object()) return nullptr;
    part = &*found;
    begin = end + 1;
  }
  return part;
}

/// The text at `name`; empty if there is none. Refused: other types, because the tool writes nothing else.
std::string elbencho_text(const json& object, const char* name, const std::string& from) {
  const auto found = object.find(name);
  if (found == object.end()) return "";
  if (!found->is_string()) throw ImportRefusal{from + "." + name, "must be a text, as elbencho writes it", kWholeFile};
  return found->get<std::string>();
}

/// A word of a setting: a number if it is one, a flag as the table of --csvfile has it.
Value elbencho_setting(const std::string& text) {
  if (text == "true" || text == "false") return std::int64_t{text == "true"};
  const auto number = whole_from(text);
  return number ? Value(*number) : Value(text);
}

void elbencho_phase(const json& phase, const std::string& from, std::int64_t row, judge::ImportSource& source,
                    Figures& figures) {
  const json* config = elbencho_part(phase, "/config");
  if (config == nullptr) throw ImportRefusal{from + ": config", "is missing", kWholeFile};
  const std::string operation = elbencho_text(phase, "phase_type", from);
  if (operation.empty()) throw ImportRefusal{from + ": phase_type", "is missing", kWholeFile};
  if (elbencho_part(phase, "/last_done") == nullptr)
    throw ImportRefusal{from + ": last_done", "is missing", kWholeFile};
  Values at{{"row", row}, {"operation", operation}};
  if (const auto label = elbencho_text(phase, "label", from); !label.empty()) at["label"] = label;
  for (const auto& [member, name] : kElbenchoConfig) {
    if (const auto text = elbencho_text(*config, member, from + ": config"); !text.empty())
      at[name] = elbencho_setting(text);
  }
  if (const auto version = elbencho_text(*config, "version", from); !version.empty()) source.version = version;
  if (const auto command = elbencho_text(*config, "command", from); !command.empty())
    source.command = std::string(trimmed(command));
  if (const auto direct = at.find("direct"); direct != at.end() && direct->second == Value(std::int64_t{0}))
    figures.leave_out(from, "direct I/O", "it was off: the page cache may have been measured");
  for (const auto& one : kElbenchoFields) {
    const json* part = elbencho_part(phase, one.part);
    if (part == nullptr) continue;  // of a kind of work that the phase does not do, or was not asked to show
    const std::string place = fmt::format("{}{}.{}", from, one.part, one.field);
    if (const auto text = elbencho_text(*part, one.field, from); !text.empty()) figures.word(one.name, at, text, place);
  }
  for (const char* part : {"/first_done", "/last_done", "/last_done/latency/IO", "/last_done/latency/entries"}) {
    const json* found = elbencho_part(phase, part);
    if (found != nullptr && found->contains("rwmix_read"))
      figures.leave_out(from + part, "rwmix_read", "the reads of a mixed phase are not imported");
  }
}

}  // namespace

void read_elbencho(std::string_view text, judge::ImportSource& source, Figures& figures) {
  ElbenchoReader reader(source, figures);
  for (const auto& line : lines_of(text, &figures)) {
    if (!line.text.empty()) reader.line(line);
  }
}

void read_elbencho_json(std::string_view text, judge::ImportSource& source, Figures& figures) {
  std::int64_t row = 0;
  for (const auto& line : lines_of(text)) {
    if (line.text.empty()) continue;
    const auto phase = parse_json(line.text, line.from());
    if (!phase) throw ImportRefusal{phase.error().where, phase.error().what, kWholeFile};
    if (!phase->is_object()) throw ImportRefusal{line.from(), "must be an object", kWholeFile};
    elbencho_phase(*phase, line.from(), ++row, source, figures);
  }
}

}  // namespace assay::imports
