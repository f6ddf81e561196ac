// elbencho: the table that elbencho writes with --csvfile, one row for each phase.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"

namespace assay::imports {
namespace {

constexpr double kMillisecond = 1e-3, kMicrosecond = 1e-6;

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

}  // namespace

void read_elbencho(std::string_view text, judge::ImportSource& source, Figures& figures) {
  ElbenchoReader reader(source, figures);
  for (const auto& line : lines_of(text, &figures)) {
    if (!line.text.empty()) reader.line(line);
  }
}

}  // namespace assay::imports
