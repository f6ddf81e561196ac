// doca_bench: the table that NVIDIA's doca_bench writes with --csv-output-file, one row for each run of a sweep. A rate
// is a number with its unit. Read are the columns whose meaning is published (github.com/digiou/
// dpu-coprocessing-artifacts f7222f6, scripts/reproducibility.py); another setting that differs between rows is named,
// and the figures are then comparable with none.
#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "orchestrator/import/import.h"
#include "orchestrator/import/reading.h"
#include "probes/core/text.h"

namespace assay::imports {
namespace {

constexpr const char* kDocaHint = "import the file of --csv-output-file as doca_bench wrote it";
constexpr const char *kBytes = "stats.output.throughput.bytes", *kRate = "stats.output.throughput.rate";

/// Settings that are coordinates.
constexpr std::pair<std::string_view, const char*> kDocaSettings[] = {{"cfg.data_provider.output_buffer_size", "size"},
                                                                      {"cfg.data_provider_job_count", "jobs"},
                                                                      {"cfg.core_count", "cores"}};

/// Units of a rate, in B/s, or in 1/s.
struct RateUnit {
  std::string_view word;
  double factor;
};
constexpr double kBit = 1.0 / 8, kKibibyte = 1 << 10, kTebibyte = kGibibyte * kKibibyte;
constexpr RateUnit kByteRates[] = {{"B/s", 1},
                                   {"KiB/s", kKibibyte},
                                   {"MiB/s", kMebibyte},
                                   {"GiB/s", kGibibyte},
                                   {"TiB/s", kTebibyte},
                                   {"kb/s", 1e3 * kBit},
                                   {"Mb/s", 1e6 * kBit},
                                   {"Gb/s", 1e9 * kBit},
                                   {"Tb/s", 1e12 * kBit},
                                   {"Kib/s", kKibibyte* kBit},
                                   {"Mib/s", kMebibyte* kBit},
                                   {"Gib/s", kGibibyte* kBit},
                                   {"Tib/s", kTebibyte* kBit}};
constexpr RateUnit kOperationRates[] = {{"Operations/s", 1}};

class DocaReader {
 public:
  explicit DocaReader(Figures& figures) : figures_(figures) {}

  void line(const TextLine& line) {
    auto cells = parts_of(line.text, ',');
    for (auto& cell : cells)
      if (cell.size() > 1 && cell.starts_with('"') && cell.ends_with('"'))
        cell = trimmed(cell.substr(1, cell.size() - 2));
    if (std::ranges::find(cells, kBytes) != cells.end()) return heading(cells, line);
    if (heads_.empty()) throw ImportRefusal{line.from(), fmt::format("has no column '{}'", kBytes), kDocaHint};
    if (cells.size() != heads_.size())
      throw ImportRefusal{line.from(), fmt::format("{} columns, the heading has {}", cells.size(), heads_.size()),
                          "a truncated row, or rows of another version: import one version's rows per file"};
    rows_.emplace_back(line.from(), cells);
  }

  /// Takes the figures, once it is known which settings differ between the rows.
  void end() {
    std::string differ;
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      const bool known = std::ranges::find(kDocaSettings, heads_[i], [](const auto& one) { return one.first; }) !=
                             std::end(kDocaSettings) ||
                         heads_[i] == kBytes || heads_[i] == kRate;
      if (known) continue;
      ++unread_;
      const auto same = [&](const auto& row) { return row.second[i] == rows_.front().second[i]; };
      if (heads_[i].starts_with("cfg.") && !std::ranges::all_of(rows_, same))
        differ += fmt::format("{}{}", differ.empty() ? "" : ", ", harmless(heads_[i]));
    }
    if (unread_ > 0)
      figures_.leave_out("line 1", fmt::format("{} other columns", unread_), "their meaning is not published");
    for (std::size_t i = 0; i < rows_.size(); ++i) row(static_cast<std::int64_t>(i) + 1, differ);
  }

 private:
  void heading(const std::vector<std::string_view>& cells, const TextLine& line) {
    if (!heads_.empty() && cells != heads_)
      throw ImportRefusal{line.from(), "a second heading, another one", "import one version's rows per file"};
    heads_ = cells;
    for (auto head = heads_.begin(); head != heads_.end(); ++head)
      if (std::find(heads_.begin(), head, *head) != head)
        throw ImportRefusal{line.from(), fmt::format("the column '{}' is there twice", harmless(*head)), kDocaHint};
  }

  [[nodiscard]] std::string_view cell(std::size_t row, std::string_view head) const {
    const auto found = std::ranges::find(heads_, head);
    return found == heads_.end() ? std::string_view()
                                 : rows_[row].second[static_cast<std::size_t>(found - heads_.begin())];
  }

  void row(std::int64_t number, const std::string& differ) {
    const auto index = static_cast<std::size_t>(number - 1);
    Values at{{"row", number}};
    for (const auto& [head, name] : kDocaSettings) {
      const auto word = cell(index, head);
      if (word.empty()) continue;
      const auto whole = whole_from(word);
      if (!whole || *whole < 0)
        throw ImportRefusal{rows_[index].first, fmt::format("'{}' is no number of the column {}", harmless(word), head),
                            kDocaHint};
      at[name] = *whole;
    }
    if (!differ.empty()) add_condition(at, fmt::format("its own {}, not read", differ));
    rate(index, kBytes, {.metric = "throughput", .unit = "B/s", .statistic = "mean"}, kByteRates, at);
    rate(index, kRate, {.metric = "operation_rate", .unit = "1/s", .statistic = "mean"}, kOperationRates, at);
  }

  void rate(std::size_t index, std::string_view head, FigureName name, std::span<const RateUnit> units,
            const Values& at) {
    if (std::ranges::find(heads_, head) == heads_.end()) return;
    const auto words = words_of(cell(index, head));
    const std::string from = fmt::format("{}, {}", rows_[index].first, head);
    if (words.empty() || is_absent(words[0]))
      return figures_.leave_out(from, "mean " + name.metric, "the cell is empty");
    if (words.size() != 2) throw ImportRefusal{from, "is not a number with its unit", kDocaHint};
    const auto unit = std::ranges::find(units, words[1], &RateUnit::word);
    if (unit == units.end())
      return figures_.leave_out(from, "mean " + name.metric,
                                fmt::format("the unit '{}' is not known", harmless(words[1])));
    name.factor = unit->factor;
    figures_.word(name, at, words[0], from);
  }

  Figures& figures_;
  std::vector<std::string_view> heads_;
  std::vector<std::pair<std::string, std::vector<std::string_view>>> rows_;  ///< place and cells
  std::size_t unread_ = 0;
};

}  // namespace

void read_doca_bench(std::string_view text, judge::ImportSource& /*source*/, Figures& figures) {
  DocaReader reader(figures);
  for (const auto& line : lines_of(text, &figures))
    if (!line.text.empty()) reader.line(line);
  reader.end();
}

}  // namespace assay::imports
